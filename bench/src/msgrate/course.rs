//! The course of a run: start all participants, poll until all have finished, and collect the last
//! counts.

use std::time::Duration;

use phitwire::nic::{RunPhase, TrafficPattern, TrafficReport, TrafficSpec};
use phitwire_nodes::control::Request;

use super::lab::{Lab, ProcessState, ask};
use super::plan::{Nic, Plan};
use super::processes::Processes;
use super::run::{Clock, RunError, RunProgress};

/// Interval of polls of the sources.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Limit on waiting for the last replies or timeouts. A request times out after seconds to minutes,
/// depending on the topology.
const DRAIN_LIMIT: Duration = Duration::from_secs(120);
/// Time for messages to arrive after their sources timed out, and the longest pause between
/// two of them.
const STRAGGLER_LIMIT: Duration = Duration::from_secs(3);
const STRAGGLER_PAUSE: Duration = Duration::from_millis(500);
/// Limit on waiting for stalled participants once all others have finished.
const SILENT_LIMIT: Duration = Duration::from_secs(30);

/// A NIC during a run.
struct Participant<'a> {
    nic: &'a Nic,
    is_source: bool,
    started: bool,
    /// Whether the participant has died, so that its last report is final.
    gone: bool,
    /// Whether the last poll got no reply.
    silent: bool,
    last: TrafficReport,
}

/// A run with all its participants; those that only receive come first.
pub(super) struct Course<'a> {
    plan: &'a Plan,
    run: u64,
    participants: Vec<Participant<'a>>,
    processes: &'a mut Processes,
}

