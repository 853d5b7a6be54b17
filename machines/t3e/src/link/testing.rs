//! The T3E's links in the test rig: packets of flits in bursts, above a carrier.

use std::convert::Infallible;
use std::ops::Range;

use phitwire_framing::carrier::lane_layout::LaneLayout;
use phitwire_framing::t3e::burst::{BURST_FLITS, Burst};
use phitwire_framing::t3e::check::Repair;
use phitwire_framing::t3e::flit::{Flit, FlitKind, VCS};
use phitwire_framing::t3e::header::{Command, Header, Name};
use phitwire_framing::t3e::packet::{PacketBuf, Request};
use proptest::prelude::*;

use crate::link::{
    BurstPacket, CARRIER_LANES, CARRIER_LIVE, CARRIER_PAPER, Depths, FlitEnd, FlitInput,
    FlitLinkConfig, RATE,
};
use phitwire::link::common::Common;
use phitwire::link::testing::rig::{self, A, B, FRAME_BYTES, Link};
use phitwire::link::{
    LaneRate, LinkClock, LinkConfigBuilder, LinkFault, LinkProfile, LinkStandard, LinkView,
    NodeLink,
};
use phitwire::packets::link::testing::{forged, idle_len, room_for};
use phitwire::packets::{PacketDepths, PacketEnd, PacketLinkConfig};
use phitwire::time::Time;

pub struct Flits;
pub type Pair = rig::Pair<Flits>;
pub type End = rig::End<Flits>;

const SLOWER: LaneRate = LaneRate::new(15, 875_000_000);

/// Packets of all lengths except ten flits with a single header flit.
const COMMANDS: [Command; 4] = [
    Command::Get1,
    Command::Put1,
    Command::CompareSwap,
    Command::Put8,
];

fn depths(flits: u16) -> Depths {
    Depths {
        deterministic: flits,
        adaptive: flits,
    }
}

/// A configuration in which the carrier has these depths, and every channel holds `flits` flits.
fn with(builder: LinkConfigBuilder, carrier: PacketDepths, flits: u16) -> FlitLinkConfig {
    FlitLinkConfig {
        carrier: PacketLinkConfig {
            link: builder.build().unwrap(),
            depths: carrier,
        },
        depths: depths(flits),
        corrects: true,
    }
}

/// The packet with this id, of about this many words.
pub fn packet(vc: usize, id: u32, words: usize) -> Vec<Flit> {
    let command = COMMANDS[words % COMMANDS.len()];
    let request = Request {
        address: id.into(),
        bytes: 8,
        ordered: id.is_multiple_of(2),
        name: Name::new(id & 0xf_ffff),
    };
    let data: [u64; 8] = core::array::from_fn(|word| {
        u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15 + word as u64)
    });
    let ends = (vc as u16, id as u16 & 0xff);
    let packet = PacketBuf::request(command, ends, &request, &data[..command.words()]);
    let flits = packet.flits().iter().enumerate();
    flits
        .map(|(at, &word)| Flit::data(word, vc, at == 0))
        .collect()
}

fn bursts(flits: &[Flit]) -> Vec<BurstPacket> {
    let burst = |flits: &[Flit]| {
        let mut burst = Burst::default();
        for (at, flit) in flits.iter().enumerate() {
            (burst.words[at], burst.controls[at]) = (flit.word, flit.control);
        }
        BurstPacket(burst)
    };
    flits.chunks(BURST_FLITS).map(burst).collect()
}

impl Link for Flits {
    type Lcb = FlitEnd;
    type Input = FlitInput;
    type Config = FlitLinkConfig;
    type Word = Flit;
    type Command = Infallible;

    const VCS: usize = VCS;
    const LAYOUT: LaneLayout = PacketEnd::<BurstPacket>::LAYOUT;
    const PACKET_WORDS: Range<usize> = 0..COMMANDS.len();
    const IDLE_FRAME_BYTES: usize = idle_len::<BurstPacket>();
    const SMALL_FRAME_BYTES: usize = room_for::<BurstPacket>(2);
    const ID_BITS: u32 = 24;
    const PROCESSES: u32 = 1 << 6;
    const STANDARD: LinkStandard = LinkStandard {
        lanes: CARRIER_LANES,
        rates: &[RATE, SLOWER],
    };
    const OTHER_RATE: LaneRate = SLOWER;
    const LOSES_TAILS: bool = true;
    const NUMBERS_SOFT_ERRORS: bool = true;
    const COUNTS_PACKETS: bool = false;
    const CHARGES_OF_20: Range<u64> = 21..22;

    fn common(lcb: &mut FlitEnd) -> &mut Common {
        lcb.carrier_mut().parts_mut().1
    }

    fn die(lcb: &mut FlitEnd, now: Time) {
        lcb.die(now);
    }

    fn built(builder: LinkConfigBuilder) -> FlitLinkConfig {
        with(builder, CARRIER_LIVE, 2_028)
    }

