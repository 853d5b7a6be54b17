//! A lab's sample as Prometheus metrics.
//!
//! Quantities common to all machines have common names. Counters keep the machine's own names, so a
//! new machine needs no new code here.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use phitwire::nic::{LatencyCounts, RunPhase, TrafficReport};
use phitwire_nodes::control::{LinkReport, PipelineReport};
use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType,
};

use crate::watch::{NodeSample, Sample};

/// Upper bounds of the latency buckets, in seconds: three per decade from 1 us to 10 s.
const LATENCY_BOUNDS: [f64; 22] = [
    1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2,
    5e-2, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

type Labels<'a> = Vec<(&'static str, &'a str)>;

/// The metrics of a lab; `there` is its network in one line and a sample, if the lab exists.
pub fn of(lab: &str, there: Option<&(String, Sample)>) -> Vec<MetricFamily> {
    let mut all = Families::default();
    let labels = || vec![("lab", lab)];
    let is_up = f64::from(u8::from(there.is_some()));
    all.gauge("lab_up", "Whether the lab is up.", labels(), is_up);
    if let Some((network, sample)) = there {
        let about = vec![("lab", lab), ("network", &**network)];
        all.gauge("lab_info", "Network of the lab.", about, 1.0);
        all.gauge(
            "sample_duration_seconds",
            "Time taken to query all nodes.",
            labels(),
            sample.took_ms as f64 / 1e3,
        );
        for node in &sample.nodes {
            all.node(lab, node);
        }
    }
    all.0.into_values().map(|(_, family)| family).collect()
}

/// Families by name, each with the origin of its metrics.
#[derive(Default)]
struct Families(BTreeMap<String, (String, MetricFamily)>);

impl Families {
    fn node(&mut self, lab: &str, node: &NodeSample) {
        let labels = || vec![("lab", lab), ("node", &*node.name)];
        let mut with_kind = labels();
        with_kind.push(("kind", node.kind.name()));
        let is_up = f64::from(u8::from(node.silent.is_none()));
        self.gauge("node_up", "Whether the node answers.", with_kind, is_up);
        if node.silent.is_some() {
            return;
        }
        if let Some(routing) = &node.routing {
            let help = "Whether the router is quiesced and accepts no packets from its NICs.";
            let value = f64::from(u8::from(routing.quiesced));
            self.gauge("router_quiesced", help, labels(), value);
        }
        for link in &node.links {
            self.link(&labels(), node, link);
        }
        for (name, &value) in &node.counters {
            if port_of(name).is_none() {
                self.own_counter("node", name, name, labels(), value);
            }
        }
        if let Some(pipeline) = &node.pipeline {
            self.stages(&labels(), pipeline);
        }
        if let Some(run) = &node.traffic {
            self.traffic(&labels(), run);
        }
    }

    fn stages(&mut self, of_node: &Labels<'_>, pipeline: &PipelineReport) {
        for stage in &pipeline.stages {
            let of_stage = with(of_node, "stage", &stage.name);
            let of_stage = with(&of_stage, "unit", &stage.unit);
            for (at, channel) in stage.channels.iter().enumerate() {
                let help = "Contents of a stage by channel, in the stage's unit.";
                let held = stage
                    .places
                    .iter()
                    .filter_map(|position| position.held.get(at));
                let labels = with(&of_stage, "channel", channel);
                self.gauge("stage_held", help, labels, held.sum::<u64>() as f64);
            }
            if let Some(room) = stage.room() {
                let help = "Capacity of a stage, in the stage's unit.";
                self.gauge("stage_room", help, of_stage.clone(), room as f64);
            }
            if let Some(stalls) = stage.stalls {
                let help = "Stalls in a stage.";
                self.counter("stage_stalls_total", help, of_stage, stalls);
            }
        }
    }

    fn link(&mut self, of_node: &Labels<'_>, node: &NodeSample, link: &LinkReport) {
        let (port, number) = (link.port.to_string(), link.link.to_string());
        let mut all = of_node.clone();
        all.extend([("port", &*port), ("link", &*number), ("peer", &*link.peer)]);
        let labels = || all.clone();
        let is = |flag: bool| f64::from(u8::from(flag));
        let gauges = [
            (
                "link_up",
                "Whether packets flow, as far as the node knows.",
                is(link.up),
            ),
            (
                "link_impaired",
                "Whether the kernel impairs the port, by netem or nftables.",
                is(link.impaired),
            ),
            (
                "link_unacknowledged_packets",
                "Packets sent or queued that the peer has not acknowledged.",
                link.unacknowledged_packets as f64,
            ),
        ];
        for (name, help, value) in gauges {
            self.gauge(name, help, labels(), value);
        }
        let help = "Active lanes in each direction.";
        for (direction, lanes) in [("receive", link.rx_lanes), ("send", link.tx_lanes)] {
            self.gauge(
                "link_lanes",
                help,
                with(&all, "direction", direction),
                lanes.into(),
            );
        }
        let help = "Credits available towards the peer on each virtual channel.";
        for (vc, &credits) in link.credits.iter().enumerate() {
            let vc = vc.to_string();
            self.gauge("link_credits", help, with(&all, "vc", &vc), credits.into());
        }
        if let Some(ns) = link.rtt_ns {
            let help = "Smoothed round-trip time.";
            self.gauge("link_round_trip_seconds", help, labels(), ns as f64 / 1e9);
        }
        if let Some(ms) = link.heard_ms {
            let help = "Time since a data frame of the peer was last accepted.";
            self.gauge("link_heard_seconds", help, labels(), ms as f64 / 1e3);
        }
        self.link_counters(&all, node, link);
    }

    fn link_counters(&mut self, all: &Labels<'_>, node: &NodeSample, link: &LinkReport) {
        let labels = || all.clone();
        let counters = [
            ("link_frames_sent_total", "Frames sent.", link.frames_sent),
            (
                "link_frames_received_total",
                "Frames received, including bad ones.",
                link.frames_received,
            ),
            (
                "link_resent_total",
                "Packets (or the link's unit of retry) resent.",
                link.resent,
            ),
            (
                "link_bad_checks_total",
                "Packets (or the link's unit of checking) received with a bad check.",
                link.bad_checks,
            ),
        ];
        for (name, help, value) in counters {
            self.counter(name, help, labels(), value);
        }
        let help = "Bad copies charged to each receive lane.";
        for (lane, &times) in link.lane_retries.iter().enumerate() {
            let lane = lane.to_string();
            let labels = with(all, "lane", &lane);
            self.counter("link_lane_retries_total", help, labels, times);
        }
        for (name, value) in node.port_counters(link.port) {
            self.own_counter("port", name, &format!("portN.{name}"), labels(), value);
        }
    }

    fn traffic(&mut self, of_node: &Labels<'_>, run: &TrafficReport) {
        let counters = [
            ("traffic_sent_messages_total", "Messages sent.", run.sent),
            (
                "traffic_acknowledged_messages_total",
                "Messages acknowledged.",
                run.acknowledged,
            ),
            (
                "traffic_timed_out_messages_total",
                "Messages timed out.",
                run.timed_out,
            ),
            (
                "traffic_corrupted_messages_total",
                "Messages with corrupted payload.",
                run.corrupted,
            ),
        ];
        for (name, what, value) in counters {
            let help = format!("{what} Latest traffic run of a NIC.");
            self.counter(name, &help, of_node.clone(), value);
        }
        let going = f64::from(u8::from(run.phase != RunPhase::Done));
        let help = "Whether the latest traffic run of a NIC is still running.";
        self.gauge("traffic_running", help, of_node.clone(), going);
        let help = "Outstanding messages of the latest traffic run.";
        let outstanding = run.outstanding as f64;
        self.gauge(
            "traffic_outstanding_messages",
            help,
            of_node.clone(),
            outstanding,
        );
        let help = "Time from issue to acknowledgement in the latest traffic run.";
        let mut metric = Metric::from_label(pairs(of_node));
        metric.set_histogram(histogram(&run.latency));
        self.add(
            "traffic_latency_seconds",
            help,
            MetricType::HISTOGRAM,
            "",
            metric,
        );
    }

    fn gauge(&mut self, name: &str, help: &str, labels: Labels<'_>, value: f64) {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        let mut metric = Metric::from_label(pairs(&labels));
        metric.set_gauge(gauge);
        self.add(name, help, MetricType::GAUGE, "", metric);
    }

    fn counter(&mut self, name: &str, help: &str, labels: Labels<'_>, value: u64) {
        self.add(
            name,
            help,
            MetricType::COUNTER,
            "",
            counted(&labels, value as f64),
        );
    }

    /// Adds a counter under the name that the node uses.
    fn own_counter(&mut self, of: &str, name: &str, counter: &str, labels: Labels<'_>, value: u64) {
        let (name, scale, unit) = in_base_units(name);
        let help = format!(
            "Counter {counter} of a node, as printed by `phitwire ctl NODE \
                            stats`{unit}."
        );
        let metric = counted(&labels, value as f64 * scale);
        let name = format!("{of}_{name}_total");
        self.add(&name, &help, MetricType::COUNTER, counter, metric);
    }

    /// Adds a metric to its family. If two counters get the same name, the first is kept.
    fn add(&mut self, name: &str, help: &str, kind: MetricType, from: &str, metric: Metric) {
        let name = format!("phitwire_{name}");
        match self.0.entry(name.clone()) {
            Entry::Vacant(place) => {
                let mut family = MetricFamily::default();
                family.set_name(name);
                family.set_help(help.to_owned());
                family.set_field_type(kind);
                family.set_metric(vec![metric]);
                place.insert((from.to_owned(), family));
            }
            Entry::Occupied(mut family) if family.get().0 == from => {
                family.get_mut().1.mut_metric().push(metric);
            }
            Entry::Occupied(_) => {}
        }
    }
}

/// `labels` with another one appended.
fn with<'a>(labels: &Labels<'a>, name: &'static str, value: &'a str) -> Labels<'a> {
    let mut labels = labels.clone();
    labels.push((name, value));
    labels
}

