//! Bytes that no correct peer sends.

use phitwire_framing::carrier::number::PacketNumber;
use phitwire_framing::yarc::control::{ControlWord, LinkStatus};
use phitwire_framing::yarc::packet::Vc;
use phitwire_framing::yarc::phit::{Phit, PhitKind};

use crate::link::testing::{Pair, REQUEST, frame_changed, frame_with, packet};
use phitwire::link::testing::end::Drain;
use phitwire::link::testing::hostile::never_panics;
use phitwire::link::testing::rig::{A, B};
use phitwire::link::{LinkCounters, LinkView, NodeLink};
use phitwire::time::Duration;

#[test]
fn impossible_numbers_drop_the_frame_by_reason() {
    let mut pair = Pair::up(1);
    let good = packet(Vc::Request, 0, 6);
    type Read = fn(&LinkCounters) -> u64;
    let with = |change: fn(&mut ControlWord)| {
        let mut word = ControlWord::default();
        change(&mut word);
        word
    };
    let ack: Read = |c| c.drop_impossible_ack;
    let vc_ack: Read = |c| c.drop_impossible_vc_ack;
    let position: Read = |c| c.drop_impossible_position;
    let cases = [
        (with(|word| word.ack = PacketNumber::new(1)), ack),
        (with(|word| word.ack = PacketNumber::new(0x7fff)), ack),
        (with(|word| word.vc_ack = [1, 0]), vc_ack),
        (with(|word| word.vc_ack = [0, 0x7_ffff]), vc_ack),
        (with(|word| word.seq = PacketNumber::new(8_192)), position),
        (with(|word| word.offset = 19), position),
    ];
    for (index, (word, counter)) in cases.into_iter().enumerate() {
        let before = pair.count(B, counter);
        let frame = frame_with(&pair, B, &word, &good);
        pair.inject(B, &frame);
        assert_eq!(pair.count(B, counter), before + 1, "case {index}");
        assert_eq!(
            pair.count(B, |c| c.rx_phits),
            0,
            "damaged frames are not used"
        );
    }
    let before_session = with(|word| word.seq = PacketNumber::new(u64::MAX));
    let frame = frame_with(&pair, B, &before_session, &good);
    pair.inject(B, &frame);
    assert_eq!(pair.count(B, |c| c.drop_impossible_position), 3);
    pair.load(A, 100);
    pair.finish(Duration::from_ms(1_000));
}

#[test]
fn packets_of_impossible_shape_are_rejected() {
    let body = Phit::new(PhitKind::Body, 1);
    let head = packet(Vc::Request, 0, 4)[0];
    let eop = packet(Vc::Request, 0, 4)[3];
    let endless: Vec<_> = core::iter::once(head).chain([body; 60]).collect();
    type Read = fn(&LinkCounters) -> u64;
    let malformed: Read = |c| c.rx_malformed_packets;
    let shapes: [(&[Phit], Read); 5] = [
        (&[body, body], malformed),
        (&[eop], malformed),
        (&[head, head, body, eop], malformed),
        (&[head, eop], |c| c.rx_crc_errors),
        (&endless, |c| c.rx_clipped_packets),
    ];
    for (index, (shape, counter)) in shapes.into_iter().enumerate() {
        let mut pair = Pair::up(index as u64);
        let frame = frame_with(&pair, B, &ControlWord::default(), shape);
        pair.inject(B, &frame);
        let counters = pair.ends[B].lcb.counters();
        assert_eq!(counters.rx_recoveries, 1, "shape {index}");
        assert_eq!(counter(counters), 1, "shape {index}");
        assert_eq!(counters.rx_packets, 0);
        pair.load(A, 100);
        pair.finish(Duration::from_ms(1_000));
    }
}

#[test]
fn a_clipped_packet_is_closed_at_the_maximum_length() {
    let mut pair = Pair::up(2);
    let body = Phit::new(PhitKind::Body, 1);
    let head = packet(Vc::Request, 0, 4)[0];
    // Half of the packet flows out before the rest arrives.
    let frame = frame_with(&pair, B, &ControlWord::default(), &[head, body, body]);
    pair.inject(B, &frame);
    pair.ends[B].pop(REQUEST);
    let word = ControlWord {
        offset: 3,
        ..Default::default()
    };
    let frame = frame_with(&pair, B, &word, &[body; 40]);
    pair.inject(B, &frame);
    assert_eq!(pair.count(B, |c| c.rx_clipped_packets), 1);
    // 19 phits including the end, of which one has flowed out.
    assert_eq!(pair.ends[B].lcb.input().len(Vc::Request), 18);
    pair.load(A, 10);
    pair.finish(Duration::from_ms(1_000));
    assert_eq!(pair.ends[B].poisoned, 1);
}

