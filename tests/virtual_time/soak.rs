//! Random networks, traffic and harm, from a seed each. `phitwire soak --seeds N --trace` replays one.

use phitwire::sim::soak::Case;

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
