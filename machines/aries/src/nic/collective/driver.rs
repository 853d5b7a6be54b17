//! The driver of collective runs: joins one operation after another and verifies each result.

use super::engine::Ended;
use super::message::CollectiveFailure;
use super::{Contribution, Join};
use phitwire::nic::latency::LatencyRecorder;
use phitwire::nic::traffic_report::RunPhase;
use phitwire::nic::{CollectiveReport, CollectiveSpec, Operand};
use phitwire::time::{Duration, Time};

/// The communicator of all runs.
pub(super) const RUN_KEY: u16 = 0xce11;

#[derive(Debug)]
pub(super) struct Driver {
    spec: CollectiveSpec,
    rank: u32,
    phase: RunPhase,
    /// Whether the operation of `iteration` has been joined.
    joined: bool,
    iteration: u64,
    stopping: bool,
    began: Time,
    /// Time between two operations: the process sees a result and issues the next operation.
    between: Duration,
    last: Time,
    counts: CollectiveReport,
    latency: LatencyRecorder,
}

impl Driver {
    pub(super) fn new(spec: CollectiveSpec, rank: u32, now: Time, between: Duration) -> Self {
        let counts = CollectiveReport {
            run: spec.run,
            participants: spec.nics.len() as u32,
            reported: 1,
            ..CollectiveReport::default()
        };
        Self {
            spec,
            rank,
            phase: RunPhase::Running,
            joined: false,
            iteration: 0,
            stopping: false,
            began: now,
            between,
            last: now,
            counts,
            latency: LatencyRecorder::new(),
        }
    }

    pub(super) fn handle_suspension(&mut self, now: Time, span: Duration) {
        self.latency.handle_suspension(now, span);
    }

    pub(super) fn run(&self) -> u32 {
        self.spec.run
    }

    pub(super) fn engine(&self) -> usize {
        self.spec.engine.into()
    }

    pub(super) fn is_done(&self) -> bool {
        self.phase == RunPhase::Done
    }

    /// Ends the run at all participants after the next operation that this one joins. Returns true
    /// if that was already requested.
    pub(super) fn stop(&mut self) -> bool {
        core::mem::replace(&mut self.stopping, true)
    }

    /// When to join the next operation, unless one is joined.
    pub(super) fn due(&self) -> Option<Time> {
        (self.phase == RunPhase::Running && !self.joined).then(|| self.last + self.between)
    }

    /// The next operation, for the caller to join.
    pub(super) fn next(&mut self, now: Time) -> Join {
        let Self {
            spec, iteration, ..
        } = &*self;
        let counted = spec.count != 0 && iteration + 1 >= spec.count;
        let over = self.began + Duration::from_ns(spec.duration_ns);
        let mark = self.stopping || counted || spec.duration_ns != 0 && now >= over;
        let operand = spec.operand(self.rank, *iteration);
        self.joined = true;
        Join {
            collective: self.spec.op,
            contribution: Contribution::Word(operand),
            into: None,
            mark,
            user: 0,
        }
    }

    pub(super) fn ended(&mut self, now: Time, ended: &Ended) {
        self.joined = false;
        self.last = now;
        match ended.outcome {
            Ok(result) => self.verify(now, ended, result),
            Err(failure) => self.fail(failure),
        }
        if ended.mark {
            self.phase = RunPhase::Draining;
        }
    }

    fn verify(&mut self, now: Time, ended: &Ended, result: Operand) {
        self.latency
            .record_span(ended.joined.at, now + self.between);
        let right = u64::from(ended.sequence) == self.iteration & u64::from(u32::MAX)
            && result == self.spec.result(self.iteration);
        self.counts.wrong += u64::from(!right);
        self.counts.iterations += 1;
        self.iteration += 1;
    }

    /// Ends the run after its tree has failed or its participants did not match.
    pub(super) fn fail(&mut self, failure: CollectiveFailure) {
        let timed_out = matches!(
            failure,
            CollectiveFailure::NoContribution(_)
                | CollectiveFailure::NoResult(_)
                | CollectiveFailure::Unreachable(_)
                | CollectiveFailure::NotReady(_)
        );
        self.counts.timed_out += u64::from(timed_out);
        self.counts.failed += u64::from(!timed_out);
        self.counts.failure = Some(failure.to_string());
        self.phase = RunPhase::Draining;
    }

    /// Records that the engine has no more messages to deliver.
    pub(super) fn drained(&mut self) {
        if self.phase == RunPhase::Draining {
            self.phase = RunPhase::Done;
        }
    }

    pub(super) fn report(&self) -> CollectiveReport {
        CollectiveReport {
            phase: self.phase,
            elapsed_ns: self.latency.span(self.began, self.last).as_ns(),
            latency: self.latency.counts(),
            ..self.counts.clone()
        }
    }
}
