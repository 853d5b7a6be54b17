//! A measurement from its beginning to its end.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use phitwire::nic::RunPhase;
use phitwire_nodes::stop::Stop;
use thiserror::Error;

use super::claim::{ClaimError, claim};
use super::course::Course;
use super::door_error::DoorError;
use super::lab::{Lab, LabError};
use super::outcome::{Ends, RateResult, why_refused};
use super::plan::Plan;
use super::processes::Processes;

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum RunError {
    /// The lab or one of its processes did not do as asked.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A name is not that of a node.
    #[error("lab `{lab}` has no node `{name}`; its network interfaces are {nics}{near}")]
    NoSuchNode {
        /// The lab.
        lab: String,
        /// The name.
        name: String,
        /// The names that would do.
        nics: String,
        /// The one that may have been meant.
        near: String,
    },
    /// A router was named where a network interface belongs.
    #[error("`{0}` is a router: messages go from network interface to network interface")]
    IsRouter(String),
    /// A node is named twice in one list. Its messages would count as two nodes'.
    #[error("`{0}` is named twice")]
    Twice(String),
    /// A run without a message says nothing of the network.
    #[error(
        "nothing was sent: nobody sends to itself, and no source has another target (pattern {0})"
    )]
    NothingSent(String),
    /// The pattern goes from group to group, and the machine has none, or only one.
    #[error(
        "pattern {pattern} goes from group to group, but the network interfaces of lab `{lab}` are in {groups}: it is for \
         labs of machines with groups, two at least"
    )]
    NoGroups {
        /// The pattern.
        pattern: String,
        /// The lab.
        lab: String,
        /// How many groups there are, in words.
        groups: &'static str,
    },
    /// Network interfaces of themselves send nothing into receives.
    #[error("--op send is what programs do: with --client")]
    Receives,
    /// Programs measure one way.
    #[error("--client is for latency and bandwidth")]
    OneWay,
    /// Fewer than two participants.
    #[error("lab `{0}` has fewer than two network interfaces: nobody to send to")]
    Alone(String),
    /// More pairs than there are network interfaces for.
    #[error("{pairs} pairs take two network interfaces each: here are enough for {most}")]
    Pairs {
        /// So many were asked for.
        pairs: usize,
        /// So many there could be.
        most: usize,
    },
    /// A report is of another run than asked for.
    #[error("{node} reports on run {found} instead of {run}")]
    OtherRun {
        /// The node.
        node: String,
        /// Its run.
        found: u64,
        /// This run.
        run: u64,
    },
    /// Others use the network interfaces, or those do not answer.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// A network interface was named that does not answer.
    #[error("`{0}` is there and does not answer: is its process stopped?")]
    Silent(String),
    /// A network interface was named that has no number of its own.
    #[error(
        "`{0}` is a spare one: nobody reaches it before it takes the number of another \
         (phitwire manage rename)"
    )]
    Spare(String),
    /// No target takes part, though some answer: their names, and why.
    #[error("nothing was sent: {0} refused the run: {1}")]
    Refused(String, String),
    /// No target has answered the announcement of the run.
    #[error(
        "nothing was sent: {0} could not be reached within the time-out of a request \
         (netns-scripts/status.sh --lab {1} tells which links are down)"
    )]
    Unreachable(String, String),
    /// Both: who refused, and why; whom the announcement did not reach; the lab.
    #[error(
        "nothing was sent: {0} refused the run: {1}; {2} could not be reached within the time-out \
         of a request (netns-scripts/status.sh --lab {3} tells which links are down)"
    )]
    RefusedOrUnreachable(String, String, String, String),
    /// What programs at doors cannot do, or what went wrong with them.
    #[error(transparent)]
    Door(#[from] DoorError),
    /// The user asked twice for an end.
    #[error("interrupted before all messages were answered: nothing was measured")]
    Interrupted,
}

/// How far a measurement has come, for a progress line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunProgress {
    /// Since the start.
    pub elapsed: Duration,
    /// Messages sent so far.
    pub sent: u64,
    /// Messages acknowledged so far.
    pub acknowledged: u64,
    /// The earliest phase of all sources.
    pub phase: RunPhase,
    /// Messages or announcements of the run that are neither answered nor timed out.
    pub outstanding: u64,
    /// Sources with outstanding messages.
    pub waiting: Vec<String>,
}

/// Most sources named in a progress line.
const MOST_NAMED: usize = 4;

