//! Golden runs: topology, traffic and seed give these counters, byte for byte.
//!
//! Regenerate after an intended change: `INSTA_UPDATE=always cargo test --test virtual_time
//! golden`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use phitwire::chip::Grain;
use phitwire::net::{self, Clock, Profile};
use phitwire::nic::{Operation, RoutingMode, TrafficPattern, TrafficSpec};
use phitwire::sim::World;
use phitwire::sim::direct::{Config, Report, Serial, Simulation};
use phitwire::time::Duration;
use phitwire_aries::topology::Dragonfly;
use phitwire_blackwidow::topology::BlackWidowSpec;
use phitwire_t3e::cycle::{T3e, T3eOptions};
use phitwire_t3e::route::Shape;
use phitwire_t3e::topology::{Channels, Torus, TorusSpec};

use crate::encoded::{encoded, traffic};
use crate::harness::{aries_3x4, impair_all, live, paced, run, uniform, up, up_with};

/// The report and the trace hash, then every nonzero counter, summed over all nodes and links.
fn counters<L: net::Network>(network: &World<L>, run_id: u64) -> String {
    let report = network.report(run_id);
    let fabric = &network.fabric;
    let mut text = lines([
        ("now_ps", fabric.now().as_ps()),
        ("sent", report.sent),
        ("acknowledged", report.acknowledged),
        ("delivered", report.delivered),
        ("p50_ns", report.latency.quantile(500)),
        ("p99_ns", report.latency.quantile(990)),
    ]);
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |kind: &str, name: &str, value: u64| {
        *sums.entry(format!("{kind}.{name}")).or_default() += value;
    };
    for node in network.nics().chain(network.routers()) {
        let device = fabric.node(node);
        let kind = device.kind().name();
        // Skip links, which are counted separately, and a router's age, which is the time above.
        device.for_each_counter(&mut |name, value| {
            if !name.contains('.') && name != "cycles" {
                add(kind, name, value);
            }
        });
    }
    for link in network.links() {
        for (node, port) in fabric.ends(link) {
            if let Some(link) = fabric.node(node).link(port) {
                link.for_each_counter(&mut |name, value| add("link", name, value));
            }
        }
    }
    text += &lines(sums.into_iter().filter(|(_, value)| *value != 0));
    format!("trace_hash {:016x}\n{text}", fabric.trace_hash())
}

/// A line for each name.
fn lines<N: AsRef<str>>(figures: impl IntoIterator<Item = (N, u64)>) -> String {
    let mut text = String::new();
    for (name, value) in figures {
        writeln!(text, "{} {value}", name.as_ref()).expect("a string takes everything");
    }
    text
}

fn golden(
    spec: &BlackWidowSpec,
    words: &str,
    traffic: impl Fn(TrafficSpec) -> TrafficSpec,
) -> String {
    counted(up(spec, 2006), words, traffic)
}

/// The counters of a run over impaired links, of any machine.
fn counted<L: net::Network>(
    mut network: World<L>,
    words: &str,
    traffic: impl Fn(TrafficSpec) -> TrafficSpec,
) -> String {
    impair_all(&mut network, words);
    let traffic = traffic(uniform(&network, 1, 200));
    run(&mut network, &traffic, Duration::from_ms(60_000));
    counters(&network, 1)
}

#[test]
fn quickstart_with_one_percent_loss() {
    insta::assert_snapshot!(golden(&live(8, 4), "loss 1%", |traffic| traffic));
}

#[test]
fn the_chips_own_depths_and_clock() {
    let gets = |traffic| TrafficSpec {
        op: Operation::Get,
        pattern: TrafficPattern::BitComplement,
        size: 32,
        ..traffic
    };
    insta::assert_snapshot!(golden(&paced(8, 4), "", gets));
}

/// The labs' dragonfly with the chips' own depths and 1.143 ns cycle; flits by default.
fn paced_dragonfly() -> Dragonfly {
    let mut topology = aries_3x4();
    topology.settings.profile = Profile::Paper;
    topology.settings.clock = Clock::Paced { dilation: 1 };
    topology
}

#[test]
fn a_dragonfly_of_packets_with_one_percent_loss() {
    let network = up_with(aries_3x4(), Profile::Live, 2012);
    insta::assert_snapshot!(counted(network, "loss 1%", |traffic| traffic));
}

#[test]
fn a_dragonfly_of_flits_with_one_percent_loss() {
    let network = up_with(paced_dragonfly(), Profile::Paper, 2012);
    let whole = |traffic| TrafficSpec {
        size: 64,
        ..traffic
    };
    insta::assert_snapshot!(counted(network, "loss 1%", whole));
}

