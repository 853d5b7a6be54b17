//! Result of a traffic run, from one NIC or merged over several.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::latency::LatencyCounts;

/// Progress of a run at its source.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RunPhase {
    /// Every issued message has completed or timed out, or none was issued.
    #[default]
    Done,
    Draining,
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
    /// Phase of the run at this NIC; merged: the earliest of all.
    pub phase: RunPhase,
    /// Whether the messages are gets.
    pub gets: bool,
    /// Payload bytes per message.
    pub size: u32,
    /// Nanoseconds so far, from the first message to the end of issuing (duration over, count
    /// reached or run stopped) or to the last acknowledgement, whichever is later. Later timeouts
    /// are excluded. Merged: the longest.
    pub elapsed_ns: u64,
    /// Nanoseconds from the end of issuing until the last message was answered or timed out so far;
    /// merged: the longest.
    #[serde(default)]
    pub drain_ns: u64,
    /// Source: messages sent.
    pub sent: u64,
    /// Source of a run with a rate: messages that were due but not sent, because the window was
    /// full or the link was blocked for too long. Excludes messages that are merely late until the
    /// run ends.
    #[serde(default)]
    pub not_offered: u64,
    /// Source: messages answered and not rejected, including gets and additions that found wrong
    /// values.
    pub acknowledged: u64,
    /// Source: messages that timed out unanswered.
    pub timed_out: u64,
    /// Source: messages rejected by the target.
    pub refused: u64,
    /// Source: messages outstanding now.
    pub outstanding: u64,
    /// Source: targets that never responded to the announcement.
    pub unreachable: u64,
    /// Source: numbers of the first 64 unreachable targets, ascending.
    #[serde(default)]
    pub unreached: Vec<u16>,
    /// Source: targets that rejected the announcement.
    #[serde(default)]
    pub unwilling: u64,
    /// Source: numbers of the first 64 targets that rejected the announcement, ascending.
    #[serde(default)]
    pub refusers: Vec<u16>,
    /// Target: the later run that caused the rejection of this one (run numbers grow), or zero.
    /// Merged: the latest.
    #[serde(default)]
    pub outdated_by: u64,
    /// Target: distinct puts delivered with the right bytes, or additions carried out.
    pub delivered: u64,
    /// Target or source: messages delivered, or gets and additions answered, with wrong bytes.
    pub corrupted: u64,
    /// Source: gets and additions that found unwritten memory at targets that were restarted or did
    /// not respond to the query. If the target still knows the run, they count as corrupted
    /// instead. The two are separated when the run is done.
    #[serde(default)]
    pub unwritten: u64,
    /// Target: puts delivered a second time. Source: additions that fetched a value already
    /// fetched.
    pub duplicated: u64,
    /// Target of puts: messages delivered after a later one to the same address.
    pub misordered: u64,
    /// Target of puts that may overtake each other: messages delivered after a later one, which is
    /// no fault.
    #[serde(default)]
    pub overtaken: u64,
    /// Target of puts: messages skipped and not delivered since.
    pub missing: u64,
    /// Target of puts: late messages of other runs that arrived during this one, which is no fault
    /// of this run.
    #[serde(default)]
    pub stale: u64,
    /// Time from issue to response of the acknowledged messages.
    pub latency: LatencyCounts,
}

/// Maximum number of unreachable or rejecting targets that a report lists.
pub(crate) const MAX_NAMED: usize = 64;

impl TrafficReport {
    /// Counts a target that did not respond to the announcement.
    pub(crate) fn not_reached(&mut self, processor: u16) {
        self.unreachable += 1;
        name(&mut self.unreached, &[processor]);
    }

    /// Counts a target that rejected the announcement.
    pub(crate) fn refused_by(&mut self, processor: u16) {
        self.unwilling += 1;
        name(&mut self.refusers, &[processor]);
    }

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

    /// Messages that were sent and did not arrive, in a report merged over all sources and targets
    /// of the run: puts that arrived at no target, neither undamaged nor corrupted, and gets
    /// without a response. A put whose acknowledgement was lost counts as timed out, not as lost.
    pub fn lost(&self) -> u64 {
        let arrived = if self.gets {
            self.acknowledged + self.refused
        } else {
            self.delivered + self.corrupted + self.unwritten + self.refused
        };
        self.sent.saturating_sub(arrived)
    }

    /// Messages carried out beyond those sent, in a report merged over all sources and targets of
    /// the run. Only this count reveals additions that the network duplicated.
    pub fn surplus(&self) -> u64 {
        self.delivered.saturating_sub(self.sent)
    }

    /// Whether nothing was lost, duplicated, corrupted, misordered or read from unwritten memory,
    /// and every target took part.
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
