//! Results as JSON and for people.

use std::fmt::Write as _;

use phitwire::sim::direct::{Fairness, LatencySummary, LinkUse, Report, StageUse};
use serde_json::{Map, Value, json};

use super::measure::{Estimate, Measured};

fn stage(stage: StageUse) -> Value {
    json!({ "mean_phits_per_chip": stage.mean_phits, "stalls_per_1000_phits": stage.stalls_per_1000 })
}

fn links(links: LinkUse) -> Value {
    json!({ "links": links.links, "min": links.min, "mean": links.mean, "max": links.max })
}

fn estimate(estimate: Estimate) -> Value {
    json!({ "mean": estimate.mean, "half_width_95": estimate.half_width })
}

fn fairness(fairness: Fairness) -> Value {
    json!({ "min": fairness.min, "max": fairness.max, "jain": fairness.jain })
}

/// One measurement as a JSON object. `about` (topology, traffic) comes first.
pub fn json(about: &Map<String, Value>, measured: &Measured) -> Value {
    let report = &measured.report;
    let mut all = about.clone();
    let figures = json!({
        "load": measured.load.fraction(),
        "seed": report.seed,
        "trace_hash": format!("{:016x}", report.trace_hash),
        "cycles": report.cycles,
        "warmup_cycles": report.warmup_cycles,
        "measure_cycles": report.measure_cycles,
        "converged": report.converged,
        "offered_load": report.offered_load,
        "accepted_load": report.accepted_load,
        "bound": measured.bound,
        "saturated": report.saturated,
        "latency_cycles": latencies(report.latency_cycles),
        "packets_measured": report.latency_cycles.count,
        "hops_mean": report.hops_mean,
        "packets": report.packets,
        "phit_hops": report.phit_hops,
        "wall_seconds": measured.wall_seconds,
        "build_seconds": measured.build_seconds,
        "phit_hops_per_second": phit_hops_per_second(measured),
        "peak_resident_bytes": measured.peak_resident_bytes,
        "stages": {
            "input_queues": stage(report.input_queues),
            "row_buffers": stage(report.row_buffers),
            "column_buffers": stage(report.column_buffers),
        },
        "source_backlog_packets": report.source_backlog,
        "link_use": {
            "injection": links(report.injection_links),
            "ejection": links(report.ejection_links),
        },
        "fairness": fairness(report.fairness),
        "violations": violations(report),
    });
    if let Value::Object(mut figures) = figures {
        for &(kind, of_kind) in &report.links {
            figures["link_use"][kind] = links(of_kind);
        }
        if let Some((other, share)) = report.other_ways {
            let hops = report.hops_by_kind.iter();
            let hops: Map<String, Value> = hops.map(|&(k, n)| (k.to_owned(), n.into())).collect();
            figures.insert(share_key(other), share.into());
            figures.insert("hops_by_kind".to_owned(), hops.into());
        }
        all.extend(figures);
    }
    if report.frames_sent > 0 {
        let figures = json!({
            "retransmitted_packets": report.retransmitted_packets,
            "discarded_packets": report.discarded_packets,
            "frames_sent": report.frames_sent,
            "frames_lost": report.frames_lost,
        });
        all.insert("encoded_links".to_owned(), figures);
    }
    if let Some(over) = measured.over_seeds {
        let value = json!({
            "seeds": over.seeds,
            "latency_mean": over.latency_mean.map(estimate),
            "latency_p99": over.latency_p99.map(estimate),
            "accepted_load": estimate(over.accepted_load),
            "saturated": over.saturated,
        });
        all.insert("over_seeds".to_owned(), value);
    }
    Value::Object(all)
}

/// What the share of other ways is called where programs read it.
pub(super) fn share_key(other: &str) -> String {
    format!("{}_share", other.replace('-', "_"))
}

/// Null where nothing was measured.
fn latencies(latency: LatencySummary) -> Value {
    let some = (latency.count > 0).then_some(latency);
    json!({
        "min": some.map(|latency| latency.min),
        "mean": some.map(|latency| latency.mean),
        "p50": some.map(|latency| latency.p50),
        "p99": some.map(|latency| latency.p99),
        "p99_9": some.map(|latency| latency.p99_9),
        "max": some.map(|latency| latency.max),
    })
}