    fn cramped(builder: LinkConfigBuilder) -> FlitLinkConfig {
        with(builder, PacketDepths::new(2, 4), 12)
    }

    fn paper(seed: u64) -> Pair {
        let end = |end| {
            let clock = LinkClock::Paced { dilation: 50 };
            let builder = rig::config::<Self>(end).profile(LinkProfile::paper());
            with(builder.clock(clock), CARRIER_PAPER, 22)
        };
        Pair::with(seed, end(A), end(B), FRAME_BYTES)
    }

    fn packet(vc: usize, id: u32, words: usize) -> Vec<Flit> {
        packet(vc, id, words)
    }

    fn can_begin(lcb: &FlitEnd, vc: usize, flits: usize) -> bool {
        lcb.credits(vc) as usize >= flits
    }

    /// The rest of a packet whose session has ended is discarded.
    fn push(lcb: &mut FlitEnd, flit: Flit) {
        let FlitKind::Data(vc) = flit.control.kind() else {
            unreachable!("packets contain only data flits");
        };
        let vc = usize::from(vc);
        if flit.control.is_head() || lcb.credits(vc) > 0 {
            lcb.push(vc, flit);
        }
    }

    fn credits(lcb: &FlitEnd, vc: usize) -> u32 {
        lcb.credits(vc)
    }

    fn offered(lcb: &FlitEnd) -> u32 {
        lcb.account().offers[0]
    }

    fn is_settled(lcb: &FlitEnd) -> bool {
        lcb.account().unsent == 0
    }

    fn len(input: &FlitInput, vc: usize) -> u32 {
        input.buffer().len(vc)
    }

    fn pop(input: &mut FlitInput, vc: usize) -> Flit {
        Flit::data(input.pop(vc), vc, false)
    }

    fn is_whole(flits: &[Flit]) -> bool {
        let (header, _) = Header::parse(flits[0].word).expect("a packet begins with its header");
        flits.len() == header.command.flits()
    }

    /// Output arrives once and in order, and equals the input, or is marked as damaged.
    fn check(end: &mut End, vc: usize, got: &[Flit]) {
        let words: Vec<u64> = got.iter().map(|flit| flit.word).collect();
        let mut whole = PacketBuf::from_flits(&words).expect("a packet");
        let (header, found) = whole.open().expect("a readable header");
        if found[1] == Repair::Hopeless {
            assert!(end.gaps_allowed, "a packet was cut");
            end.cut += 1;
            return;
        }
        let id = Request::parse(&header, words[1]).address as u32;
        end.arrived(vc, id);
        let length = COMMANDS
            .iter()
            .position(|command| *command == header.command);
        let sent = packet(vc, id, length.expect("the command of a sent packet"));
        let sent: Vec<u64> = sent.iter().map(|flit| flit.word).collect();
        // Expect the corrected header: reading corrects a wrong bit.
        let (expected, _) = Header::parse(sent[0]).expect("the packet was sent");
        assert_eq!((header, &words[1..]), (expected, &sent[1..]), "contents");
    }

    /// Weight in flits, because a burst may contain flits of several packets.
    fn weight(flits: &[Flit]) -> u64 {
        flits.len() as u64
    }

    fn given_up(end: &End) -> u64 {
        end.lcb.flit_counters().tx_discarded_flits
    }

    fn assert_conserved(pair: &Pair, end: usize) {
        let counters = |end: usize| pair.ends[end].lcb.flit_counters();
        let (sent, got) = (counters(end), counters(1 - end));
        assert_eq!(sent.tx_flits, got.rx_flits, "each flit is accepted once");
        assert_eq!(got.rx_overflows + got.rx_impossible_credits, 0);
        assert_eq!(got.rx_headless_flits + got.rx_unreadable_headers, 0);
    }

    fn check_failures(lcb: &FlitEnd) -> u64 {
        lcb.counters().drop_bad_header_check + lcb.counters().rx_crc_errors
    }

    fn requests(lcb: &FlitEnd) -> u64 {
        lcb.counters().rx_retry_requests
    }

    fn described(end: &End) -> String {
        format!("flits {}", end.lcb.input().buffer().flits())
    }

    fn forge(pair: &Pair, to: usize, lanes: u8, more: u64, flits: &[Flit]) -> Vec<u8> {
        let ends = [1 - to, to].map(|end| pair.ends[end].lcb.carrier());
        forged(ends, lanes, more, &bursts(flits))
    }

    fn command(_: &mut FlitEnd, command: Infallible, _: Time) {
        match command {}
    }

    fn force_retry(lcb: &mut FlitEnd, now: Time) {
        lcb.carrier_mut().force_retry(now);
    }

    fn frame_bytes() -> BoxedStrategy<usize> {
        (3..20_usize).prop_map(room_for::<BurstPacket>).boxed()
    }
}

pub fn apply_fault(pair: &mut Pair, end: usize, fault: LinkFault) -> bool {
    let now = pair.now;
    pair.ends[end].lcb.apply_fault(now, fault)
}
