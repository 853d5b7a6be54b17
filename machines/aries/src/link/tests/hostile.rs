//! Bytes that no correct peer sends.

use phitwire_framing::aries::flit::{Flit, VCS};
use phitwire_framing::aries::set::{ControlSet, Set, Tail};

use crate::link::SetCounters;
use crate::link::testing::{Aries, AriesPair as _, Pair, data, frame_changed, frame_with, packet};
use phitwire::link::testing::end::Drain;
use phitwire::link::testing::hostile::never_panics;
use phitwire::link::testing::rig::Link;
use phitwire::link::testing::rig::{A, B};
use phitwire::link::{LinkCounters, LinkView};
use phitwire::rng::Rng;
use phitwire::time::Duration;

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
    let ack: Read = |c| c.drop_impossible_ack;
    let vc_ack: Read = |c| c.drop_impossible_vc_ack;
    let position: Read = |c| c.drop_impossible_position;
    let far = |next| ControlSet {
        next,
        ..ControlSet::default()
    };
    let cases = [
        (ControlSet { ack: 1, ..word }, ack),
        (
            ControlSet {
                ack: u32::MAX >> 1,
                ..word
            },
            ack,
        ),
        (with_ack(0, 1), vc_ack),
        (with_ack(7, 0x7fff_ffff), vc_ack),
        (far(2_049), position),
        (far(u32::MAX), position),
        (far(1 << 31), position),
    ];
    for (index, (word, counter)) in cases.into_iter().enumerate() {
        let before = pair.count(B, counter);
        let frame = frame_with(&pair, B, 7, &[Set::Control(word), good]);
        pair.inject(B, &frame);
        assert_eq!(pair.count(B, counter), before + 1, "case {index}");
        assert_eq!(
            pair.sets(B, |c| c.rx_flits),
            0,
            "damaged frames are not used"
        );
    }
    pair.load(A, 100);
    pair.finish(Duration::from_ms(1_000));
}

#[test]
fn unplaced_and_contradictory_sets_are_dropped() {
    let mut pair = Pair::up(2);
    let good = packet(0, 0, 6);
    let frame = frame_with(&pair, B, 7, &[data(0, &good)]);
    pair.inject(B, &frame);
    assert_eq!(pair.sets(B, |c| c.rx_unplaced_sets), 1);
    let word = Set::Control(ControlSet::default());
    let frame = frame_with(&pair, B, 7, &[word, data(1, &good)]);
    pair.inject(B, &frame);
    assert_eq!(pair.sets(B, |c| c.rx_bad_sets), 1);
    // More sets than the window in one frame.
    let last = Set::Control(ControlSet {
        next: 2_046,
        ..Default::default()
    });
    let sets: Vec<_> = (2_046..2_052).map(|number| data(number, &good)).collect();
    let frame = frame_with(&pair, B, 7, &[&[last], &sets[..]].concat());
    pair.inject(B, &frame);
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
    let frame = frame_with(&pair, B, 7, &[word(0), data(0, &[Flit::new(15 << 40)])]);
    pair.inject(B, &frame);
    assert_eq!(pair.sets(B, |c| c.rx_malformed_flits), 1);
    pair.ends[B].drain = Drain::Blocked;
    // These 18,000 flits exceed the 16,384 credits.
    for number in 1..=2_000 {
        let flits = data(number.into(), &packet(0, number, 9));
        let frame = frame_with(&pair, B, 7, &[word(number), flits]);
        pair.inject(B, &frame);
    }
    let refused = pair.sets(B, |c| c.rx_refused_flits);
    assert!((1_400..1_620).contains(&refused), "{refused}");
    assert_eq!(pair.sets(B, |c| c.rx_sets), 2_001);
}

#[test]
fn random_bytes_and_mutated_frames_never_panic() {
    for full in [true, false] {
        let mut pair = if full { Pair::new(5) } else { Aries::paper(5) };
        pair.wait_up();
        never_panics(&mut pair, 40_000, mutated);
        all_reached(&pair, full);
    }
}

/// The mutations reach every counter.
fn all_reached(pair: &Pair, full: bool) {
    let (link, sets): (&LinkCounters, &SetCounters) = (
        pair.ends[B].lcb.counters(),
        pair.ends[B].lcb.wire().set_counters(),
    );
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
        assert!(value > 0, "no {name} among the mutations, all bits: {full}");
    }
}

fn near(rng: &mut Rng, value: u64, spread: u64) -> u64 {
    value
        .saturating_add(rng.below(spread))
        .saturating_sub(spread / 2)
}

fn random_control(rng: &mut Rng, next: u64) -> ControlSet {
    let mut vc_acks = [0; VCS];
    if rng.chance(1, 10) {
        vc_acks[rng.below(8) as usize] = rng.next_u64() as u32;
    }
    ControlSet {
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
    }
}

fn random_data(rng: &mut Rng, number: u64) -> Set {
    let (vc, flits) = (rng.below(8) as usize, 1 + rng.below(9) as usize);
    let mut flits = packet(vc, rng.below(100) as u32, flits);
    if rng.chance(1, 5) {
        let at = rng.below(flits.len() as u64) as usize;
        flits[at] = Flit::new(rng.next_u64());
    }
    let Set::Data(mut set) = data(number, &flits) else {
        unreachable!("mutations of data frames")
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
    Set::Data(set)
}

/// A nearly valid frame, with every check recomputed so that the change gets far.
fn mutated(pair: &mut Pair) -> Vec<u8> {
    let expected = pair.ends[B].lcb.wire().rx.expected();
    let mut rng = Rng::new(pair.rng.next_u64(), 1);
    let rng = &mut rng;
    let next = if rng.chance(2, 3) {
        expected
    } else {
        near(rng, expected, 20)
    };
    let mut sets = Vec::new();
    if rng.chance(9, 10) {
        sets.push(Set::Control(random_control(rng, next)));
    }
    for number in next..next + rng.below(5) {
        sets.push(random_data(rng, number));
    }
    if sets.is_empty() {
        sets.push(data(next, &[]));
    }
    // Rarely, since an end that follows its peer to fewer lanes stays there.
    let (epoch, lanes) = (rng.chance(1, 100), rng.chance(1, 10_000));
    let other = rng.below(8) as u8;
    let mut frame = frame_changed(pair, B, &sets, |header| {
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
