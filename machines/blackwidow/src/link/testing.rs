//! YARC links in the test rig: contents of their packets and frames.

use std::convert::Infallible;
use std::ops::Range;

use phitwire_framing::carrier::frame::FrameHeader;
use phitwire_framing::carrier::lane_layout::LaneLayout;
use phitwire_framing::carrier::number::PacketNumber;
use phitwire_framing::yarc::control::ControlWord;
use phitwire_framing::yarc::crc16::PacketCrc;
use phitwire_framing::yarc::frame::{DataFrame, MIN_FRAME_PHITS, emit_data, frame_len};
use phitwire_framing::yarc::packet::{EopStatus, Head, MAX_PACKET_PHITS, Vc};
use phitwire_framing::yarc::phit::{Phit, PhitKind};
use proptest::prelude::*;

use crate::link::{InputQueue, Lcb, PhitLinkConfig, PhitProfile, STANDARD, rates};
use phitwire::link::common::Common;
use phitwire::link::testing::rig::{self, Link};
pub use phitwire::link::testing::rig::{A, B};
use phitwire::link::{
    LaneRate, LinkClock, LinkConfigBuilder, LinkFault, LinkProfile, LinkStandard, LinkView,
    NodeLink,
};
use phitwire::time::Time;

pub struct Yarc;
pub type Pair = rig::Pair<Yarc>;
pub type End = rig::End<Yarc>;

pub const REQUEST: usize = Vc::Request.index();
pub const RESPONSE: usize = Vc::Response.index();
/// The smallest frames: 48 phits.
pub const TINY: usize = frame_len(48);

pub fn config(end: usize) -> LinkConfigBuilder {
    rig::config::<Yarc>(end)
}

pub fn live(end: usize) -> PhitLinkConfig {
    rig::live::<Yarc>(end)
}

/// A configuration with these depths, for the longest packets.
pub fn with(builder: LinkConfigBuilder, phits: PhitProfile) -> PhitLinkConfig {
    let link = builder.build().unwrap();
    PhitLinkConfig::new(link, phits, MAX_PACKET_PHITS as u8).unwrap()
}

/// A frame with `word` and `phits` as if from the other end of `to`.
pub fn frame_with(pair: &Pair, to: usize, word: &ControlWord, phits: &[Phit]) -> Vec<u8> {
    frame_changed(pair, to, word, phits, |_| {})
}

/// Like [`frame_with`], with a changed header.
pub fn frame_changed(
    pair: &Pair,
    to: usize,
    word: &ControlWord,
    phits: &[Phit],
    change: impl FnOnce(&mut FrameHeader),
) -> Vec<u8> {
    let from = &pair.ends[1 - to].lcb;
    let (tx_epoch, rx_epoch) = from.epochs();
    let mut header = FrameHeader {
        kind: DataFrame::KIND,
        end: from.config().end(),
        link: 7,
        fabric: 0xfab,
        tx_epoch,
        rx_epoch,
        lanes: 7,
        units: 0,
    };
    change(&mut header);
    let mut buf = vec![0; 60_000];
    let length = emit_data(&header, word, &[phits, &[]], &mut buf).unwrap();
    buf.truncate(length);
    buf
}

/// A healthy packet of `phits` phits whose second and third phits carry `id`.
pub fn packet(vc: Vc, id: u32, phits: usize) -> Vec<Phit> {
    let head = Head {
        dest: (id & 0x7fff) as u16,
        vc,
        hashed: false,
        adaptive: false,
        source_routed: false,
        payload: 0,
    };
    let mut crc = PacketCrc::new();
    let mut out = vec![Phit::new(PhitKind::Head, head.emit())];
    for i in 0..phits as u32 - 2 {
        out.push(Phit::new(
            PhitKind::Body,
            if i == 0 { id } else { id.wrapping_mul(i + 77) },
        ));
    }
    for phit in &out {
        crc.update(phit.content());
    }
    out.push(Phit::new(PhitKind::Eop, crc.eop(EopStatus::Healthy)));
    out
}

impl Link for Yarc {
    type Lcb = Lcb;
    type Input = InputQueue;
    type Config = PhitLinkConfig;
    type Word = Phit;
    type Command = Infallible;

    const VCS: usize = 2;
    const LAYOUT: LaneLayout = DataFrame::LAYOUT;
    const PACKET_WORDS: Range<usize> = 4..20;
    const IDLE_FRAME_BYTES: usize = frame_len(MIN_FRAME_PHITS);
    const SMALL_FRAME_BYTES: usize = TINY;
    const ID_BITS: u32 = 18;
    const PROCESSES: u32 = 1 << 4;
    const STANDARD: LinkStandard = STANDARD;
    const OTHER_RATE: LaneRate = rates::G3_125;
    const LOSES_TAILS: bool = false;
    const NUMBERS_SOFT_ERRORS: bool = false;
    const CHARGES_OF_20: Range<u64> = 21..22;

    fn common(lcb: &mut Lcb) -> &mut Common {
        lcb.parts_mut().1
    }

