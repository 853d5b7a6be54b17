//! Random networks, traffic and harm, each from a seed, with the invariants that must still hold.
//!
//! A [`Case`] follows from its seed alone: a topology of its [machine](Soaked), links, netem
//! impairments, a traffic run, on some machines concurrent runs of collective operations or
//! barriers, and a schedule of [`Harm`]. Harm is a cut link, lane noise, a forced retry, a soft
//! error, a link taken down, a restarted router or NIC, copies of frames up to ten seconds late, or
//! specific to the machine's links. [`Case::run`] brings the network up, then applies and removes
//! all harm. In the liveness phase everything must come to rest, all links must come up again, all
//! [checkers](super::check) must pass, and a second run must be clean.
//!
//! One case in twelve has late copies. A case [with late copies](Late::Always) always has them,
//! together with conditions that links must distinguish from them: decommissioned lanes, ends that
//! are suspended while copies arrive, a router restart.
//!
//! A failing case can be [shrunk](SoakCase): harms, impairments and messages that the failure does
//! not need are left out.
//!
//! A machine's soak tests are a list of [`Family`]s. They need not be [`Soaked`] over links: any
//! [`SoakCase`] can run, such as networks in direct mode with missing links instead of harm.

pub(crate) mod failure;
pub(crate) mod family;
pub(crate) mod harm;
pub mod random;
pub(crate) mod shrink;

pub use failure::Failure;
pub(crate) use failure::Outcome;
pub use family::{Family, SoakCase};
pub use harm::{Harm, OwnHarm};
pub use random::{Late, LateConditions};
pub use shrink::Keep;

use core::fmt::Debug;

use super::check::{Allowance, Violation, check_barriers};
use super::fabric::{Direction, LinkSpec};
use super::world::World;
use crate::link::impair::Netem;
use crate::net::Network;
use crate::nic::{BarrierSpec, CollectiveSpec, TrafficReport, TrafficSpec};
use crate::time::{Duration, Time};

/// The run that suffers harm, and the run after it.
pub const RUNS: [u64; 2] = [1, 2];
/// Time for the links to train at the start.
const TRAINING: Duration = Duration::from_ms(1_000);
/// Time that traffic continues under the remaining harm.
const AFTERMATH: Duration = Duration::from_ms(5);

/// A machine whose networks are soaked over encoded links.
pub trait Soaked: Clone + Debug + Send + Sync + Sized + 'static {
    /// Specification from which networks are generated.
    type Spec: Clone + Debug + Send + Sync;
    type Topology: Network;
    /// Harm specific to the machine's links.
    type Own: OwnHarm;

    /// Time in which everything must end once all harm is removed. Far above every timeout of
    /// links, requests and collectives, so reaching it is a failure and not slowness.
    const LIVENESS: Duration;
    /// See [`Allowance::refusals`].
    const REFUSALS: bool;

    /// The network of `spec`.
    ///
    /// # Errors
    /// Why `spec` describes no network.
    fn generate(spec: &Self::Spec) -> Result<Self::Topology, String>;

    /// Maximum number of messages that one poisoned packet costs in a network of `spec`.
    fn messages_of_packet(spec: &Self::Spec) -> u64 {
        let _ = spec;
        1
    }

    /// Number of the first packet on every link, where links number packets.
    fn first_packet(seed: u64) -> u64 {
        let _ = seed;
        0
    }

    fn case(seed: u64, how: Late) -> Case<Self>;
}

/// One random case. Its `Debug` output describes it completely.
#[derive(Clone, Debug)]
pub struct Case<M: Soaked> {
    pub seed: u64,
    pub spec: M::Spec,
    pub link: LinkSpec,
    /// Impairment of every link, in netem's syntax.
    pub impairment: String,
    /// The run that suffers harm.
    pub traffic: TrafficSpec,
    /// The concurrent run of collective operations.
    pub collectives: Option<CollectiveSpec>,
    /// The concurrent barriers, each at its own unit.
    pub barriers: Vec<BarrierSpec>,
    /// The harm, each with the delay after the one before.
    pub harms: Vec<(Duration, Harm<M::Own>)>,
    pub hooks: Hooks,
}

/// Changes that tests make to a case; empty otherwise.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    /// Rewrites late copies of frames.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) forgery: Option<super::wire::Forgery>,
}

