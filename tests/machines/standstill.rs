//! Standstills of nodes, in small worlds of every machine, with links that give up as between
//! processes: nothing that the wires carried is lost or times out.

use super::dragonfly;
use phitwire::device::capability;
use phitwire::link::LinkEvent;
use phitwire::net::Network;
use phitwire::nic::TrafficSpec;
use phitwire::rng::Rng;
use phitwire::sim::{LinkSpec, NodeId, World};
use phitwire::time::Duration;
use phitwire_aries::topology::{Dragonfly, DragonflySpec, Shape};
use phitwire_blackwidow::topology::BlackWidowSpec;
use phitwire_t3e::topology::TorusSpec;

const MS: Duration = Duration::from_ms(1);
/// Shorter than most suspensions here, and longer than `GIVE_UP_MS`.
const REQUEST_TIMEOUT_MS: u64 = 3_000;
const GIVE_UP_MS: u64 = 2_000;

#[derive(Debug, Default, PartialEq, Eq)]
struct Harm {
    downs: u64,
    timed_out: u64,
    lost: u64,
    wrong: u64,
}

struct Standstills<L> {
    world: World<L>,
    rng: Rng,
    /// For the canary: nodes use the clock instead of attended time.
    by_the_clock: bool,
    downs: u64,
}

impl<L: Network> Standstills<L> {
    fn new(network: L, seed: u64) -> Self {
        let mut world = World::of_processes(network, seed, LinkSpec::default()).expect("a world");
        assert!(world.bring_up(MS.times(1_000)), "links come up");
        Self {
            world,
            rng: Rng::new(seed, 5),
            by_the_clock: false,
            downs: 0,
        }
    }

    fn run_for(&mut self, span: Duration) {
        self.world.fabric.run_for(span);
        while let Some(event) = self.world.fabric.poll_event() {
            let link = event.event.link();
            self.downs += u64::from(matches!(link, Some((_, LinkEvent::Down { .. }))));
        }
    }

    fn resume(&mut self, node: NodeId) {
        match self.by_the_clock {
            true => self.world.fabric.resume_by_the_clock(node),
            false => self.world.fabric.resume(node),
        }
    }

    /// A random subset of the nodes, or all of them, in random order.
    fn some(&mut self, all: bool) -> Vec<NodeId> {
        let nodes = (0..self.world.fabric.nodes() as u32).map(NodeId);
        let mut nodes: Vec<NodeId> = nodes.filter(|_| all || self.rng.chance(1, 2)).collect();
        for last in (1..nodes.len()).rev() {
            nodes.swap(last, self.rng.below(last as u64 + 1) as usize);
        }
        nodes
    }

    /// Stops `nodes` one by one within `apart` ms, and after `span` ms resumes them within `late`
    /// ms, in another order.
    fn stand_still(&mut self, all: bool, apart: u64, span: u64, late: u64) {
        let nodes = self.some(all);
        let steps = nodes.len().max(1) as u64;
        for &node in &nodes {
            self.world.fabric.suspend(node);
            let step = self.rng.below(apart / steps + 1);
            self.run_for(MS.times(step));
        }
        self.run_for(MS.times(span));
        let at = self.rng.below(steps) as usize;
        for index in 0..nodes.len() {
            self.resume(nodes[(index + at) % nodes.len()]);
            let step = self.rng.below(late / steps + 1);
            self.run_for(MS.times(step));
        }
    }

