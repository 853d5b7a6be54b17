//! The link of the toy in the cases of all links.

use std::ops::Range;

use phitwire_framing::carrier::frame::FrameHeader;
use proptest::prelude::*;

use super::super::Packet;
use super::super::link::{RingEnd, STANDARD};
use crate::link::common::Common;
use crate::link::tests::rig::{self, A, B, Link, Pair, config, forward, lcb_methods};
use crate::link::{
    LaneRate, LinkClock, LinkConfig, LinkConfigBuilder, LinkControlBlock, LinkCounters, LinkEvent,
    LinkProfile, LinkStandard, LinkState, ReceiveBuffer,
};
use crate::packets::link::{Control, buffers, emit, frame_len};
use crate::packets::{Packet as _, PacketInput};
use crate::time::{Duration, Time};

pub struct Toy;

type Input = PacketInput<Packet>;

lcb_methods! { forward RingEnd, Input; }

impl Link for Toy {
    type Lcb = RingEnd;
    type Input = Input;
    type Config = LinkConfig;
    type Word = Packet;
    type Command = std::convert::Infallible;

    const VCS: usize = 1;
    const PACKET_WORDS: Range<usize> = 1..2;
    const IDLE_FRAME_BYTES: usize = frame_len::<Packet>(0);
    const SMALL_FRAME_BYTES: usize = frame_len::<Packet>(2);
    const ID_BITS: u32 = 24;
    const PROCESSES: u32 = 1 << 6;
    const STANDARD: LinkStandard = STANDARD;
    const OTHER_RATE: LaneRate = STANDARD.rates[1];
    const LOSES_TAILS: bool = false;
    const NUMBERS_SOFT_ERRORS: bool = true;
    const CHARGES_OF_20: Range<u64> = 21..22;

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

    fn made(config: LinkConfig, now: Time) -> (RingEnd, Input) {
        LinkControlBlock::new(config, now)
    }

    fn packet(_: usize, id: u32, _: usize) -> Vec<Packet> {
        let id = u64::from(id);
        vec![core::array::from_fn(|i| id << (7 * i) | i as u64)]
    }

    fn can_begin(end: &RingEnd, _: usize, _: usize) -> bool {
        end.room(0) > 0
    }

    fn push(end: &mut RingEnd, packet: Packet) {
        end.push(packet);
    }

    fn credits(end: &RingEnd, _: usize) -> u32 {
        end.room(0) as u32
    }

    fn offered(end: &RingEnd) -> u32 {
        buffers::<Packet>(end.config().profile())
    }

    fn vc_freed(end: &mut RingEnd, vc: usize, packets: u32) {
        LinkControlBlock::vc_freed(end, vc, packets);
    }

    fn len(input: &Input, _: usize) -> u32 {
        input.queued() as u32
    }

    fn pop(input: &mut Input, _: usize) -> Packet {
        input.pop(0).unwrap()
    }

    fn take_acks(input: &mut Input, _: usize) -> u32 {
        let mut acks = 0;
        input.take_freed(|_, freed| acks = freed);
        acks
    }

    fn is_whole(_: &[Packet]) -> bool {
        true
    }

    fn check(end: &mut rig::End<Self>, vc: usize, got: &[Packet]) {
        let id = got[0][0] as u32;
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

    fn check_failures(end: &RingEnd) -> u64 {
        end.counters().drop_bad_sideband + end.counters().rx_crc_errors
    }

    fn requests(end: &RingEnd) -> u64 {
        end.counters().rx_retry_requests
    }

    fn described(end: &rig::End<Self>) -> String {
        format!("queued {}", end.input.queued())
    }

    fn forge(pair: &Pair<Self>, to: usize, lanes: u8, more: u64, packets: &[Packet]) -> Vec<u8> {
        let from = &pair.ends[1 - to].lcb;
        let mut bytes = vec![0; frame_len::<Packet>(packets.len())];
        let header = FrameHeader {
            units: packets.len() as u16,
            ..from.common.header(Packet::KIND, lanes)
        };
        let control = Control {
            seq: pair.ends[to].lcb.rx.expected(),
            ack: from.rx.expected() + more,
            limits: from.rx.limits(),
            ..Control::default()
        };
        emit(&header, &control, packets.iter(), &mut bytes);
        bytes
    }

    fn command(_: &mut RingEnd, command: std::convert::Infallible, _: Time) {
        match command {}
    }

    fn frame_bytes() -> BoxedStrategy<usize> {
        (3..20_usize).prop_map(frame_len::<Packet>).boxed()
    }
}

impl RingEnd {
    /// Nothing checks a packet before its frame.
    fn soft_error_next(&mut self) {}
}

mod shared {
    crate::link::tests::shared_cases!(crate::machine::toy::tests::links::Toy);
}
