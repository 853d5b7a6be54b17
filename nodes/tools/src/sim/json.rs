//! Results as JSON.

use std::collections::BTreeMap;

use phitwire::sim::direct::{Fairness, LatencySummary, LinkUse, Process, Report, StageUse, State};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::measure::{LeastServed, Measured, OverSeeds, SeedRun};
use super::output::phit_hops_per_second;
use crate::machines::machines;
use crate::trace::Trace;

/// One point, or several.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Points {
    One(Box<Point>),
    Several(Vec<Point>),
}

/// Properties common to the points of one simulator.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Common {
    /// The options that define the run, for `phitwire sim --config`.
    pub options: Map<String, Value>,
    /// Name of the network.
    pub topology: String,
    /// The pattern of traffic.
    pub traffic: String,
    /// Processors that take part; null: all.
    pub participants: Option<u32>,
    /// Bytes that each message writes.
    pub message_bytes: u8,
    /// Whether requests are answered, and measured until the answer arrives.
    pub request_reply: bool,
    /// Arrival process of packets.
    pub process: Process,
    /// The injected faults.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// Options of the machine.
    #[serde(flatten)]
    #[schemars(schema_with = "of_machines")]
    pub machine: Map<String, Value>,
}

/// A measured point: the first seed in full, all seeds in brief.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Point {
    #[serde(flatten)]
    common: Common,
    /// The requested load, as a fraction of a port's rate.
    load: f64,
    /// Length of a cycle in nanoseconds.
    cycle_ns: f64,
    /// State of the network during the measurement.
    state: StateName,
    /// Why the measurement is unsettled; null if it is not.
    unsettled_because: Option<&'static str>,
    /// Message bytes that each processor offers, in GB/s.
    offered_gbytes_per_second: f64,
    /// Message bytes that arrive for each processor, in GB/s.
    accepted_gbytes_per_second: f64,
    /// Latencies in nanoseconds; null where no packet was measured.
    latency_ns: LatencyNs,
    /// The source that was served least; null if no source sends.
    least_served: Option<LeastServed>,
    /// Seed of the run.
    seed: u64,
    /// Hash of every delivery: the same for the same seed and options.
    trace_hash: String,
    /// Total cycles simulated.
    cycles: u64,
    /// Cycles of the warm-up.
    warmup_cycles: u64,
    /// Cycles of the measurement.
    measure_cycles: u64,
    /// False if the warm-up reached its limit before latency and accepted load settled. A warm-up
    /// of fixed length always counts as converged.
    converged: bool,
    /// Phits per cycle and terminal of packets created during the measurement.
    offered_load: f64,
    /// Phits per cycle and terminal that arrived during the measurement.
    accepted_load: f64,
    /// The highest load at which every source can be served; null if that is not computed.
    bound: Option<f64>,
    /// Whether the network could not accept the offered load.
    saturated: bool,
    /// Latencies in cycles; null where no packet was measured. For a saturated network, of the
    /// packets that arrived during the measurement.
    latency_cycles: LatencyCycles,
    /// Packets whose latencies were measured.
    packets_measured: u64,
    /// Mean number of routers that a packet passed; with replies, the return path is included.
    hops_mean: f64,
    /// Packets that arrived in the whole run.
    packets: u64,
    /// Phits through routers in the whole run.
    phit_hops: u64,
    /// Wall time of the run.
    wall_seconds: f64,
    /// Wall time of building the network.
    build_seconds: f64,
    /// Speed of the simulation.
    phit_hops_per_second: f64,
    /// The process's peak memory so far.
    peak_resident_bytes: u64,
    /// Fill level of the routers' buffers, by stage of the machine's pipeline.
    stages: BTreeMap<String, StageUse>,
    /// Packets created but not sent when the measurement ended, per terminal.
    source_backlog_packets: f64,
    /// Load of the links by kind, as fractions of their phit rate: `injection`, `ejection` and the
    /// machine's kinds.
    link_use: BTreeMap<&'static str, LinkUse>,
    /// How evenly sources were served, as fractions of their phit rate.
    fairness: Fairness,
    /// Violations that the checkers found: none in a correct run.
    violations: Vec<String>,
    /// Mean number of links of each kind that a phit passed, where routers choose between paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "BTreeMap<&'static str, f64>")]
    hops_by_kind: Option<BTreeMap<&'static str, f64>>,
    /// Statistics of links that carry frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "EncodedLinks")]
    encoded_links: Option<EncodedLinks>,
    /// Packets dropped because of a fault, if any were.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    discarded_packets: Option<u64>,
    /// All seeds, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "AllSeeds")]
    over_seeds: Option<AllSeeds>,
    /// The traced messages, as `trace` prints them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Trace>")]
    pub traces: Option<Vec<Trace>>,
}

