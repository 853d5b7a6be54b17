//! The course of a measurement.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use phitwire::nic::{Pattern, Phase, TrafficReport, TrafficSpec};
use phitwire_nodes::stop::Stop;
use serde_json::json;
use thiserror::Error;

use super::lab::{Lab, LabError};
use super::outcome::{LinkWork, Outcome};
use super::plan::{Nic, Plan};

/// Time between two looks at the sources.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Time that the last answers, or their time-outs, may take. A request times out after seconds to
/// minutes, by topology.
const DRAIN_LIMIT: Duration = Duration::from_secs(120);
/// Time that messages whose sources have given them up may take to arrive all the same.
const STRAGGLER_LIMIT: Duration = Duration::from_secs(3);

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum RunError {
    /// The lab or one of its processes did not do as asked.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A name is not that of a node.
    #[error("lab `{lab}` has no node `{name}`; its network interfaces are {nics}")]
    NoSuchNode {
        /// The lab.
        lab: String,
        /// The name.
        name: String,
        /// The names that would do.
        nics: String,
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
    /// Fewer than two participants.
    #[error("lab `{0}` has fewer than two network interfaces: nobody to send to")]
    Alone(String),
    /// A report cannot be read.
    #[error("{node}: the traffic report is malformed: {source}")]
    Report {
        /// The node.
        node: String,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A report is of another run: somebody else measures the same lab.
    #[error("{node} reports on run {found} instead of {run}: is someone else measuring this lab?")]
    OtherRun {
        /// The node.
        node: String,
        /// Its run.
        found: u32,
        /// This run.
        run: u64,
    },
    /// A process does not take its part.
    #[error(
        "{source} (if a measurement that has died left it sending: \
         phitwire ctl --lab {lab} {node} traffic stop)"
    )]
    Start {
        /// The lab.
        lab: String,
        /// The node.
        node: String,
        /// What it said.
        source: Box<LabError>,
    },
    /// The user asked twice for an end.
    #[error("interrupted before all messages were answered: nothing was measured")]
    Interrupted,
    /// The sources did not come to an end.
    #[error("messages are still unanswered {0} s after the end of the run, at {1}")]
    NeverDrained(u64, String),
}

/// How far a measurement has come, for a progress line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Messages sent so far.
    pub sent: u64,
    /// Messages acknowledged so far.
    pub acknowledged: u64,
    /// The earliest phase of all sources.
    pub phase: Phase,
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

/// Measures messages of `size` bytes as `plan` says. `run` names the run within the lab; it
/// differs from that of any other measurement and is not zero.
///
/// Asked for an end ([`Clock::stops`]), it ends the sending early and accounts for what was sent;
/// asked again, it ends at once. On every way out nobody is left sending.
///
/// # Errors
/// See [`RunError`]. What goes wrong with messages is no error but part of the outcome, and so is a
/// network interface that is killed meanwhile.
pub fn measure(
    plan: &Plan,
    size: u32,
    run: u64,
    lab: &mut dyn Lab,
    clock: &dyn Clock,
    mut watch: impl FnMut(Progress),
) -> Result<Outcome, RunError> {
    let before = link_work(plan, lab);
    let mut course = Course::new(plan, run);
    let report = course
        .start(size, lab)
        .and_then(|()| course.drain(lab, clock, &mut watch))
        .and_then(|()| course.settle(lab, clock));
    if report.is_err() {
        course.stop(lab);
    }
    let report = report?;
    if report.sent == 0 && course.gone().is_empty() && clock.stops() == 0 {
        return Err(RunError::NothingSent(plan.pattern.clone()));
    }
    let links = link_work(plan, lab).since(&before);
    Ok(Outcome::new(&report, size, links, course.gone()))
}

/// A number that no other measurement of the lab has.
pub fn run_number(index: u32) -> u32 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    let mixed = (since.as_micros() as u32).wrapping_mul(0x9e37_79b9) ^ std::process::id();
    mixed.wrapping_add(index).max(1)
}

/// A network interface during a run.
struct Participant<'a> {
    nic: &'a Nic,
    is_source: bool,
    started: bool,
    /// Died since: nothing more is known than it reported last.
    gone: bool,
    last: TrafficReport,
}

/// A run and all who take part in it: those that only receive first.
struct Course<'a> {
    plan: &'a Plan,
    run: u64,
    participants: Vec<Participant<'a>>,
}

impl<'a> Course<'a> {
    fn new(plan: &'a Plan, run: u64) -> Self {
        let participant = |is_source| {
            move |nic| Participant {
                nic,
                is_source,
                started: false,
                gone: false,
                last: TrafficReport {
                    run,
                    ..TrafficReport::default()
                },
            }
        };
        let targets = plan.targets.iter().map(participant(false));
        let participants = targets
            .chain(plan.sources.iter().map(participant(true)))
            .collect();
        Self {
            plan,
            run,
            participants,
        }
    }

    /// Names of those that died meanwhile.
    fn gone(&self) -> Vec<String> {
        let gone = self.participants.iter().filter(|other| other.gone);
        gone.map(|other| other.nic.name.clone()).collect()
    }

