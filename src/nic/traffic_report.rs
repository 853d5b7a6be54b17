//! What came of a traffic run, as one network interface saw it, and merged over several.

use serde::{Deserialize, Serialize};

use super::latency::LatencyCounts;

/// How far a run has come at its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Everything issued has been answered or has timed out (or nothing was ever issued here).
    #[default]
    Done,
    /// Nothing new is issued; outstanding messages are waited for.
    Draining,
    /// Messages are being issued.
    Running,
    /// The run is being announced to its targets.
    Opening,
}

/// Counts of one run at one network interface, as source and as target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficReport {
    /// The run.
    pub run: u64,
    /// How far the run has come here; merged: the earliest phase of all.
    pub phase: Phase,
    /// Whether the messages are gets.
    pub gets: bool,
    /// Payload bytes per message.
    pub size: u32,
    /// Nanoseconds from the first message until messages were neither offered nor acknowledged any more (so far):
    /// until the duration was over, the count was reached or the run was stopped, or until the last
    /// acknowledgement if that came later. Waiting for time-outs after that does not count. Merged: the longest.
    pub elapsed_ns: u64,
    /// Nanoseconds from the end of the offer until the last message was answered or had timed out (so far); merged:
    /// the longest.
    #[serde(default)]
    pub drain_ns: u64,
    /// Source: messages handed to the network.
    pub sent: u64,
    /// Source: messages answered as they should be (gets: with the right bytes or wrong ones).
    pub acknowledged: u64,
    /// Source: messages whose time-out passed unanswered.
    pub timed_out: u64,
    /// Source: messages the target refused.
    pub refused: u64,
    /// Source: messages outstanding now.
    pub outstanding: u64,
    /// Source: targets that never accepted the announcement of the run.
    pub unreachable: u64,
    /// Source: these targets, in ascending order, [`MAX_NAMED`] at most.
    #[serde(default)]
    pub unreached: Vec<u16>,
    /// Target: distinct puts delivered with the right bytes, or additions carried out.
    pub delivered: u64,
    /// Messages delivered, or gets answered, with wrong bytes.
    pub corrupted: u64,
    /// Target: puts delivered a second time. Source: additions that fetched what another had fetched.
    pub duplicated: u64,
    /// Target of puts: messages delivered after a later one to the same address.
    pub misordered: u64,
    /// Target of puts that may overtake each other: messages delivered after a later one. No fault.
    #[serde(default)]
    pub overtaken: u64,
    /// Target of puts: messages skipped over and not delivered since.
    pub missing: u64,
    /// Target of puts: late messages of other runs that came among those of this one. No fault of this run.
    #[serde(default)]
    pub stale: u64,
    /// Time from issue to answer of the acknowledged messages.
    pub latency: LatencyCounts,
}

/// Unreachable targets that a report names.
pub const MAX_NAMED: usize = 64;

impl TrafficReport {
    /// Counts a target that did not accept the announcement of the run.
    pub(crate) fn not_reached(&mut self, processor: u16) {
        self.unreachable += 1;
        self.name_unreached(&[processor]);
    }

    fn name_unreached(&mut self, processors: &[u16]) {
        self.unreached.extend_from_slice(processors);
        self.unreached.sort_unstable();
        self.unreached.dedup();
        self.unreached.truncate(MAX_NAMED);
    }

    /// Adds the counts that another network interface took of the same run.
    pub fn merge(&mut self, other: &Self) {
        self.phase = self.phase.max(other.phase);
        self.gets |= other.gets;
        self.size = self.size.max(other.size);
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.drain_ns = self.drain_ns.max(other.drain_ns);
        self.sent += other.sent;
        self.acknowledged += other.acknowledged;
        self.timed_out += other.timed_out;
        self.refused += other.refused;
        self.outstanding += other.outstanding;
        self.unreachable += other.unreachable;
        self.name_unreached(&other.unreached);
        self.delivered += other.delivered;
        self.corrupted += other.corrupted;
        self.duplicated += other.duplicated;
        self.misordered += other.misordered;
        self.overtaken += other.overtaken;
        self.missing += other.missing;
        self.stale += other.stale;
        self.latency.merge(&other.latency);
    }

    /// Messages that went out and did not arrive, of a merged report that holds all sources and
    /// targets of the run: puts that no target received, whole or corrupted; gets without an answer.
    /// A put whose acknowledgement alone was lost is not lost, only timed out.
    pub fn lost(&self) -> u64 {
        let arrived = if self.gets {
            self.acknowledged + self.refused
        } else {
            self.delivered + self.corrupted + self.refused
        };
        self.sent.saturating_sub(arrived)
    }

    /// Messages carried out beyond those that went out, of a merged report that holds all sources and targets
    /// of the run: additions that a network made twice show in nothing else.
    pub fn surplus(&self) -> u64 {
        self.delivered.saturating_sub(self.sent)
    }

    /// Whether nothing was lost, duplicated, corrupted or misordered, and every target was reached.
    pub fn is_clean(&self) -> bool {
        self.lost()
            + self.surplus()
            + self.duplicated
            + self.corrupted
            + self.misordered
            + self.missing
            == 0
            && self.refused + self.unreachable == 0
    }

    /// Acknowledged messages per second over [`elapsed_ns`](Self::elapsed_ns).
    pub fn messages_per_second(&self) -> u64 {
        let per_second = u128::from(self.acknowledged) * 1_000_000_000;
        (per_second / u128::from(self.elapsed_ns.max(1))) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_and_targets_merge_into_one_account() {
        let mut source = TrafficReport {
            run: 3,
            phase: Phase::Draining,
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
        assert_eq!(source.phase, Phase::Draining);
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