    fn harm(mut self) -> Harm {
        let spec = TrafficSpec {
            run: 1,
            processors: self.world.traffic_numbers(),
            window: 16,
            rate: 400,
            ..TrafficSpec::default()
        };
        self.world.start_traffic(&spec).expect("it starts");
        for _ in 0..3 {
            let ms = 200 + self.rng.below(400);
            self.run_for(MS.times(ms));
            match self.rng.below(3) {
                // Running nodes see the others silent for less than `GIVE_UP_MS`.
                0 => self.stand_still(false, 200, 800, 400),
                1 => self.stand_still(true, 400, 4_000, 400),
                // Suspend all nodes, as with a suspended machine; they resume over an equally long
                // time.
                _ => self.stand_still(true, 400, 12_000, 12_000),
            }
        }
        for nic in self.world.nics() {
            self.world.fabric.command(nic, |device, _| {
                device
                    .need::<capability::Traffic>()
                    .expect("it has runs")
                    .stop();
            });
        }
        assert!(self.world.finish(1, MS.times(60_000)), "the run ends");
        self.run_for(MS);
        let report = self.world.report(1);
        assert!(report.sent > 100, "{report:?}");
        Harm {
            downs: self.downs,
            timed_out: report.timed_out,
            lost: report.sent - report.delivered,
            wrong: report.corrupted + report.refused + report.unreachable,
        }
    }
}

fn patient(settings: (&mut u64, &mut u64)) {
    (*settings.0, *settings.1) = (REQUEST_TIMEOUT_MS, GIVE_UP_MS);
}

fn clos() -> impl Network {
    let mut spec = BlackWidowSpec {
        processors: 4,
        subtree: 2,
        ..BlackWidowSpec::default()
    };
    let settings = &mut spec.settings;
    patient((&mut settings.request_timeout_ms, &mut settings.give_up_ms));
    spec.generate().expect("a network")
}

fn dragonflies() -> Dragonfly {
    let mut spec = DragonflySpec {
        shape: Shape {
            groups: 2,
            chassis: 1,
            blades: 2,
            nics: 1,
        },
        global_links: Some(1),
        ..DragonflySpec::default()
    };
    let settings = &mut spec.settings;
    patient((&mut settings.request_timeout_ms, &mut settings.give_up_ms));
    spec.generate().expect("a network")
}

fn torus() -> impl Network {
    let mut spec = TorusSpec::new("2x2x1".parse().expect("a shape"));
    let settings = &mut spec.settings;
    patient((&mut settings.request_timeout_ms, &mut settings.give_up_ms));
    spec.torus()
}

fn no_harm<L: Network>(network: impl Fn() -> L) {
    for seed in 0..6 {
        let harm = Standstills::new(network(), seed).harm();
        assert_eq!(harm, Harm::default(), "seed {seed}");
    }
}

#[test]
fn a_suspended_folded_clos_loses_nothing() {
    no_harm(clos);
}

#[test]
fn a_suspended_dragonfly_loses_nothing() {
    no_harm(dragonflies);
}

#[test]
fn a_suspended_torus_loses_nothing() {
    no_harm(torus);
}

/// Canary: nodes that use the clock alone lose links and requests in the same suspensions.
#[test]
fn by_the_clock_alone_the_same_standstills_do_harm() {
    fn harm<L: Network>(network: L) -> Harm {
        let mut run = Standstills::new(network, 1);
        run.by_the_clock = true;
        run.harm()
    }
    for harm in [harm(clos()), harm(dragonflies()), harm(torus())] {
        assert!(harm.downs > 0 && harm.timed_out > 0, "{harm:?}");
    }
}

/// Timeouts exclude suspensions, measurements include them.
#[test]
fn a_run_s_latencies_and_its_time_contain_standstills() {
    let mut run = Standstills::new(dragonfly(), 1);
    let spec = TrafficSpec {
        run: 1,
        processors: run.world.traffic_numbers(),
        window: 4,
        rate: 400,
        duration_ns: 500_000_000,
        ..TrafficSpec::default()
    };
    run.world.start_traffic(&spec).expect("it starts");
    run.run_for(MS.times(100));
    run.stand_still(true, 0, 3_000, 0);
    assert!(run.world.finish(1, MS.times(10_000)), "the run ends");
    let report = run.world.report(1);
    assert_eq!((report.timed_out, run.downs), (0, 0));
    let took = Duration::from_ns(report.elapsed_ns);
    assert!(
        (MS.times(3_050)..MS.times(3_300)).contains(&took),
        "{took:?}"
    );
}
