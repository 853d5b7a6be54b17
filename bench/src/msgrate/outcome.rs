//! The results of a measurement: sums over all sources, targets and links.

use phitwire::nic::{LatencyCounts, TrafficReport};
use schemars::JsonSchema;
use serde::Serialize;

use super::processes::Fates;
use super::work::{Decisions, LinkWork, Work};

/// Latencies in microseconds, of acknowledged messages, from issue to response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LatencyUs {
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// Maximum.
    pub max: f64,
}

impl LatencyUs {
    /// Converts counts to microseconds.
    pub(crate) fn of(latency: &LatencyCounts) -> Self {
        let us = |per_mille| latency.quantile(per_mille) as f64 / 1e3;
        Self {
            p50: us(500),
            p90: us(900),
            p99: us(990),
            p99_9: us(999),
            max: us(1000),
        }
    }
}

/// One measurement. Fields have the names of the JSON output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RateResult {
    /// Payload bytes per message.
    pub size: u32,
    /// Acknowledged messages per second of `seconds`, over all sources.
    pub messages_per_second: f64,
    /// Payload of these messages.
    pub payload_bytes_per_second: f64,
    /// Latencies of acknowledged messages, in microseconds.
    pub latency_us: LatencyUs,
    /// The latency histogram.
    #[serde(skip)]
    pub latency: LatencyCounts,
    /// Seconds in which messages were offered or acknowledged: from the first message until the
    /// sources had offered everything, or until the last acknowledgement, whichever was later.
    /// Waiting for timeouts does not count.
    pub seconds: f64,
    /// Seconds from the end of the offer until the last response or timeout.
    pub drain_seconds: f64,
    /// Messages sent.
    pub sent: u64,
    /// Messages answered and not rejected, including gets and additions that found wrong or
    /// unwritten memory.
    pub acknowledged: u64,
    /// Messages that did not arrive.
    pub lost: u64,
    /// Messages that arrived again.
    pub duplicated: u64,
    /// Messages with corrupted bytes.
    pub corrupted: u64,
    /// Gets and additions that found unwritten memory at targets that were restarted during the
    /// run, or that cannot be queried about it.
    pub unwritten: u64,
    /// Late messages of earlier runs among those of this one. They are not a fault of this run.
    pub stale: u64,
    /// Messages that arrived after a later one to the same address.
    pub misordered: u64,
    /// Messages that arrived after a later one where reordering is allowed.
    pub overtaken: u64,
    /// Messages without a response in time, though they may have arrived.
    pub timed_out: u64,
    /// Messages that the target refused.
    pub refused: u64,
    /// Messages with unknown fate: they had not ended when their source ended or was given up. With
    /// those acknowledged, timed out and refused they add up to all messages sent.
    pub unknown: u64,
    /// Targets whose messages timed out; only programs report them.
    pub unanswered: Vec<Unanswered>,
    /// Count of unreachable targets.
    pub unreachable: u64,
    /// Names of the unreachable targets; incomplete if there are very many.
    pub unreached: Vec<String>,
    /// Targets that refused to take part.
    pub unwilling: u64,
    /// Names of the refusing targets; incomplete if there are very many.
    pub refusers: Vec<String>,
    /// The latest run of the same source that made targets refuse this one; otherwise 0.
    pub outdated_by: u64,
    /// NICs of the run that were killed or restarted during it. Their counts end with their last
    /// report; messages not known to have arrived count as lost.
    pub restarted: Vec<String>,
    /// NICs of the run that had not finished, or not reported so, when it was given up: their
    /// counts are those of their last report.
    pub unfinished: Vec<String>,
    /// The fates of the lab's processes.
    #[serde(flatten)]
    pub fates: Fates,
    /// The work of the links.
    #[serde(flatten)]
    pub links: LinkWork,
    /// The routers' decisions, on machines where they choose between kinds of paths.
    #[serde(flatten)]
    pub decisions: Option<Decisions>,
    /// The achieved rate, if one was requested.
    #[serde(flatten)]
    pub pace: Option<Pace>,
}

/// A target that did not reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unanswered {
    /// The NIC.
    pub node: String,
    /// Messages to it that timed out.
    pub messages: u64,
}

/// The rate that an open loop kept: messages per second and source, averaged over all sources and
/// [`RateResult::seconds`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Pace {
    /// The rate that each source should offer.
    pub rate: u64,
    /// The rate that each source sent.
    pub offered_per_source: f64,
    /// The rate that was acknowledged.
    pub accepted_per_source: f64,
    /// Messages that were due at a source and never sent: its window was full, or its link accepted
    /// nothing, for so long that a window of others was overdue.
    pub not_offered: u64,
}

