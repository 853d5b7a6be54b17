//! Random dragonflies over encoded links under random harm, from a seed each.
//!
//! What a [`Case`](super::Case) is to BlackWidow, an [`AriesCase`] is to Aries: whole nodes, links in netem's words, the
//! network interfaces' own verified traffic (puts, gets and additions, of one packet or as block transfers), mostly beside a
//! run of collective operations, and a schedule of [`AriesHarm`]. In the liveness phase everything has to come to rest, all
//! [checkers](crate::sim::dragonfly::check) have to pass, all links to come up again, and a second run to be clean.

mod harm;
mod random;

use thiserror::Error;

pub use harm::AriesHarm;

use super::random::LATEST;
use super::{AFTERMATH, Keep, Outcome, RUNS, TRAINING, shrink, words};
use crate::nic::aries::{CollectiveReport, CollectiveSpec, CollectiveSpecError};
use crate::nic::{SpecError, TrafficReport, TrafficSpec};
use crate::sim::dragonfly::AriesNetwork;
use crate::sim::dragonfly::check::{AriesAllowance, AriesViolation};
use crate::sim::fabric::{Direction, LinkId, LinkSpec};
use crate::sim::network::NetworkError;
use crate::time::{Duration, Time};
use crate::topology::dragonfly::{Dragonfly, DragonflySpec};

/// Time in which everything must have come to its end once all harm is taken away. Far above every time-out of links,
/// requests (20 s, within which a run is announced three times) and collectives, so that reaching it is a failure and no slowness.
const LIVENESS: Duration = Duration::from_ms(900_000);

/// One random dragonfly under harm. What it prints is all there is to it.
#[derive(Clone, Debug)]
pub struct AriesCase {
    /// What it was made from.
    pub seed: u64,
    /// The network.
    pub spec: DragonflySpec,
    /// Every link.
    pub link: LinkSpec,
    /// What happens to frames on every link, in netem's words.
    pub impairment: String,
    /// The run that suffers.
    pub traffic: TrafficSpec,
    /// The run of collective operations beside it.
    pub collectives: Option<CollectiveSpec>,
    /// What is done to the network, each after a time from the one before.
    pub harms: Vec<(Duration, AriesHarm)>,
    #[cfg(test)]
    forgery: Option<crate::sim::wire::Forgery>,
}

/// What did not hold.
#[derive(Debug, Error)]
pub enum AriesFailure {
    /// The specification is no network.
    #[error("no network: {0}")]
    Topology(String),
    /// The topology does not become a network in virtual time.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The traffic cannot be made.
    #[error(transparent)]
    Traffic(#[from] SpecError),
    /// The collective operations cannot be made.
    #[error(transparent)]
    Collectives(#[from] CollectiveSpecError),
    /// Links that must be up are not.
    #[error("{when}, not all links are up\n{links}")]
    LinksDown {
        /// At which point.
        when: &'static str,
        /// The link ends.
        links: String,
    },
    /// A run did not end.
    #[error("run {run} has not ended {} s after the last harm: {report:#?}\n{collectives:#?}\n{links}", LIVENESS.as_ns() / 1_000_000_000)]
    Endless {
        /// The run.
        run: u64,
        /// What it had come to.
        report: Box<TrafficReport>,
        /// What the collective operations had come to.
        collectives: Box<CollectiveReport>,
        /// The link ends.
        links: String,
    },
    /// A checker found something.
    #[error(
        "run {run}: {}\n{report:#?}\n{collectives:#?}\n{links}",
        lines(violations)
    )]
    Violations {
        /// The run.
        run: u64,
        /// What was found.
        violations: Vec<AriesViolation>,
        /// What the run came to.
        report: Box<TrafficReport>,
        /// What the collective operations came to.
        collectives: Box<CollectiveReport>,
        /// The link ends.
        links: String,
    },
}