impl RunProgress {
    /// What the run waits for, if nothing else is left to do.
    pub fn waits(&self) -> Option<String> {
        let what = match self.phase {
            RunPhase::Draining => "answers to messages",
            RunPhase::Opening => "targets to answer",
            RunPhase::Running | RunPhase::Done => return None,
        };
        if self.waiting.is_empty() {
            return None;
        }
        let named = self.waiting.iter().take(MOST_NAMED);
        let mut names = named.cloned().collect::<Vec<_>>().join(", ");
        if self.waiting.len() > MOST_NAMED {
            names += &format!(" and {} others", self.waiting.len() - MOST_NAMED);
        }
        let outstanding = self.outstanding;
        Some(format!(
            "waiting for {what}, {outstanding} outstanding at {names}, or for their time-outs"
        ))
    }
}

/// What a measurement needs of the outside world besides the lab.
pub trait Clock {
    /// Time since some start.
    fn now(&self) -> Duration;
    /// Waits.
    fn sleep(&self, span: Duration);
    /// How often the user has asked for an end.
    fn stops(&self) -> u32;
}

/// The machine's own clock, and its signals.
#[derive(Debug)]
pub struct RealClock {
    start: Instant,
    stop: Stop,
}

impl RealClock {
    /// A clock that starts now, and whose user asks for an end through `stop`.
    pub fn new(stop: Stop) -> Self {
        let start = Instant::now();
        Self { start, stop }
    }
}

impl Clock for RealClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn stops(&self) -> u32 {
        self.stop.requests()
    }

    fn sleep(&self, span: Duration) {
        std::thread::sleep(span);
    }
}

/// Measures messages of `size` bytes as `plan` says. `run` names the run within the lab; it is
/// higher than that of any measurement before.
///
/// Asked for an end ([`Clock::stops`]), it ends the sending early and accounts for what was sent;
/// asked again, it ends at once. On every way out nobody is left sending: the run of a network
/// interface ends with the connection that claimed it.
///
/// # Errors
/// See [`RunError`]. What goes wrong with messages is no error but part of the outcome, and so is a
/// process that is killed or stopped meanwhile.
pub fn measure(
    plan: &Plan,
    size: u32,
    run: u64,
    lab: &mut dyn Lab,
    clock: &dyn Clock,
    mut watch: impl FnMut(RunProgress),
) -> Result<RateResult, RunError> {
    let names = plan.participants().map(|nic| nic.name.as_str());
    let latest = claim(&plan.lab, names, lab, clock)?;
    let mut processes = Processes::new(&plan.everybody, lab);
    let mut course = Course::new(plan, run.max(latest.saturating_add(1)), &mut processes);
    let report = course
        .start(size, lab)
        .and_then(|()| course.drain(lab, clock, &mut watch))
        .and_then(|()| course.settle(lab, clock));
    if report.is_err() || !course.unfinished().is_empty() {
        course.stop(lab);
    }
    let report = report?;
    let (restarted, unfinished) = (course.gone(), course.unfinished());
    let unreached = plan.names_of(&report.unreached);
    let refusers = plan.names_of(&report.refusers);
    if report.sent == 0 && restarted.is_empty() && unfinished.is_empty() && clock.stops() == 0 {
        return Err(match (refusers.as_slice(), unreached.as_slice()) {
            ([], []) => RunError::NothingSent(plan.pattern.clone()),
            ([], names) => RunError::Unreachable(names.join(", "), plan.lab.clone()),
            (names, others) => {
                let (names, why) = (names.join(", "), why_refused(report.outdated_by));
                if others.is_empty() {
                    RunError::Refused(names, why)
                } else {
                    let (others, lab) = (others.join(", "), plan.lab.clone());
                    RunError::RefusedOrUnreachable(names, why, others, lab)
                }
            }
        });
    }
    let (work, fates) = processes.end(lab);
    let ends = Ends {
        restarted,
        unfinished,
        unreached,
        refusers,
        work,
        fates,
    };
    let outcome = RateResult::new(&report, size, ends);
    Ok(outcome.with_pace(plan.rate(), plan.source_count(), &report))
}

/// A number that no other measurement of the lab has, and higher than those before: the time of day
/// in microseconds.
pub fn run_number(index: u32) -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    (since.as_micros() as u64 + u64::from(index)).max(1)
}

#[cfg(test)]
mod tests;