impl RateResult {
    /// The outcome of a run of messages of `size` bytes, from the merged report of all sources and
    /// targets.
    pub fn new(report: &TrafficReport, size: u32, ends: Ends) -> Self {
        let Ends {
            restarted,
            unfinished,
            unreached,
            refusers,
            work,
            fates,
        } = ends;
        let partial = !restarted.is_empty() || !unfinished.is_empty();
        let seconds = report.elapsed_ns as f64 / 1e9;
        let rate = if seconds > 0.0 {
            report.acknowledged as f64 / seconds
        } else {
            0.0
        };
        Self {
            size,
            messages_per_second: rate,
            payload_bytes_per_second: rate * f64::from(size),
            latency_us: LatencyUs::of(&report.latency),
            latency: report.latency.clone(),
            seconds,
            drain_seconds: report.drain_ns as f64 / 1e9,
            sent: report.sent,
            acknowledged: report.acknowledged,
            lost: lost(report, partial),
            duplicated: report.duplicated + surplus(report, partial),
            corrupted: report.corrupted,
            unwritten: report.unwritten,
            stale: report.stale,
            misordered: report.misordered,
            overtaken: report.overtaken,
            timed_out: report.timed_out,
            refused: report.refused,
            unknown: unknown(
                report.sent,
                [report.acknowledged, report.timed_out, report.refused],
            ),
            unanswered: Vec::new(),
            unreachable: report.unreachable,
            unreached,
            unwilling: report.unwilling,
            refusers,
            outdated_by: report.outdated_by,
            restarted,
            unfinished,
            fates,
            links: work.links(),
            decisions: work.decisions(),
            pace: None,
        }
    }

    /// Adds the achieved rate of each of `sources`, given the requested `rate` in messages per
    /// second; no change if that is 0.
    #[must_use]
    pub(super) fn with_pace(self, rate: u64, sources: usize, report: &TrafficReport) -> Self {
        let per_source = |messages: u64| match self.seconds > 0.0 {
            true => messages as f64 / self.seconds / sources.max(1) as f64,
            false => 0.0,
        };
        let pace = (rate > 0).then(|| Pace {
            rate,
            offered_per_source: per_source(self.sent),
            accepted_per_source: per_source(self.acknowledged),
            not_offered: report.not_offered,
        });
        Self { pace, ..self }
    }

    /// Adds the work of links and routers, and the fates of the processes.
    #[must_use]
    pub(super) fn with_ends(self, ends: Ends) -> Self {
        Self {
            fates: ends.fates,
            links: ends.work.links(),
            decisions: ends.work.decisions(),
            ..self
        }
    }

    /// Whether every message arrived once, intact and in order at its target. A late response does
    /// not count as a fault. A dead participant does, because its counts are unknown.
    pub fn is_clean(&self) -> bool {
        self.lost == 0
            && self.duplicated == 0
            && self.corrupted == 0
            && self.unwritten == 0
            && self.misordered == 0
            && self.refused == 0
            && self.unreachable == 0
            && self.unwilling == 0
            && self.restarted.is_empty()
            && self.unfinished.is_empty()
    }
}

/// The end of a run besides its report; see the fields of [`RateResult`].
#[derive(Clone, Debug, Default)]
pub struct Ends {
    /// Participants that died.
    pub restarted: Vec<String>,
    /// Participants that did not finish.
    pub unfinished: Vec<String>,
    /// Targets that could not be reached.
    pub unreached: Vec<String>,
    /// Targets that refused to take part.
    pub refusers: Vec<String>,
    pub work: Work,
    pub fates: Fates,
}

/// Why targets refuse to take part in a run, and a remedy; `outdated_by` as in [`RateResult`].
pub(super) fn why_refused(outdated_by: u64) -> String {
    match outdated_by {
        0 => "no room for its addresses, or no write permission (see the refused_... counters of \
              phitwire ctl NODE stats)"
            .to_owned(),
        latest => format!(
            "the target has already seen run {latest} of the same source, and run numbers must \
             grow: use one above {latest}, or restart the target (netns-scripts/node.sh restart \
             NODE)"
        ),
    }
}

/// Number of messages sent whose fate is unknown.
pub(super) fn unknown(sent: u64, ended: [u64; 3]) -> u64 {
    sent.saturating_sub(ended.iter().sum())
}

/// Messages executed more often than sent. A source that died has sent more than its last report
/// says.
fn surplus(report: &TrafficReport, died: bool) -> u64 {
    if died { 0 } else { report.surplus() }
}