#[test]
fn more_phits_than_credits_are_excised() {
    let mut pair = Pair::up(3);
    pair.ends[B].drain = Drain::Blocked;
    // No credits were taken for these 20,000 phits; there is room for 16,384.
    for seq in 0..2_000 {
        let phits = packet(Vc::Request, seq, 10);
        let word = ControlWord {
            seq: PacketNumber::new(seq.into()),
            ..Default::default()
        };
        let frame = frame_with(&pair, B, &word, &phits);
        pair.inject(B, &frame);
    }
    assert_eq!(pair.count(B, |c| c.rx_overflows), 1, "{}", pair.state());
    assert_eq!(pair.ends[B].lcb.input().len(Vc::Request), 16_380);
    assert_eq!(pair.count(B, |c| c.rx_packets), 1_638);
}

#[test]
fn random_bytes_and_mutated_frames_never_panic() {
    let mut pair = Pair::up(4);
    never_panics(&mut pair, 60_000, mutated);
    let counters = pair.ends[B].lcb.counters();
    for (name, value) in [
        ("crc", counters.rx_crc_errors),
        ("malformed", counters.rx_malformed_packets),
        ("ack", counters.drop_impossible_ack),
        ("vc ack", counters.drop_impossible_vc_ack),
        ("position", counters.drop_impossible_position),
        ("header", counters.drop_bad_header_check),
        ("held", counters.rx_held_frames),
        ("packets", counters.rx_packets),
    ] {
        assert!(value > 0, "no {name} among the mutations");
    }
}

/// A nearly valid frame, with header and word recomputed so that the change gets far.
fn mutated(pair: &mut Pair) -> Vec<u8> {
    let rng = &mut pair.rng;
    let mut phits = Vec::new();
    let vc = Vc::from_index(rng.below(2) as usize);
    for _ in 0..rng.below(5) {
        let id = rng.below(100) as u32;
        phits.extend(packet(vc, id, 4 + rng.below(16) as usize));
    }
    if rng.chance(1, 3) && !phits.is_empty() {
        let at = rng.below(phits.len() as u64) as usize;
        phits[at] = Phit::from_bits(rng.next_u64() as u32);
    }
    let expected = pair.ends[B].lcb.wire().rx.expected();
    let near = |rng: &mut phitwire::rng::Rng, value: u64, spread: u64| {
        let more = value.wrapping_add(rng.below(spread));
        more.wrapping_sub(spread / 2)
    };
    let seq = match rng.chance(1, 2) {
        true => expected,
        false => near(rng, expected, 20),
    };
    let offset = if rng.chance(2, 3) { 0 } else { rng.below(32) };
    let statuses = [
        LinkStatus::Normal,
        LinkStatus::RetryRequest,
        LinkStatus::Probe,
    ];
    let status = statuses[rng.below(3) as usize];
    let ack = if rng.chance(9, 10) { 0 } else { rng.next_u64() };
    let vc_ack = if rng.chance(9, 10) { 0 } else { rng.next_u64() };
    let word = ControlWord {
        seq: PacketNumber::new(seq),
        offset: offset as u8,
        status,
        ack: PacketNumber::new(ack),
        vc_ack: [vc_ack as u32 & 0xf_ffff; 2],
        pass: rng.below(3) as u16,
    };
    let epoch = rng.chance(1, 100).then(|| rng.below(5) as u32);
    let lanes = rng.chance(1, 100).then(|| rng.below(8) as u8);
    let mut bytes = frame_changed(pair, B, &word, &phits, |header| {
        header.tx_epoch = epoch.unwrap_or(header.tx_epoch);
        header.lanes = lanes.unwrap_or(header.lanes);
    });
    let (rng, length) = (&mut pair.rng, bytes.len());
    if rng.chance(1, 10) {
        let at = rng.below(length as u64) as usize;
        bytes[at] ^= 1 << rng.below(8);
    }
    if rng.chance(1, 50) {
        bytes.truncate(rng.below(length as u64) as usize);
    }
    bytes
}
