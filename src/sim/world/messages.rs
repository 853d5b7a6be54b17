//! Measured runs of NICs (network interfaces), each until it has ended and the network is at rest.

use phitwire_framing::listed;

use super::World;
use crate::device::DeviceError;
use crate::net::Network;
use crate::nic::{
    BarrierSpec, Collective, CollectiveSpec, LatencyCounts, Number, Operation, Reduce, SpecError,
    TrafficSpec,
};
use crate::sim::BarrierError;
use crate::sim::check::{Allowance, Violation, check_barriers};
use crate::time::Duration;

/// Time allowed for the network to come to rest after a run.
const REST: Duration = Duration::from_ms(100);

/// An operation of NICs: a message from one to another, or one in which several take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageOp {
    Put,
    Get,
    /// A fetching addition.
    Amo,
    /// A message between programs, into a receive that the target has posted.
    Send,
    /// A sum of 64-bit floating point numbers (XC white paper, figure 15) by collective engines.
    Allreduce,
    /// A barrier by collective engines, or else by barrier units.
    Barrier,
    /// A signal of one participant to all, by barrier units; every other one follows a barrier.
    Eureka,
}

listed!(MessageOp {
    Put = "put",
    Get = "get",
    Amo = "amo",
    Send = "send",
    Allreduce = "allreduce",
    Barrier = "barrier",
    Eureka = "eureka",
});

impl MessageOp {
    /// Whether several NICs take part in one operation.
    pub const fn is_collective(self) -> bool {
        matches!(self, Self::Allreduce | Self::Barrier | Self::Eureka)
    }

    /// The operation in the specification of a traffic run. Sends are specified as puts.
    pub const fn of_traffic(self) -> Operation {
        match self {
            Self::Get => Operation::Get,
            Self::Amo => Operation::Amo,
            _ => Operation::Put,
        }
    }
}

/// A run of NICs, in virtual time.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Messages answered and not rejected, or collective operations completed by all NICs.
    pub completed: u64,
    /// NICs that sent messages, or took part in a collective operation.
    pub nics: usize,
    /// Time from the first message to the last answer, at the slowest NIC.
    pub elapsed: Duration,
    /// Time from issue to answer, or from joining an operation to its result.
    pub latency: LatencyCounts,
    /// Violations found by the checkers; none in a correct run.
    pub violations: Vec<Violation>,
}

impl<L: Network + ?Sized> World<L> {
    /// The operations that all NICs with a number support.
    pub fn operations(&mut self) -> Vec<MessageOp> {
        let nics: Vec<_> = self
            .nics()
            .filter(|&nic| self.number(nic).is_some())
            .collect();
        let has_sends = nics.iter().all(|&nic| self.has_sends(nic));
        let has = |op: &MessageOp| {
            nics.iter().all(|&nic| {
                let nic = self.fabric.node(nic);
                let has_units = || nic.barriers().is_some_and(|runs| runs.units() > 0);
                match op {
                    MessageOp::Put | MessageOp::Get => nic.traffic().is_some(),
                    MessageOp::Amo => nic.traffic().is_some_and(|runs| runs.abilities().atomics),
                    MessageOp::Send => has_sends,
                    MessageOp::Allreduce => nic.collectives().is_some(),
                    MessageOp::Barrier => nic.collectives().is_some() || has_units(),
                    MessageOp::Eureka => has_units(),
                }
            })
        };
        MessageOp::ALL.into_iter().filter(has).collect()
    }

    /// Checks `spec` as far as that does not depend on the state of the NICs.
    ///
    /// # Errors
    /// The first problem that a sender of `spec` would report.
    pub fn check_traffic(&self, spec: &TrafficSpec) -> Result<(), SpecError> {
        let mut runs = self
            .nics()
            .filter_map(|nic| self.fabric.node(nic).traffic());
        runs.try_for_each(|runs| spec.validate(runs.abilities()))
    }

    /// Runs `spec`, gives up when no message completes for `patience`, and verifies every message.
    ///
    /// # Errors
    /// [`DeviceError::Traffic`].
    pub fn measure_traffic(
        &mut self,
        spec: &TrafficSpec,
        patience: Duration,
    ) -> Result<Measured, DeviceError> {
        self.start_traffic(spec)?;
        let has_ended = self.run_to_end(spec.run, patience, |world| {
            let report = world.report(spec.run);
            report.acknowledged + report.timed_out
        });
        let violations = self.at_rest(has_ended.then_some((spec.run, None)), patience);
        let report = self.report(spec.run);
        let sent = |nic| {
            let runs = self.fabric.node(nic).traffic();
            let report = runs.and_then(|runs| runs.report(Some(spec.run)));
            report.is_some_and(|report| report.sent > 0)
        };
        Ok(Measured {
            completed: report.acknowledged,
            nics: self.nics().filter(|&nic| sent(nic)).count(),
            elapsed: Duration::from_ns(report.elapsed_ns),
            latency: report.latency,
            violations,
        })
    }