impl<'a> Course<'a> {
    pub(super) fn new(plan: &'a Plan, run: u64, processes: &'a mut Processes) -> Self {
        let participant = |is_source| {
            move |nic| Participant {
                nic,
                is_source,
                started: false,
                gone: false,
                silent: false,
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
            processes,
        }
    }

    /// Names of participants that died during the run.
    pub(super) fn gone(&self) -> Vec<String> {
        self.names(|one| one.gone)
    }

    /// Names of participants that have not reported their end.
    pub(super) fn unfinished(&self) -> Vec<String> {
        self.names(|one| !one.gone && (one.silent || one.last.phase != RunPhase::Done))
    }

    fn names(&self, which: impl Fn(&Participant<'_>) -> bool) -> Vec<String> {
        let those = self.participants.iter().filter(|one| which(one));
        those.map(|one| one.nic.name.clone()).collect()
    }

    pub(super) fn start(&mut self, size: u32, lab: &mut dyn Lab) -> Result<(), RunError> {
        let spec = TrafficSpec {
            run: self.run,
            size,
            ..self.plan.spec.clone()
        };
        // Also start NICs that only receive, without destinations, so that their reports are about
        // this run.
        let silent = TrafficSpec {
            pattern: TrafficPattern::List {
                destinations: Vec::new(),
            },
            ..spec.clone()
        };
        let mut sources = 0..;
        for participant in &mut self.participants {
            let spec = match participant.is_source.then(|| sources.next()).flatten() {
                Some(source) => self.plan.spec_of(source, &spec),
                None => silent.clone(),
            };
            let spec = Box::new(spec);
            lab.ask(&participant.nic.name, &Request::TrafficStart { spec })?;
            participant.started = true;
        }
        Ok(())
    }

    /// Stops all sources except those that this run never started, which work for another tool. A
    /// source that does not reply stops when this tool exits.
    pub(super) fn stop(&self, lab: &mut dyn Lab) {
        for sender in &self.participants {
            if sender.is_source && sender.started && !sender.gone && !sender.silent {
                // Ignore an error: a source that does not reply does not send.
                let _ = lab.ask(&sender.nic.name, &Request::TrafficStop);
            }
        }
    }

    /// Waits until every sent message has ended. Waits for sources that stall or do not finish only
    /// up to the limits.
    pub(super) fn drain(
        &mut self,
        lab: &mut dyn Lab,
        clock: &dyn Clock,
        watch: &mut impl FnMut(RunProgress),
    ) -> Result<(), RunError> {
        let begin = clock.now();
        let duration = self.plan.duration();
        let planned = begin + duration.unwrap_or_default();
        // Acknowledgements extend the deadline, since a run limited only by a count may take any
        // time.
        let mut deadline = planned + DRAIN_LIMIT;
        let (mut seen, mut stopped, mut alone_since) = (0, false, None);
        loop {
            let merged = self.look(lab, clock, |one| one.is_source)?;
            let now = clock.now();
            watch(RunProgress {
                elapsed: now - begin,
                sent: merged.sent,
                acknowledged: merged.acknowledged,
                phase: merged.phase,
                outstanding: merged.outstanding,
                waiting: self.names(|one| one.is_source && one.last.outstanding > 0),
            });
            let mut open = self
                .participants
                .iter()
                .filter(|one| one.is_source && one.last.phase != RunPhase::Done);
            if merged.phase == RunPhase::Done {
                return Ok(());
            }
            alone_since = match open.all(|one| one.silent) {
                true => alone_since.or(Some(now)),
                false => None,
            };
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
            let given_up = alone_since.is_some_and(|since| {
                let since = if stopped { since } else { since.max(planned) };
                now >= since + SILENT_LIMIT
            });
            if given_up || now >= deadline {
                return Ok(());
            }
            clock.sleep(LOOK_EVERY);
        }
    }

    /// The merged report of all participants, once nothing is in flight any more.
    pub(super) fn settle(
        &mut self,
        lab: &mut dyn Lab,
        clock: &dyn Clock,
    ) -> Result<TrafficReport, RunError> {
        // Do not wait again for sources that were given up.
        let given_up = self.names(|one| one.is_source && one.silent);
        let begin = clock.now();
        let (mut arrived, mut last_came) = (0, begin);
        loop {
            let merged = self.look(lab, clock, |_| true)?;
            let now = clock.now();
            if merged.delivered + merged.corrupted > arrived {
                (arrived, last_came) = (merged.delivered + merged.corrupted, now);
            }
            let waits = self
                .participants
                .iter()
                .any(|one| one.silent && !given_up.contains(&one.nic.name));
            let limit = if waits { SILENT_LIMIT } else { STRAGGLER_LIMIT };
            let is_quiet = !waits && now - last_came >= STRAGGLER_PAUSE;
            let late = now - begin >= limit || is_quiet;
            let complete = merged.lost() == 0 && !waits;
            if complete || late || clock.stops() > 1 {
                return Ok(merged);
            }
            clock.sleep(LOOK_EVERY);
        }
    }

    /// Collects the reports of some participants, and monitors all processes.
    fn look(
        &mut self,
        lab: &mut dyn Lab,
        clock: &dyn Clock,
        which: impl Fn(&Participant<'_>) -> bool,
    ) -> Result<TrafficReport, RunError> {
        let mut merged = TrafficReport::default();
        for participant in self.participants.iter_mut().filter(|one| which(one)) {
            participant.look(self.run, lab)?;
            if participant.silent {
                self.processes.silent(&participant.nic.name);
            }
            merged.merge(&participant.last);
        }
        self.processes.watch(clock.now(), lab);
        Ok(merged)
    }
}

impl Participant<'_> {
    /// Collects the report of a participant. One that died, or was restarted and does not know the
    /// run, keeps its last report and sends nothing more. A stalled one keeps it too, and may
    /// continue.
    fn look(&mut self, run: u64, lab: &mut dyn Lab) -> Result<(), RunError> {
        if self.gone {
            return Ok(());
        }
        let node = &self.nic.name;
        self.silent = matches!(lab.state(node), ProcessState::Stopped(_));
        if self.silent {
            return Ok(());
        }
        let status = Request::TrafficStatus { run: Some(run) };
        let report: TrafficReport = match ask(lab, node, &status) {
            Ok(report) => report,
            Err(error) if error.is_silent() => {
                self.silent = true;
                return Ok(());
            }
            Err(error) if error.reports_death() => {
                self.gone = true;
                self.last.phase = RunPhase::Done;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
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
