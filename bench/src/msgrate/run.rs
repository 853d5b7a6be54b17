//! A measurement from start to end.

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

#[derive(Debug, Error)]
pub enum RunError {
    /// A request to the lab or one of its processes failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// No node has the name.
    #[error("lab `{lab}` has no node `{name}`; its NICs are {nics}{near}")]
    NoSuchNode {
        lab: String,
        name: String,
        /// The valid names.
        nics: String,
        /// A suggestion, if a name is similar.
        near: String,
    },
    /// The node is a router, but a NIC is needed.
    #[error("`{0}` is a router: messages go from NIC to NIC")]
    IsRouter(String),
    /// A node occurs twice in a list, so its messages would be counted twice.
    #[error("`{0}` is listed twice")]
    Twice(String),
    /// No message was sent, so the run measured nothing.
    #[error("nothing was sent: with pattern {0} no source has a target other than itself")]
    NothingSent(String),
    /// The pattern sends from group to group, but the machine has no groups, or only one.
    #[error(
        "pattern {pattern} goes from group to group, but the NICs of lab `{lab}` are in {groups}: \
         it needs a lab with at least two groups"
    )]
    NoGroups {
        pattern: String,
        lab: String,
        /// The number of groups in words.
        groups: &'static str,
    },
    /// Only programs can send into receives.
    #[error("--op send needs programs: add --client")]
    Receives,
    /// Programs measure only one direction.
    #[error("--client supports only latency and bandwidth")]
    OneWay,
    /// There are fewer than two participants.
    #[error("lab `{0}` has fewer than two NICs, so there is no target")]
    Alone(String),
    /// There are more pairs than NICs for them.
    #[error("{pairs} pairs need two NICs each: there are enough for only {most}")]
    Pairs {
        pairs: usize,
        /// The largest possible number of pairs.
        most: usize,
    },
    /// A report is about another run.
    #[error("{node} reports on run {found} instead of {run}")]
    OtherRun {
        node: String,
        /// The run of the report.
        found: u64,
        run: u64,
    },
    /// The NICs are in use or do not reply.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error("`{0}` does not answer: is its process stopped?")]
    Silent(String),
    /// The process of the named node has ended. The texts are the node and the lab.
    #[error("`{0}` is dead: its process has ended (netns-scripts/node.sh --lab {1} start {0})")]
    Dead(String, String),
    /// The named NIC is a spare, without a number.
    #[error(
        "`{0}` is a spare: it is unreachable until it takes the number of another NIC (phitwire \
         manage rename)"
    )]
    Spare(String),
    /// No target takes part, though some reply. The texts name them and the reason.
    #[error("nothing was sent: {0} refused the run: {1}")]
    Refused(String, String),
    /// No target has replied to the announcement of the run.
    #[error(
        "nothing was sent: {0} could not be reached within the timeout of a request \
         (netns-scripts/status.sh --lab {1} shows which links are down)"
    )]
    Unreachable(String, String),
    /// Some targets refused, and others were unreachable: the refusers, the reason, the others, the
    /// lab.
    #[error(
        "nothing was sent: {0} refused the run: {1}; {2} could not be reached within the timeout \
         of a request (netns-scripts/status.sh --lab {3} shows which links are down)"
    )]
    RefusedOrUnreachable(String, String, String, String),
    /// Programs at doors do not support the measurement, or failed.
    #[error(transparent)]
    Door(#[from] DoorError),
    /// The user requested to stop twice.
    #[error("interrupted before all messages were answered: no measurement")]
    Interrupted,
}

/// The progress of a measurement, for a progress line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunProgress {
    pub elapsed: Duration,
    pub sent: u64,
    pub acknowledged: u64,
    /// The earliest phase of all sources.
    pub phase: RunPhase,
    /// Messages or announcements of the run without a response or timeout.
    pub outstanding: u64,
    /// Sources with outstanding messages.
    pub waiting: Vec<String>,
}

/// Maximum number of sources named in a progress line.
const MOST_NAMED: usize = 4;

impl RunProgress {
    /// The event that the run waits for after everything has been sent, as text.
    pub fn waits(&self) -> Option<String> {
        let what = match self.phase {
            RunPhase::Draining => "answers to messages",
            RunPhase::Opening => "answers from targets",
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
            "waiting for {what}, {outstanding} outstanding at {names}, or for timeouts"
        ))
    }
}

/// Time and signals, which a measurement needs besides the lab.
pub trait Clock {
    /// Time since an arbitrary start.
    fn now(&self) -> Duration;
    fn sleep(&self, span: Duration);
    /// Number of times that the user has requested to stop.
    fn stops(&self) -> u32;
}

/// The machine's clock and signals.
#[derive(Debug)]
pub struct RealClock {
    start: Instant,
    stop: Stop,
}

impl RealClock {
    /// A clock that starts now; `stop` counts the user's requests to stop.
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

/// Measures messages of `size` bytes according to `plan`. `run` identifies the run within the lab
/// and must exceed that of any earlier measurement.
///
/// The first request to stop ([`Clock::stops`]) ends the sending early, and the messages sent are
/// accounted for; the second ends the measurement at once. No source keeps sending afterwards,
/// since a NIC's run ends with the connection that claimed it.
///
/// # Errors
/// See [`RunError`]. Faults of messages are part of the outcome, not errors; so is a process that
/// is killed or stopped during the run.
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

/// A run number that is unique in the lab and higher than earlier ones: the time of day in
/// microseconds.
pub fn run_number(index: u32) -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    (since.as_micros() as u64 + u64::from(index)).max(1)
}

#[cfg(test)]
mod tests;
