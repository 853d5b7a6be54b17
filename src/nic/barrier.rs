//! Runs of hardware barriers and eurekas: specification and report. How NICs carry them out depends
//! on the machine.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::collective::DEFAULT_PATIENCE;
use super::latency::LatencyCounts;
use super::traffic_report::RunPhase;

/// One hour: longer waits hide a participant that will never arrive.
const MOST_PATIENCE_NS: u64 = 3_600_000_000_000;

/// One run of barriers at one unit. Every participant gets the same specification, and all of them
/// prepare the unit before the first starts.
///
/// A hardware barrier carries no data that could verify its result. So every participant counts the
/// barriers it has joined in a word that the others can read over the network. After a barrier,
/// each participant reads the word of another: it must show that the other had joined and is at
/// most one barrier ahead.
///
/// The run ends at all participants after the same barrier. A participant that has reached `count`
/// or `duration_ns`, or is ordered to stop, signals a eureka as it joins; all participants see the
/// eureka before that barrier completes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BarrierSpec {
    /// Identifies the run; zero is rejected.
    pub run: u32,
    pub unit: u8,
    /// The participants, by processor number, in order of rank.
    pub processors: Vec<u16>,
    /// Whether every other barrier follows a eureka. The participants take turns to signal it,
    /// sometimes two at once; the others wait for it before they join.
    #[serde(default)]
    pub eureka: bool,
    /// Number of barriers; zero means no limit. In a run with eurekas the last barrier has none.
    #[serde(default)]
    pub count: u64,
    /// Duration in nanoseconds; zero means no limit. If `count` is zero too, the run continues
    /// until it is stopped.
    #[serde(default)]
    pub duration_ns: u64,
    /// Each participant waits for a random time of up to this many nanoseconds before joining a
    /// barrier.
    #[serde(default)]
    pub skew_ns: u64,
    /// Nanoseconds that participants wait for each other before the run fails.
    #[serde(default = "default_patience_ns")]
    pub patience_ns: u64,
}

const fn default_patience_ns() -> u64 {
    DEFAULT_PATIENCE.as_ns()
}

