//! What a run found.

use super::check::Violation;
use crate::nic::LatencyCounts;

/// Latencies in cycles, from a packet's birth at its source to the arrival of its last phit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatencySummary {
    /// Packets measured.
    pub count: u64,
    /// Lowest.
    pub min: u64,
    /// Mean, exact.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90 % of packets were at most this slow.
    pub p90: u64,
    /// 99 of 100 packets were not slower.
    pub p99: u64,
    /// 999 of 1,000 packets were not slower.
    pub p99_9: u64,
    /// Highest.
    pub max: u64,
}

/// How full the buffers of one kind were and how often somebody waited for them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageUse {
    /// Mean phits in them, per router chip, over the measurement.
    pub mean_phits: f64,
    /// Times that a phit or packet had to wait in them for room further on, per 1,000 phits moved.
    pub stalls_per_1000: f64,
}

/// How busy the links of one kind were over the measurement, as fractions of their phit rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkUse {
    /// Directed links of the kind.
    pub links: u64,
    /// The least busy one.
    pub min: f64,
    /// All of them.
    pub mean: f64,
    /// The busiest one.
    pub max: f64,
}

/// How evenly the sources were served over the measurement, as fractions of their phit rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fairness {
    /// The source that could send least.
    pub min: f64,
    /// The source that could send most.
    pub max: f64,
    /// The source that could send least: its number among all terminals, and the load it offered.
    pub least: Option<(u64, f64)>,
    /// Jain's index over all sources that have something to send: 1 when all are equal.
    pub jain: f64,
}

/// Whether the measurement shows a steady state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The number of messages in the system neither rises nor falls beyond chance.
    #[default]
    Steady,
    /// It is unknown whether the state is steady, or it is known not to be.
    Unsettled(Unsettled),
    /// The network could not accept the offered load.
    Saturated,
}

/// Why a measurement shows no steady state, although the network is not known to saturate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsettled {
    /// The number of messages in the system rose or fell.
    Drift,
    /// Too few cycles or messages to tell.
    Short,
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

    /// The reason if it is unsettled.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Unsettled(Unsettled::Drift) => {
                Some("the messages in the system still rise or fall")
            }
            Self::Unsettled(Unsettled::Short) => {
                Some("too few cycles or messages to notice a shortfall of 5 %")
            }
            Self::Steady | Self::Saturated => None,
        }
    }
}

/// What a run found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Seed of the run.
    pub seed: u64,
    /// Fingerprint of every delivery, the same for any number of partitions.
    pub trace_hash: u64,
    /// Cycles simulated in all.
    pub cycles: u64,
    /// Cycles of the warm-up.
    pub warmup_cycles: u64,
    /// Cycles of the measurement.
    pub measure_cycles: u64,
    /// Whether the warm-up ended because latency and accepted load stayed the same, or had a length
    /// given.
    pub converged: bool,
    /// Bytes of messages that a terminal sends in a cycle at full load.
    pub bytes_per_cycle: f64,
    /// Phits per cycle and terminal of the packets born in the measurement.
    pub offered_load: f64,
    /// Phits per cycle and terminal that arrived in the measurement.
    pub accepted_load: f64,
    /// Whether the network could not take what was offered.
    pub saturated: bool,
    /// Whether the measurement shows a steady state.
    pub state: State,
    /// Latencies of the packets born in the measurement; of a saturated network, which has no
    /// steady latency, those of the packets that arrived in the measurement.
    pub latency_cycles: LatencySummary,
    /// The same latencies as counts of cycles, ascending.
    pub latency_counts: LatencyCounts,
    /// Routers that a packet passed, on average; with replies, the way back is counted too.
    pub hops_mean: f64,
    /// Phits through routers in the whole run.
    pub phit_hops: u64,
    /// Packets that arrived in the whole run.
    pub packets: u64,
    /// Input queues of routers.
    pub input_queues: StageUse,
    /// Row buffers.
    pub row_buffers: StageUse,
    /// Column buffers.
    pub column_buffers: StageUse,
    /// Packets born and not sent when the measurement ended, per terminal.
    pub source_backlog: f64,
    /// From terminals into routers.
    pub injection_links: LinkUse,
    /// From routers to terminals.
    pub ejection_links: LinkUse,
    /// Between routers, by the kinds that the machine has.
    pub links: Vec<(&'static str, LinkUse)>,
    /// Links of each kind that a phit passed on average, over the measurement.
    pub hops_by_kind: Vec<(&'static str, f64)>,
    /// Of the decisions of routers in the measurement, the share that fell for the other ways, such
    /// as non-minimal ones, with what the machine calls these; `None` where there is no choice.
    pub other_ways: Option<(&'static str, f64)>,
    /// How evenly sources were served.
    pub fairness: Fairness,
    /// What each terminal sent in the measurement, as a fraction of its phit rate, by its number.
    pub served: Vec<f64>,
    /// Packets that routers have thrown away because of a fault.
    pub discarded_packets: u64,
    /// Packets that encoded links sent again.
    pub retransmitted_packets: u64,
    /// Frames that went over encoded links.
    pub frames_sent: u64,
    /// Those of them that an impairment lost.
    pub frames_lost: u64,
    /// Faults that were still to come when the run was over.
    pub late_faults: Vec<String>,
    /// What must not be and was.
    pub violations: Vec<Violation>,
}