/// Messages that are known not to have arrived. A target detects gaps, but only both ends together
/// detect a missing tail. If a target died, acknowledgements may be the only evidence.
fn lost(report: &TrafficReport, died: bool) -> u64 {
    let lost = report.lost().max(report.missing);
    if died {
        let unanswered = report.sent.saturating_sub(report.acknowledged);
        lost.min(unanswered)
    } else {
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> TrafficReport {
        TrafficReport {
            run: 1,
            sent: 1000,
            acknowledged: 1000,
            delivered: 1000,
            elapsed_ns: 500_000_000,
            latency: LatencyCounts {
                buckets: vec![(10_000, 500), (20_000, 450), (40_000, 50)],
                max_ns: 39_000,
            },
            ..TrafficReport::default()
        }
    }

    /// The outcome of a report without dead participants.
    fn outcome(report: &TrafficReport) -> RateResult {
        RateResult::new(report, 8, Ends::default())
    }

    #[test]
    fn rates_and_latencies_follow_from_the_report() {
        let whole = outcome(&report());
        assert_eq!(whole.messages_per_second, 2000.0);
        assert_eq!(whole.payload_bytes_per_second, 16_000.0);
        let latency = LatencyUs {
            p50: 10.0,
            p90: 20.0,
            p99: 39.0,
            p99_9: 39.0,
            max: 39.0,
        };
        assert_eq!(whole.latency_us, latency);
        assert!(whole.is_clean());
        let nothing = outcome(&TrafficReport::default());
        assert_eq!(nothing.messages_per_second, 0.0, "no time, no rate");
    }

    #[test]
    fn each_fault_makes_the_outcome_unclean() {
        let spoilt: [fn(&mut TrafficReport); 10] = [
            |r| r.delivered -= 1,
            |r| r.missing = 1,
            |r| r.duplicated = 1,
            |r| (r.corrupted, r.delivered) = (1, r.delivered - 1),
            |r| r.misordered = 1,
            |r| (r.refused, r.delivered) = (1, r.delivered - 1),
            |r| r.unreachable = 1,
            |r| r.unwilling = 1,
            |r| (r.unwritten, r.gets) = (1, true),
            |r| r.sent += 1,
        ];
        for (index, spoil) in spoilt.into_iter().enumerate() {
            let mut report = report();
            spoil(&mut report);
            assert!(!outcome(&report).is_clean(), "fault {index}");
        }
        let mut late = report();
        (late.timed_out, late.acknowledged) = (1, 999);
        assert!(outcome(&late).is_clean(), "late is not lost");
    }

    #[test]
    fn packets_that_a_dead_target_acknowledged_are_not_lost() {
        let mut stale = report();
        (stale.delivered, stale.acknowledged, stale.timed_out) = (400, 990, 10);
        let died = || Ends {
            restarted: vec!["n1".into()],
            ..Ends::default()
        };
        let of_dead = RateResult::new(&stale, 8, died());
        assert_eq!((of_dead.lost, of_dead.unknown), (10, 0));
        let given_up = TrafficReport {
            sent: 1028,
            outstanding: 28,
            ..stale.clone()
        };
        let ended = RateResult::new(&given_up, 8, died());
        assert_eq!(ended.unknown, 28, "sums close");
        assert!(!of_dead.is_clean());
        let lost = outcome(&stale).lost;
        assert_eq!(lost, 600, "acknowledged and not delivered is a fault");
        (stale.delivered, stale.acknowledged, stale.timed_out) = (1000, 1000, 0);
        let unlucky = RateResult::new(&stale, 8, died());
        assert!(!unlucky.is_clean(), "nobody can vouch for it");
    }

    #[test]
    fn json_has_the_promised_keys() {
        let json = serde_json::to_value(outcome(&report())).expect("plain numbers");
        let keys = "messages_per_second payload_bytes_per_second sent acknowledged lost duplicated \
                    corrupted unwritten unwilling outdated_by misordered timed_out \
                    retransmitted_packets frames_sent frames_dropped";
        assert_eq!(keys.split(' ').count(), 15);
        for key in keys.split(' ') {
            assert!(json[key].is_number(), "{key}");
        }
        for key in ["p50", "p90", "p99", "p99_9", "max"] {
            assert!(json["latency_us"][key].is_number(), "{key}");
        }
    }

    #[test]
    fn achieved_rates_are_reported_per_source() {
        let report = TrafficReport {
            sent: 900,
            acknowledged: 800,
            not_offered: 100,
            ..report()
        };
        let outcome = || outcome(&report);
        assert_eq!(outcome().with_pace(0, 4, &report), outcome());
        let paced = outcome().with_pace(500, 4, &report);
        let pace = Pace {
            rate: 500,
            offered_per_source: 450.0,
            accepted_per_source: 400.0,
            not_offered: 100,
        };
        assert_eq!(paced.pace, Some(pace));
        let json = serde_json::to_value(paced).expect("plain numbers");
        assert_eq!(json["rate"], 500);
        assert_eq!(json["accepted_per_source"], 400.0);
        let json = serde_json::to_value(outcome()).expect("plain numbers");
        assert!(json["rate"].is_null() && json["non_minimal_share"].is_null());
    }
}
