//! Results as text.

use std::fmt::Write as _;

use phitwire::sim::direct::{LatencySummary, Report, State};

use super::measure::{LeastServed, Measured, SeedRun};

pub(super) fn phit_hops_per_second(run: &SeedRun) -> f64 {
    run.report.phit_hops as f64 / run.wall_seconds.max(1e-9)
}

/// The lines of names and units above [`line()`]s. `other` names the routes whose share is at the
/// end of a line; empty if routers do not choose.
pub fn heading(other: &str) -> String {
    const LINES: &str = "     load fraction          |               latency in cycles                     | hops  simulated,   | least served source\n \
     offered accepted state     |    min     mean     p50     p99   p99.9     max | mean  M phit-hops/s | served of offered, Jain's index, name";
    match other {
        "" => LINES.to_owned(),
        other => format!("{LINES}; {other} share"),
    }
}

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

/// A measurement as a line of a table. With several seeds, all figures are means over them, and the
/// source is the least served one in any of them.
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
    if let Some(LeastServed {
        source,
        served,
        offered,
    }) = least_served(measured)
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
            "\n{:28}| means over {} seeds: latency {latency}, accepted {:.4} +- {:.4}",
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

/// The least served source in any of the seeds.
fn least_served(measured: &Measured) -> Option<&LeastServed> {
    let all = measured.seeds.iter();
    let all = all.filter_map(|run| run.least_served.as_ref());
    all.min_by(|a, b| a.served.total_cmp(&b.served))
}

/// The results of a sweep, in a line for each of its modes. Figures are those of [`line()`].
pub fn summary(all: &[Measured]) -> String {
    let modes = all.chunk_by(|a, b| a.routing == b.routing);
    let lines = modes.filter_map(summary_of_mode);
    format!("\n{}", lines.collect::<String>())
}

/// The summary of one mode; `None` if it has no points.
fn summary_of_mode(points: &[Measured]) -> Option<String> {
    let over = |measured: &Measured, of: fn(&Report) -> f64| {
        measured.reports().map(of).sum::<f64>() / measured.seeds.len() as f64
    };
    let accepted = |measured: &Measured| over(measured, |report| report.accepted_load);
    let highest = points
        .iter()
        .max_by(|a, b| accepted(a).total_cmp(&accepted(b)))?;
    let is_steady = |measured: &&Measured| state(measured) == State::Steady;
    let steady = points.iter().rfind(is_steady);
    let mut text = highest
        .routing
        .map_or_else(String::new, |name| format!("{name}: "));
    let _ = match steady {
        Some(steady) => write!(text, "highest steady load {}", steady.load.fraction()),
        None => write!(text, "no steady load"),
    };
    let _ = write!(
        text,
        "; highest accepted load {:.4} ({:.3} GB/s of messages each), at load {}",
        accepted(highest),
        highest.full_gbytes_per_second() * accepted(highest),
        highest.load.fraction()
    );
    if let Some(least) = least_served(highest) {
        let _ = write!(
            text,
            ": least served source {:.4} of {:.4}, Jain's index {:.4}, {}",
            least.served,
            least.offered,
            over(highest, |report| report.fairness.jain),
            least.source
        );
    }
    text.push('\n');
    Some(text)
}

/// A warning if the point is unsettled.
pub fn warning(measured: &Measured) -> Option<String> {
    let mut all = measured.reports();
    let (seed, state, reason) =
        all.find_map(|report| Some((report.seed, report.state, report.state.reason()?)))?;
    let remedy = match state.needs_longer() {
        true => "; use a longer --warmup and --measure, or omit both",
        false => "",
    };
    let routing = measured
        .routing
        .map_or(String::new(), |routing| format!(" {routing}"));
    Some(format!(
        "load {}{routing}, seed {seed}: unsettled: {reason}{remedy}\n",
        measured.load.fraction()
    ))
}

/// Details of one measurement that its line does not show.
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
            "links            {} frames, {} of them lost; {} packets resent, {} copies discarded",
            report.frames_sent,
            report.frames_lost,
            report.retransmitted_packets,
            report.discarded_packets
        );
    }
    if let Some(bound) = measured.bound {
        let _ = writeln!(
            text,
            "bound            {bound:.4}: at a higher load some link would exceed its capacity"
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
            "{:16} {:8}, busy {:.4} (min {:.4}, max {:.4})",
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
        "sources          served {:.4} to {:.4} of their rate, Jain's index {:.4}, {:.1} packets \
         queued per source",
        report.fairness.min, report.fairness.max, report.fairness.jain, report.source_backlog
    );
    text
}
