//! The work of links and routers during a run, from the counters of all processes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The work of the links of all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LinkWork {
    /// Packets resent, on links of packets.
    pub retransmitted_packets: u64,
    /// Sets of ten flits resent, on links of sets.
    pub replayed_sets: u64,
    /// Link frames sent, of any kind.
    pub frames_sent: u64,
    /// Link frames that were sent and not accepted at the other end: lost on the wire, or dropped
    /// by the receiving link control block for any reason.
    pub frames_dropped: u64,
}

/// Kinds of paths that the routers chose, on machines with a choice. Every packet of a NIC counts,
/// responses too; one that a later router diverted or returned counts as what it became.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Decisions {
    /// Packets on minimal paths.
    pub minimal_decisions: u64,
    /// Packets on non-minimal paths.
    pub non_minimal_decisions: u64,
    /// Share of packets on non-minimal paths, 0 to 1; null if nothing was decided.
    pub non_minimal_share: Option<f64>,
}

/// A sum of counters.
#[derive(Clone, Copy, Debug)]
enum Sum {
    RetransmittedPackets,
    ReplayedSets,
    FramesSent,
    FramesTaken,
    Minimal,
    NonMinimal,
    Diverted,
    Returned,
    StoodStillMs,
}

const SUMS: usize = Sum::StoodStillMs as usize + 1;

impl Sum {
    /// The sum that a counter contributes to. Link counters have the prefix `portN.`.
    fn of(name: &str) -> Option<Self> {
        let link = name
            .split_once('.')
            .filter(|(port, _)| port.starts_with("port"));
        Some(match (link, name) {
            (Some((_, "tx_retransmitted_packets")), _) => Self::RetransmittedPackets,
            (Some((_, "tx_replayed_sets")), _) => Self::ReplayedSets,
            (Some((_, "tx_frames")), _) => Self::FramesSent,
            (Some((_, "rx_data_frames" | "rx_training_frames")), _) => Self::FramesTaken,
            (None, "minimal_decisions") => Self::Minimal,
            (None, "non_minimal_decisions" | "fallback_up_decisions") => Self::NonMinimal,
            (None, "diverted_decisions") => Self::Diverted,
            (None, "returned_decisions") => Self::Returned,
            (None, "loop.stood_still_ms") => Self::StoodStillMs,
            _ => return None,
        })
    }
}

/// Counters of one process, or sums over several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    sums: [u64; SUMS],
    /// How often each port's link was given up, for one process.
    given_up: BTreeMap<String, u64>,
    /// Whether any router among the processes chooses between kinds of paths.
    decides: bool,
}

impl Work {
    /// The counters of one process: a flat map from name to value.
    pub fn of(stats: &Value) -> Self {
        let mut work = Self::default();
        for (name, value) in stats.as_object().into_iter().flatten() {
            if let Some(sum) = Sum::of(name) {
                work.sums[sum as usize] += value.as_u64().unwrap_or(0);
                work.decides |= matches!(sum, Sum::Minimal | Sum::NonMinimal);
            } else if let Some(port) = name.strip_suffix(".given_up_sessions") {
                let port = port.trim_start_matches("port").to_owned();
                work.given_up.insert(port, value.as_u64().unwrap_or(0));
            }
        }
        work
    }

    /// The increase of one process's counters since `before`.
    #[must_use]
    pub fn since(mut self, before: &Self) -> Self {
        for (sum, before) in self.sums.iter_mut().zip(before.sums) {
            *sum = sum.saturating_sub(before);
        }
        for (port, times) in &mut self.given_up {
            *times = times.saturating_sub(before.given_up.get(port).copied().unwrap_or(0));
        }
        self
    }

    /// Ports of one process whose links were given up.
    pub fn given_up(&self) -> impl Iterator<Item = &str> {
        let given_up = self.given_up.iter().filter(|(_, times)| **times > 0);
        given_up.map(|(port, _)| port.as_str())
    }

    /// Total length in ms of one process's standstills.
    pub fn stood_still_ms(&self) -> u64 {
        self.sum(Sum::StoodStillMs)
    }

    /// Adds the counters of another process.
    pub fn add(&mut self, other: &Self) {
        for (sum, other) in self.sums.iter_mut().zip(other.sums) {
            *sum += other;
        }
        self.decides |= other.decides;
    }

    fn sum(&self, sum: Sum) -> u64 {
        self.sums[sum as usize]
    }

    /// The work of the links. It needs the counters of all processes, since frames sent by one are
    /// accepted by another.
    pub fn links(&self) -> LinkWork {
        let frames_sent = self.sum(Sum::FramesSent);
        LinkWork {
            retransmitted_packets: self.sum(Sum::RetransmittedPackets),
            replayed_sets: self.sum(Sum::ReplayedSets),
            frames_sent,
            // A lower bound: duplicates made on the wire are also accepted, and hide as many
            // losses.
            frames_dropped: frames_sent.saturating_sub(self.sum(Sum::FramesTaken)),
        }
    }

    /// The routers' decisions, if they make any.
    pub fn decisions(&self) -> Option<Decisions> {
        let (diverted, returned) = (self.sum(Sum::Diverted), self.sum(Sum::Returned));
        let minimal = (self.sum(Sum::Minimal) + returned).saturating_sub(diverted);
        let other = (self.sum(Sum::NonMinimal) + diverted).saturating_sub(returned);
        let all = minimal + other;
        self.decides.then(|| Decisions {
            minimal_decisions: minimal,
            non_minimal_decisions: other,
            non_minimal_share: (all > 0).then(|| other as f64 / all as f64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
        let before = Work::of(&stats(90, 97, 4));
        let links = before.links();
        assert_eq!((links.frames_sent, links.retransmitted_packets), (100, 4));
        let after = Work::of(&stats(290, 280, 9));
        let mut work = after.clone().since(&before);
        work.add(&Work::of(&json!({"port12.tx_frames": 0})));
        let links = work.links();
        assert_eq!(links.frames_sent, 200);
        assert_eq!(links.retransmitted_packets, 5);
        assert_eq!(links.frames_dropped, 200 - 183);
        assert_eq!(work.decisions(), None, "no router here decides");
        let restarted = before.since(&after).links();
        assert_eq!(restarted.frames_sent, 0, "a restart does not wrap around");
    }

    #[test]
    fn decisions_are_those_of_the_run() {
        let router = |minimal: u64, other: u64| {
            Work::of(&json!({
                "minimal_decisions": minimal, "non_minimal_decisions": other,
                "eject_decisions": 1_000, "port3.minimal_decisions": 1_000,
            }))
        };
        let mut work = router(100, 50).since(&router(70, 40));
        work.add(&Work::of(&json!({ "port0.tx_frames": 9 })));
        let decisions = work.decisions().expect("a router decides");
        assert_eq!(decisions.minimal_decisions, 30);
        assert_eq!(decisions.non_minimal_decisions, 10);
        assert_eq!(decisions.non_minimal_share, Some(0.25));
        work.add(&Work::of(
            &json!({"diverted_decisions": 7, "returned_decisions": 2}),
        ));
        let decisions = work.decisions().expect("a router decides");
        assert_eq!(
            (decisions.minimal_decisions, decisions.non_minimal_decisions),
            (25, 15)
        );
        let idle = router(70, 40).since(&router(70, 40));
        assert_eq!(idle.decisions(), Some(Decisions::default()));
    }
}
