//! Aries links in the test rig: contents of their packets and frames.

use std::ops::Range;

use phitwire_framing::aries::flit::{Flit, Head, MAX_PACKET_FLITS, NodeId, Routing, VCS};
use phitwire_framing::aries::frame::{SetFrame, SetFrameWriter, set_frame_len};
use phitwire_framing::aries::set::{ControlSet, DATA_FLITS, DataSet, Set, SetBytes, Tail};
use phitwire_framing::carrier::frame::FrameHeader;
use phitwire_framing::carrier::lane_layout::LaneLayout;
use proptest::prelude::*;

use crate::link::SetCounters;
use crate::link::scrambler::Scrambler;
use crate::link::{AriesInput, AriesLcb, AriesLinkConfig, LcbRegisters, SetProfile};
use crate::link::{STANDARD, rates};
use phitwire::link::common::Common;
use phitwire::link::testing::rig::{self, FRAME_BYTES, Link};
pub use phitwire::link::testing::rig::{A, B};
use phitwire::link::{
    LaneRate, LinkClock, LinkConfigBuilder, LinkFault, LinkProfile, LinkStandard, LinkView,
    NodeLink,
};
use phitwire::time::{Duration, Time};

pub struct Aries;
pub type Pair = rig::Pair<Aries>;
pub type End = rig::End<Aries>;

/// Four sets plus the header.
pub const SMALL: usize = set_frame_len(4);

pub fn config(end: usize) -> LinkConfigBuilder {
    rig::config::<Aries>(end)
}

pub fn aries(builder: LinkConfigBuilder, sets: SetProfile) -> AriesLinkConfig {
    AriesLinkConfig::new(builder.build().unwrap(), sets).unwrap()
}

/// A configuration with depths and times for real wires.
pub fn live(end: usize) -> AriesLinkConfig {
    rig::live::<Aries>(end)
}

/// A configuration with the chip's depths and times, some fifty times as slow.
pub fn paper(end: usize) -> AriesLinkConfig {
    paper_of(config(end))
}

pub fn paper_of(builder: LinkConfigBuilder) -> AriesLinkConfig {
    let clock = LinkClock::Paced { dilation: 50 };
    let builder = builder.profile(LinkProfile::paper()).clock(clock);
    aries(builder, SetProfile::paper())
}

pub fn with(config: AriesLinkConfig, change: impl Fn(&mut LcbRegisters)) -> AriesLinkConfig {
    let mut registers = *config.registers();
    change(&mut registers);
    config.with_registers(registers).unwrap()
}

/// A set of data with this number.
pub fn data(number: u64, flits: &[Flit]) -> Set {
    let mut all = [Flit::IDLE; DATA_FLITS];
    all[..flits.len()].copy_from_slice(flits);
    let tail = Tail {
        number: (number & 0x7f) as u8,
        ..Tail::default()
    };
    Set::Data(DataSet { flits: all, tail })
}

/// A well-formed frame with `sets`, as from the peer of `to`.
pub fn frame_with(pair: &Pair, to: usize, lanes: u8, sets: &[Set]) -> Vec<u8> {
    frame_changed(pair, to, sets, |header| header.lanes = lanes)
}

/// A frame of `sets` on all lanes, with a changed header.
pub fn frame_changed(
    pair: &Pair,
    to: usize,
    sets: &[Set],
    change: impl FnOnce(&mut FrameHeader),
) -> Vec<u8> {
    let from = &pair.ends[1 - to].lcb;
    let (tx_epoch, rx_epoch) = from.epochs();
    let mut header = FrameHeader {
        kind: SetFrame::KIND,
        end: from.config().end(),
        link: 7,
        fabric: 0xfab,
        tx_epoch,
        rx_epoch,
        lanes: 7,
        units: 0,
    };
    change(&mut header);
    let seeds = from.wire().config().registers().scrambler_seeds;
    let scrambler = Scrambler::new(seeds, header.lanes);
    let mut buf = vec![0; 60_000];
    let mut writer = SetFrameWriter::new(&header, &mut buf).unwrap();
    for set in sets {
        let slot: &mut SetBytes = writer.slot().unwrap();
        set.emit(slot);
        scrambler.apply(slot);
    }
    let length = writer.finish().unwrap();
    buf.truncate(length);
    buf
}