/// The measurements of `phitwire sim --netem`.
fn measured(report: &Report) -> String {
    let latency = &report.latency_cycles;
    let text = lines([
        ("cycles", report.cycles),
        ("packets", report.packets),
        ("phit_hops", report.phit_hops),
        ("measured_packets", latency.count),
        ("min_cycles", latency.min),
        ("p50_cycles", latency.p50),
        ("p99_cycles", latency.p99),
        ("max_cycles", latency.max),
        ("discarded_packets", report.discarded_packets),
        ("retransmitted_packets", report.retransmitted_packets),
        ("frames_sent", report.frames_sent),
        ("frames_lost", report.frames_lost),
    ]);
    let (_, share) = report.other_ways.expect("routers choose");
    format!(
        "trace_hash {:016x}\n{text}non_minimal_share {share:.6}\naccepted_load {:.6}\n",
        report.trace_hash, report.accepted_load
    )
}

fn simulated(grain: Grain) -> String {
    measured(&encoded(&aries_3x4(), &traffic(grain), "loss 1%", 1))
}

#[test]
fn a_simulated_dragonfly_of_flits_with_one_percent_loss() {
    insta::assert_snapshot!(simulated(Grain::Flit));
}

#[test]
fn a_simulated_dragonfly_of_packets_with_one_percent_loss() {
    insta::assert_snapshot!(simulated(Grain::Packet));
}

/// A torus with a partial plane, in which packets take initial and final hops.
fn torus(profile: Profile) -> Torus {
    let shape = Shape::new([4, 2, 2], vec![[4, 1, 1]]).expect("a shape");
    let mut spec = TorusSpec::new(shape);
    spec.settings.profile = profile;
    if profile == Profile::Paper {
        spec.settings.clock = Clock::Paced { dilation: 1 };
    }
    spec.torus()
}

#[test]
fn a_torus_with_one_percent_loss() {
    let network = up_with(torus(Profile::Live), Profile::Live, 1996);
    let additions = |traffic| TrafficSpec {
        op: Operation::Amo,
        size: 8,
        ..traffic
    };
    insta::assert_snapshot!(counted(network, "loss 1%", additions));
}

#[test]
fn a_torus_with_the_machine_s_own_depths_and_clock() {
    let network = up_with(torus(Profile::Paper), Profile::Paper, 1996);
    let ordered = |traffic| TrafficSpec {
        size: 64,
        ways: Some(RoutingMode::Ordered),
        ..traffic
    };
    insta::assert_snapshot!(counted(network, "", ordered));
}

/// The measurements of `phitwire sim` on a torus over ideal links.
fn crossed(seed: u64, channels: Channels) -> String {
    let (config, _) = traffic(Grain::Flit);
    let config = Config { seed, ..config };
    let options = T3eOptions {
        channels: Some(channels),
        ..T3eOptions::default()
    };
    let simulation = Simulation::<T3e>::new(&torus(Profile::Live), &config, &options, 1);
    let report = simulation
        .expect("the run is possible")
        .run(&mut Serial, |_| {});
    assert_eq!(report.violations, []);
    measured(&report)
}

#[test]
fn a_simulated_torus() {
    let one = crossed(1, Channels::Optimised);
    assert_eq!(one, crossed(1, Channels::Optimised));
    assert_ne!(one, crossed(2, Channels::Optimised));
    assert_ne!(one, crossed(1, Channels::TimeOfCrossing));
    insta::assert_snapshot!(one);
}

#[test]
fn a_golden_run_notices_a_change() {
    let one = golden(&live(4, 4), "", |traffic| traffic);
    let same = golden(&live(4, 4), "", |traffic| traffic);
    let other = golden(&live(4, 4), "", |traffic| TrafficSpec {
        size: 9,
        ..traffic
    });
    assert_eq!(one, same);
    assert_ne!(one, other);
}

#[test]
fn a_golden_run_of_a_dragonfly_notices_a_change() {
    let of = |grain, words, seed| {
        let (config, options) = traffic(grain);
        let asked = (Config { seed, ..config }, options);
        measured(&encoded(&aries_3x4(), &asked, words, 1))
    };
    let one = of(Grain::Flit, "loss 1%", 1);
    assert_eq!(one, of(Grain::Flit, "loss 1%", 1));
    assert_ne!(one, of(Grain::Packet, "loss 1%", 1));
    assert_ne!(one, of(Grain::Flit, "loss 1.1%", 1));
    assert_ne!(one, of(Grain::Flit, "loss 1%", 2));
}
