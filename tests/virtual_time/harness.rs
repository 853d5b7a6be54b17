//! Helpers shared by the tests of this directory.

use phitwire::link::impair::Netem;
use phitwire::net::{self, Clock, Profile};
use phitwire::nic::{Operation, TrafficReport, TrafficSpec};
use phitwire::sim::check::Allowance;
use phitwire::sim::{Direction, LinkId, LinkSpec, World};
use phitwire::time::Duration;
use phitwire_aries::topology::{Dragonfly, DragonflySpec, Shape};
use phitwire_blackwidow::topology::{BlackWidowSpec, ClosSettings, FoldedClos};

pub type Network = World<FoldedClos>;

/// Latency between two processes of a lab.
const LIVE_LATENCY: Duration = Duration::from_us(10);
/// Latency of the chips' own links.
const PAPER_LATENCY: Duration = Duration::from_ns(25);

/// A network of `processors`, `subtree` to a rank-1 router, with the depths and clock of processes
/// on real wires: free-running routers, deep buffers.
pub fn live(processors: u32, subtree: u32) -> BlackWidowSpec {
    BlackWidowSpec {
        processors,
        subtree,
        ..BlackWidowSpec::default()
    }
}

/// The network of [`live`] with the chip's own depths and its 1.25 ns cycle.
pub fn paced(processors: u32, subtree: u32) -> BlackWidowSpec {
    let settings = ClosSettings {
        profile: Profile::Paper,
        clock: Clock::Paced { dilation: 1 },
        ..ClosSettings::default()
    };
    BlackWidowSpec {
        settings,
        ..live(processors, subtree)
    }
}

pub fn generate(spec: &BlackWidowSpec) -> FoldedClos {
    spec.generate()
        .unwrap_or_else(|error| panic!("{spec:?}: {error}"))
}

/// A dragonfly of groups with one chassis of `blades` routers, a NIC at each, and one link between
/// each pair of groups.
pub fn dragonfly(groups: u16, blades: u8) -> Dragonfly {
    let spec = DragonflySpec {
        shape: Shape {
            groups,
            chassis: 1,
            blades,
            nics: 1,
        },
        global_links: Some(1),
        ..DragonflySpec::default()
    };
    spec.generate()
        .unwrap_or_else(|error| panic!("{spec:?}: {error}"))
}

/// The labs' dragonfly, three groups of four routers, with the depths and clock of processes on
/// real wires.
pub fn aries_3x4() -> Dragonfly {
    let text = include_str!("../../netns-scripts/topologies/aries-3x4.toml");
    phitwire_aries::topology::read("aries-3x4.toml", text).expect("a ready description is sound")
}

/// The network with all its links up. A live link takes some 20 us between two processes.
pub fn up(spec: &BlackWidowSpec, seed: u64) -> Network {
    up_with(generate(spec), spec.settings.profile, seed)
}

/// The network with all its links up, with the usual latency of that profile.
pub fn up_with<L: net::Network>(topology: L, profile: Profile, seed: u64) -> World<L> {
    let latency = match profile {
        Profile::Paper => PAPER_LATENCY,
        Profile::Live => LIVE_LATENCY,
    };
    bring_up(topology, seed, LinkSpec { latency, mtu: 1472 })
}

pub fn bring_up<L: net::Network>(topology: L, seed: u64, spec: LinkSpec) -> World<L> {
    let mut network = World::new(topology, seed, spec).expect("the topology is sound");
    assert!(
        network.bring_up(Duration::from_ms(1_000)),
        "links train within a second"
    );
    network
}

pub fn netem(words: &str) -> Netem {
    words
        .parse()
        .unwrap_or_else(|error| panic!("{words}: {error}"))
}

/// Uniform traffic among all processors, `count` messages from each.
pub fn uniform<L: net::Network>(network: &World<L>, run: u64, count: u64) -> TrafficSpec {
    TrafficSpec {
        run,
        processors: network.traffic_numbers(),
        count,
        window: 64,
        seed: network.fabric.seed(),
        ..TrafficSpec::default()
    }
}

/// Runs `spec` to its end, lets the network drain and requires all checkers to pass.
pub fn run<L: net::Network>(
    network: &mut World<L>,
    spec: &TrafficSpec,
    limit: Duration,
) -> TrafficReport {
    run_with(network, spec, limit, Allowance::default())
}

pub fn run_with<L: net::Network>(
    network: &mut World<L>,
    spec: &TrafficSpec,
    limit: Duration,
    allow: Allowance,
) -> TrafficReport {
    network.start_traffic(spec).expect("the run is possible");
    finish(network, spec.run, limit, allow)
}

/// Waits for the end of a run and requires all checkers to pass.
pub fn finish<L: net::Network>(
    network: &mut World<L>,
    run: u64,
    limit: Duration,
    allow: Allowance,
) -> TrafficReport {
    let done = network.finish(run, limit);
    let report = network.report(run);
    let links = || network.link_states();
    assert!(done, "the run must end: {report:#?}\n{}", links());
    let violations = network.drain(run, None, allow, Duration::from_ms(5_000));
    assert!(
        violations.is_empty(),
        "seed {}: {violations:#?}\n{:#?}\n{}",
        network.fabric.seed(),
        network.report(run),
        network.link_states()
    );
    network.report(run)
}

/// The sum of a link counter over all ends.
pub fn link_counter(network: &Network, name: &str) -> u64 {
    let mut sum = 0;
    for link in (0..network.fabric.links() as u32).map(LinkId) {
        for (node, port) in network.fabric.ends(link) {
            if let Some(link) = network.fabric.node(node).link(port) {
                link.for_each_counter(&mut |counter, value| {
                    if counter == name {
                        sum += value;
                    }
                });
            }
        }
    }
    sum
}

pub fn impair_all<L: net::Network>(network: &mut World<L>, words: &str) {
    network.fabric.impair_all(Some(netem(words)));
}

#[allow(dead_code)]
pub fn impair(network: &mut Network, link: LinkId, words: &str) {
    for direction in Direction::BOTH {
        network.fabric.impair(link, direction, Some(netem(words)));
    }
}

#[allow(dead_code)]
pub const GET: Operation = Operation::Get;