    /// Runs the messages of `spec` as `op`, gives up when none completes for `patience`, and
    /// verifies every message.
    ///
    /// # Errors
    /// [`DeviceError::Traffic`], or [`DeviceError::Lacks`] if a NIC has no door.
    ///
    /// # Panics
    /// If `op` is collective.
    pub fn measure_messages(
        &mut self,
        op: MessageOp,
        spec: &TrafficSpec,
        patience: Duration,
    ) -> Result<Measured, DeviceError> {
        assert!(!op.is_collective(), "{} is collective", op.name());
        if op != MessageOp::Send {
            return self.measure_traffic(spec, patience);
        }
        let run = self.run_sends(spec, patience)?;
        let mut violations = run.findings;
        if violations.is_empty() {
            violations = self.at_rest(run.has_ended.then_some((0, None)), patience);
        }
        Ok(Measured {
            completed: run.received,
            nics: run.sources,
            elapsed: run.elapsed,
            latency: run.latency.counts(),
            violations,
        })
    }

    /// Runs `count` operations among the NICs with these numbers, gives up when none completes for
    /// `patience`, and verifies every result. `run` must differ from that of every earlier run.
    ///
    /// # Errors
    /// See [`BarrierError`].
    ///
    /// # Panics
    /// If `op` is not collective.
    pub fn measure_collective(
        &mut self,
        op: MessageOp,
        numbers: &[u16],
        (run, count): (u32, u64),
        patience: Duration,
    ) -> Result<Measured, BarrierError> {
        assert!(op.is_collective(), "{} is not collective", op.name());
        let mut engines = self.nics().map(|nic| self.fabric.node(nic).collectives());
        let has_engines = engines.any(|engine| engine.is_some());
        let op = match op {
            MessageOp::Allreduce => Collective::Reduce(Reduce::Sum, Number::Float64),
            MessageOp::Barrier if has_engines => Collective::Barrier,
            _ => return self.measure_barriers(op, numbers, (run, count), patience),
        };
        let spec = CollectiveSpec {
            run,
            nics: numbers.iter().map(|&number| number.into()).collect(),
            op,
            count,
            ..CollectiveSpec::default()
        };
        self.start_collectives(&spec)?;
        let has_ended = self.run_to_end(0, patience, |world| {
            world.collective_report(&spec).iterations
        });
        let violations = self.at_rest(has_ended.then_some((0, Some(&spec))), patience);
        let report = self.collective_report(&spec);
        Ok(Measured {
            completed: report.iterations,
            nics: numbers.len(),
            elapsed: Duration::from_ns(report.elapsed_ns),
            latency: report.latency,
            violations,
        })
    }

    /// Measures barriers, or eurekas, on unit 0 of routers and NICs.
    fn measure_barriers(
        &mut self,
        op: MessageOp,
        numbers: &[u16],
        (run, count): (u32, u64),
        patience: Duration,
    ) -> Result<Measured, BarrierError> {
        let spec = BarrierSpec {
            run,
            processors: numbers.to_vec(),
            eureka: op == MessageOp::Eureka,
            count: match op {
                // Every other barrier follows a eureka.
                MessageOp::Eureka => 2 * count,
                _ => count,
            },
            ..BarrierSpec::default()
        };
        self.prepare_barriers(&spec)?;
        self.start_barriers(&spec)?;
        let has_ended = self.run_to_end(0, patience, |world| world.barrier_report(&spec).barriers);
        let mut violations = self.at_rest(has_ended.then_some((0, None)), patience);
        let report = self.barrier_report(&spec);
        violations.extend(check_barriers(&report, true).err());
        let (completed, latency) = match op {
            MessageOp::Eureka => (report.eurekas, report.eureka_latency),
            _ => (report.barriers, report.latency),
        };
        Ok(Measured {
            completed,
            nics: numbers.len(),
            elapsed: Duration::from_ns(report.elapsed_ns),
            latency,
            violations,
        })
    }

    /// Runs until the run has ended, or `completed` has not risen for `patience`. Returns whether
    /// the run has ended.
    fn run_to_end(
        &mut self,
        run: u64,
        patience: Duration,
        completed: impl Fn(&Self) -> u64,
    ) -> bool {
        let mut before = completed(self);
        while !self.finish(run, patience) {
            let now = completed(self);
            if now == before {
                return false;
            }
            before = now;
        }
        true
    }

    /// Checks the network and the `ended` run (its number, or its collective operations) at rest. A
    /// run without progress for `patience` is a finding; the network is not checked then.
    fn at_rest(
        &mut self,
        ended: Option<(u64, Option<&CollectiveSpec>)>,
        patience: Duration,
    ) -> Vec<Violation> {
        if let Some((run, collectives)) = ended {
            return self.drain(run, collectives, Allowance::default(), REST);
        }
        let us = patience.as_ns() as f64 / 1_000.0;
        vec![Violation::Messages(format!(
            "no operation completed within {us} us of the machine's time"
        ))]
    }
}

impl Measured {
    /// Completed operations per second; for messages, per sending NIC.
    pub fn per_second(&self, op: MessageOp) -> f64 {
        let sources = match op.is_collective() {
            true => 1,
            false => self.nics.max(1),
        };
        self.completed as f64 / sources as f64 / (self.elapsed.as_ps().max(1) as f64 / 1e12)
    }
}
