use super::*;
use crate::topology::read;
use crate::topology::{BlackWidowSpec, FoldedClos};
use phitwire::sim::direct::*;

pub(super) fn yarc() -> FoldedClos {
    let text = include_str!("../../../../netns-scripts/topologies/yarc-64.toml");
    read("yarc-64.toml", text).unwrap().topology
}

pub(super) fn clos(processors: u32) -> FoldedClos {
    let spec = BlackWidowSpec {
        processors,
        ..BlackWidowSpec::default()
    };
    spec.generate().unwrap()
}

pub(super) fn ranked(processors: u32, rank: &str) -> FoldedClos {
    let spec = BlackWidowSpec {
        processors,
        rank: Some(rank.parse().unwrap()),
        ..BlackWidowSpec::default()
    };
    spec.generate().unwrap()
}

pub(super) fn config(millionths: u32) -> Config {
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

/// The network with links of 20 cycles, without encoding.
pub(super) fn simulation(
    topology: &FoldedClos,
    config: &Config,
    partitions: usize,
) -> Simulation<BlackWidow> {
    Simulation::new(topology, config, &BlackWidowOptions::default(), partitions).unwrap()
}

fn run(topology: &FoldedClos, config: &Config, partitions: usize) -> Report {
    run_with(topology, config, 20, partitions)
}

fn run_with(topology: &FoldedClos, config: &Config, link_cycles: u32, partitions: usize) -> Report {
    let options = BlackWidowOptions { link_cycles };
    let mut simulation =
        Simulation::<BlackWidow>::new(topology, config, &options, partitions).unwrap();
    let report = simulation.run(&mut Serial, |_| {});
    assert_eq!(report.violations, []);
    report
}

#[test]
fn an_idle_router_has_the_papers_latency() {
    let report = run(&yarc(), &config(10_000), 1);
    // Two links of 20 cycles, 25 stages, and 12 phits after the head.
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

fn with(pattern: &str, millionths: u32) -> Config {
    let mut config = config(millionths);
    config.traffic.pattern = pattern.parse().unwrap();
    config
}

#[test]
fn every_hop_adds_a_router_and_a_link() {
    // Two routers side by side; two and a third above them; two ranks above.
    for (rank, processors, hops) in [("1.5", 64, 2), ("2", 64, 3), ("3", 1_024, 5)] {
        let topology = ranked(processors, rank);
        let report = run(&topology, &with("bit-complement", 10_000), 1);
        assert_eq!(report.hops_mean, f64::from(hops), "{rank}");
        let least = |link: u32| u64::from(25 * hops + link * (hops + 1) + 12);
        assert_eq!(report.latency_cycles.min, least(20), "{rank}");
        let short = Config {
            measure_cycles: 500,
            ..with("bit-complement", 10_000)
        };
        assert_eq!(
            run_with(&topology, &short, 1, 1).latency_cycles.min,
            least(1)
        );
    }
}

#[test]
fn a_reply_costs_another_traversal() {
    let mut config = config(10_000);
    config.traffic.request_reply = true;
    let report = run(&yarc(), &config, 1);
    // The request's 13 phits, one cycle at the target, and the 4 phits of the reply.
    assert_eq!(report.latency_cycles.min, 2 * (2 * 20 + 25) + 12 + 1 + 3);
    assert_eq!(report.hops_mean, 2.0);
}

#[test]
fn flows_of_a_row_through_one_subswitch_get_what_head_of_line_blocking_leaves() {
    // 61.8 % for eight inputs (BlackWidow table 3). Packets of several phits and buffers of 16
    // slots cost a little.
    let report = run(&yarc(), &with("row-adversary", 1_000_000), 1);
    assert!(report.saturated);
    assert!((report.accepted_load - 0.618).abs() < 0.02, "{report:?}");
}

#[test]
fn a_hot_spot_takes_a_port_and_no_more() {
    let report = run(&yarc(), &with("hotspot:3:50", 400_000), 1);
    assert!(report.saturated);
    assert!(report.ejection_links.max > 0.99, "{report:?}");
    let calm = run(&yarc(), &with("hotspot:3:1", 300_000), 1);
    assert!(!calm.saturated);
}

#[test]
fn permutations_without_conflicts_take_a_full_load() {
    for pattern in ["neighbour", "tornado", "bit-complement", "shuffle"] {
        let report = run(&yarc(), &with(pattern, 950_000), 1);
        assert!(!report.saturated, "{pattern} {report:?}");
        assert!(report.accepted_load > 0.93, "{pattern} {report:?}");
    }
}

#[test]
fn every_pattern_and_process_keeps_the_rules() {
    for pattern in [
        "transpose",
        "bit-reverse",
        "permutation",
        "diagonal",
        "asymmetric",
    ] {
        let mut config = with(pattern, 600_000);
        config.traffic.process = Process::OnOff;
        config.traffic.message_bytes = 32;
        config.measure_cycles = 2_000;
        assert!(run(&clos(64), &config, 2).packets > 1_000, "{pattern}");
        config.traffic.message_bytes = 1;
        config.traffic.request_reply = true;
        assert!(
            run_with(&yarc(), &config, 64, 1).packets > 1_000,
            "{pattern}"
        );
    }
}

#[test]
fn nothing_is_left_behind_between_any_two_windows() {
    let mut simulation = simulation(&clos(96), &config(700_000), 3);
    for _ in 0..150 {
        simulation.run_windows(1);
        let mut violations = Vec::new();
        simulation.check_now(&mut violations);
        assert_eq!(violations, []);
    }
}

#[test]
fn a_warm_up_ends_when_nothing_changes_any_more() {
    let steady = Config {
        warmup: Warmup::Converge { limit: 60_000 },
        ..config(200_000)
    };
    let report = run(&yarc(), &steady, 1);
    assert!(
        report.converged && report.warmup_cycles < 60_000,
        "{report:?}"
    );
}

/// Trace hashes of runs with ideal links. Every change needs an explanation.
#[test]
fn traces_stay_what_they_are() {
    let hash = |topology: &FoldedClos, config: &Config, link_cycles| {
        format!(
            "{:016x}",
            run_with(topology, config, link_cycles, 1).trace_hash
        )
    };
    let short = |config| Config {
        measure_cycles: 1_000,
        warmup: Warmup::Cycles(500),
        ..config
    };
    let uniform = short(config(600_000));
    let mut answered = short(with("permutation", 700_000));
    answered.traffic.request_reply = true;
    answered.traffic.process = Process::OnOff;
    let mut hot = short(with("hotspot:0:90", 900_000));
    hot.traffic.message_bytes = 32;
    let mut broken = short(config(500_000));
    broken.faults = vec!["link 70 down at 300ns for 500ns".parse().unwrap()];
    let mut slow = yarc();
    for link in &mut slow.links {
        link.rate = crate::link::rates::G5_0;
    }
    assert_eq!(
        [
            hash(&yarc(), &uniform, 20),
            hash(&yarc(), &answered, 64),
            hash(&clos(128), &answered, 1),
            hash(&clos(64), &hot, 20),
            hash(&clos(64), &broken, 7),
            hash(&slow, &answered, 20),
        ],
        [
            "3105c9d33b436570",
            "6c3fc5598f87566f",
            "1f5afa250355dc68",
            "651ec22a82994e6e",
            "2b7c7ba47dbfaf0a",
            "6f28c9c379400dff",
        ]
    );
}
