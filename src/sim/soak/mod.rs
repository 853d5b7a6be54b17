//! Random networks, traffic and harm, from a seed each, and what must hold all the same.
//!
//! A [`Case`] follows from its seed alone: a topology, links, impairments in netem's words, a traffic run, and
//! a schedule of [`Harm`]: cut links, lane noise, forced retries, soft errors, links taken down, frames that
//! come again up to ten seconds late, routers and network interfaces restarted. [`Case::run`] brings the network
//! up, lets it suffer, takes all harm away, and demands in the liveness phase that everything comes to rest and all
//! [checkers](super::check) pass, that all links come up again, and that a second run is clean.
//!
//! One case in twelve has late copies. A case [with late copies](Case::with_late_copies) has them whatever its seed, and
//! beside them what a link must keep apart from them: lanes that are given up, ends that stand still while copies come,
//! a router that starts again.
//!
//! A case that fails can be [shrunk](Case::shrink): harms, impairments and messages that the failure does
//! not need are left out.
//!
//! An [`AriesCase`] is the same of dragonflies. A [`DragonflyCase`] is one in direct mode, with links that are missing
//! instead of harm.

mod aries;
#[cfg(test)]
mod canary;
mod dragonfly;
mod harm;
mod random;
mod shrink;

use thiserror::Error;

pub use aries::{AriesCase, AriesFailure, AriesHarm};
pub use dragonfly::{DragonflyCase, DragonflyFailure, DragonflyOutcome};
pub use harm::Harm;
pub use shrink::Keep;

use super::check::{Allowance, Violation};
use super::fabric::{Direction, LinkId, LinkSpec};
use super::network::{Network, NetworkError};
use crate::link::impair::Netem;
use crate::nic::{SpecError, TrafficReport, TrafficSpec};
use crate::time::{Duration, Time};
use crate::topology::{BlackwidowSpec, Topology};

/// The run that suffers, and the run after it.
const RUNS: [u64; 2] = [1, 2];
/// Time in which everything must have come to its end once all harm is taken away. Far above every
/// time-out of the links and requests, so that reaching it is a failure and no slowness.
const LIVENESS: Duration = Duration::from_ms(120_000);
/// Time for the links to train at first.
const TRAINING: Duration = Duration::from_ms(1_000);
/// Time that the traffic goes on under what is left of the harm.
const AFTERMATH: Duration = Duration::from_ms(5);

/// One random case. What it prints is all there is to it.
#[derive(Clone, Debug)]
pub struct Case {
    /// What it was made from.
    pub seed: u64,
    /// The network.
    pub spec: BlackwidowSpec,
    /// Every link.
    pub link: LinkSpec,
    /// What happens to frames on every link, in netem's words.
    pub impairment: String,
    /// The run that suffers.
    pub traffic: TrafficSpec,
    /// What is done to the network, each after a time from the one before.
    pub harms: Vec<(Duration, Harm)>,
    topology: Topology,
    #[cfg(test)]
    forgery: Option<super::wire::Forgery>,
}

/// What a case that passed has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Fingerprint of every frame delivered: the same for the same seed.
    pub trace_hash: u64,
    /// Virtual time at the end.
    pub time: Time,
    /// Routers and network interfaces.
    pub nodes: usize,
    /// Frames sent.
    pub frames: u64,
    /// Messages acknowledged in both runs.
    pub acknowledged: u64,
    /// Messages given up in the first run.
    pub timed_out: u64,
    /// Frames that came again, late.
    pub late_copies: u64,
    /// Lanes given up, by nodes that were not restarted since.
    pub lanes_given_up: u64,
}

