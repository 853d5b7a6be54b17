//! Bytes that no correct peer sends.

use phitwire_framing::flit48::{Flit, VCS};
use phitwire_framing::frame::{FrameHeader, FrameKind, LinkEnd, SetFrameWriter};
use phitwire_framing::set48::{ControlSet, DATA_FLITS, DataSet, Set, SetBytes, Tail};

use super::harness::{A, B, Drain, End, Pair, packet};
use crate::link::aries::scrambler::Scrambler;
use crate::link::{LinkCounters, SetCounters};
use crate::rng::Rng;
use crate::time::Duration;

/// A well-formed frame from end A of the pair's session.
pub fn forge(pair: &Pair, sets: &[Set]) -> Vec<u8> {
    let bytes = sets.iter().map(|set| {
        let mut bytes = [0; 60];
        set.emit(&mut bytes);
        bytes
    });
    forge_bytes(pair, bytes, |_| {})
}

fn forge_bytes(
    pair: &Pair,
    sets: impl Iterator<Item = SetBytes>,
    change: impl FnOnce(&mut FrameHeader),
) -> Vec<u8> {
    let (tx_epoch, rx_epoch) = pair.ends[A].lcb.epochs();
    let mut header = FrameHeader {
        kind: FrameKind::Sets,
        end: LinkEnd::A,
        link: 7,
        fabric: 0xfab,
        tx_epoch,
        rx_epoch,
        lanes: 7,
        phits: 0,
    };
    change(&mut header);
    let seeds = pair.ends[A].lcb.aries_config().registers().scrambler_seeds;
    let scrambler = Scrambler::new(seeds, header.lanes);
    let mut buf = vec![0; 60_000];
    let mut writer = SetFrameWriter::new(&header, &mut buf).unwrap();
    for mut set in sets {
        scrambler.apply(&mut set);
        *writer.slot().unwrap() = set;
    }
    let length = writer.finish().unwrap();
    buf.truncate(length);
    buf
}

pub fn deliver(pair: &mut Pair, bytes: &[u8]) {
    let now = pair.now;
    let end = &mut pair.ends[B];
    end.lcb.handle_frame(now, bytes, &mut end.input);
}

pub fn data(number: u64, flits: &[Flit]) -> Set {
    let mut all = [Flit::IDLE; DATA_FLITS];
    all[..flits.len()].copy_from_slice(flits);
    let tail = Tail {
        number: (number & 0x7f) as u8,
        ..Tail::default()
    };
    Set::Data(DataSet { flits: all, tail })
}

#[test]
fn impossible_numbers_drop_the_frame_by_reason() {
    let mut pair = Pair::up(1);
    let good = data(0, &packet(0, 0, 6));
    let word = ControlSet::default();
    let with_ack = |vc: usize, count: u32| {
        let mut vc_acks = [0; VCS];
        vc_acks[vc] = count;
        ControlSet { vc_acks, ..word }
    };
    type Read = fn(&LinkCounters) -> u64;
    let cases: [(ControlSet, Read); 7] = [
        (ControlSet { ack: 1, ..word }, |c| c.drop_impossible_ack),
        (
            ControlSet {
                ack: 0x7fff_ffff,
                ..word
            },
            |c| c.drop_impossible_ack,
        ),
        (with_ack(0, 1), |c| c.drop_impossible_vc_ack),
        (with_ack(7, 0x7fff_ffff), |c| c.drop_impossible_vc_ack),
        (
            ControlSet {
                next: 2_049,
                ..word
            },
            |c| c.drop_impossible_position,
        ),
        (
            ControlSet {
                next: u32::MAX,
                ..word
            },
            |c| c.drop_impossible_position,
        ),
        (
            ControlSet {
                next: 1 << 31,
                ..word
            },
            |c| c.drop_impossible_position,
        ),
    ];
    for (index, (word, counter)) in cases.into_iter().enumerate() {
        let before = pair.count(B, counter);
        let frame = forge(&pair, &[Set::Control(word), good]);
        deliver(&mut pair, &frame);
        assert_eq!(pair.count(B, counter), before + 1, "case {index}");
        assert_eq!(pair.sets(B, |c| c.rx_flits), 0, "nothing of it is used");
    }
    pair.load(A, 100);
    pair.finish(Duration::from_ms(1_000));
}