/// The state of a network during the measurement.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum StateName {
    /// The number of messages in the system neither rises nor falls beyond chance.
    Steady,
    /// Not steady, or not known to be, and not saturated.
    Unsettled,
    /// The network could not accept the offered load.
    Saturated,
}

impl From<State> for StateName {
    fn from(state: State) -> Self {
        match state {
            State::Steady => Self::Steady,
            State::Unsettled(_) => Self::Unsettled,
            State::Saturated => Self::Saturated,
        }
    }
}

/// Latencies in cycles.
#[derive(Debug, Serialize, JsonSchema)]
struct LatencyCycles {
    /// Minimum.
    min: Option<u64>,
    /// Mean.
    mean: Option<f64>,
    /// Median.
    p50: Option<u64>,
    /// 90th percentile.
    p90: Option<u64>,
    /// 99th percentile.
    p99: Option<u64>,
    /// 99.9th percentile.
    p99_9: Option<u64>,
    /// Maximum.
    max: Option<u64>,
}

/// Latencies in nanoseconds.
#[derive(Debug, Serialize, JsonSchema)]
struct LatencyNs {
    /// Mean.
    mean: Option<f64>,
    /// Median.
    p50: Option<f64>,
    /// 90th percentile.
    p90: Option<f64>,
    /// 99th percentile.
    p99: Option<f64>,
    /// 99.9th percentile.
    p99_9: Option<f64>,
}

