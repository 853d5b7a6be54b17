//! What a measurement found: sums over all sources, targets and links.

use phitwire::nic::TrafficReport;
use serde::Serialize;
use serde_json::Value;

/// Latencies in microseconds, of acknowledged messages from issue to answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencyUs {
    /// Median.
    pub p50: f64,
    /// 90 % were not slower.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p99_9: f64,
    /// The slowest.
    pub max: f64,
}

/// What the links of all processes did, from their counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkWork {
    /// Packets sent again (YARC).
    pub retransmitted_packets: u64,
    /// Sets of ten flits sent again (Aries).
    pub replayed_sets: u64,
    /// Link frames sent, of any kind.
    pub frames_sent: u64,
    /// Link frames that were sent and not taken at the other end: lost on the wire, or dropped by the
    /// receiving link control block for any of its reasons.
    pub frames_dropped: u64,
    #[serde(skip)]
    frames_taken: u64,
}

impl LinkWork {
    /// Adds the counters of one process: a flat map from name to value, in which
    /// `phitwire::link::LinkCounters` stand with `portN.` in front.
    pub fn add(&mut self, stats: &Value) {
        for (name, value) in stats.as_object().into_iter().flatten() {
            let Some((port, counter)) = name.split_once('.') else {
                continue;
            };
            if !port.starts_with("port") {
                continue;
            }
            let value = value.as_u64().unwrap_or(0);
            match counter {
                "tx_retransmitted_packets" => self.retransmitted_packets += value,
                "tx_replayed_sets" => self.replayed_sets += value,
                "tx_frames" => self.frames_sent += value,
                "rx_data_frames" | "rx_training_frames" => self.frames_taken += value,
                _ => {}
            }
        }
    }

    /// What was done since `before`. A process restarted in between counts from zero.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let frames_sent = self.frames_sent.saturating_sub(before.frames_sent);
        let frames_taken = self.frames_taken.saturating_sub(before.frames_taken);
        Self {
            retransmitted_packets: self
                .retransmitted_packets
                .saturating_sub(before.retransmitted_packets),
            replayed_sets: self.replayed_sets.saturating_sub(before.replayed_sets),
            frames_sent,
            // Duplicates made on the wire are taken too and may hide as many losses.
            frames_dropped: frames_sent.saturating_sub(frames_taken),
            frames_taken,
        }
    }
}

/// One measurement. The names are those of the JSON output.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Payload bytes per message.
    pub size: u8,
    /// Acknowledged messages per second, over all sources.
    pub messages_per_second: f64,
    /// Their payload.
    pub payload_bytes_per_second: f64,
    /// Latencies.
    pub latency_us: LatencyUs,
    /// Seconds from the first message to the last answer.
    pub seconds: f64,
    /// Messages sent.
    pub sent: u64,
    /// Messages answered as they should be.
    pub acknowledged: u64,
    /// Messages that did not arrive.
    pub lost: u64,
    /// Messages that arrived again.
    pub duplicated: u64,
    /// Messages with wrong bytes.
    pub corrupted: u64,
    /// Messages that arrived after a later one to the same address.
    pub misordered: u64,
    /// Messages that arrived after a later one to the same address where that is no fault.
    pub overtaken: u64,
    /// Messages whose answer did not come in time, though they may have arrived.
    pub timed_out: u64,
    /// Messages that the target refused.
    pub refused: u64,
    /// Targets that could not be reached at all.
    pub unreachable: u64,
    /// Network interfaces that were killed or restarted meanwhile. Their own counts end with their
    /// last report; what is not known to have arrived counts as lost.
    pub restarted: Vec<String>,
    /// What the links did.
    #[serde(flatten)]
    pub links: LinkWork,
}

impl Outcome {
    /// The outcome of a run from the merged report of all its sources and targets.
    /// `restarted` are those of them that died meanwhile, whose reports are older.
    pub fn new(report: &TrafficReport, size: u8, links: LinkWork, restarted: Vec<String>) -> Self {
        let us = |per_mille| report.latency.quantile(per_mille) as f64 / 1e3;
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
            latency_us: LatencyUs {
                p50: us(500),
                p90: us(900),
                p99: us(990),
                p99_9: us(999),
                max: us(1000),
            },
            seconds,
            sent: report.sent,
            acknowledged: report.acknowledged,
            lost: lost(report, !restarted.is_empty()),
            duplicated: report.duplicated + surplus(report, !restarted.is_empty()),
            corrupted: report.corrupted,
            misordered: report.misordered,
            overtaken: report.overtaken,
            timed_out: report.timed_out,
            refused: report.refused,
            unreachable: report.unreachable,
            restarted,
            links,
        }
    }

    /// Whether every message arrived once, whole, in order, wherever it was sent to. A message
    /// whose answer alone was late is no fault of this kind; a participant that died is, for nobody
    /// can vouch for what it held.
    pub fn is_clean(&self) -> bool {
        self.lost == 0
            && self.duplicated == 0
            && self.corrupted == 0
            && self.misordered == 0
            && self.refused == 0
            && self.unreachable == 0
            && self.restarted.is_empty()
    }
}