#[test]
fn sets_that_nothing_places_or_that_contradict_are_dropped() {
    let mut pair = Pair::up(2);
    let good = packet(0, 0, 6);
    let frame = forge(&pair, &[data(0, &good)]);
    deliver(&mut pair, &frame);
    assert_eq!(pair.sets(B, |c| c.rx_unplaced_sets), 1);
    let word = Set::Control(ControlSet::default());
    let frame = forge(&pair, &[word, data(1, &good)]);
    deliver(&mut pair, &frame);
    assert_eq!(pair.sets(B, |c| c.rx_bad_sets), 1);
    // More sets than the window in one frame.
    let last = Set::Control(ControlSet {
        next: 2_046,
        ..Default::default()
    });
    let sets: Vec<_> = (2_046..2_052).map(|number| data(number, &good)).collect();
    let frame = forge(&pair, &[&[last], &sets[..]].concat());
    deliver(&mut pair, &frame);
    assert_eq!(pair.sets(B, |c| c.rx_bad_sets), 5);
    assert_eq!(pair.sets(B, |c| c.rx_held_sets), 2);
}

#[test]
fn flits_that_are_no_head_and_packets_without_credits_are_dropped() {
    let mut pair = Pair::up(3);
    let word = |next| {
        Set::Control(ControlSet {
            next,
            ..Default::default()
        })
    };
    let frame = forge(&pair, &[word(0), data(0, &[Flit::new(15 << 40)])]);
    deliver(&mut pair, &frame);
    assert_eq!(pair.sets(B, |c| c.rx_malformed_flits), 1);
    pair.ends[B].drain = Drain::Blocked;
    // Nobody took credits for these 18,000 flits of 16,384.
    for number in 1..=2_000 {
        let frame = forge(
            &pair,
            &[word(number), data(number.into(), &packet(0, number, 9))],
        );
        deliver(&mut pair, &frame);
    }
    let refused = pair.sets(B, |c| c.rx_refused_flits);
    assert!((1_400..1_620).contains(&refused), "{refused}");
    assert_eq!(pair.sets(B, |c| c.rx_sets), 2_001);
}

#[test]
fn yarc_s_frames_are_another_machine_s() {
    let mut pair = Pair::up(4);
    let word = phitwire_framing::control::ControlWord::default();
    let mut buf = vec![0; 1_000];
    let (tx_epoch, rx_epoch) = pair.ends[A].lcb.epochs();
    let header = FrameHeader {
        kind: FrameKind::Data,
        end: LinkEnd::A,
        link: 7,
        fabric: 0xfab,
        tx_epoch,
        rx_epoch,
        lanes: 7,
        phits: 0,
    };
    let length = phitwire_framing::frame::emit_data(&header, &word, &[&[], &[]], &mut buf).unwrap();
    deliver(&mut pair, &buf[..length]);
    assert_eq!(pair.count(B, |c| c.drop_bad_kind), 1);
}

#[test]
fn random_bytes_and_mutated_frames_never_panic() {
    for full in [true, false] {
        let mut pair = if full { Pair::new(5) } else { Pair::paper(5) };
        pair.wait_up();
        let mut buf = vec![0; 1_472];
        for round in 0..40_000_u64 {
            let bytes = if round % 4 == 0 {
                let length = pair.rng.below(400) as usize;
                (0..length).map(|_| pair.rng.next_u64() as u8).collect()
            } else {
                mutated(&mut pair)
            };
            let to = pair.rng.below(2) as usize;
            pair.now += Duration::from_ns(pair.rng.below(300_000));
            let now = pair.now;
            let end = &mut pair.ends[to];
            end.lcb.handle_frame(now, &bytes, &mut end.input);
            end.lcb.handle_timers(now, &mut end.input);
            drain_unchecked(end);
            while end.lcb.poll_frame(now, &mut buf).is_some() {}
            let wake = end.lcb.next_wakeup();
            assert!(wake.is_none_or(|at| at >= now || end.lcb.wants_to_send(now)));
        }
        all_reached(&pair, full);
    }
}

