//! Results as JSON and as text.

use std::fmt::Write as _;

use phitwire::sim::direct::{Fairness, LatencySummary, LinkUse, Report, StageUse, State};
use serde_json::{Map, Value, json};

use super::measure::{Estimate, LeastServed, Measured, SeedRun};

fn stage(stage: StageUse) -> Value {
    json!({ "mean_phits_per_chip": stage.mean_phits, "stalls_per_1000_phits": stage.stalls_per_1000 })
}

/// The stages by name.
fn stages(report: &Report) -> Map<String, Value> {
    let stages = report.stages.iter();
    stages
        .map(|&(name, of)| (name.replace(' ', "_"), stage(of)))
        .collect()
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

fn least_served(least: Option<&LeastServed>) -> Value {
    least.map_or(
        Value::Null,
        |least| json!({ "source": least.source, "served": least.served, "offered": least.offered }),
    )
}

/// The short result of one seed.
fn of_seed(run: &SeedRun) -> Value {
    let report = &run.report;
    json!({
        "seed": report.seed,
        "trace_hash": format!("{:016x}", report.trace_hash),
        "warmup_cycles": report.warmup_cycles,
        "measure_cycles": report.measure_cycles,
        "offered_load": report.offered_load,
        "accepted_load": report.accepted_load,
        "state": report.state.name(),
        "latency_cycles": latencies(report.latency_cycles),
        "least_served": least_served(run.least_served.as_ref()),
        "jain": report.fairness.jain,
    })
}

/// Writes a measurement as a JSON object: the first seed in full, and all seeds in short. The
/// object begins with `about` (topology, traffic).
pub fn json(about: &Map<String, Value>, measured: &Measured) -> Value {
    let first = measured.first();
    let report = &first.report;
    let mut all = about.clone();
    let gbytes = measured.full_gbytes_per_second();
    let figures = json!({
        "load": measured.load.fraction(),
        "cycle_ns": measured.cycle_ns(),
        "state": report.state.name(),
        "unsettled_because": report.state.reason(),
        "offered_gbytes_per_second": gbytes * report.offered_load,
        "accepted_gbytes_per_second": gbytes * report.accepted_load,
        "latency_ns": latencies_ns(report.latency_cycles, measured.cycle_ns()),
        "least_served": least_served(first.least_served.as_ref()),
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
        "wall_seconds": first.wall_seconds,
        "build_seconds": first.build_seconds,
        "phit_hops_per_second": phit_hops_per_second(first),
        "peak_resident_bytes": measured.peak_resident_bytes,
        "stages": stages(report),
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
    if report.discarded_packets > 0 {
        all.insert(
            "discarded_packets".to_owned(),
            report.discarded_packets.into(),
        );
    }
    if let Some(over) = measured.over_seeds() {
        let value = json!({
            "seeds": over.seeds,
            "offered_load": estimate(over.offered_load),
            "latency_mean": over.latency_mean.map(estimate),
            "latency_p99": over.latency_p99.map(estimate),
            "accepted_load": estimate(over.accepted_load),
            "saturated": over.saturated,
            "unsettled": over.unsettled,
            "each": measured.seeds.iter().map(of_seed).collect::<Vec<_>>(),
        });
        all.insert("over_seeds".to_owned(), value);
    }
    Value::Object(all)
}

/// The JSON key for the share of other paths.
pub(super) fn share_key(other: &str) -> String {
    format!("{}_share", other.replace('-', "_"))
}

/// Latencies as JSON; null if none were measured.
fn latencies(latency: LatencySummary) -> Value {
    let some = (latency.count > 0).then_some(latency);
    json!({
        "min": some.map(|latency| latency.min),
        "mean": some.map(|latency| latency.mean),
        "p50": some.map(|latency| latency.p50),
        "p90": some.map(|latency| latency.p90),
        "p99": some.map(|latency| latency.p99),
        "p99_9": some.map(|latency| latency.p99_9),
        "max": some.map(|latency| latency.max),
    })
}

fn latencies_ns(latency: LatencySummary, cycle_ns: f64) -> Value {
    let some = (latency.count > 0).then_some(latency);
    let ns = |of: fn(LatencySummary) -> f64| some.map(|latency| of(latency) * cycle_ns);
    json!({
        "mean": ns(|latency| latency.mean),
        "p50": ns(|latency| latency.p50 as f64),
        "p90": ns(|latency| latency.p90 as f64),
        "p99": ns(|latency| latency.p99 as f64),
        "p99_9": ns(|latency| latency.p99_9 as f64),
    })
}

fn violations(report: &Report) -> Vec<String> {
    report.violations.iter().map(ToString::to_string).collect()
}

fn phit_hops_per_second(run: &SeedRun) -> f64 {
    run.report.phit_hops as f64 / run.wall_seconds.max(1e-9)
}

/// The lines of names and units above [`line()`]s.
pub const HEADING: &str = "     load, of 1             |               latency, in cycles                    | hops  simulated,   | least served source\n \
     offered accepted state     |    min     mean     p50     p99   p99.9     max | mean  M phit-hops/s | served of offered, Jain's index, name";

/// Mean over the seeds that measured latencies; `None` if none did.
fn mean(measured: &Measured, of: fn(LatencySummary) -> f64) -> Option<f64> {
    let all = measured.reports().map(|report| report.latency_cycles);
    let values: Vec<f64> = all.filter(|l| l.count > 0).map(of).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The worst state of the seeds of a point.
pub(super) fn state(measured: &Measured) -> State {
    let all = || measured.reports().map(|report| report.state);
    let is_saturated = all().any(|state| state == State::Saturated);
    match is_saturated {
        true => State::Saturated,
        false => all().find(|&s| s != State::Steady).unwrap_or_default(),
    }
}

/// A measurement as a line of a table. With several seeds all figures are means over them, and the
/// source is the one served least in any of them.
pub fn line(measured: &Measured) -> String {
    let over = |of: fn(&SeedRun) -> f64| {
        measured.seeds.iter().map(of).sum::<f64>() / measured.seeds.len() as f64
    };
    let cell = |of, decimals: usize| {
        mean(measured, of).map_or("-".to_owned(), |value| format!("{value:.decimals$}"))
    };
    let latency = [
        cell(|l| l.min as f64, 0),
        cell(|l| l.mean, 1),
        cell(|l| l.p50 as f64, 0),
        cell(|l| l.p99 as f64, 0),
        cell(|l| l.p99_9 as f64, 0),
        cell(|l| l.max as f64, 0),
    ];
    let [min, mean, p50, p99, p99_9, max] = latency;
    let mut text = format!(
        "{:8.4} {:8.4} {:9} | {min:>6} {mean:>8} {p50:>7} {p99:>7} {p99_9:>7} {max:>7} | {:4.2} {:14.2}",
        over(|run| run.report.offered_load),
        over(|run| run.report.accepted_load),
        state(measured).name(),
        over(|run| run.report.hops_mean),
        over(phit_hops_per_second) / 1e6,
    );
    let all = measured
        .seeds
        .iter()
        .filter_map(|run| run.least_served.as_ref());
    let least = all.min_by(|a, b| a.served.total_cmp(&b.served));
    if let Some(LeastServed {
        source,
        served,
        offered,
    }) = least
    {
        let jain = over(|run| run.report.fairness.jain);
        // Writing to a String cannot fail.
        let _ = write!(text, " | {served:.4} of {offered:.4}, {jain:.4}, {source}");
    }
    let report = &measured.first().report;
    if let Some((other, _)) = report.other_ways {
        let share = over(|run| run.report.other_ways.map_or(0.0, |(_, share)| share));
        let _ = write!(text, "; {other} {share:.3}");
    }
    let discarded: u64 = measured.reports().map(|r| r.discarded_packets).sum();
    if discarded > 0 && report.frames_sent == 0 {
        let _ = write!(text, "; {discarded} packets discarded");
    }
    if let Some(over) = measured.over_seeds() {
        let latency = over.latency_mean.map_or("-".to_owned(), |latency| {
            format!("{:.1} +- {:.1}", latency.mean, latency.half_width)
        });
        let _ = write!(
            text,
            "\n{:28}| means of {} seeds: latency {latency}, accepted {:.4} +- {:.4}",
            "", over.seeds, over.accepted_load.mean, over.accepted_load.half_width
        );
        for (count, state) in [(over.saturated, "saturated"), (over.unsettled, "unsettled")] {
            if count > 0 {
                let _ = write!(text, ", {count} {state}");
            }
        }
    }
    text
}

/// A warning if the point is unsettled.
pub fn warning(measured: &Measured) -> Option<String> {
    let mut all = measured.reports();
    let (seed, reason) = all.find_map(|report| Some((report.seed, report.state.reason()?)))?;
    let routing = measured
        .routing
        .map_or(String::new(), |routing| format!(" {routing}"));
    Some(format!(
        "load {}{routing}, seed {seed}: unsettled: {reason}; give a longer --warmup and --measure, or neither\n",
        measured.load.fraction()
    ))
}

/// Details of one measurement beyond its line.
pub fn details(measured: &Measured) -> String {
    let first = measured.first();
    let report = &first.report;
    let mut text = format!(
        "trace {:016x}, seed {}, {} cycles ({} of warm-up{}, {} measured), {} packets, {} phit-hops in \
         {:.2} s\n",
        report.trace_hash,
        report.seed,
        report.cycles,
        report.warmup_cycles,
        if report.converged {
            ""
        } else {
            ", not converged"
        },
        report.measure_cycles,
        report.packets,
        report.phit_hops,
        first.wall_seconds
    );
    let gbytes = measured.full_gbytes_per_second();
    let _ = writeln!(
        text,
        "units            a cycle is {} ns; offered {:.3}, accepted {:.3} GB/s of messages each{}",
        measured.cycle_ns(),
        gbytes * report.offered_load,
        gbytes * report.accepted_load,
        match report.latency_cycles.count {
            0 => String::new(),
            _ => format!(
                "; latency {:.0} ns, p99 {:.0} ns",
                report.latency_cycles.mean * measured.cycle_ns(),
                report.latency_cycles.p99 as f64 * measured.cycle_ns()
            ),
        }
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
    for (name, stage) in &report.stages {
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
    if report.other_ways.is_some() && !report.hops_by_kind.is_empty() {
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
