//! Result of a run of collective operations, from one participant or merged over several.

use serde::{Deserialize, Serialize};

use crate::nic::latency::LatencyCounts;
use crate::nic::traffic_report::RunPhase;

/// Counts of one run at one participant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectiveReport {
    pub run: u32,
    /// Running; draining, while a neighbour has not acknowledged the last result; or done. Merged:
    /// the earliest phase of all.
    pub phase: RunPhase,
    pub participants: u32,
    /// Number of participants whose counts are included.
    pub reported: u32,
    /// Iterations that ended with a result, right or wrong; merged: the fewest.
    pub iterations: u64,
    pub wrong: u64,
    /// Iterations without a result because the participants disagreed or one gave up.
    pub failed: u64,
    /// Iterations without a result because a participant did not arrive or could not be reached.
    pub timed_out: u64,
    /// Why the run failed, if it did; merged: the first reason found.
    pub failure: Option<String>,
    /// Nanoseconds from first joining to the last result so far; merged: the longest.
    pub elapsed_ns: u64,
    /// Time from joining to the result. Iterations without a result are excluded.
    pub latency: LatencyCounts,
}

impl CollectiveReport {
    /// Adds the counts of other participants in the same run.
    pub fn merge(&mut self, other: &Self) {
        self.phase = self.phase.max(other.phase);
        self.participants = self.participants.max(other.participants);
        self.iterations = match (self.reported, other.reported) {
            (0, _) => other.iterations,
            (_, 0) => self.iterations,
            _ => self.iterations.min(other.iterations),
        };
        self.reported += other.reported;
        self.wrong += other.wrong;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        if self.failure.is_none() {
            self.failure.clone_from(&other.failure);
        }
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.latency.merge(&other.latency);
    }

    /// Whether the report covers all participants, and all got the same number of correct results.
    pub fn is_clean(&self) -> bool {
        let all = self.reported == self.participants
            && self.latency.count() == self.iterations * u64::from(self.participants);
        all && self.wrong + self.failed + self.timed_out == 0
    }
}
