//! A run of barriers at one unit of a processor. It joins one barrier after another, and checks
//! each against the words of other participants.
//!
//! A participant's word is twice the number of barriers that it has joined, plus one if it has seen
//! or signalled a eureka since.

use phitwire_framing::t3e::barrier::UnitNumber;

use crate::barrier::{BarrierShell, Notified, Operation};
use phitwire::nic::latency::LatencyRecorder;
use phitwire::nic::{BarrierReport, BarrierSpec, RunPhase};
use phitwire::rng::spread;
use phitwire::time::{Duration, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Waits until the next barrier or eureka is due.
    Pause(Time),
    /// Has signalled the eureka, or waits for another participant to signal it.
    Eureka {
        since: Time,
        signalled: bool,
    },
    /// Has joined the barrier, at this time.
    Armed(Time),
    Over,
}

/// Expected minimum of another participant's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Check {
    pub processor: u16,
    least: u64,
}

#[derive(Debug)]
pub(super) struct BarrierRun {
    spec: BarrierSpec,
    unit: UnitNumber,
    rank: u64,
    step: Step,
    began: Time,
    last: Time,
    joined: u64,
    seen: bool,
    /// Whether the network reported a eureka since the last barrier.
    eureka_notified: bool,
    stopping: bool,
    check: Option<Check>,
    /// Whether a check waits for its response.
    asking: bool,
    counts: BarrierReport,
    latency: LatencyRecorder,
    eureka_latency: LatencyRecorder,
}

impl BarrierRun {
    /// The run of a valid `spec` at `rank`.
    pub fn new(spec: BarrierSpec, unit: UnitNumber, rank: usize, now: Time) -> Self {
        let counts = BarrierReport {
            run: spec.run,
            unit: spec.unit,
            participants: spec.processors.len() as u32,
            reported: 1,
            ..BarrierReport::default()
        };
        let mut run = Self {
            spec,
            unit,
            rank: rank as u64,
            step: Step::Over,
            began: now,
            last: now,
            joined: 0,
            seen: false,
            eureka_notified: false,
            stopping: false,
            check: None,
            asking: false,
            counts,
            latency: LatencyRecorder::new(),
            eureka_latency: LatencyRecorder::new(),
        };
        run.pause(now);
        run
    }

    pub fn handle_suspension(&mut self, now: Time, span: Duration) {
        self.latency.handle_suspension(now, span);
        self.eureka_latency.handle_suspension(now, span);
    }

    pub fn run(&self) -> u32 {
        self.spec.run
    }

    /// The word that other participants read.
    pub fn word(&self) -> u64 {
        2 * self.joined + u64::from(self.seen)
    }

    pub fn phase(&self) -> RunPhase {
        match self.step {
            Step::Over if self.asking || self.check.is_some() => RunPhase::Draining,
            Step::Over => RunPhase::Done,
            _ => RunPhase::Running,
        }
    }

    /// Requests the run to stop. Returns true if a stop was requested before, so that the run must
    /// end at once.
    pub fn stop(&mut self) -> bool {
        core::mem::replace(&mut self.stopping, true)
    }

    /// Ends the run at this participant, whatever the others do.
    pub fn abort(&mut self, why: &str) {
        if self.step != Step::Over {
            self.counts.failure = Some(why.to_owned());
            self.step = Step::Over;
        }
        self.check = None;
    }

    /// When [`advance`](Self::advance) is due.
    pub fn deadline(&self) -> Option<Time> {
        let patience = Duration::from_ns(self.spec.patience_ns);
        match self.step {
            Step::Pause(until) => Some(until),
            Step::Eureka { since, .. } | Step::Armed(since) => Some(since + patience),
            Step::Over => None,
        }
    }

    /// Handles timers that are due.
    pub fn advance(&mut self, now: Time, shell: &mut BarrierShell) {
        if self.deadline().is_none_or(|due| due > now) {
            return;
        }
        match self.step {
            Step::Pause(_) => self.begin(now, shell),
            Step::Eureka { .. } => self.time_out("no eureka arrived"),
            Step::Armed(_) => self.time_out("a barrier did not complete"),
            Step::Over => {}
        }
    }

    fn time_out(&mut self, what: &str) {
        self.counts.timed_out += 1;
        let ms = self.spec.patience_ns / 1_000_000;
        self.abort(&format!("{what} within {ms} ms"));
    }

    fn pause(&mut self, now: Time) {
        let wait = match self.spec.skew_ns {
            0 => 0,
            most => self.dice(1) % (most + 1),
        };
        self.step = Step::Pause(now + Duration::from_ns(wait));
    }

