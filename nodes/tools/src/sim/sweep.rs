//! The points of a sweep as comma-separated values: one row per seed with its settings, for plots
//! and comparisons without simulating again.

use std::io::Read;

use crc::{CRC_64_XZ, Crc};
use phitwire::sim::direct::LatencySummary;
use serde::Deserialize;
use thiserror::Error;

use super::json::{share_key, share_keys};
use super::measure::{Measured, SeedRun};

/// The settings that the points of a sweep share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    pub topology: String,
    /// The [`fingerprint`] of its description: files of one name may differ.
    pub network: String,
    pub traffic: String,
    /// Other options, such as `grain packet`.
    pub options: String,
}

/// A seed of a point, with the values needed for a plot.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Sample {
    /// The requested load.
    pub load: f64,
    pub seed: u64,
    pub accepted_load: f64,
    /// Whether the network could not accept the offered load.
    pub saturated: bool,
    /// `steady`, `unsettled` or `saturated`.
    #[serde(default)]
    pub state: String,
    /// Mean latency in cycles, if packets were measured.
    pub latency_mean: Option<f64>,
    /// 99th percentile of the latency.
    pub latency_p99: Option<f64>,
    /// The compared option of the sweep.
    #[serde(default)]
    pub routing: Option<String>,
    /// The highest load at which every source can be served.
    #[serde(default)]
    pub bound: Option<f64>,
    pub topology: String,
    /// The [`fingerprint`] of the network.
    #[serde(default)]
    pub network: Option<String>,
    pub traffic: String,
    /// Options that the sweep does not compare, such as `grain packet`.
    #[serde(default)]
    pub options: String,
    pub cycle_ns: f64,
    /// GB/s of messages that a processor sends at full load.
    #[serde(default)]
    pub full_gbytes_per_second: Option<f64>,
}

/// Why a file cannot be read.
#[derive(Debug, Error)]
pub enum SweepError {
    /// The file does not have the format of `phitwire sim --csv`.
    #[error("{0}")]
    Row(#[from] csv::Error),
    /// A row with other cells than the header of its file.
    #[error(
        "line {0} does not have the columns of the first line: specify files of several runs \
         separately"
    )]
    Joined(u64),
    /// A file with a header but no rows.
    #[error("no points")]
    Empty,
    /// Points of different networks without the figures needed to convert their units.
    #[error(
        "some points are from {0}, others from {1}: to draw both, each row needs \
         `full_gbytes_per_second`, which `phitwire sim --csv` writes"
    )]
    Mixed(String, String),
    /// The load of the point with this number cannot be plotted.
    #[error("load of point {0} is not between 0 and 1")]
    Load(usize),
}

impl Sample {
    /// The seeds of a measured point.
    pub fn of<'a>(setting: &'a Setting, measured: &'a Measured) -> impl Iterator<Item = Self> + 'a {
        measured.reports().map(move |report| {
            let latency = Some(report.latency_cycles).filter(|latency| latency.count > 0);
            Self {
                load: measured.load.fraction(),
                seed: report.seed,
                accepted_load: report.accepted_load,
                saturated: report.saturated,
                state: report.state.name().to_owned(),
                latency_mean: latency.map(|latency| latency.mean),
                latency_p99: latency.map(|latency| latency.p99 as f64),
                routing: measured.routing.map(str::to_owned),
                bound: measured.bound,
                topology: setting.topology.clone(),
                network: Some(setting.network.clone()),
                traffic: setting.traffic.clone(),
                options: setting.options.clone(),
                cycle_ns: measured.cycle_ns(),
                full_gbytes_per_second: Some(measured.full_gbytes_per_second()),
            }
        })
    }

    /// Whether another point has the same settings and units.
    pub(super) fn suits(&self, other: &Self) -> bool {
        self.setting() == other.setting()
            && self.cycle_ns == other.cycle_ns
            && !self.is_of_namesake(other)
    }

    /// Whether both have the same network name, but different networks.
    pub(super) fn is_of_namesake(&self, other: &Self) -> bool {
        let networks = self.network.as_ref().zip(other.network.as_ref());
        self.topology == other.topology && networks.is_some_and(|(own, other)| own != other)
    }

    pub(super) fn is_steady(&self) -> bool {
        !self.saturated && self.state != "unsettled"
    }

    /// The settings of its sweep, in one line.
    pub fn setting(&self) -> String {
        let options = match self.options.as_str() {
            "" => String::new(),
            options => format!(", {options}"),
        };
        format!("{}: {} traffic{options}", self.topology, self.traffic)
    }
}