/// Results of a case that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaseReport {
    /// Hash of every frame delivered, or of every packet in direct mode: the same for the same
    /// seed.
    pub trace_hash: u64,
    /// Virtual time at the end.
    pub time: Time,
    /// Routers and NICs.
    pub nodes: usize,
    pub frames: u64,
    /// Flits through routers, in direct mode.
    pub flit_hops: u64,
    /// Messages acknowledged in both runs, or packets that arrived in direct mode.
    pub acknowledged: u64,
    /// Messages given up in the first run.
    pub timed_out: u64,
    pub late_copies: u64,
    /// Lanes decommissioned, by nodes that were not restarted since.
    pub lanes_given_up: u64,
}

impl<M: Soaked> Case<M> {
    pub fn random(seed: u64) -> Self {
        M::case(seed, Late::Seldom)
    }

    /// The case of `seed` with late copies, together with decommissioned lanes, suspended ends and
    /// router restarts.
    pub fn with_late_copies(seed: u64) -> Self {
        M::case(seed, Late::Always)
    }

    /// Runs the case; `trace` gets every harm and every node event, with its time.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run(&self, trace: &mut dyn FnMut(Time, &str)) -> Result<CaseReport, Failure> {
        let mut world = self.bring_up()?;
        world.fabric.impair_all(Some(words(&self.impairment)));
        #[cfg(any(test, feature = "testing"))]
        if let Some(forgery) = self.hooks.forgery {
            world.fabric.forge_late_copies(forgery);
        }
        self.start(&mut world)?;
        self.apply_harms(&mut world, trace)?;
        let report = self.come_to_rest(&mut world)?;
        let late_copies = world.fabric.stop_late_copies();
        // From now on all traffic must flow without loss, whatever happened before.
        up_again(&mut world, "after all faults were removed", M::LIVENESS)?;
        let again = self.again();
        again.start(&mut world)?;
        // Allow only soft errors: one that hit no packet in the first run may strike now.
        let allow = Allowance {
            destroyed: false,
            ..self.allowance()
        };
        let mut second = again.finish(&mut world, RUNS[1], allow)?;
        if late_copies > 0 {
            // Run until the last copies have arrived; the network must then be at rest.
            world.fabric.run_for(random::LATEST);
            second = again.finish(&mut world, RUNS[1], allow)?;
        }
        // Check the links again: the checkers skip links that went down since.
        up_again(&mut world, "at the end", M::LIVENESS)?;
        trace_events(&mut world, trace);
        Ok(CaseReport {
            trace_hash: world.fabric.trace_hash(),
            time: world.fabric.now(),
            nodes: world.fabric.nodes(),
            frames: world.fabric.wire_counters().sent,
            flit_hops: 0,
            acknowledged: report.acknowledged + second.acknowledged,
            timed_out: report.timed_out,
            late_copies: world.fabric.wire_counters().late_copies,
            lanes_given_up: world.lanes_given_up(),
        })
    }

    pub fn topology(&self) -> Result<M::Topology, Failure> {
        M::generate(&self.spec).map_err(Failure::Topology)
    }

    pub fn bring_up(&self) -> Result<World<M::Topology>, Failure> {
        let first = M::first_packet(self.seed);
        let mut world = World::numbered(self.topology()?, self.seed, self.link, first)?;
        up_again(&mut world, "at the start", TRAINING)?;
        Ok(world)
    }

    fn start(&self, world: &mut World<M::Topology>) -> Result<(), Failure> {
        world.start_traffic(&self.traffic)?;
        if let Some(spec) = &self.collectives {
            world.start_collectives(spec)?;
        }
        for spec in &self.barriers {
            world.prepare_barriers(spec)?;
        }
        for spec in &self.barriers {
            world.start_barriers(spec)?;
        }
        Ok(())
    }

    /// Inflicts the scheduled harm, then removes it.
    fn apply_harms(
        &self,
        world: &mut World<M::Topology>,
        trace: &mut dyn FnMut(Time, &str),
    ) -> Result<(), Failure> {
        for (after, harm) in &self.harms {
            world.fabric.run_for(*after);
            trace_events(world, trace);
            trace(world.fabric.now(), &format!("fault: {harm:?}"));
            harm.inflict(world)?;
        }
        world.fabric.run_for(AFTERMATH);
        trace_events(world, trace);
        trace(world.fabric.now(), "all faults removed");
        world.fabric.impair_all(None);
        for link in world.links() {
            for direction in Direction::BOTH {
                world.fabric.lane_noise(link, direction, None);
            }
        }
        for (_, harm) in &self.harms {
            harm.undo(world)?;
        }
        Ok(())
    }

    /// Runs the liveness phase of the harmed run.
    fn come_to_rest(&self, world: &mut World<M::Topology>) -> Result<TrafficReport, Failure> {
        let restarted = |(_, harm): &(_, Harm<_>)| matches!(harm, Harm::RestartNic { .. });
        if !self.harms.iter().any(restarted) {
            return self.finish(world, RUNS[0], self.allowance());
        }
        // Do not check totals: the report of a restarted NIC is lost.
        self.end_of(world, RUNS[0])?;
        let report = world.report(RUNS[0]);
        // Ignore `unwritten`: gets from a restarted NIC find its memory empty.
        let wrong = [
            (report.duplicated, "delivered twice"),
            (report.misordered, "delivered out of order"),
            (report.corrupted, "delivered with wrong bytes"),
        ];
        match wrong.into_iter().find(|(count, _)| *count > 0) {
            None => Ok(report),
            Some((count, what)) => {
                let violation = Violation::Messages(format!("{count} {what}"));
                Err(self.violations(world, RUNS[0], vec![violation]))
            }
        }
    }

    /// The losses that the harm explains.
    fn allowance(&self) -> Allowance {
        let harms = || self.harms.iter().map(|(_, harm)| harm);
        let is_soft = |harm: &&Harm<_>| matches!(harm, Harm::SoftError { .. });
        Allowance {
            soft_errors: harms().filter(is_soft).count() as u64 * M::messages_of_packet(&self.spec),
            destroyed: harms().any(Harm::destroys),
            refusals: M::REFUSALS,
        }
    }

    /// The case of the second run.
    fn again(&self) -> Self {
        let traffic = TrafficSpec {
            run: RUNS[1],
            count: 20,
            ..self.traffic.clone()
        };
        let collectives = self.collectives.clone().map(|spec| CollectiveSpec {
            run: RUNS[1] as u32,
            count: 5,
            ..spec
        });
        let barriers = self.barriers.iter().map(|spec| BarrierSpec {
            run: RUNS[1] as u32,
            count: 5,
            ..spec.clone()
        });
        Self {
            traffic,
            collectives,
            barriers: barriers.collect(),
            ..self.clone()
        }
    }

    /// Waits for a run to end.
    fn end_of(&self, world: &mut World<M::Topology>, run: u64) -> Result<(), Failure> {
        if world.finish(run, M::LIVENESS) {
            return Ok(());
        }
        Err(Failure::Endless {
            run,
            limit: M::LIVENESS,
            outcome: self.outcome(world, run),
        })
    }

    /// Whether a run is free of harm and impairment.
    pub fn leaves_alone(&self, run: u64) -> bool {
        run == RUNS[1] || self.harms.is_empty() && self.impairment.is_empty()
    }

    /// Waits for a run to end and the network to come to rest, then runs all checkers.
    fn finish(
        &self,
        world: &mut World<M::Topology>,
        run: u64,
        allow: Allowance,
    ) -> Result<TrafficReport, Failure> {
        self.end_of(world, run)?;
        let mut violations = world.drain(run, self.collectives.as_ref(), allow, M::LIVENESS);
        let must_end = self.leaves_alone(run);
        for spec in &self.barriers {
            let report = world.barrier_report(spec);
            violations.extend(check_barriers(&report, must_end).err());
        }
        if violations.is_empty() {
            return Ok(world.report(run));
        }
        Err(self.violations(world, run, violations))
    }

    fn violations(
        &self,
        world: &World<M::Topology>,
        run: u64,
        violations: Vec<Violation>,
    ) -> Failure {
        Failure::Violations {
            run,
            violations,
            outcome: self.outcome(world, run),
        }
    }

    fn outcome(&self, world: &World<M::Topology>, run: u64) -> Box<Outcome> {
        Box::new(Outcome {
            report: world.report(run),
            collectives: (self.collectives.as_ref()).map(|spec| world.collective_report(spec)),
            barriers: self
                .barriers
                .iter()
                .map(|spec| world.barrier_report(spec))
                .collect(),
            links: world.link_states(),
        })
    }
}

fn up_again<L: Network>(
    world: &mut World<L>,
    when: &'static str,
    limit: Duration,
) -> Result<(), Failure> {
    if world.bring_up(limit) {
        return Ok(());
    }
    let links = world.link_states();
    Err(Failure::LinksDown { when, links })
}

fn words(text: &str) -> Netem {
    text.parse()
        .expect("cases use valid netem words; a test parses those of many seeds")
}

fn trace_events<L: Network>(world: &mut World<L>, trace: &mut dyn FnMut(Time, &str)) {
    while let Some(event) = world.fabric.poll_event() {
        let text = format!("node {}: {:?}", event.node.0, event.event);
        trace(event.at, &text);
    }
}

#[cfg(any(test, feature = "testing"))]
pub mod testing;
