//! The points of a sweep as comma-separated values: what a plot needs is in them, so that it can be
//! drawn again without simulating.

use std::io::Read;

use phitwire::sim::direct::LatencySummary;
use serde::Deserialize;
use thiserror::Error;

use super::measure::{Estimate, Measured};

/// What the points of a sweep have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// The network's name.
    pub topology: String,
    /// Who sends to whom.
    pub traffic: String,
    /// What else was chosen for all, such as `grain packet`.
    pub options: String,
}

/// A point, as a plot needs it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Sample {
    /// The load that was asked for.
    pub load: f64,
    /// Its first seed.
    pub seed: u64,
    /// What arrived.
    pub accepted_load: f64,
    /// Whether the network could not take what was offered, under any seed.
    pub saturated: bool,
    /// Mean latency in cycles, if packets were measured.
    pub latency_mean: Option<f64>,
    /// 99th percentile of the latency.
    pub latency_p99: Option<f64>,
    /// What tells it from others of the sweep.
    #[serde(default)]
    pub routing: Option<String>,
    /// The highest load that everybody could be served at.
    #[serde(default)]
    pub bound: Option<f64>,
    /// The network.
    pub topology: String,
    /// Who sends to whom.
    pub traffic: String,
    /// What else was chosen.
    #[serde(default)]
    pub options: String,
    /// Nanoseconds of a cycle.
    pub cycle_ns: f64,
    /// Seeds of the point.
    pub seeds: u64,
    /// Half of the width of the 95 % interval of the mean latency.
    #[serde(default)]
    pub latency_mean_half_width_95: Option<f64>,
    /// The same of the 99th percentile.
    #[serde(default)]
    pub latency_p99_half_width_95: Option<f64>,
    /// The same of the accepted load.
    #[serde(default)]
    pub accepted_load_half_width_95: Option<f64>,
}

/// Why values cannot be read.
#[derive(Debug, Error)]
pub enum SweepError {
    /// Not as `phitwire sim --csv` writes them.
    #[error("{0}")]
    Row(#[from] csv::Error),
    /// Names without values.
    #[error("there is no point in it")]
    Empty,
    /// Points of another kind.
    #[error("its points are of {0}, and those before of {1}")]
    Mixed(String, String),
    /// What is no number to draw.
    #[error("point {0} is not between loads of 0 and 1")]
    Load(usize),
}

impl Sample {
    /// A point that was measured. Over several seeds its figures are their means, and it is
    /// saturated if one of them is.
    pub fn of(setting: &Setting, measured: &Measured) -> Self {
        let report = &measured.report;
        let latency = Some(report.latency_cycles).filter(|latency| latency.count > 0);
        let over = measured.over_seeds;
        let mean = |estimate: Estimate| estimate.mean;
        let half = |estimate: Estimate| estimate.half_width;
        let (means, slowest) = (
            over.and_then(|over| over.latency_mean),
            over.and_then(|over| over.latency_p99),
        );
        let accepted = over.map(|over| over.accepted_load);
        Self {
            load: measured.load.fraction(),
            seed: report.seed,
            accepted_load: accepted.map_or(report.accepted_load, mean),
            saturated: report.saturated || over.is_some_and(|over| over.saturated > 0),
            latency_mean: means.map(mean).or(latency.map(|latency| latency.mean)),
            latency_p99: slowest
                .map(mean)
                .or(latency.map(|latency| latency.p99 as f64)),
            routing: measured.routing.map(str::to_owned),
            bound: measured.bound,
            topology: setting.topology.clone(),
            traffic: setting.traffic.clone(),
            options: setting.options.clone(),
            cycle_ns: measured.cycle.as_ps() as f64 / 1e3,
            seeds: over.map_or(1, |over| over.seeds),
            latency_mean_half_width_95: means.map(half),
            latency_p99_half_width_95: slowest.map(half),
            accepted_load_half_width_95: accepted.map(half),
        }
    }

    /// Whether another point may be in the same drawing.
    fn suits(&self, other: &Self) -> bool {
        self.setting() == other.setting() && self.cycle_ns == other.cycle_ns
    }

