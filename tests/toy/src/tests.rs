//! The toy machine: its links in the shared link tests, and whole rings in virtual time.

use super::cycle::RingModel;
use super::link::STANDARD;
use super::network::Ring;
use super::router::{RingCore, RingPosition};
use super::{MACHINE, Packet};
use phitwire::link::LinkStandard;
use phitwire::link::impair::Netem;
use phitwire::net::{Clock, Effort, Network, Profile, Settings, describe};
use phitwire::nic::{Operation, TrafficPattern, TrafficSpec};
use phitwire::packets::link::testing::Sample;
use phitwire::sim::check::Allowance;
use phitwire::sim::direct::{self, Config, Load, Report, Serial, Simulation, Traffic, Warmup};
use phitwire::sim::{LinkSpec, World};
use phitwire::time::Duration;

fn ring(name: &str) -> Ring {
    <Ring as phitwire::net::Describe>::generate(name)
        .expect("it is a name")
        .expect("it is a ring")
}

impl Sample for Packet {
    const STANDARD: LinkStandard = STANDARD;

    fn sample(_: usize, id: u32) -> Self {
        Self(std::array::from_fn(|i| u64::from(id) << (7 * i) | i as u64))
    }

    fn id(&self) -> u32 {
        self.0[0] as u32
    }
}

/// The toy's links in the shared link tests.
mod links {
    phitwire::shared_link_cases! {
        phitwire::packets::link::testing::Rig<crate::Packet>
    }
}

#[test]
fn a_ring_is_generated_written_and_read() {
    let network = ring("ring-5");
    assert_eq!(network.nodes().len(), 15);
    assert_eq!(network.link_count(), 15);
    let read = describe::<Ring>("ring", &network.write()).expect("it was written so");
    assert_eq!(read.topology, network);
    assert!(network.judge(Effort::Exact).0.is_empty());
    assert!(MACHINE.networks.word == "ring");
    for (text, expected) in [
        ("family = \"ring\"\nname = \"x\"\n", "routers"),
        (
            "family = \"ring\"\nname = \"x\"\nrouters = 2\n",
            "out of range",
        ),
        ("family = \"ring\"\nname = \"-\"\nrouters = 4\n", "letter"),
    ] {
        let problems = describe::<Ring>("ring", text).expect_err("it is wrong");
        assert!(
            format!("{problems:?}").contains(expected),
            "{expected}: {problems:?}"
        );
    }
}

#[test]
fn tables_and_drawings_name_every_node() {
    let network = ring("ring-3");
    for text in [
        network.table(100),
        network.dot(),
        network.svg().expect("it is small"),
    ] {
        for name in network.node_names() {
            assert!(text.contains(&name), "{name} in {text}");
        }
    }
    assert!(ring("ring-300").svg().is_err());
}

/// Puts, then gets, with every link impaired by netem `words`.
fn verified(name: &str, words: Option<&str>, pattern: TrafficPattern) {
    let spec = LinkSpec {
        latency: Duration::from_us(5),
        mtu: 1_472,
    };
    let mut world = World::new(ring(name), 7, spec).expect("it is a ring");
    assert!(
        world.bring_up(Duration::from_ms(1_000)),
        "{}",
        world.link_states()
    );
    world
        .fabric
        .impair_all(words.map(|words| words.parse::<Netem>().expect("netem's words")));
    for (run, op) in [(1, Operation::Put), (2, Operation::Get)] {
        let traffic = TrafficSpec {
            run,
            pattern: pattern.clone(),
            processors: world.traffic_numbers(),
            op,
            count: 200,
            ..TrafficSpec::default()
        };
        world.start_traffic(&traffic).expect("it may run");
        assert!(
            world.finish(run, Duration::from_ms(60_000)),
            "{}",
            world.link_states()
        );
        let violations = world.drain(run, None, Allowance::default(), Duration::from_ms(60_000));
        assert_eq!(violations, [], "{}", world.link_states());
        assert_eq!(
            world.report(run).acknowledged,
            200 * traffic.processors.len() as u64
        );
    }
}

#[test]
fn every_message_comes_once() {
    verified("ring-3", None, TrafficPattern::Uniform);
    verified("ring-8", None, TrafficPattern::Neighbour);
}

#[test]
fn every_message_comes_once_over_bad_wires() {
    verified(
        "ring-5",
        Some("loss 5% duplicate 5% corrupt 2% delay 20us 10us"),
        TrafficPattern::Uniform,
    );
}

/// Runs a ring at the chip's own depths, with all NICs sending halfway round at full rate. Returns
/// whether everything is acknowledged in time.
fn a_full_ring_comes_to_its_end(bubble: u64) -> bool {
    let settings = Settings {
        profile: Profile::Paper,
        clock: Clock::Paced { dilation: 1 },
        ..Settings::default()
    };
    let mut ring = Ring::new("full".to_owned(), 8, settings);
    ring.bubble = bubble;
    let spec = LinkSpec {
        latency: Duration::from_ns(100),
        mtu: 1_472,
    };
    let mut world = World::new(ring, 7, spec).expect("it is a ring");
    assert!(world.bring_up(Duration::from_ms(10)));
    let traffic = TrafficSpec {
        run: 1,
        pattern: TrafficPattern::Tornado,
        processors: world.traffic_numbers(),
        window: 64,
        count: 300,
        ..TrafficSpec::default()
    };
    world.start_traffic(&traffic).expect("it may run");
    // This is far less than the request timeout.
    let comes = world.finish(1, Duration::from_ms(5_000));
    assert_eq!(comes, world.report(1).acknowledged == 300 * 16);
    comes
}

#[test]
fn a_ring_without_its_bubble_stands_still() {
    assert!(a_full_ring_comes_to_its_end(1));
    assert!(!a_full_ring_comes_to_its_end(0), "the rule is not needed?");
}

#[test]
fn paths_of_half_a_ring_go_in_either_direction() {
    let ways = |own| {
        let position = RingPosition {
            own,
            routers: 8,
            bubble: 1,
        };
        [8, 9, 6, 10].map(|dest| RingCore::route(position, &Packet([dest, 0, 0, 0, 0, 0, 0, 0])))
    };
    use super::router::{CLOCKWISE as C, COUNTERCLOCKWISE as D};
    assert_eq!(ways(0), [C, D, C, D]);
    assert_eq!(ways(4), [2, 3, D, C]);
}

/// Simulates a ring of five routers under load, in `partitions` partitions.
fn simulated(millionths: u32, pattern: TrafficPattern, partitions: usize) -> Report {
    let config = Config {
        traffic: Traffic {
            load: Load::from_millionths(millionths).expect("it is a load"),
            pattern: direct::Pattern::Common(pattern),
            request_reply: true,
            ..Traffic::default()
        },
        measure_cycles: 3_000,
        warmup: Warmup::Cycles(1_000),
        ..Config::default()
    };
    let ring = ring("ring-5");
    let simulation = Simulation::<RingModel>::with_encoded_links(
        &ring,
        &config,
        &(),
        None,
        partitions,
        &mut Serial,
    );
    let report = simulation
        .expect("it can be simulated")
        .run(&mut Serial, |_| {});
    assert_eq!(report.violations, []);
    report
}

#[test]
fn a_simulation_does_not_depend_on_its_partitions() {
    let whole = simulated(200_000, TrafficPattern::Uniform, 1);
    assert!(whole.packets > 1_000, "{whole:?}");
    for partitions in [2, 5] {
        let cut = simulated(200_000, TrafficPattern::Uniform, partitions);
        assert_eq!(cut.trace_hash, whole.trace_hash, "{partitions}");
    }
}
