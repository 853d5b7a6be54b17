//! Random networks, traffic and faults, from a seed each. `phitwire soak --seeds N --trace` replays
//! one.

use phitwire::sim::soak::testing::kinds;
use phitwire::sim::soak::{Case, Late, Soaked};
use phitwire_aries::soak::AriesLinks;
use phitwire_blackwidow::soak::BlackWidow;
use phitwire_machines::MACHINES;

/// Seeds of the ordinary run. `tests/run.sh --long` runs 200 of each family, and 40 with late copies.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=100;
/// Of these, those that take four fifths of the time: with 100,000 messages per source in a network
/// with late copies, or with several slices in a large one.
const SLOW: [u64; 13] = [1, 15, 17, 18, 19, 34, 49, 55, 58, 62, 69, 90, 99];

fn is_ordinary(seed: &u64) -> bool {
    !SLOW.contains(seed)
}

/// Each test takes a part of the seeds, so that they run in parallel.
fn soak(name: &str, seeds: impl Iterator<Item = u64>) {
    let mut families = MACHINES.iter().flat_map(|machine| machine.soak);
    let family = families.find(|family| family.name == name);
    let family = family.expect("there is such a family");
    for seed in seeds {
        let case = (family.case)(seed, Late::Seldom);
        if let Err(failure) = case.run(&mut |_, _| {}) {
            panic!("phitwire soak --seeds {seed} --family {name} --trace\n{case:#?}\n{failure}");
        }
    }
}

fn soak_of_blackwidow(part: u64) {
    let is_ours = |seed: &u64| seed % 4 == part && is_ordinary(seed);
    soak("blackwidow", SEEDS.filter(is_ours));
}

/// No kind of network or fault is only in the cases left out. Late copies have a test of their own.
#[test]
fn ordinary_seeds_have_every_kind() {
    let cases: Vec<Case<BlackWidow>> = SEEDS.filter(is_ordinary).map(Case::random).collect();
    let all: Vec<Case<BlackWidow>> = (1..=200).map(Case::random).collect();
    let mut every = kinds(&all);
    every.remove(&Some("LateCopies".to_owned()));
    assert_eq!(kinds(&cases), every);
    let any = |wanted: fn(&Case<BlackWidow>) -> bool| cases.iter().any(wanted);
    assert!(any(|case| case.spec.slices > 1));
    assert!(any(|case| case.topology().unwrap().chips.len() > 4));
    assert!(any(|case| case.impairment.contains("gemodel")));
}

#[test]
fn soak_of_the_first_part() {
    soak_of_blackwidow(0);
}

#[test]
fn soak_of_the_second_part() {
    soak_of_blackwidow(1);
}

#[test]
fn soak_of_the_third_part() {
    soak_of_blackwidow(2);
}

#[test]
fn soak_of_the_fourth_part() {
    soak_of_blackwidow(3);
}

#[test]
fn soak_of_dragonflies() {
    // One link between groups and few credits on long links: slow to drain, but not stuck.
    let slow = [3, 9, 15, 24, 25];
    let seeds = (1..=30).filter(|seed| !slow.contains(seed));
    soak("aries-direct", seeds.chain([4_519]));
}

#[test]
fn soak_of_dragonflies_over_links() {
    let slow = [4, 6, 24, 27];
    let seeds = (1..=40).filter(|seed| !slow.contains(seed));
    soak("aries-links", seeds);
}

/// Runs 40 seeds with late copies, except those that take long.
fn soak_late<M: Soaked>(name: &str, slow: &[u64]) {
    for seed in (1..=40).filter(|seed| !slow.contains(seed)) {
        let case = Case::<M>::with_late_copies(seed);
        if let Err(failure) = case.run(&mut |_, _| {}) {
            panic!(
                "phitwire soak --late-copies --seeds {seed} --family {name} --trace\n{case:#?}\n{failure}"
            );
        }
    }
}

#[test]
fn soak_with_late_copies() {
    let slow = [2, 10, 11, 15, 16, 17, 18, 19, 22, 26, 30, 34, 38];
    soak_late::<BlackWidow>("blackwidow", &slow);
}

#[test]
fn soak_of_dragonflies_with_late_copies() {
    soak_late::<AriesLinks>("aries-links", &[14, 34]);
}

/// Seeds that once failed, each with its cause. What a seed means may change with the kinds of
/// faults; each cause also has its own test.
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
        let outcome = Case::<BlackWidow>::random(seed).run(&mut |_, _| {});
        assert!(outcome.is_ok(), "seed {seed} ({what}): {outcome:?}");
    }
}
