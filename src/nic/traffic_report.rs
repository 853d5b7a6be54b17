//! Result of a traffic run, as one NIC saw it, and merged over several.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::latency::LatencyCounts;

/// Progress of a run at its source.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RunPhase {
    /// Everything issued has completed or timed out (or nothing was ever issued here).
    #[default]
    Done,
    /// Issues nothing more, but waits for outstanding messages.
    Draining,
    /// Messages are being issued.
    Running,
    /// The run is being announced to its targets.
    Opening,
}

/// Counts of one run at one NIC, as source and as target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrafficReport {
    /// Number of the run.
    pub run: u64,
    /// Phase of the run here; merged: the earliest of all.
    pub phase: RunPhase,
    /// Whether the messages are gets.
    pub gets: bool,
    /// Payload bytes per message.
    pub size: u32,
    /// Nanoseconds from the first message until the last message was offered or acknowledged (so
    /// far): until the duration was over, the count was reached or the run was stopped, or until a
    /// later last acknowledgement. Timeouts awaited after that do not count. Merged: the longest.
    pub elapsed_ns: u64,
    /// Nanoseconds from the end of the offer until the last message was answered or timed out (so
    /// far); merged: the longest.
    #[serde(default)]
    pub drain_ns: u64,
    /// Source: messages handed to the network.
    pub sent: u64,
    /// Source of a run with a rate: messages that were due but not sent, because the window was
    /// full or the link accepted nothing for too long. Merely late messages are excluded until the
    /// run ends.
    #[serde(default)]
    pub not_offered: u64,
    /// Source: messages answered and not rejected (gets and additions: whatever they found).
    pub acknowledged: u64,
    /// Source: messages that timed out unanswered.
    pub timed_out: u64,
    /// Source: messages rejected by the target.
    pub refused: u64,
    /// Source: messages outstanding now.
    pub outstanding: u64,
    /// Source: targets that never responded to the announcement of the run.
    pub unreachable: u64,
    /// Source: unreachable targets, in ascending order, at most 64.
    #[serde(default)]
    pub unreached: Vec<u16>,
    /// Source: targets that responded to the announcement of the run but do not take part.
    #[serde(default)]
    pub unwilling: u64,
    /// Source: unwilling targets, in ascending order, at most 64.
    #[serde(default)]
    pub refusers: Vec<u16>,
    /// Target: the later run because of which the announcement of this one was rejected (run
    /// numbers grow); zero: it was not. Merged: the latest.
    #[serde(default)]
    pub outdated_by: u64,
    /// Target: distinct puts delivered with the right bytes, or additions carried out.
    pub delivered: u64,
    /// Messages delivered, or gets and additions answered, with wrong bytes.
    pub corrupted: u64,
    /// Source: gets and additions that found unwritten memory, at targets that no longer know the
    /// run, since they were restarted, or cannot be queried. At targets that still know it such
    /// memory counts as corrupted; which applies is known when the run is done.
    #[serde(default)]
    pub unwritten: u64,
    /// Target: puts delivered a second time. Source: additions that fetched a value already
    /// fetched.
    pub duplicated: u64,
    /// Target of puts: messages delivered after a later one to the same address.
    pub misordered: u64,
    /// Target of puts that may overtake each other: messages delivered after a later one. No fault.
    #[serde(default)]
    pub overtaken: u64,
    /// Target of puts: messages skipped and not delivered since.
    pub missing: u64,
    /// Target of puts: late messages of other runs that arrived during this one. No fault of this
    /// run.
    #[serde(default)]
    pub stale: u64,
    /// Time from issue to response of the acknowledged messages.
    pub latency: LatencyCounts,
}

/// Maximum number of targets of a kind that a report names.
pub(crate) const MAX_NAMED: usize = 64;

impl TrafficReport {
    /// Counts a target that did not respond to the announcement of the run.
    pub(crate) fn not_reached(&mut self, processor: u16) {
        self.unreachable += 1;
        name(&mut self.unreached, &[processor]);
    }

    /// Counts a target that rejected the announcement of the run.
    pub(crate) fn refused_by(&mut self, processor: u16) {
        self.unwilling += 1;
        name(&mut self.refusers, &[processor]);
    }

