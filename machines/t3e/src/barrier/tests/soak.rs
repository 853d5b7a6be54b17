//! Random barriers and eurekas, with several units at once, overlapping sets and concurrent rounds.

use phitwire_framing::t3e::barrier::UNITS;

use super::network::{Network, Options, Report};
use super::plan::Plan;
use super::torus::Torus;
use crate::barrier::SpanningTree;
use phitwire::rng::Rng;

const SHAPES: [[u32; 3]; 6] = [
    [2, 2, 2],
    [4, 2, 1],
    [3, 5, 2],
    [4, 4, 4],
    [7, 1, 1],
    [3, 3, 1],
];

/// A random network with random plans, determined by `seed`.
fn network(seed: u64, shape: [u32; 3], units: usize, rounds: usize) -> Network {
    let mut rng = Rng::new(seed, 0);
    let mut torus = Torus::new(shape);
    if rng.chance(1, 2) {
        torus.break_some(u64::from(torus.nodes()) / 4, &mut rng);
    }
    let mut plan = |_| {
        let count = 1 + rng.below(torus.nodes().into()) as usize;
        loop {
            let set = torus.some_nodes(count, &mut rng);
            let neighbour = |node, direction| torus.neighbour(node, direction);
            if SpanningTree::build(&set, neighbour).is_ok() {
                return Plan::random(set, rounds, &mut rng);
            }
            torus = Torus::new(shape);
        }
    };
    let plans: Vec<Plan> = (0..units).map(&mut plan).collect();
    let mut options = Options::new(seed);
    options.jitter = rng.below(3) * rng.below(40);
    options.skew = rng.below(3) * rng.below(60);
    options.slowness = 1 + rng.below(2) * rng.below(12);
    // A link broken for an earlier unit may work for a later one.
    Network::new(torus, plans, options)
}

#[test]
fn no_processor_is_released_early_and_all_are() {
    let mut total = Report::default();
    for seed in 0..240 {
        let shape = SHAPES[seed as usize % SHAPES.len()];
        let units = 1 + seed as usize % 5;
        let report = network(seed, shape, units, 12).run();
        let report = report.unwrap_or_else(|found| panic!("{found:?} with seed {seed}"));
        total.repeats += report.repeats;
        total.notified_armed += report.notified_armed;
        for (all, one) in total.longest.iter_mut().zip(report.longest) {
            *all = one.max(*all);
        }
    }
    // Races between two triggers have occurred often, and had their effects.
    assert_eq!(total.longest, [3, 2]);
    assert!(total.repeats > 10_000, "{total:?}");
    assert!(total.notified_armed > 10_000, "{total:?}");
}

#[test]
fn all_units_at_once() {
    for seed in 1_000..1_004 {
        let report = network(seed, [4, 4, 4], UNITS, 6).run();
        report.unwrap_or_else(|found| panic!("{found:?} with seed {seed}"));
    }
}

#[test]
fn a_seed_gives_the_same_run() {
    let run = |seed| network(seed, [3, 5, 2], 4, 8).run().expect("a clean run");
    assert_eq!(run(5), run(5));
    assert_ne!(run(5).trace, run(6).trace);
}