/// The port number in the name of a port counter.
fn port_of(name: &str) -> Option<u8> {
    let (port, _) = name.strip_prefix("port")?.split_once('.')?;
    port.parse().ok()
}

/// A counter's name in Prometheus form, the factor to its base unit, and a remark about the
/// conversion.
fn in_base_units(name: &str) -> (String, f64, &'static str) {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().map(allowed).collect();
    // Rename `bits`, which Prometheus reserves for sizes: these counters count single bits.
    let parts = name.split('_');
    let parts: Vec<&str> = parts
        .map(|part| if part == "bits" { "bit" } else { part })
        .collect();
    let name = parts.join("_");
    for (unit, scale) in [("_ns", 1e-9), ("_us", 1e-6), ("_ms", 1e-3)] {
        if let Some(name) = name.strip_suffix(unit) {
            return (format!("{name}_seconds"), scale, ", in seconds");
        }
    }
    (name, 1.0, "")
}

fn counted(labels: &Labels<'_>, value: f64) -> Metric {
    let mut counter = Counter::default();
    counter.set_value(value);
    let mut metric = Metric::from_label(pairs(labels));
    metric.set_counter(counter);
    metric
}

fn pairs(labels: &Labels<'_>) -> Vec<LabelPair> {
    let pair = |&(name, value): &(&str, &str)| {
        let mut pair = LabelPair::default();
        pair.set_name(name.to_owned());
        pair.set_value(value.to_owned());
        pair
    };
    labels.iter().map(pair).collect()
}

/// Latencies in the buckets of [`LATENCY_BOUNDS`]. The sum uses the highest value of each original
/// bucket, and so is at most 1 % too high.
fn histogram(counts: &LatencyCounts) -> Histogram {
    let upto = |bound: &f64| {
        let ns = bound * 1e9;
        let below = counts
            .buckets
            .iter()
            .take_while(|bucket| bucket.0 as f64 <= ns);
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(*bound);
        bucket.set_cumulative_count(below.map(|bucket| bucket.1).sum());
        bucket
    };
    let seconds = counts
        .buckets
        .iter()
        .map(|&(ns, n)| ns as f64 / 1e9 * n as f64);
    let mut histogram = Histogram::default();
    histogram.set_bucket(LATENCY_BOUNDS.iter().map(upto).collect());
    histogram.set_sample_count(counts.count());
    histogram.set_sample_sum(seconds.sum());
    histogram
}