/// What did not hold.
#[derive(Debug, Error)]
pub enum Failure {
    /// The topology does not become a network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The traffic cannot be made.
    #[error(transparent)]
    Traffic(#[from] SpecError),
    /// Links that must be up are not.
    #[error("{when}, not all links are up\n{links}")]
    LinksDown {
        /// At which point.
        when: &'static str,
        /// The link ends.
        links: String,
    },
    /// A run did not end.
    #[error("run {run} has not ended {} ms after the last harm: {report:#?}\n{links}", LIVENESS.as_ns() / 1_000_000)]
    Endless {
        /// The run.
        run: u64,
        /// What it had come to.
        report: Box<TrafficReport>,
        /// The link ends.
        links: String,
    },
    /// A checker found something.
    #[error("run {run}: {}\n{report:#?}\n{links}", lines(violations))]
    Violations {
        /// The run.
        run: u64,
        /// What was found.
        violations: Vec<Violation>,
        /// What the run came to.
        report: Box<TrafficReport>,
        /// The link ends.
        links: String,
    },
    /// The account of the messages is wrong.
    #[error("run {run}: {what}: {report:#?}")]
    Account {
        /// The run.
        run: u64,
        /// What is wrong.
        what: &'static str,
        /// The account.
        report: Box<TrafficReport>,
    },
}

fn lines(violations: &[Violation]) -> String {
    let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

impl Case {
    /// Runs the case; `trace` hears of every harm and of every event of a node, with its time.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run(&self, trace: &mut dyn FnMut(Time, &str)) -> Result<Outcome, Failure> {
        let first = random::first_packet(self.seed);
        let mut network = Network::numbered(self.topology.clone(), self.seed, self.link, first)?;
        if !network.bring_up(TRAINING) {
            return Err(links_down(&network, "at the start"));
        }
        network.fabric.impair_all(Some(words(&self.impairment)));
        #[cfg(test)]
        if let Some(forgery) = self.forgery {
            network.fabric.forge_late_copies(forgery);
        }
        network.start_traffic(&self.traffic)?;
        self.suffer(&mut network, trace)?;
        let report = self.come_to_rest(&mut network)?;
        let late_copies = network.fabric.stop_late_copies();
        // Whatever happened: everything after flows again, and nothing of it is lost.
        if !network.bring_up(LIVENESS) {
            return Err(links_down(&network, "after all harm was taken away"));
        }
        let mut again = self.run_again(&mut network)?;
        if late_copies > 0 {
            // The last copies come to a network at rest, and must leave it so.
            network.fabric.run_for(random::LATEST);
            again = finish(&mut network, RUNS[1], self.allowance_again())?;
        }
        // The checkers demand nothing of a link that is down, so none may have gone down since.
        if !network.bring_up(LIVENESS) {
            return Err(links_down(&network, "at the end"));
        }
        tell_events(&mut network, trace);
        Ok(Outcome {
            trace_hash: network.fabric.trace_hash(),
            time: network.fabric.now(),
            nodes: network.fabric.nodes(),
            frames: network.fabric.wire_counters().sent,
            acknowledged: report.acknowledged + again.acknowledged,
            timed_out: report.timed_out,
            late_copies: network.fabric.wire_counters().late_copies,
            lanes_given_up: network.lanes_given_up(),
        })
    }

    /// The schedule of harm, and its end.
    fn suffer(
        &self,
        network: &mut Network,
        trace: &mut dyn FnMut(Time, &str),
    ) -> Result<(), Failure> {
        for (after, harm) in &self.harms {
            network.fabric.run_for(*after);
            tell_events(network, trace);
            trace(network.fabric.now(), &format!("harm: {harm:?}"));
            harm.inflict(network)?;
        }
        network.fabric.run_for(AFTERMATH);
        tell_events(network, trace);
        trace(network.fabric.now(), "all harm is taken away");
        network.fabric.impair_all(None);
        for link in (0..network.fabric.links() as u32).map(LinkId) {
            for direction in Direction::BOTH {
                network.fabric.lane_noise(link, direction, None);
            }
        }
        Ok(())
    }

    /// The liveness phase of the run that suffered.
    fn come_to_rest(&self, network: &mut Network) -> Result<TrafficReport, Failure> {
        let restarted = |(_, harm): &(_, Harm)| matches!(harm, Harm::RestartNic { .. });
        let allow = Allowance {
            losses: self.harms.iter().any(|(_, harm)| harm.destroys()),
        };
        if !self.harms.iter().any(restarted) {
            return finish(network, RUNS[0], allow);
        }
        // The report of a dead network interface is gone, so that nothing can be added up.
        end_of(network, RUNS[0])?;
        let report = network.report(RUNS[0]);
        // A new incarnation's memory is empty, and gets find it so; they are not called corrupted for that.
        let what = if report.duplicated > 0 {
            "messages came twice"
        } else if report.misordered > 0 {
            "messages came out of order"
        } else if report.corrupted > 0 {
            "messages came with wrong bytes"
        } else {
            return Ok(report);
        };
        Err(account(RUNS[0], what, report))
    }

    /// Soft errors that may not have found a packet in the first run.
    fn armed(&self) -> u64 {
        let is_soft = |(_, harm): &&(_, Harm)| matches!(harm, Harm::SoftError { .. });
        self.harms.iter().filter(is_soft).count() as u64
    }

    /// In the second run only soft errors may still strike.
    fn allowance_again(&self) -> Allowance {
        Allowance {
            losses: self.armed() > 0,
        }
    }

    fn run_again(&self, network: &mut Network) -> Result<TrafficReport, Failure> {
        let armed = self.armed();
        let again = TrafficSpec {
            run: RUNS[1],
            count: 20,
            ..self.traffic.clone()
        };
        network.start_traffic(&again)?;
        let report = finish(network, RUNS[1], self.allowance_again())?;
        if report.timed_out > armed {
            let what = "more messages timed out than soft errors were left to strike";
            return Err(account(RUNS[1], what, report));
        }
        Ok(report)
    }
}

fn account(run: u64, what: &'static str, report: TrafficReport) -> Failure {
    let report = Box::new(report);
    Failure::Account { run, what, report }
}

fn links_down(network: &Network, when: &'static str) -> Failure {
    let links = network.link_states();
    Failure::LinksDown { when, links }
}

fn words(text: &str) -> Netem {
    text.parse()
        .expect("cases are made of netem's words; a test reads those of many seeds")
}

/// Waits for the end of a run.
fn end_of(network: &mut Network, run: u64) -> Result<(), Failure> {
    if network.finish_traffic(run, LIVENESS) {
        return Ok(());
    }
    Err(Failure::Endless {
        run,
        report: Box::new(network.report(run)),
        links: network.link_states(),
    })
}

/// Waits for the end of a run, lets the network come to rest and asks all checkers.
fn finish(network: &mut Network, run: u64, allow: Allowance) -> Result<TrafficReport, Failure> {
    end_of(network, run)?;
    let violations = network.drain(run, allow, LIVENESS);
    let report = network.report(run);
    if violations.is_empty() {
        return Ok(report);
    }
    Err(Failure::Violations {
        run,
        violations,
        report: Box::new(report),
        links: network.link_states(),
    })
}

fn tell_events(network: &mut Network, trace: &mut dyn FnMut(Time, &str)) {
    while let Some(event) = network.fabric.poll_event() {
        let text = format!("node {}: {:?}", event.node.0, event.event);
        trace(event.at, &text);
    }
}

#[cfg(test)]
mod tests;