    fn start(&mut self, size: u32, lab: &mut dyn Lab) -> Result<(), RunError> {
        let spec = TrafficSpec {
            run: self.run,
            size,
            ..self.plan.spec.clone()
        };
        // A network interface that only receives is told as well, with nobody to send to: what it
        // reports is then of this run and of no other.
        let silent = TrafficSpec {
            pattern: Pattern::List {
                destinations: Vec::new(),
            },
            ..spec.clone()
        };
        for participant in &mut self.participants {
            let spec = if participant.is_source {
                &spec
            } else {
                &silent
            };
            let request = json!({ "cmd": "traffic-start", "spec": spec });
            let name = &participant.nic.name;
            lab.ask(name, request).map_err(|source| {
                // What is not to do with an earlier run is no matter of stopping it.
                if !source.to_string().contains("still going on") {
                    return RunError::Lab(source);
                }
                RunError::Start {
                    lab: self.plan.lab.clone(),
                    node: name.clone(),
                    source: Box::new(source),
                }
            })?;
            participant.started = true;
        }
        Ok(())
    }

    /// Nobody sends any more. Whoever was never started works for somebody else and is left alone.
    fn stop(&self, lab: &mut dyn Lab) {
        for sender in &self.participants {
            if sender.is_source && sender.started && !sender.gone {
                // One that does not listen any more does not send either.
                let _ = lab.ask(&sender.nic.name, json!({ "cmd": "traffic-stop" }));
            }
        }
    }

    /// Waits until all that the sources have sent is answered or given up.
    fn drain(
        &mut self,
        lab: &mut dyn Lab,
        clock: &dyn Clock,
        watch: &mut impl FnMut(Progress),
    ) -> Result<(), RunError> {
        let begin = clock.now();
        let duration = self.plan.duration();
        // A run that only a count limits takes what it takes, as long as something is acknowledged.
        let mut deadline = begin + duration.unwrap_or_default() + DRAIN_LIMIT;
        let mut seen = 0;
        let mut stopped = false;
        loop {
            let mut merged = TrafficReport::default();
            for source in self.participants.iter_mut().filter(|one| one.is_source) {
                source.look(self.run, lab)?;
                merged.merge(&source.last);
            }
            let now = clock.now();
            watch(Progress {
                elapsed: now - begin,
                sent: merged.sent,
                acknowledged: merged.acknowledged,
                phase: merged.phase,
            });
            if merged.phase == Phase::Done {
                return Ok(());
            }
            match clock.stops() {
                0 => {}
                1 if stopped => {}
                1 => {
                    self.stop(lab);
                    stopped = true;
                    deadline = now + DRAIN_LIMIT;
                }
                _ => return Err(RunError::Interrupted),
            }
            if duration.is_none() && merged.acknowledged > seen {
                deadline = now + DRAIN_LIMIT;
            }
            seen = merged.acknowledged;
            if now >= deadline {
                let seconds = DRAIN_LIMIT.as_secs();
                return Err(RunError::NeverDrained(seconds, self.unfinished()));
            }
            clock.sleep(LOOK_EVERY);
        }
    }

    fn unfinished(&self) -> String {
        let slow = self
            .participants
            .iter()
            .filter(|one| one.last.phase != Phase::Done);
        let names: Vec<&str> = slow.map(|one| one.nic.name.as_str()).collect();
        names.join(", ")
    }

    /// The merged report of all participants, once nothing more is on its way.
    fn settle(&mut self, lab: &mut dyn Lab, clock: &dyn Clock) -> Result<TrafficReport, RunError> {
        let begin = clock.now();
        loop {
            let mut merged = TrafficReport::default();
            for participant in &mut self.participants {
                participant.look(self.run, lab)?;
                merged.merge(&participant.last);
            }
            let late = clock.now() - begin >= STRAGGLER_LIMIT;
            if merged.lost() == 0 || late || clock.stops() > 1 {
                return Ok(merged);
            }
            clock.sleep(LOOK_EVERY);
        }
    }
}

impl Participant<'_> {
    /// Takes its report. One that has died, or has been started again and knows nothing of the run,
    /// keeps the last it gave and sends nothing more.
    fn look(&mut self, run: u64, lab: &mut dyn Lab) -> Result<(), RunError> {
        if self.gone {
            return Ok(());
        }
        let node = &self.nic.name;
        let answer = match lab.ask(node, json!({ "cmd": "traffic-status" })) {
            Ok(answer) => answer,
            Err(error) if error.tells_of_death() => {
                self.gone = true;
                self.last.phase = Phase::Done;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let report: TrafficReport =
            serde_json::from_value(answer).map_err(|source| RunError::Report {
                node: node.clone(),
                source,
            })?;
        if report.run != run {
            return Err(RunError::OtherRun {
                node: node.clone(),
                found: report.run,
                run,
            });
        }
        self.last = report;
        Ok(())
    }
}

/// What the links of all processes have done so far. A process that is gone takes its counts with
/// it and fails nothing: what it held shows as messages timed out.
fn link_work(plan: &Plan, lab: &mut dyn Lab) -> LinkWork {
    let mut work = LinkWork::default();
    for node in &plan.everybody {
        if let Ok(stats) = lab.ask(node, json!({ "cmd": "stats" })) {
            work.add(&stats);
        }
    }
    work
}

#[cfg(test)]
mod tests;
