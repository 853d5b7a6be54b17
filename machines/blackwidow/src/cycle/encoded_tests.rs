//! Whole runs with encoded links.

use super::tests::{config, simulation};
use super::*;
use crate::topology::{BlackWidowSpec, FoldedClos, Rank};
use phitwire::link::impair::Netem;
use phitwire::sim::direct::*;

fn clos(processors: u32, subtree: u32, rank: Option<Rank>, slices: u8) -> FoldedClos {
    let spec = BlackWidowSpec {
        processors,
        subtree,
        rank,
        slices,
        ..BlackWidowSpec::default()
    };
    spec.generate().unwrap()
}

fn over_links(
    topology: &FoldedClos,
    config: &Config,
    netem: Option<Netem>,
    partitions: usize,
) -> Result<Simulation<BlackWidow>, ConfigError> {
    let options = BlackWidowOptions::default();
    Simulation::with_encoded_links(topology, config, &options, netem, partitions, &mut Serial)
}

fn run(topology: &FoldedClos, config: &Config, words: &str, partitions: usize) -> Report {
    let netem: Option<Netem> = (!words.is_empty()).then(|| words.parse().unwrap());
    let mut simulation = over_links(topology, config, netem, partitions).unwrap();
    let report = simulation.run(&mut Serial, |_| {});
    assert_eq!(report.violations, [], "{words}");
    report
}

#[test]
fn encoded_links_add_their_serialisation_to_the_latency_of_direct_ones() {
    let topology = clos(4, 4, None, 1);
    let encoded = run(&topology, &config(10_000), "", 1).latency_cycles.min;
    let mut direct = simulation(&topology, &config(10_000), 1);
    let direct = direct.run(&mut Serial, |_| {}).latency_cycles.min;
    // 13 phits of 1.28 ns in bursts of four on two links, instead of one phit per cycle on each.
    let about = direct + 6..direct + 30;
    assert!(about.contains(&encoded), "{encoded} {direct}");
}

#[test]
fn everything_arrives_once_whatever_the_links_do() {
    let topology = clos(8, 4, None, 1);
    for words in [
        "loss 1%",
        "loss 10%",
        "delay 2us 1us",
        "duplicate 5%",
        "corrupt 1%",
        "delay 1us reorder 25%",
        "loss gemodel 1% 20% 80% 0.1%",
    ] {
        let report = run(&topology, &config(50_000), words, 2);
        assert!(report.packets > 100, "{words}: {report:?}");
        if words.starts_with("loss") {
            let again = report.retransmitted_packets;
            assert!(report.frames_lost > 0 && again > 0, "{words}");
        }
    }
}

#[test]
fn the_trace_is_the_same_for_any_number_of_partitions() {
    let topology = clos(12, 2, Some("2".parse().unwrap()), 2);
    let traced = |words, seed, partitions| {
        let config = Config {
            seed,
            ..config(50_000)
        };
        let report = run(&topology, &config, words, partitions);
        let frames = (report.frames_sent, report.retransmitted_packets);
        (report.trace_hash, frames)
    };
    for words in [
        "loss 1% delay 300ns 200ns",
        // The fate of a frame depends on the frames held when it is sent.
        "delay 500ns reorder 30% gap 3 limit 4",
        "delay 40ns rate 12gbit limit 6",
    ] {
        let one = traced(words, 5, 1);
        for partitions in [2, 5] {
            let other = traced(words, 5, partitions);
            assert_eq!(other, one, "{words}, {partitions} partitions");
        }
        assert_ne!(traced(words, 6, 2), one, "{words}");
    }
}

#[test]
fn resends_lengthen_no_path() {
    let topology = clos(12, 2, Some("2".parse().unwrap()), 2);
    let config = config(50_000);
    let hops = |words| run(&topology, &config, words, 1).hops_mean;
    let clear = hops("");
    assert!((2.0..=3.0).contains(&clear), "{clear}");
    assert!((hops("loss 5%") - clear).abs() < 0.05);
}

#[test]
fn traffic_that_flows_is_not_at_rest() {
    // Canary of the checks on idle encoded links.
    let topology = clos(8, 4, None, 1);
    let mut simulation = over_links(&topology, &config(300_000), None, 2).unwrap();
    simulation.run_windows(200);
    let mut violations = Vec::new();
    simulation.check_now(&mut violations);
    use phitwire::sim::check::Violation as AtRest;
    let found = |wanted: fn(&AtRest) -> bool| {
        let on_link = |v: &Violation| matches!(v, Violation::Link(at_rest) if wanted(at_rest));
        violations.iter().any(on_link)
    };
    let credits = found(|v| matches!(v, AtRest::Credits { .. }));
    assert!(credits, "{violations:?}");
    let unacknowledged = found(|v| matches!(v, AtRest::Unacknowledged { .. }));
    assert!(unacknowledged, "{violations:?}");
}

#[test]
fn replies_come_back() {
    let topology = clos(8, 4, None, 1);
    let mut config = config(50_000);
    config.traffic.request_reply = true;
    let report = run(&topology, &config, "loss 1%", 1);
    assert!(report.latency_cycles.min > 150, "{report:?}");
}

#[test]
fn links_that_lose_everything_do_not_come_up() {
    let topology = clos(2, 2, None, 1);
    let dead = "loss 100%".parse().unwrap();
    let refused = over_links(&topology, &config(1_000), Some(dead), 1);
    assert_eq!(refused.err(), Some(ConfigError::LinksDown));
}