/// Identifies the content of a network's description.
pub fn fingerprint(description: &str) -> String {
    const CRC: Crc<u64> = Crc::<u64>::new(&CRC_64_XZ);
    format!("{:016x}", CRC.checksum(description.as_bytes()))
}

/// Reads the output of [`csv()`] for one or more sweeps.
///
/// # Errors
/// See [`SweepError`].
pub fn read(files: impl IntoIterator<Item = impl Read>) -> Result<Vec<Sample>, SweepError> {
    let mut all: Vec<Sample> = Vec::new();
    for file in files {
        let mut table = csv::ReaderBuilder::new().flexible(true).from_reader(file);
        let names = table.headers()?.clone();
        for row in table.into_records() {
            let row = row?;
            // The next of several files in one.
            if row == names {
                continue;
            }
            if row.len() != names.len() || row.get(0) == names.get(0) {
                let line = row.position().map_or(0, csv::Position::line);
                return Err(SweepError::Joined(line));
            }
            let row: Sample = row.deserialize(Some(&names))?;
            if !(0.0..=1.0).contains(&row.load) {
                return Err(SweepError::Load(all.len() + 1));
            }
            all.push(row);
        }
    }
    let first = all.first().ok_or(SweepError::Empty)?;
    let other = all.iter().find(|row| !row.suits(first));
    let has_no_units = |row: &&Sample| row.full_gbytes_per_second.is_none();
    if let (Some(other), Some(_)) = (other, all.iter().find(has_no_units)) {
        return Err(SweepError::Mixed(other.setting(), first.setting()));
    }
    Ok(all)
}

/// The columns before the figures of the routers' choices.
const COLUMNS: [&str; 21] = [
    "load",
    "seed",
    "trace_hash",
    "cycles",
    "warmup_cycles",
    "measure_cycles",
    "offered_load",
    "accepted_load",
    "state",
    "saturated",
    "latency_min",
    "latency_mean",
    "latency_p50",
    "latency_p90",
    "latency_p99",
    "latency_p99_9",
    "latency_max",
    "hops_mean",
    "phit_hops",
    "wall_seconds",
    "routing",
];
/// The columns after them: settings, and figures in units common to all machines.
const ABOUT: [&str; 20] = [
    "bound",
    "topology",
    "network",
    "traffic",
    "options",
    "cycle_ns",
    "latency_mean_ns",
    "latency_p50_ns",
    "latency_p90_ns",
    "latency_p99_ns",
    "latency_p99_9_ns",
    "full_gbytes_per_second",
    "offered_gbytes_per_second",
    "accepted_gbytes_per_second",
    "jain",
    "least_served",
    "least_offered",
    "least_source",
    "most_served",
    "command",
];