impl Default for BarrierSpec {
    fn default() -> Self {
        Self {
            run: 1,
            unit: 0,
            processors: Vec::new(),
            eureka: false,
            count: 0,
            duration_ns: 0,
            skew_ns: 0,
            patience_ns: default_patience_ns(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BarrierSpecError {
    #[error("run number 0 is invalid")]
    ZeroRun,
    #[error("barrier unit {0} does not exist: there are {1}")]
    Unit(u8, u8),
    #[error("the barrier has no participants")]
    NoParticipants,
    #[error("processor {0} is listed twice")]
    Twice(u16),
    #[error("this processor is not a participant")]
    NotParticipant,
    #[error("run {0} is still in progress at unit {1}")]
    Busy(u32, u8),
    #[error("unit {0} is not ready: this processor has no access to it, or a barrier is pending")]
    NotReady(u8),
    #[error("the timeout (`patience_ns`) is zero or longer than an hour")]
    Patience,
}

impl BarrierSpec {
    /// Checks all fields that do not depend on the participant.
    ///
    /// # Errors
    /// The first problem found.
    pub fn validate(&self, units: u8) -> Result<(), BarrierSpecError> {
        if self.run == 0 {
            return Err(BarrierSpecError::ZeroRun);
        }
        if self.unit >= units {
            return Err(BarrierSpecError::Unit(self.unit, units));
        }
        if self.processors.is_empty() {
            return Err(BarrierSpecError::NoParticipants);
        }
        if !(1..=MOST_PATIENCE_NS).contains(&self.patience_ns) {
            return Err(BarrierSpecError::Patience);
        }
        let mut sorted = self.processors.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(BarrierSpecError::Twice(pair[0])),
            None => Ok(()),
        }
    }
}

/// Counts of one run at one participant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BarrierReport {
    pub run: u32,
    pub unit: u8,
    /// Running; draining, while the response to a check is outstanding; or done. Merged: the
    /// earliest phase of all.
    pub phase: RunPhase,
    pub participants: u32,
    /// Number of participants whose counts are included.
    pub reported: u32,
    /// Completed barriers; merged: the fewest.
    pub barriers: u64,
    /// Eurekas awaited and received; merged: the fewest.
    pub eurekas: u64,
    /// Words of other participants read and compared.
    pub checks: u64,
    /// Checks that found a barrier completed before another participant had joined it, or a eureka
    /// that no participant had signalled.
    pub early: u64,
    /// Checks that found another participant more than one barrier ahead, so that this one has lost
    /// a barrier.
    pub lost: u64,
    pub timed_out: u64,
    /// Why the run failed, if it did; merged: the first reason found.
    pub failure: Option<String>,
    /// Nanoseconds from the start to the last barrier so far; merged: the longest.
    pub elapsed_ns: u64,
    /// Time from joining a barrier to its completion.
    pub latency: LatencyCounts,
    /// Time from signalling a eureka to receiving it.
    pub eureka_latency: LatencyCounts,
}

impl BarrierReport {
    /// Adds the counts of other participants in the same run.
    pub fn merge(&mut self, other: &Self) {
        let fewest = |own: u64, others: u64| match (self.reported, other.reported) {
            (0, _) => others,
            (_, 0) => own,
            _ => own.min(others),
        };
        self.barriers = fewest(self.barriers, other.barriers);
        self.eurekas = fewest(self.eurekas, other.eurekas);
        self.phase = self.phase.max(other.phase);
        self.participants = self.participants.max(other.participants);
        self.reported += other.reported;
        self.checks += other.checks;
        self.early += other.early;
        self.lost += other.lost;
        self.timed_out += other.timed_out;
        if self.failure.is_none() {
            self.failure.clone_from(&other.failure);
        }
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.latency.merge(&other.latency);
        self.eureka_latency.merge(&other.eureka_latency);
    }

    /// Whether the report covers all participants, all completed the same number of barriers, and
    /// no check failed.
    pub fn is_clean(&self) -> bool {
        let all = self.reported == self.participants
            && self.latency.count() == self.barriers * u64::from(self.participants);
        let wrong = self.early + self.lost + self.timed_out;
        all && wrong == 0 && self.failure.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_runs_are_refused() {
        let spec = BarrierSpec {
            processors: vec![3, 1],
            ..BarrierSpec::default()
        };
        assert_eq!(spec.validate(32), Ok(()));
        let refused = |change: fn(&mut BarrierSpec)| {
            let mut spec = spec.clone();
            change(&mut spec);
            spec.validate(32).expect_err("a mistake")
        };
        assert_eq!(refused(|spec| spec.run = 0), BarrierSpecError::ZeroRun);
        let unit = BarrierSpecError::Unit(32, 32);
        assert_eq!(refused(|spec| spec.unit = 32), unit);
        let none = BarrierSpecError::NoParticipants;
        assert_eq!(refused(|spec| spec.processors.clear()), none);
        let twice = BarrierSpecError::Twice(3);
        assert_eq!(refused(|spec| spec.processors.push(3)), twice);
        assert_eq!(
            refused(|spec| spec.patience_ns = 0),
            BarrierSpecError::Patience
        );
    }

    #[test]
    fn a_run_with_fewer_barriers_at_one_participant_is_not_clean() {
        let counts = |barriers| {
            let mut latency = crate::nic::latency::LatencyRecorder::new();
            (0..barriers).for_each(|_| latency.record(5));
            BarrierReport {
                participants: 2,
                reported: 1,
                barriers,
                latency: latency.counts(),
                ..BarrierReport::default()
            }
        };
        let merged = |one, other| {
            let mut merged = BarrierReport::default();
            merged.merge(&counts(one));
            merged.merge(&counts(other));
            merged
        };
        assert!(merged(3, 3).is_clean());
        assert!(!merged(3, 2).is_clean());
        assert_eq!(merged(3, 2).barriers, 2);
        assert!(!counts(3).is_clean(), "one report is missing");
    }
}