    /// What its sweep is of, in one line.
    pub fn setting(&self) -> String {
        let options = match self.options.as_str() {
            "" => String::new(),
            options => format!(", {options}"),
        };
        format!("{}: {} traffic{options}", self.topology, self.traffic)
    }
}

/// Reads what [`csv()`] has written, of one sweep or of several after each other.
///
/// # Errors
/// See [`SweepError`].
pub fn read(files: impl IntoIterator<Item = impl Read>) -> Result<Vec<Sample>, SweepError> {
    let mut all: Vec<Sample> = Vec::new();
    for file in files {
        for row in csv::Reader::from_reader(file).into_deserialize::<Sample>() {
            let row = row?;
            if let Some(first) = all.first().filter(|first| !first.suits(&row)) {
                return Err(SweepError::Mixed(row.setting(), first.setting()));
            }
            if !(0.0..=1.0).contains(&row.load) {
                return Err(SweepError::Load(all.len() + 1));
            }
            all.push(row);
        }
    }
    match all.is_empty() {
        true => Err(SweepError::Empty),
        false => Ok(all),
    }
}

/// The columns that every table has.
const COLUMNS: [&str; 16] = [
    "load",
    "seed",
    "trace_hash",
    "cycles",
    "offered_load",
    "accepted_load",
    "saturated",
    "latency_min",
    "latency_mean",
    "latency_p50",
    "latency_p99",
    "latency_p99_9",
    "latency_max",
    "hops_mean",
    "phit_hops",
    "wall_seconds",
];
/// The columns of what a plot says around the curves.
const ABOUT: [&str; 5] = ["topology", "traffic", "options", "cycle_ns", "seeds"];
/// The columns of several seeds: means are in the columns of all tables then.
const SPREAD: [&str; 4] = [
    "latency_mean_half_width_95",
    "latency_p99_half_width_95",
    "accepted_load_half_width_95",
    "seeds_saturated",
];

/// All measurements as comma-separated values, with a line of names. Of several seeds,
/// `accepted_load`, `latency_mean` and `latency_p99` are means over them; all else is the first's.
pub fn csv(setting: &Setting, all: &[Measured]) -> String {
    let has_ways = all.iter().any(|measured| measured.routing.is_some());
    let has_bounds = all.iter().any(|measured| measured.bound.is_some());
    let has_seeds = all.iter().any(|measured| measured.over_seeds.is_some());
    let mut names: Vec<String> = COLUMNS.map(str::to_owned).to_vec();
    if has_ways {
        let mut others = all.iter().filter_map(|measured| measured.report.other_ways);
        let other = others.next().map_or("other", |(other, _)| other);
        names.extend(["routing".to_owned(), super::output::share_key(other)]);
    }
    if has_bounds {
        names.push("bound".to_owned());
    }
    names.extend(ABOUT.map(str::to_owned));
    if has_seeds {
        names.extend(SPREAD.map(str::to_owned));
    }
    let mut table = csv::Writer::from_writer(Vec::new());
    // Writing into memory fails only for rows of different lengths, and all have these columns.
    let _ = table.write_record(&names);
    for measured in all {
        let (sample, report) = (Sample::of(setting, measured), &measured.report);
        let mut row = figures(&sample, measured);
        if has_ways {
            let share = report.other_ways.map_or(0.0, |(_, share)| share);
            row.extend([sample.routing.unwrap_or_default(), format!("{share:.4}")]);
        }
        if has_bounds {
            row.push(optional(measured.bound, 6));
        }
        row.extend([
            sample.topology,
            sample.traffic,
            sample.options,
            sample.cycle_ns.to_string(),
            sample.seeds.to_string(),
        ]);
        if has_seeds {
            row.extend([
                optional(sample.latency_mean_half_width_95, 4),
                optional(sample.latency_p99_half_width_95, 4),
                optional(sample.accepted_load_half_width_95, 6),
                measured
                    .over_seeds
                    .map_or(0, |over| over.saturated)
                    .to_string(),
            ]);
        }
        let _ = table.write_record(&row);
    }
    let text = table.into_inner().unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

/// The cells of [`COLUMNS`].
fn figures(sample: &Sample, measured: &Measured) -> Vec<String> {
    let report = &measured.report;
    let LatencySummary {
        count,
        min,
        p50,
        p99_9,
        max,
        ..
    } = report.latency_cycles;
    let cell = |value: u64| match count {
        0 => String::new(),
        _ => value.to_string(),
    };
    let p99 = match sample.seeds {
        1 => optional(sample.latency_p99, 0),
        _ => optional(sample.latency_p99, 3),
    };
    vec![
        sample.load.to_string(),
        sample.seed.to_string(),
        format!("{:016x}", report.trace_hash),
        report.cycles.to_string(),
        format!("{:.6}", report.offered_load),
        format!("{:.6}", sample.accepted_load),
        sample.saturated.to_string(),
        cell(min),
        optional(sample.latency_mean, 3),
        cell(p50),
        p99,
        cell(p99_9),
        cell(max),
        format!("{:.4}", report.hops_mean),
        report.phit_hops.to_string(),
        format!("{:.3}", measured.wall_seconds),
    ]
}

/// A number with so many decimals, or nothing.
fn optional(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(String::new, |value| format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "load,seed,accepted_load,saturated,latency_mean,latency_p99,routing,topology,\
                        traffic,options,cycle_ns,seeds";

    fn read_text(text: &str) -> Result<Vec<Sample>, SweepError> {
        read([text.as_bytes()])
    }

    #[test]
    fn what_a_plot_needs_is_read() {
        let rows = "0.5,1,0.49,false,100.5,200,\"adaptive, optimised\",t3e-2x2x2,uniform,,10,1\n\
                    1,1,0.6,true,,,\"adaptive, optimised\",t3e-2x2x2,uniform,,10,1\n";
        let all = read_text(&format!("{HEAD}\n{rows}")).expect("good values");
        assert_eq!(all[0].routing.as_deref(), Some("adaptive, optimised"));
        assert_eq!(
            (all[0].latency_mean, all[1].latency_mean),
            (Some(100.5), None)
        );
        assert_eq!(all[1].setting(), "t3e-2x2x2: uniform traffic");
    }

    #[test]
    fn what_is_no_sweep_is_refused() {
        let row =
            |load: &str, network: &str| format!("{load},1,0.4,false,1,2,,{network},uniform,,1,1\n");
        let wrong = [
            (format!("{HEAD}\n"), "no point"),
            ("load,seed\n0.5,1\n".to_owned(), "missing field"),
            (format!("{HEAD}\n{}", row("much", "a")), "invalid"),
            (format!("{HEAD}\n{}", row("7", "a")), "point 1"),
            (format!("{HEAD}\n{}", row("NaN", "a")), "point 1"),
            (
                format!("{HEAD}\n{}{}", row("0.1", "a"), row("0.1", "b")),
                "are of b: uniform traffic",
            ),
        ];
        for (text, reason) in wrong {
            let said = read_text(&text).expect_err(&text).to_string();
            assert!(said.contains(reason), "{text}: {said}");
        }
    }
}
