//! Results of a run.

use schemars::JsonSchema;
use serde::Serialize;

use super::check::Violation;
use crate::nic::LatencyCounts;

/// Latencies in cycles, from a packet's birth at its source to the arrival of its last phit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatencySummary {
    /// Packets measured.
    pub count: u64,
    pub min: u64,
    /// Exact mean.
    pub mean: f64,
    pub p50: u64,
    /// 90 % of packets were at most this slow.
    pub p90: u64,
    /// 99 % of packets were at most this slow.
    pub p99: u64,
    /// 99.9 % of packets were at most this slow.
    pub p99_9: u64,
    pub max: u64,
}

/// Fill level of the buffers of one kind, and number of waits in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct StageUse {
    /// Mean phits in these buffers per router chip, over the measurement.
    #[serde(rename = "mean_phits_per_chip")]
    pub mean_phits: f64,
    /// Times that a phit or packet waited there for room downstream, per 1,000 phits moved.
    #[serde(rename = "stalls_per_1000_phits")]
    pub stalls_per_1000: f64,
}

/// Load of the links of one kind over the measurement, as fractions of their phit rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LinkUse {
    /// Directed links of the kind.
    pub links: u64,
    /// Least used link.
    pub min: f64,
    /// Mean over all links.
    pub mean: f64,
    /// Most used link.
    pub max: f64,
}

/// How evenly the sources were served over the measurement, as fractions of their phit rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Fairness {
    /// The least served source.
    pub min: f64,
    /// The best served source.
    pub max: f64,
    /// The least served source: its number among all terminals, and the load it offered.
    #[serde(skip)]
    pub least: Option<(u64, f64)>,
    /// Jain's index over all sources with something to send: 1 when all are equal.
    pub jain: f64,
}

/// The state of the network in the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The number of messages in the system neither rises nor falls beyond chance.
    #[default]
    Steady,
    /// Not steady, or not known to be.
    Unsettled(Unsettled),
    /// The network could not accept the offered load.
    Saturated,
}

/// Why a measurement is unsettled, although the network is not known to saturate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsettled {
    /// The number of messages in the system rose or fell.
    Drift,
    /// Too few cycles or messages to decide.
    Short,
    /// The sources offer all that their ports can send. A queue in front of a server without idle
    /// time has no stationary length, though a measurement may be too short to show its growth.
    Full,
    /// The run was aborted: its violations say why.
    Aborted,
}

impl State {
    /// The name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Unsettled(_) => "unsettled",
            Self::Saturated => "saturated",
        }
    }

    /// Whether a longer measurement may find another state.
    pub const fn needs_longer(self) -> bool {
        matches!(self, Self::Unsettled(Unsettled::Drift | Unsettled::Short))
    }

    /// The reason if the measurement is unsettled.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Unsettled(Unsettled::Drift) => {
                Some("the number of messages in the system is not yet stable")
            }
            Self::Unsettled(Unsettled::Short) => {
                Some("too few cycles or messages to detect a shortfall of 5 %")
            }
            Self::Unsettled(Unsettled::Full) => {
                Some("at full load source queues have no steady length")
            }
            Self::Unsettled(Unsettled::Aborted) => Some("the run was aborted"),
            Self::Steady | Self::Saturated => None,
        }
    }
}

/// The results of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    pub seed: u64,
    /// Hash of every delivery; the same for any number of partitions.
    pub trace_hash: u64,
    /// Total cycles simulated.
    pub cycles: u64,
    pub warmup_cycles: u64,
    pub measure_cycles: u64,
    /// False if the warm-up reached its limit before latency and accepted load settled. A warm-up
    /// of fixed length always counts as converged.
    pub converged: bool,
    /// Message bytes that a terminal sends per cycle at full load.
    pub bytes_per_cycle: f64,
    /// Phits per cycle and terminal of packets born in the measurement.
    pub offered_load: f64,
    /// Phits per cycle and terminal that arrived in the measurement.
    pub accepted_load: f64,
    /// Whether the network could not accept the offered load.
    pub saturated: bool,
    /// The state of the network in the measurement.
    pub state: State,
    /// Latencies of packets born in the measurement; for a saturated network, which has no steady
    /// latency, of packets that arrived in it.
    pub latency_cycles: LatencySummary,
    /// The same latencies as counts of cycles, ascending.
    pub latency_counts: LatencyCounts,
    /// Mean number of routers that a packet passed; with replies, the return path is included.
    pub hops_mean: f64,
    /// Phits through routers in the whole run.
    pub phit_hops: u64,
    /// Packets that arrived in the whole run.
    pub packets: u64,
    /// Buffers of routers, by the machine's names, in the order in which a phit meets them.
    pub stages: Vec<(&'static str, StageUse)>,
    /// Packets born but unsent when the measurement ended, per terminal.
    pub source_backlog: f64,
    /// Links from terminals into routers.
    pub injection_links: LinkUse,
    /// Links from routers to terminals.
    pub ejection_links: LinkUse,
    /// Links between routers, by the machine's link kinds.
    pub links: Vec<(&'static str, LinkUse)>,
    /// Mean number of links of each kind that a phit passed in the measurement.
    pub hops_by_kind: Vec<(&'static str, f64)>,
    /// Share of router decisions in the measurement for other paths, such as non-minimal ones, with
    /// the machine's name for them; `None` where there is no choice.
    pub other_ways: Option<(&'static str, f64)>,
    /// How evenly sources were served.
    pub fairness: Fairness,
    /// Load that each terminal sent in the measurement, as a fraction of its phit rate, by number.
    pub served: Vec<f64>,
    /// Packets that routers dropped because of a fault.
    pub discarded_packets: u64,
    /// Packets that encoded links resent.
    pub retransmitted_packets: u64,
    /// Frames sent over encoded links.
    pub frames_sent: u64,
    /// Frames lost to impairment.
    pub frames_lost: u64,
    /// Faults still pending when the run ended.
    pub late_faults: Vec<String>,
    /// Violated invariants.
    pub violations: Vec<Violation>,
}