/// All measurements as comma-separated values with a header: one row per seed. `command` returns
/// the command that repeats a seed of a point.
pub fn csv(
    setting: &Setting,
    all: &[Measured],
    command: impl Fn(&Measured, u64) -> String,
) -> String {
    // The same columns for all machines, so that rows of different machines suit each other.
    let shares = share_keys();
    let mut table = csv::Writer::from_writer(Vec::new());
    let names = COLUMNS.into_iter();
    let names = names.chain(shares.iter().map(String::as_str)).chain(ABOUT);
    // Writing to memory fails only for rows of different lengths, and all rows have these columns.
    let _ = table.write_record(names);
    for measured in all {
        for run in &measured.seeds {
            let mut row = figures(measured, run);
            row.extend(shares.iter().map(|key| match run.report.other_ways {
                Some((other, share)) if share_key(other) == *key => format!("{share:.4}"),
                _ => String::new(),
            }));
            row.extend(about(setting, measured, run));
            row.push(command(measured, run.report.seed));
            let _ = table.write_record(&row);
        }
    }
    let text = table.into_inner().unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

/// The cells of [`COLUMNS`].
fn figures(measured: &Measured, run: &SeedRun) -> Vec<String> {
    let report = &run.report;
    let latency = report.latency_cycles;
    let cell = |value: u64| match latency.count {
        0 => String::new(),
        _ => value.to_string(),
    };
    vec![
        measured.load.fraction().to_string(),
        report.seed.to_string(),
        format!("{:016x}", report.trace_hash),
        report.cycles.to_string(),
        report.warmup_cycles.to_string(),
        report.measure_cycles.to_string(),
        format!("{:.6}", report.offered_load),
        format!("{:.6}", report.accepted_load),
        report.state.name().to_owned(),
        report.saturated.to_string(),
        cell(latency.min),
        match latency.count {
            0 => String::new(),
            _ => format!("{:.3}", latency.mean),
        },
        cell(latency.p50),
        cell(latency.p90),
        cell(latency.p99),
        cell(latency.p99_9),
        cell(latency.max),
        format!("{:.4}", report.hops_mean),
        report.phit_hops.to_string(),
        format!("{:.3}", run.wall_seconds),
        measured.routing.unwrap_or_default().to_owned(),
    ]
}

/// The cells of [`ABOUT`] except the command.
fn about(setting: &Setting, measured: &Measured, run: &SeedRun) -> Vec<String> {
    let report = &run.report;
    let (cycle_ns, gbytes) = (measured.cycle_ns(), measured.full_gbytes_per_second());
    let LatencySummary {
        count,
        mean,
        p50,
        p90,
        p99,
        p99_9,
        ..
    } = report.latency_cycles;
    let mut row = vec![
        measured
            .bound
            .map_or_else(String::new, |bound| format!("{bound:.6}")),
        setting.topology.clone(),
        setting.network.clone(),
        setting.traffic.clone(),
        setting.options.clone(),
        cycle_ns.to_string(),
    ];
    let latencies = [mean, p50 as f64, p90 as f64, p99 as f64, p99_9 as f64];
    row.extend(latencies.map(|cycles| match count {
        0 => String::new(),
        _ => format!("{:.1}", cycles * cycle_ns),
    }));
    let rates = [1.0, report.offered_load, report.accepted_load];
    row.extend(rates.map(|load| format!("{:.6}", load * gbytes)));
    let least = run.least_served.as_ref();
    row.extend([
        format!("{:.6}", report.fairness.jain),
        format!("{:.6}", report.fairness.min),
        least.map_or_else(String::new, |least| format!("{:.6}", least.offered)),
        least.map_or_else(String::new, |least| least.source.clone()),
        format!("{:.6}", report.fairness.max),
    ]);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "load,seed,accepted_load,saturated,latency_mean,latency_p99,routing,topology,\
                        traffic,options,cycle_ns";

    fn read_text(text: &str) -> Result<Vec<Sample>, SweepError> {
        read([text.as_bytes()])
    }

    #[test]
    fn rows_of_a_sweep_are_read_for_a_plot() {
        let rows = "0.5,1,0.49,false,100.5,200,\"adaptive, optimised\",t3e-2x2x2,uniform,,10\n\
                    1,1,0.6,true,,,\"adaptive, optimised\",t3e-2x2x2,uniform,,10\n";
        let all = read_text(&format!("{HEAD}\n{rows}")).expect("good values");
        assert_eq!(all[0].routing.as_deref(), Some("adaptive, optimised"));
        assert_eq!(
            (all[0].latency_mean, all[1].latency_mean),
            (Some(100.5), None)
        );
        assert_eq!(all[1].setting(), "t3e-2x2x2: uniform traffic");
    }

    #[test]
    fn invalid_sweeps_are_refused() {
        let row =
            |load: &str, network: &str| format!("{load},1,0.4,false,1,2,,{network},uniform,,1\n");
        let wrong = [
            (format!("{HEAD}\n"), "no point"),
            ("load,seed\n0.5,1\n".to_owned(), "missing field"),
            (format!("{HEAD}\n{}", row("much", "a")), "invalid"),
            (format!("{HEAD}\n{}", row("7", "a")), "point 1"),
            (format!("{HEAD}\n{}", row("NaN", "a")), "point 1"),
            (
                format!("{HEAD}\n{}{}", row("0.1", "a"), row("0.1", "b")),
                "are from b: uniform traffic",
            ),
            (
                format!("{HEAD}\n{}{HEAD},jain\n", row("0.1", "a")),
                "line 3 does not have the columns of the first line",
            ),
            (
                format!("{HEAD}\n{}", row("0.1", "a").replace(",1\n", "\n")),
                "line 2 does not",
            ),
        ];
        for (text, reason) in wrong {
            let said = read_text(&text).expect_err(&text).to_string();
            assert!(said.contains(reason), "{text}: {said}");
        }
    }

    #[test]
    fn a_file_of_joined_files_is_read() {
        let rows = ["0.1", "0.2"].map(|load| format!("{load},1,0.1,false,1,2,,a,uniform,,1\n"));
        let all = read_text(&format!("{HEAD}\n{}{HEAD}\n{}", rows[0], rows[1]));
        assert_eq!(all.expect("two points").len(), 2);
    }
}
