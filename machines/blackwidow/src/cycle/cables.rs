//! Tests of links with different lengths and rates.

use super::tests::{clos, config, ranked, simulation, yarc};
use super::*;
use crate::link::rates;
use crate::topology::{BlackWidowSpec, FoldedClos};
use phitwire::link::LaneRate;
use phitwire::sim::direct::*;

const FULL: LaneRate = rates::G6_25;
const HALF: LaneRate = rates::G3_125;

fn run(topology: &FoldedClos, config: &Config, partitions: usize) -> Report {
    let mut simulation = simulation(topology, config, partitions);
    let report = simulation.run(&mut Serial, |_| {});
    assert_eq!(report.violations, []);
    report
}

fn with(pattern: &str, millionths: u32) -> Config {
    let mut config = config(millionths);
    config.traffic.pattern = pattern.parse().unwrap();
    config
}

/// Sets the length and rate of processor links and of router links.
fn lay(mut topology: FoldedClos, metres: [u16; 2], rates: [LaneRate; 2]) -> FoldedClos {
    for index in 0..topology.links.len() {
        let ends = [topology.links[index].a, topology.links[index].b];
        let kind = usize::from(ends.iter().all(|&end| topology.rank_of(end) > 0));
        let link = &mut topology.links[index];
        (link.metres, link.rate) = (Some(metres[kind]), rates[kind]);
    }
    topology
}

#[test]
fn latency_is_the_sum_over_the_path() {
    // Two routers side by side; two and a third above them; two ranks above.
    for (rank, processors, hops) in [("1.5", 64, 2_u64), ("2", 64, 3), ("3", 1_024, 5)] {
        // Latencies below 2,048 cycles are counted exactly. Each kind of link is the long one once;
        // the large network runs only these two cases.
        let lengths = [[200, 1], [2, 100], [1, 1], [3, 20], [20, 3]];
        for metres in lengths.into_iter().take(if hops < 5 { 5 } else { 2 }) {
            let topology = lay(ranked(processors, rank), metres, [FULL; 2]);
            let report = run(&topology, &with("bit-complement", 10_000), 1);
            let [outer, inner] = metres.map(|metres| 4 * u64::from(metres));
            let links = 2 * outer + (hops - 1) * inner;
            assert_eq!(
                report.latency_cycles.min,
                25 * hops + links + 12,
                "{rank} {metres:?}"
            );
        }
    }
}

#[test]
fn lengths_of_the_default_change_nothing() {
    let plain = ranked(64, "2");
    let config = config(300_000);
    let report = run(&plain, &config, 1);
    let laid = lay(plain, [5, 5], [FULL; 2]);
    assert_eq!(run(&laid, &config, 1), report);
    assert_eq!(run(&laid, &config, 2), report);
}

#[test]
fn a_slow_link_takes_its_time_for_every_phit() {
    for (rate, quarters) in [
        (rates::G5_0, 5),
        (HALF, 8),
        (rates::G2_5, 10),
        (rates::G1_5625, 16),
        (rates::G1_25, 20),
    ] {
        let topology = lay(yarc(), [5, 5], [rate; 2]);
        let report = run(&topology, &with("neighbour", 10_000), 1);
        // The head does not wait. The last of the twelve phits after it leaves when its lanes are
        // free.
        let least = 2 * 20 + 25 + (12 * quarters as u64).div_ceil(4);
        let latency = report.latency_cycles.min;
        assert!((least..=least + 2).contains(&latency), "{rate:?} {latency}");
    }
}