/// Messages that were carried out more often than sent. A source that died has sent more than its last report says.
fn surplus(report: &TrafficReport, died: bool) -> u64 {
    if died { 0 } else { report.surplus() }
}

/// Messages that did not arrive, as far as is known. A target notices what was skipped; only both
/// ends together notice what was last. Of a target that died an acknowledgement may be all there is.
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
    use phitwire::nic::LatencyCounts;
    use serde_json::json;

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

    #[test]
    fn rates_and_latencies_follow_from_the_report() {
        let outcome = Outcome::new(&report(), 8, LinkWork::default(), Vec::new());
        assert_eq!(outcome.messages_per_second, 2000.0);
        assert_eq!(outcome.payload_bytes_per_second, 16_000.0);
        let latency = LatencyUs {
            p50: 10.0,
            p90: 20.0,
            p99: 39.0,
            p99_9: 39.0,
            max: 39.0,
        };
        assert_eq!(outcome.latency_us, latency);
        assert!(outcome.is_clean());
        let nothing = Outcome::new(
            &TrafficReport::default(),
            8,
            LinkWork::default(),
            Vec::new(),
        );
        assert_eq!(nothing.messages_per_second, 0.0, "no time, no rate");
    }

    #[test]
    fn each_fault_makes_the_outcome_unclean() {
        let spoilt: [fn(&mut TrafficReport); 8] = [
            |r| r.delivered -= 1,
            |r| r.missing = 1,
            |r| r.duplicated = 1,
            |r| (r.corrupted, r.delivered) = (1, r.delivered - 1),
            |r| r.misordered = 1,
            |r| (r.refused, r.delivered) = (1, r.delivered - 1),
            |r| r.unreachable = 1,
            |r| r.sent += 1,
        ];
        for (index, spoil) in spoilt.into_iter().enumerate() {
            let mut report = report();
            spoil(&mut report);
            assert!(
                !Outcome::new(&report, 8, LinkWork::default(), Vec::new()).is_clean(),
                "fault {index}"
            );
        }
        let mut late = report();
        (late.timed_out, late.acknowledged) = (1, 999);
        assert!(
            Outcome::new(&late, 8, LinkWork::default(), Vec::new()).is_clean(),
            "late is not lost"
        );
    }

    #[test]
    fn what_a_dead_target_has_acknowledged_is_not_lost() {
        let mut stale = report();
        (stale.delivered, stale.acknowledged, stale.timed_out) = (400, 990, 10);
        let outcome = Outcome::new(&stale, 8, LinkWork::default(), vec!["n1".into()]);
        assert_eq!(outcome.lost, 10);
        assert!(!outcome.is_clean());
        let all_alive = Outcome::new(&stale, 8, LinkWork::default(), Vec::new());
        assert_eq!(
            all_alive.lost, 600,
            "acknowledged and not delivered is a fault"
        );
        (stale.delivered, stale.acknowledged, stale.timed_out) = (1000, 1000, 0);
        let unlucky = Outcome::new(&stale, 8, LinkWork::default(), vec!["n1".into()]);
        assert!(!unlucky.is_clean(), "nobody can vouch for it");
    }

    #[test]
    fn json_has_the_promised_keys() {
        let json =
            serde_json::to_value(Outcome::new(&report(), 8, LinkWork::default(), Vec::new()))
                .expect("plain numbers");
        for key in [
            "messages_per_second",
            "payload_bytes_per_second",
            "sent",
            "acknowledged",
            "lost",
            "duplicated",
            "corrupted",
            "misordered",
            "timed_out",
            "retransmitted_packets",
            "frames_sent",
            "frames_dropped",
        ] {
            assert!(json[key].is_number(), "{key}");
        }
        for key in ["p50", "p90", "p99", "p99_9", "max"] {
            assert!(json["latency_us"][key].is_number(), "{key}");
        }
    }

    #[test]
    fn link_work_is_summed_over_ports_and_processes() {
        let stats = |sent: u64, taken: u64, again: u64| {
            json!({
                "cycles": 5,
                "port0.tx_frames": sent, "port1.tx_frames": 10,
                "port0.rx_data_frames": taken, "port1.rx_training_frames": 3,
                "port0.tx_retransmitted_packets": again,
                "port0.tx_data_frames": 1_000_000, "port0.rx_frames": 1_000_000,
                "io.tx_frames": 1_000_000, "tx_frames": 1_000_000,
            })
        };
        let mut before = LinkWork::default();
        before.add(&stats(90, 97, 4));
        before.add(&json!({"port12.tx_frames": 75}));
        assert_eq!((before.frames_sent, before.retransmitted_packets), (175, 4));
        let mut after = LinkWork::default();
        after.add(&stats(290, 280, 9));
        after.add(&json!({"port12.tx_frames": 75}));
        let work = after.since(&before);
        assert_eq!(work.frames_sent, 200);
        assert_eq!(work.retransmitted_packets, 5);
        assert_eq!(work.frames_dropped, 200 - 183);
        let restarted = before.since(&after);
        assert_eq!(restarted.frames_sent, 0, "a restart does not wrap around");
    }
}