    /// A random number. With `own` 0 it is the same for all participants, otherwise it depends on
    /// the rank.
    fn dice(&self, own: u64) -> u64 {
        let seed = u64::from(self.spec.run) << 32 | u64::from(self.spec.unit) << 24;
        spread(spread(seed ^ (own * (self.rank + 1)) << 8) ^ self.joined)
    }

    fn has_eureka(&self) -> bool {
        self.spec.eureka && self.joined.is_multiple_of(2)
    }

    /// The ranks that signal the eureka: one or two.
    fn signals(&self) -> (u64, Option<u64>) {
        let ranks = self.spec.processors.len() as u64;
        let first = self.dice(0) % ranks;
        let both = self.joined % 8 == 6;
        (first, both.then_some((first + 1) % ranks))
    }

    fn begin(&mut self, now: Time, shell: &mut BarrierShell) {
        if !self.has_eureka() {
            return self.join(now, shell);
        }
        let (first, second) = self.signals();
        let signals = first == self.rank || second == Some(self.rank);
        if signals {
            self.seen = true;
            if let Err(error) = shell.operate(self.unit, Operation::Eur) {
                return self.abort(&error.to_string());
            }
        }
        self.step = Step::Eureka {
            since: now,
            signalled: signals && !self.eureka_notified,
        };
        if self.eureka_notified {
            self.eureka(now, shell);
        }
    }

    /// Handles a eureka by joining the barrier.
    fn eureka(&mut self, now: Time, shell: &mut BarrierShell) {
        let Step::Eureka { since, signalled } = self.step else {
            return;
        };
        self.counts.eurekas += 1;
        self.seen = true;
        if signalled {
            self.eureka_latency.record_span(since, now);
        } else if let (first, None) = self.signals() {
            let least = 2 * self.joined + 1;
            self.ask(first, least);
        }
        self.join(now, shell);
    }

    fn join(&mut self, now: Time, shell: &mut BarrierShell) {
        let Self { spec, joined, .. } = &*self;
        let counted = spec.count != 0 && joined + 1 >= spec.count;
        let over = spec.duration_ns != 0 && now >= self.began + Duration::from_ns(spec.duration_ns);
        let ends = !self.has_eureka() && (self.stopping || counted || over);
        let operation = match ends {
            true => Operation::EurB,
            false => Operation::Bar,
        };
        self.joined += 1;
        self.seen = false;
        self.step = Step::Armed(now);
        if let Err(error) = shell.operate(self.unit, operation) {
            self.abort(&error.to_string());
        }
    }

    /// Handles a notification of the unit.
    pub fn notified(&mut self, now: Time, what: Notified, shell: &mut BarrierShell) {
        match what {
            Notified::EurekaSeen | Notified::EurekaKnown => {
                self.eureka_notified = true;
                self.eureka(now, shell);
            }
            Notified::BarrierDone => self.done(now),
            Notified::Unexpected => {}
        }
    }

    fn done(&mut self, now: Time) {
        let Step::Armed(since) = self.step else {
            return;
        };
        self.latency.record_span(since, now);
        self.last = now;
        self.counts.barriers += 1;
        // Check another participant after each barrier, in turn, but never this one.
        let others = self.spec.processors.len() as u64 - 1;
        if others > 0 {
            let other = (self.rank + 1 + self.joined % others) % (others + 1);
            self.ask(other, 2 * self.joined);
        }
        let had_eureka = self.spec.eureka && !self.joined.is_multiple_of(2);
        let ends = core::mem::take(&mut self.eureka_notified) && !had_eureka;
        match ends {
            true => self.step = Step::Over,
            false => self.pause(now),
        }
    }

    /// Schedules a check of the word of `rank`, unless another is pending.
    fn ask(&mut self, rank: u64, least: u64) {
        if self.check.is_none() && !self.asking {
            let processor = self.spec.processors[rank as usize];
            self.check = Some(Check { processor, least });
        }
    }

    pub fn check(&self) -> Option<Check> {
        self.check
    }

    pub fn asked(&mut self) {
        self.check = None;
        self.asking = true;
    }

    /// Handles the response to a check; `None` if it failed.
    pub fn answered(&mut self, check: Check, word: Option<u64>) {
        self.asking = false;
        let Some(word) = word else {
            return;
        };
        self.counts.checks += 1;
        self.counts.early += u64::from(word < check.least);
        // Allow one more barrier: the other may have joined the barrier after the last one that
        // this participant joined.
        self.counts.lost += u64::from(word > 2 * (self.joined + 1));
    }

    pub fn report(&self) -> BarrierReport {
        BarrierReport {
            phase: self.phase(),
            elapsed_ns: self.latency.span(self.began, self.last).as_ns(),
            latency: self.latency.counts(),
            eureka_latency: self.eureka_latency.counts(),
            ..self.counts.clone()
        }
    }
}
