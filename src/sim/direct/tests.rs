//! Whole runs in direct mode.

use super::*;
use crate::topology::{BlackwidowSpec, Topology, read};

/// One chip with 64 processors.
fn yarc() -> Topology {
    let text = include_str!("../../../netns-scripts/topologies/yarc-64.toml");
    read("yarc-64.toml", text).unwrap().topology
}

fn clos(processors: u32) -> Topology {
    let spec = BlackwidowSpec {
        processors,
        ..BlackwidowSpec::default()
    };
    spec.generate().unwrap()
}

fn config(millionths: u32) -> Config {
    Config {
        traffic: Traffic {
            load: Load::from_millionths(millionths).unwrap(),
            ..Traffic::default()
        },
        measure_cycles: 4_000,
        warmup: Warmup::Cycles(2_000),
        ..Config::default()
    }
}

fn run(topology: &Topology, config: &Config, partitions: usize) -> Report {
    let mut simulation = Simulation::new(topology, config, partitions).unwrap();
    let report = simulation.run(&mut Serial, |_| {});
    assert_eq!(report.violations, []);
    report
}

#[test]
fn an_idle_router_has_the_papers_latency() {
    let report = run(&yarc(), &config(10_000), 1);
    // Two links of 20 cycles, 25 stages, and 12 phits behind the head.
    assert_eq!(report.latency_cycles.min, 2 * 20 + 25 + 12);
    assert!(report.latency_cycles.mean < 78.0, "{report:?}");
    assert_eq!(report.hops_mean, 1.0);
    assert!(!report.saturated);
}

#[test]
fn one_router_takes_what_is_offered_below_saturation() {
    let report = run(&yarc(), &config(500_000), 1);
    assert!(!report.saturated, "{report:?}");
    assert!((report.offered_load - 0.5).abs() < 0.02, "{report:?}");
    assert!((report.accepted_load - report.offered_load).abs() < 0.01);
    let more = run(&yarc(), &config(1_000_000), 1);
    assert!(more.saturated, "{more:?}");
    assert!(more.accepted_load > 0.6, "{more:?}");
}

#[test]
fn partitions_change_nothing() {
    let topology = clos(128);
    let config = Config {
        traffic: Traffic {
            request_reply: true,
            ..config(400_000).traffic
        },
        measure_cycles: 1_000,
        warmup: Warmup::Cycles(500),
        ..Config::default()
    };
    let one = run(&topology, &config, 1);
    assert!(one.packets > 1_000);
    for partitions in [2, 3, 7] {
        assert_eq!(run(&topology, &config, partitions), one);
    }
    let other = Config { seed: 2, ..config };
    assert_ne!(run(&topology, &other, 2).trace_hash, one.trace_hash);
}