    /// Adds another NIC's counts of the same run.
    pub fn merge(&mut self, other: &Self) {
        self.phase = self.phase.max(other.phase);
        self.gets |= other.gets;
        self.size = self.size.max(other.size);
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.drain_ns = self.drain_ns.max(other.drain_ns);
        self.sent += other.sent;
        self.not_offered += other.not_offered;
        self.acknowledged += other.acknowledged;
        self.timed_out += other.timed_out;
        self.refused += other.refused;
        self.outstanding += other.outstanding;
        self.unreachable += other.unreachable;
        name(&mut self.unreached, &other.unreached);
        self.unwilling += other.unwilling;
        name(&mut self.refusers, &other.refusers);
        self.outdated_by = self.outdated_by.max(other.outdated_by);
        self.delivered += other.delivered;
        self.corrupted += other.corrupted;
        self.unwritten += other.unwritten;
        self.duplicated += other.duplicated;
        self.misordered += other.misordered;
        self.overtaken += other.overtaken;
        self.missing += other.missing;
        self.stale += other.stale;
        self.latency.merge(&other.latency);
    }

    /// Messages that were sent and did not arrive, in a merged report of all sources and targets of
    /// the run: puts that no target received, whole or corrupted; gets without a response. A put of
    /// which only the acknowledgement was lost is not lost, only timed out.
    pub fn lost(&self) -> u64 {
        let arrived = if self.gets {
            self.acknowledged + self.refused
        } else {
            self.delivered + self.corrupted + self.unwritten + self.refused
        };
        self.sent.saturating_sub(arrived)
    }

    /// Messages carried out beyond those sent, in a merged report of all sources and targets of the
    /// run: nothing else reveals additions that a network made twice.
    pub fn surplus(&self) -> u64 {
        self.delivered.saturating_sub(self.sent)
    }

    /// Whether nothing was lost, duplicated, corrupted, misordered or read from unwritten memory,
    /// and every target was reached and took part.
    pub fn is_clean(&self) -> bool {
        self.lost()
            + self.surplus()
            + self.duplicated
            + self.corrupted
            + self.unwritten
            + self.misordered
            + self.missing
            == 0
            && self.refused + self.unreachable + self.unwilling == 0
    }

    /// Acknowledged messages per second over [`elapsed_ns`](Self::elapsed_ns).
    pub fn messages_per_second(&self) -> u64 {
        let per_second = u128::from(self.acknowledged) * 1_000_000_000;
        (per_second / u128::from(self.elapsed_ns.max(1))) as u64
    }
}

fn name(names: &mut Vec<u16>, processors: &[u16]) {
    names.extend_from_slice(processors);
    names.sort_unstable();
    names.dedup();
    names.truncate(MAX_NAMED);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_and_targets_merge_into_one_account() {
        let mut source = TrafficReport {
            run: 3,
            phase: RunPhase::Draining,
            sent: 10,
            acknowledged: 8,
            timed_out: 2,
            elapsed_ns: 2_000,
            ..TrafficReport::default()
        };
        let target = TrafficReport {
            run: 3,
            delivered: 9,
            missing: 1,
            ..TrafficReport::default()
        };
        source.merge(&target);
        assert_eq!(source.lost(), 1);
        assert_eq!(source.phase, RunPhase::Draining);
        assert!(!source.is_clean());
        assert_eq!(source.messages_per_second(), 4_000_000);
    }

    #[test]
    fn a_lost_get_is_one_without_an_answer() {
        let report = TrafficReport {
            gets: true,
            sent: 10,
            acknowledged: 7,
            refused: 1,
            ..TrafficReport::default()
        };
        assert_eq!(report.lost(), 2);
    }

    #[test]
    fn each_kind_of_damage_shows() {
        let clean = TrafficReport {
            sent: 5,
            delivered: 5,
            ..TrafficReport::default()
        };
        assert!(clean.is_clean());
        for damage in [
            |r: &mut TrafficReport| r.duplicated = 1,
            |r: &mut TrafficReport| r.misordered = 1,
            |r: &mut TrafficReport| r.missing = 1,
            |r: &mut TrafficReport| r.unreachable = 1,
            |r: &mut TrafficReport| r.unwilling = 1,
            |r: &mut TrafficReport| r.unwritten = 1,
            |r: &mut TrafficReport| r.delivered = 6,
            |r: &mut TrafficReport| r.delivered = 4,
            |r: &mut TrafficReport| (r.corrupted, r.delivered) = (1, 4),
        ] {
            let mut report = clean.clone();
            damage(&mut report);
            assert!(!report.is_clean());
        }
    }
}