    fn die(lcb: &mut Lcb, now: Time) {
        lcb.die(now);
    }

    fn built(builder: LinkConfigBuilder) -> PhitLinkConfig {
        with(builder, PhitProfile::live())
    }

    fn again(lcb: &Lcb, builder: LinkConfigBuilder) -> PhitLinkConfig {
        let config = &lcb.wire().config;
        let link = builder.build().unwrap();
        PhitLinkConfig::new(link, config.phits.clone(), config.max_packet_phits).unwrap()
    }

    fn cramped(builder: LinkConfigBuilder) -> PhitLinkConfig {
        let phits = PhitProfile {
            input_phits_per_vc: 24,
            retry_phits: 64,
            window_packets: 4,
            reorder_phits: 100,
            ..PhitProfile::live()
        };
        with(builder, phits)
    }

    fn paper(seed: u64) -> Pair {
        let end = |end| {
            let builder = config(end).lane_retry_threshold(1_000_000);
            let builder = builder.profile(LinkProfile::paper());
            let builder = builder.clock(LinkClock::Paced { dilation: 50 });
            with(builder, PhitProfile::paper())
        };
        Pair::with(seed, end(A), end(B), TINY)
    }

    fn packet(vc: usize, id: u32, phits: usize) -> Vec<Phit> {
        packet(Vc::from_index(vc), id, phits)
    }

    fn can_begin(lcb: &Lcb, vc: usize, _: usize) -> bool {
        lcb.wire().can_begin(Vc::from_index(vc))
    }

    fn push(lcb: &mut Lcb, phit: Phit) {
        lcb.push(phit);
    }

    fn credits(lcb: &Lcb, vc: usize) -> u32 {
        lcb.wire().credits(Vc::from_index(vc))
    }

    fn offered(lcb: &Lcb) -> u32 {
        lcb.wire().config.phits.input_phits_per_vc
    }

    fn len(input: &InputQueue, vc: usize) -> u32 {
        input.len(Vc::from_index(vc))
    }

    fn pop(input: &mut InputQueue, vc: usize) -> Phit {
        input.pop(Vc::from_index(vc))
    }

    fn is_whole(phits: &[Phit]) -> bool {
        let last = phits[phits.len() - 1];
        assert_eq!(
            last.is_head(),
            phits.len() == 1,
            "a packet begins with a head"
        );
        last.is_eop()
    }

    /// Checks that all packets that flow out have a correct CRC, and that healthy ones arrive once
    /// and in order.
    fn check(end: &mut End, vc: usize, got: &[Phit]) {
        let mut crc = PacketCrc::new();
        for phit in &got[..got.len() - 1] {
            crc.update(phit.content());
        }
        let status = crc
            .verify(got[got.len() - 1].content())
            .expect("the delivered CRC is correct");
        match status {
            EopStatus::TransmitError => end.poisoned += 1,
            EopStatus::SoftError => {
                end.soft_errors += 1;
                end.got_id[vc] += 1;
            }
            EopStatus::Healthy => {
                let id = got[1].content();
                end.arrived(vc, id);
                assert_eq!(got, Self::packet(vc, id, got.len()), "contents");
            }
        }
    }

    fn assert_conserved(pair: &Pair, end: usize) {
        let (sent, got) = (
            pair.count(end, |c| c.tx_packets),
            pair.count(1 - end, |c| c.rx_packets),
        );
        assert_eq!(sent, got, "each packet is accepted once");
        assert_eq!(
            pair.ends[1 - end].soft_errors,
            pair.count(end, |c| c.tx_soft_errors)
        );
    }

    fn check_failures(lcb: &Lcb) -> u64 {
        lcb.counters().rx_crc_errors + lcb.counters().drop_bad_sideband
    }

    fn requests(lcb: &Lcb) -> u64 {
        lcb.counters().rx_retry_requests
    }

    fn described(end: &End) -> String {
        let queued = end.lcb.input().len(Vc::Request) + end.lcb.input().len(Vc::Response);
        format!("queued {queued}")
    }

    fn forge(pair: &Pair, to: usize, lanes: u8, more: u64, phits: &[Phit]) -> Vec<u8> {
        let from = &pair.ends[1 - to].lcb;
        let word = ControlWord {
            seq: PacketNumber::new(pair.ends[to].lcb.wire().rx.expected()),
            ack: PacketNumber::new(from.wire().rx.expected() + more),
            vc_ack: from.wire().rx.acks.counts(),
            ..ControlWord::default()
        };
        frame_changed(pair, to, &word, phits, |header| header.lanes = lanes)
    }

    fn command(_: &mut Lcb, command: Infallible, _: Time) {
        match command {}
    }

    fn force_retry(lcb: &mut Lcb, now: Time) {
        lcb.force_retry(now);
    }

    fn soft_error_next(lcb: &mut Lcb) {
        lcb.apply_fault(lcb.common().now, LinkFault::SoftError);
    }

    fn frame_bytes() -> BoxedStrategy<usize> {
        (48..600_usize).prop_map(frame_len).boxed()
    }
}
