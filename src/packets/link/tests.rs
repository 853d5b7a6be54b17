//! Links of whole packets in the cases of all links, whatever the packets are.

use std::marker::PhantomData;
use std::ops::Range;

use phitwire_framing::carrier::frame::{FrameHeader, FrameKind, HEADER_BYTES, PLAIN_AT, checksum};
use phitwire_framing::carrier::training::TRAINING_BYTES;
use proptest::prelude::*;

use super::frame::{Control, emit, frame_len};
use super::{PacketEnd, PacketInput, buffers};
use crate::link::common::Common;
use crate::link::session::Session;
use crate::link::tests::rig::{self, A, B, Link, Pair, config};
use crate::link::{
    EndStatus, LaneRate, LinkClock, LinkConfig, LinkConfigBuilder, LinkProfile, LinkStandard,
    ReceiveBuffer,
};
use crate::packets::Packet;
use crate::time::{Duration, Time};

/// Packets that links are tested with.
pub(crate) trait Sample: Packet {
    /// What all links of the machine have in common, with two rates at least.
    const STANDARD: LinkStandard;

    /// The packet with this id on a virtual channel.
    fn sample(vc: usize, id: u32) -> Self;
    /// The id of a packet.
    fn id(&self) -> u32;
}

/// Bytes of the least frame that has room for `packets` packets, and to train.
pub(crate) const fn room_for<P: Packet>(packets: usize) -> usize {
    let bytes = frame_len::<P>(packets);
    if bytes < TRAINING_BYTES {
        TRAINING_BYTES
    } else {
        bytes
    }
}

/// Bytes of a frame without packets.
pub(crate) const fn idle_len<P: Packet>() -> usize {
    frame_len::<P>(0)
}

/// A frame that end `from` might have sent to end `to`, with packets, and that acknowledges `more`
/// than it has.
pub(crate) fn forged<P: Packet>(
    [from, to]: [&PacketEnd<P>; 2],
    lanes: u8,
    more: u64,
    packets: &[P],
) -> Vec<u8> {
    let mut bytes = vec![0; frame_len::<P>(packets.len())];
    let header = FrameHeader {
        units: packets.len() as u16,
        ..from.common.header(P::KIND, lanes)
    };
    let control = Control {
        seq: to.rx.expected(),
        ack: from.rx.expected() + more,
        limits: from.rx.limits(),
        ..Control::default()
    };
    emit(&header, &control, packets.iter(), &mut bytes);
    bytes
}

/// Links of these packets.
pub(crate) struct Rig<P>(PhantomData<P>);

impl<P: Sample> Link for Rig<P> {
    type Lcb = PacketEnd<P>;
    type Input = PacketInput<P>;
    type Config = LinkConfig;
    type Word = P;
    type Command = std::convert::Infallible;

