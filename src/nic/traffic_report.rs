//! What came of a traffic run, as one network interface saw it, and merged over several.

use serde::{Deserialize, Serialize};

use super::latency::LatencyCounts;

/// How far a run has come at its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum RunPhase {
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
    pub phase: RunPhase,
    /// Whether the messages are gets.
    pub gets: bool,
    /// Payload bytes per message.
    pub size: u32,
    /// Nanoseconds from the first message until messages were neither offered nor acknowledged any
    /// more (so far): until the duration was over, the count was reached or the run was stopped, or
    /// until the last acknowledgement if that came later. Waiting for time-outs after that does not
    /// count. Merged: the longest.
    pub elapsed_ns: u64,
    /// Nanoseconds from the end of the offer until the last message was answered or had timed out
    /// (so far); merged: the longest.
    #[serde(default)]
    pub drain_ns: u64,
    /// Source: messages handed to the network.
    pub sent: u64,
    /// Source of a run with a rate: messages that were due and not sent, because the window was
    /// full or the link took nothing for too long. Those that are merely late are not among them
    /// until the run ends.
    #[serde(default)]
    pub not_offered: u64,
    /// Source: messages that were answered and not refused (gets and additions: whatever they
    /// found).
    pub acknowledged: u64,
    /// Source: messages whose time-out passed unanswered.
    pub timed_out: u64,
    /// Source: messages the target refused.
    pub refused: u64,
    /// Source: messages outstanding now.
    pub outstanding: u64,
    /// Source: targets that never answered the announcement of the run.
    pub unreachable: u64,
    /// Source: these targets, in ascending order, [`MAX_NAMED`] at most.
    #[serde(default)]
    pub unreached: Vec<u16>,
    /// Source: targets that answered the announcement of the run and do not take part.
    #[serde(default)]
    pub unwilling: u64,
    /// Source: these targets, in ascending order, [`MAX_NAMED`] at most.
    #[serde(default)]
    pub refusers: Vec<u16>,
    /// Target: the later run for whose sake the announcement of this one was refused (numbers of
    /// runs grow); zero: none was. Merged: the latest.
    #[serde(default)]
    pub outdated_by: u64,
    /// Target: distinct puts delivered with the right bytes, or additions carried out.
    pub delivered: u64,
    /// Messages delivered, or gets and additions answered, with wrong bytes.
    pub corrupted: u64,
    /// Source: gets and additions that found memory which nobody has written, at targets that do
    /// not know of the run any more, since they were started again meanwhile, or cannot be asked.
    /// Targets that still know of it have corrupted such memory; which it is, is known when the run
    /// is done.
    #[serde(default)]
    pub unwritten: u64,
    /// Target: puts delivered a second time. Source: additions that fetched what another had
    /// fetched.
    pub duplicated: u64,
    /// Target of puts: messages delivered after a later one to the same address.
    pub misordered: u64,
    /// Target of puts that may overtake each other: messages delivered after a later one. No fault.
    #[serde(default)]
    pub overtaken: u64,
    /// Target of puts: messages skipped over and not delivered since.
    pub missing: u64,
    /// Target of puts: late messages of other runs that came among those of this one. No fault of
    /// this run.
    #[serde(default)]
    pub stale: u64,
    /// Time from issue to answer of the acknowledged messages.
    pub latency: LatencyCounts,
}

/// Targets of a kind that a report names.
pub(crate) const MAX_NAMED: usize = 64;

impl TrafficReport {
    /// Counts a target that did not answer the announcement of the run.
    pub(crate) fn not_reached(&mut self, processor: u16) {
        self.unreachable += 1;
        name(&mut self.unreached, &[processor]);
    }

    /// Counts a target that refused the announcement of the run.
    pub(crate) fn refused_by(&mut self, processor: u16) {
        self.unwilling += 1;
        name(&mut self.refusers, &[processor]);
    }

    /// Adds the counts that another network interface took of the same run.
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

    /// Messages that went out and did not arrive, of a merged report that holds all sources and
    /// targets of the run: puts that no target received, whole or corrupted; gets without an
    /// answer. A put whose acknowledgement alone was lost is not lost, only timed out.
    pub fn lost(&self) -> u64 {
        let arrived = if self.gets {
            self.acknowledged + self.refused
        } else {
            self.delivered + self.corrupted + self.unwritten + self.refused
        };
        self.sent.saturating_sub(arrived)
    }

    /// Messages carried out beyond those that went out, of a merged report that holds all sources
    /// and targets of the run: additions that a network made twice show in nothing else.
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

/// Adds `processors` to `names`.
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