/// The JSON key of a stage, and its use.
fn stage(&(name, of): &(&'static str, StageUse)) -> (String, StageUse) {
    (name.replace(' ', "_"), of)
}

/// Statistics of links that carry frames.
#[derive(Debug, Serialize, JsonSchema)]
struct EncodedLinks {
    /// Packets resent.
    retransmitted_packets: u64,
    /// Packets discarded.
    discarded_packets: u64,
    /// Frames sent.
    frames_sent: u64,
    /// Frames lost to impairment.
    frames_lost: u64,
}

/// Estimates over several seeds, and each of them in brief.
#[derive(Debug, Serialize, JsonSchema)]
struct AllSeeds {
    #[serde(flatten)]
    over: OverSeeds,
    /// Each seed in brief.
    each: Vec<Seed>,
}

/// The short result of a seed.
#[derive(Debug, Serialize, JsonSchema)]
struct Seed {
    /// The seed.
    seed: u64,
    /// Hash of every delivery.
    trace_hash: String,
    /// Cycles of the warm-up.
    warmup_cycles: u64,
    /// Cycles of the measurement.
    measure_cycles: u64,
    /// Offered load.
    offered_load: f64,
    /// Accepted load.
    accepted_load: f64,
    /// State of the network during the measurement.
    state: StateName,
    /// Latencies in cycles; null where no packet was measured.
    latency_cycles: LatencyCycles,
    /// The source that was served least; null if no source sends.
    least_served: Option<LeastServed>,
    /// Jain's index of the sources: 1 when all are equal.
    jain: f64,
}

/// The properties that the machines add to a point; no point has all.
fn of_machines(generator: &mut SchemaGenerator) -> Schema {
    let mut forms: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut add = |key: String, schema: Value| {
        let forms = forms.entry(key).or_default();
        if !forms.contains(&schema) {
            forms.push(schema);
        }
    };
    let simulations = machines().machines().iter();
    for machine in simulations.filter_map(|machine| machine.simulation) {
        let mut about = (machine.about)(generator).to_value();
        if let Value::Object(own) = about["properties"].take() {
            own.into_iter().for_each(|(key, schema)| add(key, schema));
        }
        let other = machine.other_ways;
        if !other.is_empty() {
            let about =
                format!("Share of router decisions that are {other}, where routers choose.");
            let share = json_schema!({ "type": "number", "description": about });
            add(share_key(other), share.to_value());
        }
    }
    let properties = forms.into_iter().map(|(key, mut forms)| {
        let schema = match forms.pop() {
            Some(only) if forms.is_empty() => only,
            last => json!({ "anyOf": forms.into_iter().chain(last).collect::<Vec<_>>() }),
        };
        (key, schema)
    });
    let properties: Map<String, Value> = properties.collect();
    json_schema!({ "type": "object", "properties": properties })
}

/// The keys for the shares of other paths on all machines.
pub(super) fn share_keys() -> Vec<String> {
    let simulations = machines().machines().iter();
    let simulations = simulations.filter_map(|machine| machine.simulation);
    let others = simulations.map(|machine| machine.other_ways);
    let mut keys: Vec<String> = Vec::new();
    for key in others.filter(|other| !other.is_empty()).map(share_key) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// The JSON key for the share of other paths.
pub(super) fn share_key(other: &str) -> String {
    format!("{}_share", other.replace('-', "_"))
}

impl Point {
    pub fn new(common: &Common, measured: &Measured) -> Self {
        let first = measured.first();
        let report = &first.report;
        let gbytes = measured.full_gbytes_per_second();
        let mut common = common.clone();
        if let Some((other, share)) = report.other_ways {
            common.machine.insert(share_key(other), share.into());
        }
        let ends = [
            ("injection", report.injection_links),
            ("ejection", report.ejection_links),
        ];
        Self {
            common,
            load: measured.load.fraction(),
            cycle_ns: measured.cycle_ns(),
            state: report.state.into(),
            unsettled_because: report.state.reason(),
            offered_gbytes_per_second: gbytes * report.offered_load,
            accepted_gbytes_per_second: gbytes * report.accepted_load,
            latency_ns: LatencyNs::new(report.latency_cycles, measured.cycle_ns()),
            least_served: first.least_served.clone(),
            seed: report.seed,
            trace_hash: trace_hash(report),
            cycles: report.cycles,
            warmup_cycles: report.warmup_cycles,
            measure_cycles: report.measure_cycles,
            converged: report.converged,
            offered_load: report.offered_load,
            accepted_load: report.accepted_load,
            bound: measured.bound,
            saturated: report.saturated,
            latency_cycles: report.latency_cycles.into(),
            packets_measured: report.latency_cycles.count,
            hops_mean: report.hops_mean,
            packets: report.packets,
            phit_hops: report.phit_hops,
            wall_seconds: first.wall_seconds,
            build_seconds: first.build_seconds,
            phit_hops_per_second: phit_hops_per_second(first),
            peak_resident_bytes: measured.peak_resident_bytes,
            stages: report.stages.iter().map(stage).collect(),
            source_backlog_packets: report.source_backlog,
            link_use: ends.iter().chain(&report.links).copied().collect(),
            fairness: report.fairness,
            violations: report.violations.iter().map(ToString::to_string).collect(),
            hops_by_kind: report
                .other_ways
                .map(|_| report.hops_by_kind.iter().copied().collect()),
            encoded_links: EncodedLinks::new(report),
            discarded_packets: (report.discarded_packets > 0).then_some(report.discarded_packets),
            over_seeds: measured.over_seeds().map(|over| AllSeeds {
                over,
                each: measured.seeds.iter().map(Seed::new).collect(),
            }),
            traces: None,
        }
    }
}

impl Seed {
    fn new(run: &SeedRun) -> Self {
        let report = &run.report;
        Self {
            seed: report.seed,
            trace_hash: trace_hash(report),
            warmup_cycles: report.warmup_cycles,
            measure_cycles: report.measure_cycles,
            offered_load: report.offered_load,
            accepted_load: report.accepted_load,
            state: report.state.into(),
            latency_cycles: report.latency_cycles.into(),
            least_served: run.least_served.clone(),
            jain: report.fairness.jain,
        }
    }
}

impl EncodedLinks {
    fn new(report: &Report) -> Option<Self> {
        (report.frames_sent > 0).then_some(Self {
            retransmitted_packets: report.retransmitted_packets,
            discarded_packets: report.discarded_packets,
            frames_sent: report.frames_sent,
            frames_lost: report.frames_lost,
        })
    }
}

impl From<LatencySummary> for LatencyCycles {
    fn from(latency: LatencySummary) -> Self {
        let some = (latency.count > 0).then_some(latency);
        Self {
            min: some.map(|latency| latency.min),
            mean: some.map(|latency| latency.mean),
            p50: some.map(|latency| latency.p50),
            p90: some.map(|latency| latency.p90),
            p99: some.map(|latency| latency.p99),
            p99_9: some.map(|latency| latency.p99_9),
            max: some.map(|latency| latency.max),
        }
    }
}

impl LatencyNs {
    fn new(latency: LatencySummary, cycle_ns: f64) -> Self {
        let some = (latency.count > 0).then_some(latency);
        let ns = |of: fn(LatencySummary) -> f64| some.map(|latency| of(latency) * cycle_ns);
        Self {
            mean: ns(|latency| latency.mean),
            p50: ns(|latency| latency.p50 as f64),
            p90: ns(|latency| latency.p90 as f64),
            p99: ns(|latency| latency.p99 as f64),
            p99_9: ns(|latency| latency.p99_9 as f64),
        }
    }
}

fn trace_hash(report: &Report) -> String {
    format!("{:016x}", report.trace_hash)
}