    const VCS: usize = P::VCS;
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
        Session::common(lcb)
    }

    fn die(lcb: &mut PacketEnd<P>, now: Time, input: &mut PacketInput<P>) {
        lcb.die(now, input);
    }

    fn built(builder: LinkConfigBuilder) -> LinkConfig {
        builder.build().unwrap()
    }

    fn cramped(builder: LinkConfigBuilder) -> LinkConfig {
        let profile = LinkProfile {
            input_phits_per_vc: 48,
            retry_phits: 64,
            window_packets: 4,
            reorder_phits: 100,
            ..LinkProfile::live()
        };
        builder.profile(profile).build().unwrap()
    }

    fn paper(seed: u64) -> Pair<Self> {
        let end = |end| {
            let builder = config::<Self>(end).profile(LinkProfile::paper());
            builder
                .clock(LinkClock::Paced { dilation: 50 })
                .build()
                .unwrap()
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
        buffers::<P>(end.config().profile())
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
        assert_eq!(sent, got, "each packet accepted once");
    }

    fn check_failures(end: &PacketEnd<P>) -> u64 {
        end.counters().drop_bad_header_check + end.counters().rx_crc_errors
    }

    fn requests(end: &PacketEnd<P>) -> u64 {
        end.counters().rx_retry_requests
    }

    fn described(end: &rig::End<Self>) -> String {
        format!("queued {}", end.input.queued())
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

/// A packet of a machine with two virtual channels: an id, and what follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Two {
    id: u32,
    vc: u8,
}

impl Packet for Two {
    const KIND: FrameKind = FrameKind::new(7);
    const LINK: &'static str = "test";
    const BYTES: usize = 21;
    const VCS: usize = 2;

    fn vc(&self) -> usize {
        self.vc.into()
    }

    fn emit(&self, bytes: &mut [u8]) {
        bytes.fill(self.id as u8);
        bytes[..4].copy_from_slice(&self.id.to_be_bytes());
        bytes[4] = self.vc;
    }

    fn parse(bytes: &[u8]) -> Self {
        let id = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let vc = bytes[4];
        assert!(bytes[5..].iter().all(|byte| *byte == id as u8));
        Self { id, vc }
    }
}

impl Sample for Two {
    const STANDARD: LinkStandard = LinkStandard {
        rates: &[
            LaneRate::new(8, 6_250_000_000),
            LaneRate::new(9, 3_125_000_000),
        ],
        max_packet_phits: 8,
    };

    fn sample(vc: usize, id: u32) -> Self {
        Self { id, vc: vc as u8 }
    }

    fn id(&self) -> u32 {
        self.id
    }
}

mod shared {
    crate::link::tests::shared_cases! {
        crate::packets::link::tests::Rig<crate::packets::link::tests::Two>
    }
}

/// What the counters of end B say that are called so.
fn counted(pair: &Pair<Rig<Two>>, names: &[&str]) -> Vec<u64> {
    let mut found = vec![0; names.len()];
    pair.ends[B].lcb.counters().for_each(|name, value| {
        if let Some(at) = names.iter().position(|wanted| *wanted == name) {
            found[at] = value;
        }
    });
    found
}

#[test]
fn reserved_bits_are_refused_by_the_name_of_their_field() {
    let names = ["drop_reserved_control", "rx_crc_errors", "rx_packets"];
    let (flags, control) = (PLAIN_AT + 16, PLAIN_AT + 40..PLAIN_AT + 42);
    let packet_end = frame_len::<Two>(1) - 1;
    for (at, expected) in [
        (None, [0, 0, 1]),
        (Some(flags), [1, 0, 0]),
        (Some(flags + 7), [1, 0, 0]),
        (Some(control.start), [1, 0, 0]),
        (Some(control.end - 1), [1, 0, 0]),
        (Some(packet_end), [0, 1, 0]),
    ] {
        let mut pair = Pair::<Rig<Two>>::up(1);
        let mut frame = Rig::forge(&pair, B, 7, 0, &[Two::sample(1, 0)]);
        if let Some(at) = at {
            frame[at] |= 1 << 2;
            let mut checked = frame[..HEADER_BYTES].to_vec();
            checked.extend_from_slice(&frame[PLAIN_AT..control.end]);
            frame[HEADER_BYTES..PLAIN_AT].copy_from_slice(&checksum(&checked).to_be_bytes());
        }
        pair.inject(B, &frame);
        assert_eq!(counted(&pair, &names), expected, "{at:?}");
    }
}

#[test]
fn a_packet_that_has_no_buffer_is_counted_by_its_reason() {
    let cramped = |end| Rig::<Two>::cramped(config::<Rig<Two>>(end));
    for (vc, expected) in [(1, [8, 1, 0]), (5, [0, 0, 1])] {
        let mut pair = Pair::<Rig<Two>>::with(1, cramped(A), cramped(B), rig::FRAME_BYTES);
        pair.wait_up();
        let packets = (0..10).map(|id| Two { id, vc }).collect::<Vec<_>>();
        let frame = Rig::forge(&pair, B, 7, 0, &packets);
        pair.inject(B, &frame);
        let names = ["rx_packets", "rx_overflows", "rx_malformed_packets"];
        assert_eq!(counted(&pair, &names), expected);
    }
}

#[test]
fn packets_that_overtake_each_other_draw_no_storm_of_frames() {
    for seed in 0..5 {
        // From the first on, before any round trip has been measured.
        let mut pair = Pair::<Rig<Two>>::up(seed);
        pair.wire(|wire| wire.jitter = Duration::from_us(50));
        pair.exchange(4_000, Duration::from_ms(60_000));
        let frames: u64 = pair.frames.iter().sum();
        assert!(frames < 8_000, "{frames} frames for as many packets");
    }
}