/// Sets the load that an end reports.
pub fn set_load(lcb: &mut AriesLcb, load: u8) {
    let (wire, link, _) = lcb.parts_mut();
    wire.set_load(link, load);
}

/// A packet with `id` (30 bits) in its head and contents derived from it.
pub fn packet(vc: usize, id: u32, flits: usize) -> Vec<Flit> {
    let to = NodeId::from_bits(id >> 12);
    let id12 = (id & 0xfff) as u16;
    let head = Head::new(vc >= 4, flits as u8, to, Routing::Adaptive1, id12, 9).with_vc(vc as u8);
    let body = |i: usize| Flit::new(u64::from(id) * 0x1_0001 + (i as u64) * 77);
    core::iter::once(head.flit())
        .chain((1..flits).map(body))
        .collect()
}

fn id_of(head: Head) -> u32 {
    head.destination().bits() << 12 | u32::from(head.packet_id())
}

pub trait AriesPair: Sized {
    fn sets(&self, end: usize, read: impl Fn(&SetCounters) -> u64) -> u64;
    /// A pair over a cable that keeps frames in order.
    fn cabled(seed: u64, a: AriesLinkConfig, b: AriesLinkConfig, delay: Duration) -> Self;
}

impl AriesPair for Pair {
    fn sets(&self, end: usize, read: impl Fn(&SetCounters) -> u64) -> u64 {
        read(self.ends[end].lcb.wire().set_counters())
    }

    fn cabled(seed: u64, a: AriesLinkConfig, b: AriesLinkConfig, delay: Duration) -> Self {
        let mut pair = Self::with(seed, a, b, FRAME_BYTES);
        pair.wire(|wire| {
            wire.ordered = true;
            wire.delay = delay;
        });
        pair
    }
}

/// Aries-specific commands to a link end.
#[derive(Clone, Debug)]
pub enum Command {
    BadCrc,
    Reinit,
    LoseClock { us: u64 },
    Load(u8),
}

impl Link for Aries {
    type Lcb = AriesLcb;
    type Input = AriesInput;
    type Config = AriesLinkConfig;
    type Word = Flit;
    type Command = Command;

    const VCS: usize = VCS;
    const LAYOUT: LaneLayout = SetFrame::LAYOUT;
    const PACKET_WORDS: Range<usize> = 1..MAX_PACKET_FLITS + 1;
    const IDLE_FRAME_BYTES: usize = set_frame_len(1);
    const SMALL_FRAME_BYTES: usize = SMALL;
    const ID_BITS: u32 = 24;
    const PROCESSES: u32 = 1 << 6;
    const STANDARD: LinkStandard = STANDARD;
    const OTHER_RATE: LaneRate = rates::G12_5;
    const LOSES_TAILS: bool = true;
    const NUMBERS_SOFT_ERRORS: bool = true;
    // All sets of a frame are charged to the lane before the lane is checked.
    const CHARGES_OF_20: Range<u64> = 21..45;

    fn common(lcb: &mut AriesLcb) -> &mut Common {
        lcb.parts_mut().1
    }

    fn die(lcb: &mut AriesLcb, now: Time) {
        lcb.die(now);
    }

    fn built(builder: LinkConfigBuilder) -> AriesLinkConfig {
        aries(builder, SetProfile::live())
    }

    fn cramped(builder: LinkConfigBuilder) -> AriesLinkConfig {
        let sets = SetProfile {
            window_sets: 4,
            private_flits: 14,
            common_flits: 10,
            held_sets: 4,
            ..SetProfile::live()
        };
        aries(builder, sets)
    }

    /// Six-bit numbers cannot distinguish a late set from a new one, so the cable keeps frames in
    /// order.
    fn paper(seed: u64) -> Pair {
        Pair::cabled(seed, paper(A), paper(B), Duration::from_us(2))
    }

    fn packet(vc: usize, id: u32, flits: usize) -> Vec<Flit> {
        packet(vc, id, flits)
    }

    fn can_begin(lcb: &AriesLcb, vc: usize, flits: usize) -> bool {
        lcb.wire().can_begin(vc, flits)
    }

    fn push(lcb: &mut AriesLcb, flit: Flit) {
        lcb.push(flit);
    }

    fn push_packet(lcb: &mut AriesLcb, packet: &[Flit]) {
        lcb.push_packet(packet);
    }

    fn credits(lcb: &AriesLcb, vc: usize) -> u32 {
        lcb.wire().credits()[vc]
    }