fn lines(violations: &[AriesViolation]) -> String {
    let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

impl AriesCase {
    /// Runs the case; `trace` hears of every harm and of every event of a node, with its time.
    ///
    /// # Errors
    /// See [`AriesFailure`].
    pub fn run(&self, trace: &mut dyn FnMut(Time, &str)) -> Result<Outcome, AriesFailure> {
        let mut network = self.bring_up()?;
        network.fabric.impair_all(Some(words(&self.impairment)));
        #[cfg(test)]
        if let Some(forgery) = self.forgery {
            network.fabric.forge_late_copies(forgery);
        }
        self.start(&mut network)?;
        self.suffer(&mut network, trace)?;
        let allow = AriesAllowance {
            soft_errors: self.soft_errors(),
            destroyed: self.harms.iter().any(|(_, harm)| harm.destroys()),
        };
        let report = finish(&mut network, RUNS[0], self.collectives.as_ref(), allow)?;
        let late_copies = network.fabric.stop_late_copies();
        // Whatever happened: everything after flows again, and nothing of it is lost.
        if !network.bring_up(LIVENESS) {
            return Err(links_down(&network, "after all harm was taken away"));
        }
        let mut again = self.run_again(&mut network)?;
        if late_copies > 0 {
            // The last copies come to a network at rest, and must leave it so.
            network.fabric.run_for(LATEST);
            let collectives = self.collectives_again();
            let allow = self.allowance_again();
            again = finish(&mut network, RUNS[1], collectives.as_ref(), allow)?;
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

    fn soft_errors(&self) -> u64 {
        let is_soft = |(_, harm): &&(_, AriesHarm)| matches!(harm, AriesHarm::SoftError { .. });
        self.harms.iter().filter(is_soft).count() as u64
    }

    fn topology(&self) -> Result<Dragonfly, AriesFailure> {
        let topology = self.spec.generate();
        topology.map_err(|error| AriesFailure::Topology(error.to_string()))
    }

    fn bring_up(&self) -> Result<AriesNetwork, AriesFailure> {
        let mut network = AriesNetwork::new(self.topology()?, self.seed, self.link)?;
        if network.bring_up(TRAINING) {
            return Ok(network);
        }
        Err(links_down(&network, "at the start"))
    }

    fn start(&self, network: &mut AriesNetwork) -> Result<(), AriesFailure> {
        network.start_traffic(&self.traffic)?;
        if let Some(spec) = &self.collectives {
            network.start_collectives(spec)?;
        }
        Ok(())
    }

    /// The schedule of harm, and its end.
    fn suffer(
        &self,
        network: &mut AriesNetwork,
        trace: &mut dyn FnMut(Time, &str),
    ) -> Result<(), AriesFailure> {
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

    fn run_again(&self, network: &mut AriesNetwork) -> Result<TrafficReport, AriesFailure> {
        let traffic = TrafficSpec {
            run: RUNS[1],
            count: 20,
            ..self.traffic.clone()
        };
        let again = Self {
            traffic,
            collectives: self.collectives_again(),
            ..self.clone()
        };
        again.start(network)?;
        let allow = self.allowance_again();
        finish(network, RUNS[1], again.collectives.as_ref(), allow)
    }

    fn collectives_again(&self) -> Option<CollectiveSpec> {
        self.collectives.as_ref().map(|spec| CollectiveSpec {
            run: RUNS[1] as u32,
            count: 5,
            ..spec.clone()
        })
    }

    /// Only soft errors that have not found a packet in the first run may strike in the second.
    fn allowance_again(&self) -> AriesAllowance {
        AriesAllowance {
            soft_errors: self.soft_errors(),
            destroyed: false,
        }
    }

    /// The case with no more than `keep` names. Harms that it does not have are not kept.
    #[must_use]
    pub fn reduced(&self, keep: &Keep) -> Self {
        let mut case = self.clone();
        if let Some(kept) = &keep.harms {
            let harms = self.harms.iter().enumerate();
            let left = harms.filter(|(index, _)| kept.contains(index));
            case.harms = left.map(|(_, harm)| harm.clone()).collect();
        }
        if keep.clear {
            case.impairment.clear();
        }
        if let Some(messages) = keep.messages {
            case.traffic.count = messages;
            if let Some(spec) = &mut case.collectives {
                spec.count = spec.count.min(messages);
            }
        }
        case
    }

    /// The least that still fails: see [`Case::shrink`](super::Case::shrink).
    pub fn shrink(&self, mut fails: impl FnMut(&Self) -> bool) -> Keep {
        let impaired = !self.impairment.is_empty();
        let messages = self.traffic.count;
        shrink::least(self.harms.len(), impaired, messages, |keep| {
            fails(&self.reduced(keep))
        })
    }
}

fn links_down(network: &AriesNetwork, when: &'static str) -> AriesFailure {
    let links = network.link_states();
    AriesFailure::LinksDown { when, links }
}

/// Waits for the end of a run, lets the network come to rest and asks all checkers.
fn finish(
    network: &mut AriesNetwork,
    run: u64,
    collectives: Option<&CollectiveSpec>,
    allow: AriesAllowance,
) -> Result<TrafficReport, AriesFailure> {
    if !network.finish(run, LIVENESS) {
        return Err(AriesFailure::Endless {
            run,
            report: Box::new(network.report(run)),
            collectives: Box::new(network.collective_report()),
            links: network.link_states(),
        });
    }
    let violations = network.drain(run, collectives, allow, LIVENESS);
    let report = network.report(run);
    if violations.is_empty() {
        return Ok(report);
    }
    Err(AriesFailure::Violations {
        run,
        violations,
        report: Box::new(report),
        collectives: Box::new(network.collective_report()),
        links: network.link_states(),
    })
}

fn tell_events(network: &mut AriesNetwork, trace: &mut dyn FnMut(Time, &str)) {
    while let Some(event) = network.fabric.poll_event() {
        let text = format!("node {}: {:?}", event.node.0, event.event);
        trace(event.at, &text);
    }
}

#[cfg(test)]
mod tests;