/// Least, mean (with so many decimals), quantiles and most; `nothing` where nothing was measured.
fn cells(latency: LatencySummary, decimals: usize, nothing: &str) -> [String; 6] {
    if latency.count == 0 {
        return [(); 6].map(|()| nothing.to_owned());
    }
    let mean = format!("{:.decimals$}", latency.mean);
    let [min, p50, p99, p99_9, max] = [
        latency.min,
        latency.p50,
        latency.p99,
        latency.p99_9,
        latency.max,
    ]
    .map(|cycles| cycles.to_string());
    [min, mean, p50, p99, p99_9, max]
}

fn violations(report: &Report) -> Vec<String> {
    report.violations.iter().map(ToString::to_string).collect()
}

fn phit_hops_per_second(measured: &Measured) -> f64 {
    measured.report.phit_hops as f64 / measured.wall_seconds.max(1e-9)
}

/// The lines of names and units above [`line()`]s.
pub const HEADING: &str = "     load, of 1   |               latency, in cycles                    | hops  simulated,\n \
     offered accepted |    min     mean     p50     p99   p99.9     max | mean  M phit-hops/s";

/// One measurement as a line of a table.
pub fn line(measured: &Measured) -> String {
    let report = &measured.report;
    let [min, mean, p50, p99, p99_9, max] = cells(report.latency_cycles, 1, "-");
    let mut text = format!(
        "{:8.4} {:8.4} | {min:>6} {mean:>8} {p50:>7} {p99:>7} {p99_9:>7} {max:>7} | {:4.2} {:8.2}{}",
        report.offered_load,
        report.accepted_load,
        report.hops_mean,
        phit_hops_per_second(measured) / 1e6,
        if report.saturated { "  saturated" } else { "" },
    );
    if let Some(routing) = measured.routing {
        // Writing to a String cannot fail.
        let _ = write!(text, "  {routing}");
    }
    if let Some((other, share)) = report.other_ways {
        let _ = write!(text, ", {other} {share:.3}");
    }
    if let Some(over) = measured.over_seeds {
        let latency = over.latency_mean.map_or("-".to_owned(), |latency| {
            format!("{:.1} +- {:.1}", latency.mean, latency.half_width)
        });
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "  {} seeds: latency {latency}, accepted {:.4} +- {:.4}",
            over.seeds, over.accepted_load.mean, over.accepted_load.half_width
        );
    }
    text
}

/// What one measurement says beyond its line.
pub fn details(measured: &Measured) -> String {
    let report = &measured.report;
    let mut text = format!(
        "trace {:016x}, seed {}, {} cycles ({} of warm-up{}, {} measured), {} packets, {} phit-hops in \
         {:.2} s\n",
        report.trace_hash,
        report.seed,
        report.cycles,
        report.warmup_cycles,
        if report.converged { "" } else { ", not steady" },
        report.measure_cycles,
        report.packets,
        report.phit_hops,
        measured.wall_seconds
    );
    if report.frames_sent > 0 {
        let _ = writeln!(
            text,
            "links            {} frames, of which {} were lost on the way; {} packets sent again, {} copies discarded",
            report.frames_sent,
            report.frames_lost,
            report.retransmitted_packets,
            report.discarded_packets
        );
    }
    if let Some(bound) = measured.bound {
        let _ = writeln!(
            text,
            "bound            {bound:.4}: at a higher load some link would have to carry more than it can"
        );
    }
    let stages = [
        ("input queues", report.input_queues),
        ("row buffers", report.row_buffers),
        ("column buffers", report.column_buffers),
    ];
    for (name, stage) in stages {
        let _ = writeln!(
            text,
            "{name:16} {:8.1} phits per chip, {:8.2} stalls per 1,000 phits",
            stage.mean_phits, stage.stalls_per_1000
        );
    }
    let ends = [
        ("injection", report.injection_links),
        ("ejection", report.ejection_links),
    ];
    let kinds = ends.iter().chain(&report.links);
    for (name, links) in kinds.filter(|(_, links)| links.links > 0) {
        let _ = writeln!(
            text,
            "{:16} {:8} of them, busy {:.4} (least {:.4}, most {:.4})",
            format!("{name} links"),
            links.links,
            links.mean,
            links.min,
            links.max
        );
    }
    if report.other_ways.is_some() {
        let hops = report.hops_by_kind.iter();
        let hops: Vec<String> = hops.map(|(kind, n)| format!("{n:.3} {kind}")).collect();
        let _ = writeln!(text, "hops of a flit   {}", hops.join(", "));
    }
    let _ = writeln!(
        text,
        "sources          served {:.4} to {:.4} of their rate, Jain's index {:.4}, {:.1} packets waiting \
         each",
        report.fairness.min, report.fairness.max, report.fairness.jain, report.source_backlog
    );
    text
}
