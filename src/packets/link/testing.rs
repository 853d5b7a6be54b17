//! Links of whole packets in the shared link tests, for any packet.

use std::marker::PhantomData;
use std::ops::Range;

use phitwire_framing::carrier::frame::FrameHeader;
use phitwire_framing::carrier::lane_layout::LaneLayout;
use phitwire_framing::carrier::training::TRAINING_BYTES;
use proptest::prelude::*;

use super::frame::{Control, emit, frame_len};
use super::{PacketDepths, PacketEnd, PacketInput, PacketLinkConfig};
use crate::link::common::Common;
use crate::link::testing::rig::{self, A, B, Link, Pair, config};
use crate::link::{
    LaneRate, LinkClock, LinkConfigBuilder, LinkProfile, LinkStandard, LinkView, NodeLink,
    ReceiveBuffer,
};
use crate::packets::Packet;
use crate::time::Time;

/// Packets for link tests.
pub trait Sample: Packet {
    /// The machine's link standard, with at least two rates.
    const STANDARD: LinkStandard;

    /// The packet with this id on a virtual channel.
    fn sample(vc: usize, id: u32) -> Self;
    fn id(&self) -> u32;
}

/// Length of the shortest frame that fits `packets` packets and training.
pub const fn room_for<P: Packet>(packets: usize) -> usize {
    let bytes = frame_len::<P>(packets);
    if bytes < TRAINING_BYTES {
        TRAINING_BYTES
    } else {
        bytes
    }
}

/// Bytes of a frame without packets.
pub const fn idle_len<P: Packet>() -> usize {
    frame_len::<P>(0)
}

/// A frame with `packets` that end `from` might have sent to end `to`, acknowledging `more` packets
/// than it received.
pub fn forged<P: Packet>(
    [from, to]: [&PacketEnd<P>; 2],
    lanes: u8,
    more: u64,
    packets: &[P],
) -> Vec<u8> {
    let mut bytes = vec![0; frame_len::<P>(packets.len())];
    let header = FrameHeader {
        units: packets.len() as u16,
        ..from.common().header(P::KIND, lanes)
    };
    let control = Control {
        seq: to.wire().rx.expected(),
        ack: from.wire().rx.expected() + more,
        limits: from.wire().rx.limits(),
        ..Control::default()
    };
    emit(&header, &control, packets.iter(), &mut bytes);
    bytes
}

/// A configuration with buffers for `words` four-byte words per virtual channel.
fn with<P: Packet>(builder: LinkConfigBuilder, words: u32, window: u16) -> PacketLinkConfig {
    PacketLinkConfig {
        link: builder.build().unwrap(),
        depths: PacketDepths::new(words / P::BYTES.div_ceil(4) as u32, window),
    }
}

/// Links of packets of type `P`.
pub struct Rig<P>(PhantomData<P>);

impl<P: Sample> Link for Rig<P> {
    type Lcb = PacketEnd<P>;
    type Input = PacketInput<P>;
    type Config = PacketLinkConfig;
    type Word = P;
    type Command = std::convert::Infallible;

    const VCS: usize = P::VCS;
    const LAYOUT: LaneLayout = PacketEnd::<P>::LAYOUT;
    const PACKET_WORDS: Range<usize> = 1..2;
    const IDLE_FRAME_BYTES: usize = frame_len::<P>(0);
    const SMALL_FRAME_BYTES: usize = room_for::<P>(2);
    const ID_BITS: u32 = 24;
    const PROCESSES: u32 = 1 << 6;
    const STANDARD: LinkStandard = P::STANDARD;
    const OTHER_RATE: LaneRate = P::STANDARD.rates[1];
    const LOSES_TAILS: bool = false;
    const NUMBERS_SOFT_ERRORS: bool = true;
    const CHARGES_OF_20: Range<u64> = 21..22;

    fn common(lcb: &mut PacketEnd<P>) -> &mut Common {
        lcb.parts_mut().1
    }

    fn die(lcb: &mut PacketEnd<P>, now: Time) {
        lcb.die(now);
    }

    fn built(builder: LinkConfigBuilder) -> PacketLinkConfig {
        with::<P>(builder, 16_365, 8_191)
    }

    fn again(end: &PacketEnd<P>, builder: LinkConfigBuilder) -> PacketLinkConfig {
        PacketLinkConfig {
            link: builder.build().unwrap(),
            depths: end.wire().depths,
        }
    }

    fn cramped(builder: LinkConfigBuilder) -> PacketLinkConfig {
        with::<P>(builder, 48, 4)
    }

    fn paper(seed: u64) -> Pair<Self> {
        let end = |end| {
            let builder = config::<Self>(end).profile(LinkProfile::paper());
            with::<P>(builder.clock(LinkClock::Paced { dilation: 50 }), 109, 128)
        };
        Pair::with(seed, end(A), end(B), rig::FRAME_BYTES)
    }

    fn packet(vc: usize, id: u32, _: usize) -> Vec<P> {
        vec![P::sample(vc, id)]
    }

    fn can_begin(end: &PacketEnd<P>, vc: usize, _: usize) -> bool {
        end.room(vc) > 0
    }

    fn push(end: &mut PacketEnd<P>, packet: P) {
        end.push(packet);
    }

    fn credits(end: &PacketEnd<P>, vc: usize) -> u32 {
        end.room(vc) as u32
    }

    fn offered(end: &PacketEnd<P>) -> u32 {
        end.wire().depths.buffers()
    }

    fn len(input: &PacketInput<P>, vc: usize) -> u32 {
        input.len(vc)
    }

    fn pop(input: &mut PacketInput<P>, vc: usize) -> P {
        input.pop(vc).unwrap()
    }

    fn is_whole(_: &[P]) -> bool {
        true
    }

    fn check(end: &mut rig::End<Self>, vc: usize, got: &[P]) {
        let id = got[0].id();
        end.arrived(vc, id);
        assert_eq!(got, Self::packet(vc, id, 1), "contents");
    }

    fn assert_conserved(pair: &Pair<Self>, end: usize) {
        let (sent, got) = (
            pair.count(end, |c| c.tx_packets),
            pair.count(1 - end, |c| c.rx_packets),
        );
        assert_eq!(sent, got, "each packet is accepted once");
    }

    fn check_failures(end: &PacketEnd<P>) -> u64 {
        end.counters().drop_bad_header_check + end.counters().rx_crc_errors
    }

    fn requests(end: &PacketEnd<P>) -> u64 {
        end.counters().rx_retry_requests
    }

    fn described(end: &rig::End<Self>) -> String {
        format!("queued {}", end.lcb.input().queued())
    }

    fn forge(pair: &Pair<Self>, to: usize, lanes: u8, more: u64, packets: &[P]) -> Vec<u8> {
        let ends = [1 - to, to].map(|end| &pair.ends[end].lcb);
        forged(ends, lanes, more, packets)
    }

    fn command(_: &mut PacketEnd<P>, command: std::convert::Infallible, _: Time) {
        match command {}
    }

    fn force_retry(end: &mut PacketEnd<P>, now: Time) {
        end.force_retry(now);
    }

    fn frame_bytes() -> BoxedStrategy<usize> {
        (3..20_usize).prop_map(room_for::<P>).boxed()
    }
}
