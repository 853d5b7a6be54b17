//! Random networks, traffic and harm, from a seed each. `phitwire soak --seeds N --trace` replays one.

use phitwire::sim::soak::{AriesCase, Case, DragonflyCase};

/// Seeds of the ordinary run.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=200;

fn soak(part: u64, parts: u64) {
    for seed in SEEDS.filter(|seed| seed % parts == part) {
        let case = Case::random(seed);
        if let Err(failure) = case.run(&mut |_, _| {}) {
            panic!("phitwire soak --seeds {seed} --trace\n{case:#?}\n{failure}");
        }
    }
}

// Parts, so that they run side by side.
#[test]
fn soak_of_the_first_part() {
    soak(0, 4);
}

#[test]
fn soak_of_the_second_part() {
    soak(1, 4);
}

#[test]
fn soak_of_the_third_part() {
    soak(2, 4);
}

#[test]
fn soak_of_the_fourth_part() {
    soak(3, 4);
}

#[test]
fn soak_of_dragonflies() {
    for seed in 1..=60 {
        let case = DragonflyCase::random(seed);
        if let Err(failure) = case.run() {
            panic!(
                "phitwire soak --seeds {seed} --family aries-direct --trace\n{case:#?}\n{failure}"
            );
        }
    }
}

fn soak_of_dragonflies_over_links(part: u64) {
    for seed in (1..=40).filter(|seed| seed % 2 == part) {
        let case = AriesCase::random(seed);
        if let Err(failure) = case.run(&mut |_, _| {}) {
            panic!(
                "phitwire soak --seeds {seed} --family aries-links --trace\n{case:#?}\n{failure}"
            );
        }
    }
}

#[test]
fn soak_of_the_first_dragonflies_over_links() {
    soak_of_dragonflies_over_links(0);
}

#[test]
fn soak_of_the_second_dragonflies_over_links() {
    soak_of_dragonflies_over_links(1);
}

#[test]
fn soak_with_late_copies() {
    for seed in 1..=40 {
        let case = Case::with_late_copies(seed);
        if case.traffic.count < 100_000
            && let Err(failure) = case.run(&mut |_, _| {})
        {
            panic!("phitwire soak --late-copies --seeds {seed} --trace\n{case:#?}\n{failure}");
        }
    }
}

#[test]
fn soak_of_dragonflies_with_late_copies() {
    for seed in 1..=40 {
        let case = AriesCase::with_late_copies(seed);
        if case.traffic.count < 100_000
            && let Err(failure) = case.run(&mut |_, _| {})
        {
            panic!(
                "phitwire soak --late-copies --seeds {seed} --family aries-links --trace\n{case:#?}\n{failure}"
            );
        }
    }
}

/// Seeds that once failed, each with what was wrong. What a seed means may change with the kinds of harm that
/// there are; the cause of each has a test of its own as well.
#[test]
fn seeds_that_once_failed() {
    for (seed, what) in [
        (5_127, "a challenge offered the lanes of the session before"),
        (
            7_540,
            "a loss of one-byte messages was taken for a misorder",
        ),
        (
            8_118,
            "more than 32 lost messages of seven bytes were taken for corrupted ones",
        ),
    ] {
        let outcome = Case::random(seed).run(&mut |_, _| {});
        assert!(outcome.is_ok(), "seed {seed} ({what}): {outcome:?}");
    }
}
