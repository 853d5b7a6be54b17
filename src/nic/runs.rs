//! The traffic runs of which a NIC is the source.

use std::collections::VecDeque;

use super::checker::Checker;
use super::traffic::{Driver, Source};
use super::traffic_report::{RunPhase, TrafficReport};
use super::traffic_spec::{SpecError, TrafficSpec};
use super::{Answered, Issuer, RunRequest};
use crate::time::{Duration, Time};

/// Number of reports of earlier runs that are kept; the oldest is discarded.
const KEPT_RUNS: usize = 16;

#[derive(Debug, Default)]
pub struct Runs {
    driver: Option<Driver>,
    begun: u32,
    /// Bytes at the end of every memory that runs must not use.
    reserved: u64,
    finished: VecDeque<TrafficReport>,
}

impl Runs {
    /// Starts a run; see [`Driver::new`].
    ///
    /// # Errors
    /// See [`SpecError`]; a run in progress then continues.
    pub fn start(
        &mut self,
        now: Time,
        spec: TrafficSpec,
        mut source: Source,
        identity: impl Fn(u16) -> Option<u32>,
    ) -> Result<(), SpecError> {
        if let Some(driver) = self.driver.as_ref().filter(|driver| !driver.is_done()) {
            return Err(SpecError::Busy(driver.run()));
        }
        let latest = self.driver.as_ref().map_or(0, Driver::run);
        if (1..latest).contains(&spec.run) {
            return Err(SpecError::Outdated {
                run: spec.run,
                latest,
            });
        }
        source.memory_bytes = source.memory_bytes.saturating_sub(self.reserved);
        let driver = Driver::new(spec, source, identity, now)?;
        self.begun = self.begun.wrapping_add(1);
        let driver = driver.with_serial(self.begun);
        if let Some(old) = self.driver.replace(driver) {
            if self.finished.len() == KEPT_RUNS {
                self.finished.pop_front();
            }
            debug_assert!(old.is_done(), "one run at a time");
            self.finished.push_back(old.report());
            debug_assert!(self.finished.len() <= KEPT_RUNS, "the oldest is discarded");
        }
        Ok(())
    }

    pub fn handle_suspension(&mut self, now: Time, span: Duration) {
        if let Some(driver) = &mut self.driver {
            driver.handle_suspension(now, span);
        }
    }

    /// Excludes the last `bytes` of every memory from later runs.
    pub fn reserve(&mut self, bytes: u64) {
        self.reserved += bytes;
    }

    /// Stops the current run, if any, but waits for outstanding messages. Returns true if it had
    /// already stopped: a caller that stops a run twice does not want to wait.
    pub fn stop(&mut self) -> bool {
        let Some(driver) = self.driver.as_mut().filter(|driver| !driver.is_done()) else {
            return false;
        };
        let was_draining = driver.report().phase == RunPhase::Draining;
        driver.stop();
        was_draining
    }

    /// Counts of `run` at this NIC, as source and as target. Without `run`: counts of the last run
    /// started here, or else of the last one announced here. `None` if no such run is known. `read`
    /// returns the 64-bit word at a memory address.
    pub fn report(
        &self,
        run: Option<u64>,
        checker: &Checker,
        read: impl FnMut(u64) -> u64,
    ) -> Option<TrafficReport> {
        let run = run
            .or(self.driver.as_ref().map(Driver::run))
            .or(checker.latest_run())?;
        let source = match &self.driver {
            Some(driver) if driver.run() == run => Some(driver.report()),
            _ => {
                let mut finished = self.finished.iter().rev();
                finished.find(|report| report.run == run).cloned()
            }
        };
        let is_source = source.is_some();
        let mut report = source.unwrap_or(TrafficReport {
            run,
            ..TrafficReport::default()
        });
        let is_target = checker.report(run, &mut report, read);
        (is_source || is_target).then_some(report)
    }

    pub fn spec(&self) -> Option<&TrafficSpec> {
        self.driver.as_ref().map(Driver::spec)
    }

    /// Issues messages of the current run; returns its number if the run is now done.
    #[inline]
    pub fn issue(&mut self, now: Time, nic: &mut impl Issuer) -> Option<u64> {
        let driver = self.driver.as_mut()?;
        driver.issue(now, nic).then(|| driver.run())
    }

    /// Accounts for the end of a request to `address` that was posted at `posted`.
    #[inline]
    pub fn answered(
        &mut self,
        now: Time,
        posted: Time,
        (request, address): (RunRequest, u64),
        answered: Answered<'_>,
    ) {
        let Some(driver) = &mut self.driver else {
            unreachable!("a driver stays until all its requests have ended");
        };
        match request {
            RunRequest::Message(index) => {
                driver.message_answered(now, posted, (index, address), answered);
            }
            RunRequest::Question(index) => driver.question_answered(index, answered),
            RunRequest::Announcement(index) => {
                driver.announcement_answered((index, false), now.since(posted), answered);
            }
            RunRequest::Repetition { index, serial } => {
                driver.repetition_answered((index, serial), now.since(posted), answered);
            }
        }
    }

    /// When the current run next needs a call.
    pub fn deadline(&self) -> Option<Time> {
        self.driver.as_ref().and_then(Driver::deadline)
    }
}