/// The mutations get everywhere.
fn all_reached(pair: &Pair, full: bool) {
    let (link, sets): (&LinkCounters, &SetCounters) =
        (pair.ends[B].lcb.counters(), pair.ends[B].lcb.set_counters());
    let reached = [
        ("crc", sets.rx_bad_crcs),
        ("bad", sets.rx_bad_sets + u64::from(!full)),
        ("duplicate", sets.rx_duplicate_sets),
        ("early or held", sets.rx_held_sets + sets.rx_early_sets),
        ("malformed", sets.rx_malformed_flits),
        ("sets", sets.rx_sets),
        ("control sets", sets.rx_control_sets),
        ("ack", link.drop_impossible_ack),
        ("vc ack", link.drop_impossible_vc_ack),
        ("position", link.drop_impossible_position),
        ("header", link.drop_bad_header_check),
        ("nacks", sets.rx_nacks),
    ];
    for (name, value) in reached {
        assert!(
            value > 0,
            "no {name} among the mutations, full numbers: {full}"
        );
    }
}

fn drain_unchecked(end: &mut End) {
    for vc in 0..VCS {
        while end.input.pop(vc).is_some() {}
    }
    end.give_back();
}

fn near(rng: &mut Rng, value: u64, spread: u64) -> u64 {
    value
        .saturating_add(rng.below(spread))
        .saturating_sub(spread / 2)
}

/// A frame that is nearly right, with every check recomputed so that the change gets far.
fn mutated(pair: &mut Pair) -> Vec<u8> {
    let expected = pair.ends[B].lcb.rx.expected();
    let mut rng = Rng::new(pair.rng.next_u64(), 1);
    let rng = &mut rng;
    let next = if rng.chance(2, 3) {
        expected
    } else {
        near(rng, expected, 20)
    };
    let mut sets = Vec::new();
    if rng.chance(9, 10) {
        let mut vc_acks = [0; VCS];
        if rng.chance(1, 10) {
            vc_acks[rng.below(8) as usize] = rng.next_u64() as u32;
        }
        sets.push(Set::Control(ControlSet {
            probe: rng.chance(1, 4),
            nack: rng.chance(1, 4),
            next: if rng.chance(1, 20) {
                rng.next_u64() as u32
            } else {
                next as u32
            },
            ack: if rng.chance(9, 10) {
                0
            } else {
                rng.next_u64() as u32
            },
            missing_from: rng.below(5) as u16,
            missing: rng.next_u64() as u16 >> rng.below(16),
            vc_acks,
            clock: rng.next_u64() >> 16,
            pulse: rng.chance(1, 2),
            load: rng.below(16) as u8,
        }));
    }
    for number in next..next + rng.below(5) {
        let (vc, flits) = (rng.below(8) as usize, 1 + rng.below(9) as usize);
        let mut flits = packet(vc, rng.below(100) as u32, flits);
        if rng.chance(1, 5) {
            let at = rng.below(flits.len() as u64) as usize;
            flits[at] = Flit::new(rng.next_u64());
        }
        let Set::Data(mut set) = data(number, &flits) else {
            unreachable!("made as data")
        };
        if rng.chance(1, 10) {
            set.tail = Tail {
                number: rng.below(128) as u8,
                ack: rng.below(64) as u8,
                nack: rng.chance(1, 2),
                load: rng.below(16) as u8,
                clock: true,
                vc_ack: rng.next_u64() as u8,
            };
        }
        sets.push(Set::Data(set));
    }
    if sets.is_empty() {
        sets.push(data(next, &[]));
    }
    let bytes: Vec<SetBytes> = sets
        .iter()
        .map(|set| {
            let mut bytes = [0; 60];
            set.emit(&mut bytes);
            bytes
        })
        .collect();
    // Whoever follows to fewer lanes stays there.
    let (epoch, lanes) = (rng.chance(1, 100), rng.chance(1, 10_000));
    let other = rng.below(8) as u8;
    let mut frame = forge_bytes(pair, bytes.into_iter(), |header| {
        if epoch {
            header.tx_epoch = other.into();
        }
        if lanes {
            header.lanes = other;
        }
    });
    let length = frame.len() as u64;
    if rng.chance(1, 10) {
        frame[rng.below(length) as usize] ^= 1 << rng.below(8);
    }
    if rng.chance(1, 50) {
        frame.truncate(rng.below(length) as usize);
    }
    frame
}
