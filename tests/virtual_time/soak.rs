//! Random networks, traffic and faults, from a seed each. `phitwire soak --seeds N --trace` replays
//! one.

use phitwire::sim::soak::{Case, Late, Soaked};
use phitwire_aries::soak::AriesLinks;
use phitwire_blackwidow::soak::BlackWidow;
use phitwire_machines::MACHINES;

/// Seeds of the ordinary run.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=200;
/// Of these, those with 100,000 messages per source in a busy network with late copies, which take
/// four fifths of the time of all 200. The cheapest such case, 117, remains; `tests/run.sh --long`
/// runs them all.
const LONG: [u64; 5] = [62, 143, 153, 156, 193];

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
    let is_ours = |seed: &u64| seed % 4 == part && !LONG.contains(seed);
    soak("blackwidow", SEEDS.filter(is_ours));
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
    soak("aries-direct", (1..=30).chain([4_519]));
}

#[test]
fn soak_of_the_first_dragonflies_over_links() {
    soak("aries-links", (1..=40).filter(|seed| seed % 2 == 0));
}

#[test]
fn soak_of_the_second_dragonflies_over_links() {
    soak("aries-links", (1..=40).filter(|seed| seed % 2 == 1));
}

/// Runs the seeds with late copies, except those that take long.
fn soak_late<M: Soaked>(name: &str) {
    for seed in 1..=40 {
        let case = Case::<M>::with_late_copies(seed);
        if case.traffic.count < 100_000
            && let Err(failure) = case.run(&mut |_, _| {})
        {
            panic!(
                "phitwire soak --late-copies --seeds {seed} --family {name} --trace\n{case:#?}\n{failure}"
            );
        }
    }
}

#[test]
fn soak_with_late_copies() {
    soak_late::<BlackWidow>("blackwidow");
}

#[test]
fn soak_of_dragonflies_with_late_copies() {
    soak_late::<AriesLinks>("aries-links");
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