#[test]
fn throughput_is_that_of_the_rate() {
    for (rate, fraction) in [
        (FULL, 1.0),
        (rates::G5_0, 0.8),
        (HALF, 0.5),
        (rates::G2_5, 0.4),
        (rates::G1_5625, 0.25),
        (rates::G1_25, 0.2),
    ] {
        let topology = lay(yarc(), [5, 5], [rate; 2]);
        let full = run(&topology, &with("neighbour", 1_000_000), 1);
        let accepted = full.accepted_load;
        assert!(
            (0.97 * fraction..=1.001 * fraction).contains(&accepted),
            "{rate:?} {accepted}"
        );
        let below = (0.9 * fraction * 1e6) as u32;
        let calm = run(&topology, &with("neighbour", below), 1);
        assert!(!calm.saturated, "{rate:?} {calm:?}");
        if fraction < 1.0 {
            let above = (1.1 * fraction * 1e6) as u32;
            let busy = run(&topology, &with("neighbour", above), 1);
            assert!(busy.saturated, "{rate:?} {busy:?}");
        }
    }
}

fn taper(uplinks: u32, parallel: u32, rate: LaneRate) -> FoldedClos {
    let spec = BlackWidowSpec {
        processors: 64,
        subtree: 16,
        rank: Some("2".parse().unwrap()),
        uplinks: Some(uplinks),
        parallel,
        router_rate: Some(rate),
        ..BlackWidowSpec::default()
    };
    spec.generate().unwrap()
}

#[test]
fn twice_as_many_links_make_up_for_half_the_rate() {
    // The reverse taper for long cables (BlackWidow sec. 7.2): all traffic crosses the top rank.
    let config = with("bit-complement", 550_000);
    let full = run(&taper(16, 1, FULL), &config, 1);
    let reverse = run(&taper(32, 2, HALF), &config, 1);
    let half = run(&taper(16, 1, HALF), &config, 1);
    assert!(!full.saturated, "{full:?}");
    assert!(!reverse.saturated, "{reverse:?}");
    assert!(half.saturated, "{half:?}");
    assert!((reverse.accepted_load - full.accepted_load).abs() < 0.02);
    assert!(half.accepted_load < 0.505, "{half:?}");
}

#[test]
fn partitions_change_nothing_where_links_differ() {
    for (metres, rates) in [
        ([2, 17], [FULL; 2]),
        ([30, 1], [FULL, HALF]),
        ([9, 9], [rates::G5_0, rates::G1_25]),
    ] {
        let topology = lay(clos(128), metres, rates);
        let mut config = config(150_000);
        config.traffic.request_reply = true;
        config.measure_cycles = 1_000;
        config.warmup = Warmup::Cycles(500);
        let one = run(&topology, &config, 1);
        assert!(one.packets > 1_000, "{one:?}");
        for partitions in [2, 3, 7] {
            assert_eq!(run(&topology, &config, partitions), one, "{metres:?}");
        }
    }
}

#[test]
fn nothing_is_left_behind_where_links_differ() {
    let topology = lay(clos(96), [3, 50], [HALF, rates::G5_0]);
    let mut simulation = simulation(&topology, &config(700_000), 3);
    for _ in 0..300 {
        simulation.run_windows(1);
        let mut violations = Vec::new();
        simulation.check_now(&mut violations);
        assert_eq!(violations, []);
    }
}

#[test]
fn encoded_links_are_as_long_as_direct_ones() {
    let short = lay(ranked(64, "2"), [1, 1], [FULL; 2]);
    let long = lay(ranked(64, "2"), [3, 20], [FULL; 2]);
    let run = |topology: &FoldedClos, partitions| {
        let mut config = with("bit-complement", 10_000);
        config.measure_cycles = 2_000;
        let mut simulation = Simulation::<BlackWidow>::with_encoded_links(
            topology,
            &config,
            &BlackWidowOptions::default(),
            None,
            partitions,
            &mut Serial,
        )
        .unwrap();
        let report = simulation.run(&mut Serial, |_| {});
        assert_eq!(report.violations, []);
        report
    };
    let (near, far) = (run(&short, 1), run(&long, 1));
    let more = far.latency_cycles.min - near.latency_cycles.min;
    // Two links are two metres longer, and two are nineteen metres longer; bursts may begin at any
    // time.
    assert!((160..=176).contains(&more), "{more}");
    assert_eq!(run(&long, 2), far);
}