    fn offered(lcb: &AriesLcb) -> u32 {
        let sets = lcb.wire().config().sets();
        sets.private_flits + sets.common_flits
    }

    fn is_settled(lcb: &AriesLcb) -> bool {
        lcb.wire().unacknowledged_sets() == 0
    }

    fn far_words(lcb: &AriesLcb) -> u32 {
        lcb.wire().far_flits()
    }

    fn len(input: &AriesInput, vc: usize) -> u32 {
        input.len(vc)
    }

    fn pop(input: &mut AriesInput, vc: usize) -> Flit {
        input.pop(vc).unwrap()
    }

    fn is_whole(flits: &[Flit]) -> bool {
        let head = Head::parse(flits[0]).expect("a packet begins with its head");
        flits.len() == usize::from(head.length())
    }

    /// Checks that packets are output once, in order and unchanged.
    fn check(end: &mut End, vc: usize, got: &[Flit]) {
        let head = Head::parse(got[0]).expect("the head was checked before");
        let id = id_of(head);
        let mut expected_flits = packet(vc, id, got.len());
        if head.poisoned() {
            end.poisoned += 1;
            expected_flits[0] = head.flit();
        }
        let ones = Flit::new(u64::MAX);
        if got.last() == Some(&ones) && got.len() > 1 {
            assert!(end.gaps_allowed, "packet {id} was cut");
            let there = got.iter().take_while(|flit| **flit != ones).count();
            assert_eq!(got[..there], expected_flits[..there], "contents");
            end.cut += 1;
            end.got_id[vc] = id + 1;
            return;
        }
        end.arrived(vc, id);
        assert_eq!(got, expected_flits, "contents");
    }

    fn assert_conserved(pair: &Pair, end: usize) {
        assert_eq!(
            pair.sets(end, |c| c.tx_flits),
            pair.sets(1 - end, |c| c.rx_flits),
            "each flit is accepted once"
        );
        assert_eq!(
            pair.ends[1 - end].poisoned,
            pair.count(end, |c| c.tx_soft_errors)
        );
    }

    fn check_failures(lcb: &AriesLcb) -> u64 {
        lcb.wire().set_counters().rx_bad_crcs
    }

    fn requests(lcb: &AriesLcb) -> u64 {
        lcb.wire().set_counters().rx_nacks
    }

    fn described(end: &End) -> String {
        format!("packets {} sets", end.lcb.wire().unacknowledged_sets())
    }

    fn for_each_own(lcb: &AriesLcb, visit: &mut dyn FnMut(&'static str, u64)) {
        lcb.wire().set_counters().for_each(visit);
    }

    fn forge(pair: &Pair, to: usize, lanes: u8, more: u64, flits: &[Flit]) -> Vec<u8> {
        let next = pair.ends[to].lcb.wire().rx.expected();
        let control = ControlSet {
            next: next as u32,
            ack: (pair.ends[1 - to].lcb.wire().rx.expected() + more) as u32,
            ..ControlSet::default()
        };
        let sets = [Set::Control(control), data(next, flits)];
        frame_with(pair, to, lanes, &sets[..1 + usize::from(!flits.is_empty())])
    }

    fn commands() -> Vec<BoxedStrategy<Command>> {
        vec![
            Just(Command::BadCrc).boxed(),
            Just(Command::Reinit).boxed(),
            (1..3_000_u64)
                .prop_map(|us| Command::LoseClock { us })
                .boxed(),
            (0..16_u8).prop_map(Command::Load).boxed(),
        ]
    }

    fn command(lcb: &mut AriesLcb, command: Command, now: Time) {
        let fault = match command {
            Command::BadCrc => LinkFault::BadCrc,
            Command::Reinit => LinkFault::Reinit,
            Command::LoseClock { us } => LinkFault::LoseClock(Duration::from_us(us)),
            Command::Load(load) => return set_load(lcb, load),
        };
        assert!(lcb.apply_fault(now, fault), "Aries links have this fault");
    }

    fn force_retry(lcb: &mut AriesLcb, now: Time) {
        lcb.force_retry(now);
    }

    fn soft_error_next(lcb: &mut AriesLcb) {
        lcb.apply_fault(lcb.common().now, LinkFault::SoftError);
    }

    fn frame_bytes() -> BoxedStrategy<usize> {
        (3..40_usize).prop_map(set_frame_len).boxed()
    }
}
