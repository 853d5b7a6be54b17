//! One point of a latency-load curve.

use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use phitwire::net::Network;
use phitwire::sim::direct::{
    Config, ConfigError, Found, Links, Load, Report, SimProgress, Simulator,
};
use phitwire::sim::tap::Tap;
use phitwire::time::Duration;

use super::record::Record;
use super::threads::Threads;

/// Quantile 0.975 of Student's distribution by degrees of freedom, from 1 on.
const STUDENT: [f64; 20] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
];

/// Quantile 0.975 of Student's distribution.
fn student(degrees: usize) -> f64 {
    if let Some(&quantile) = degrees.checked_sub(1).and_then(|at| STUDENT.get(at)) {
        return quantile;
    }
    // Beyond the table: the normal distribution's, with the first terms of the expansion in 1 /
    // degrees.
    const NORMAL: f64 = 1.959_964;
    let n = degrees.max(1) as f64;
    NORMAL
        + (NORMAL.powi(3) + NORMAL) / (4.0 * n)
        + (5.0 * NORMAL.powi(5) + 16.0 * NORMAL.powi(3) + 3.0 * NORMAL) / (96.0 * n * n)
}

/// A mean over several seeds, with half of the width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Mean.
    pub mean: f64,
    /// The true mean is within this of [`mean`](Self::mean) in 95 of 100 cases.
    pub half_width: f64,
}

impl Estimate {
    fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n.max(1.0);
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        let student = match values.len() {
            0 | 1 => 0.0,
            count => student(count - 1),
        };
        let half_width = student * (squares / (n - 1.0).max(1.0) / n.max(1.0)).sqrt();
        Self { mean, half_width }
    }
}

/// What several seeds say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OverSeeds {
    /// Seeds.
    pub seeds: u64,
    /// Mean latency in cycles; `None` where fewer than two seeds measured any.
    pub latency_mean: Option<Estimate>,
    /// 99th percentile of the latency; `None` likewise.
    pub latency_p99: Option<Estimate>,
    /// Accepted load.
    pub accepted_load: Estimate,
    /// How many of them saturated.
    pub saturated: u64,
}

/// A report with what the machine says about the run.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What was asked for.
    pub load: Load,
    /// What tells it from the others where several values of an option are compared.
    pub routing: Option<&'static str>,
    /// Time of a cycle.
    pub cycle: Duration,
    /// The run's own report, of the first seed.
    pub report: Report,
    /// Wall time of the first seed's phases, without building the network.
    pub wall_seconds: f64,
    /// Wall time of building the network.
    pub build_seconds: f64,
    /// Most memory that the process has had so far.
    pub peak_resident_bytes: u64,
    /// All seeds, if there are several.
    pub over_seeds: Option<OverSeeds>,
    /// What became of the messages that were to be traced, of the first seed.
    pub found: Option<Found>,
    /// The highest load that everybody could be served at, where that was asked for and is computed.
    pub bound: Option<f64>,
}

/// Runs `config` on this number of threads, once for each of `seeds` seeds from its own on, the first
/// of which is recorded. A tap is told of all frames that leave once the links are up.
///
/// # Errors
/// See [`ConfigError`].
#[allow(clippy::too_many_arguments, reason = "each is a thing of its own")]
pub fn measure(
    (simulator, cycle): (&dyn Simulator, Duration),
    network: &dyn Network,
    config: &Config,
    (links, tap): (Links, Option<&Tap>),
    threads: usize,
    seeds: u64,
    record: Option<&Record>,
    mut progress: impl FnMut(u64, SimProgress),
) -> Result<Measured, ConfigError> {
    let mut first: Option<Measured> = None;
    let (mut latencies, mut slowest) = (Vec::new(), Vec::new());
    let (mut accepted, mut saturated) = (Vec::new(), 0);
    for number in 0..seeds.max(1) {
        let config = Config {
            seed: config.seed.wrapping_add(number),
            ..config.clone()
        };
        let began = Instant::now();
        let mut run = simulator.build(network, &config, links, threads, &mut Threads)?;
        if let Some(record) = record.filter(|_| number == 0) {
            record.watch(&mut *run, network)?;
        }
        if let Some(tap) = tap {
            run.set_tap(tap);
        }
        let built = Instant::now();
        let report = run.run(&mut Threads, &mut |p| progress(number, p));
        let wall_seconds = built.elapsed().as_secs_f64();
        if report.latency_cycles.count > 0 {
            latencies.push(report.latency_cycles.mean);
            slowest.push(report.latency_cycles.p99 as f64);
        }
        accepted.push(report.accepted_load);
        saturated += u64::from(report.saturated);
        match &mut first {
            // A violation under any seed is one of the point.
            Some(first) => {
                first.report.violations.extend(report.violations);
                let told = &mut first.report.late_faults;
                let news = report.late_faults.into_iter();
                told.extend(
                    news.filter(|fault| !told.contains(fault))
                        .collect::<Vec<_>>(),
                );
            }
            None => {
                first = Some(Measured {
                    load: config.traffic.load,
                    routing: simulator.name(),
                    cycle,
                    report,
                    wall_seconds,
                    build_seconds: (built - began).as_secs_f64(),
                    peak_resident_bytes: peak_resident_bytes(),
                    over_seeds: None,
                    found: config.traced.is_some().then(|| run.found()),
                    bound: None,
                });
            }
        }
    }
    let mut first = first.expect("at least one seed has run");
    if seeds > 1 {
        first.over_seeds = Some(OverSeeds {
            seeds,
            latency_mean: (latencies.len() > 1).then(|| Estimate::of(&latencies)),
            latency_p99: (slowest.len() > 1).then(|| Estimate::of(&slowest)),
            accepted_load: Estimate::of(&accepted),
            saturated,
        });
    }
    Ok(first)
}

/// The most memory that this process has had resident; zero where the system does not say.
pub fn peak_resident_bytes() -> u64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| usage.max_rss().max(0) as u64 * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_students() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0]);
        assert!((estimate.mean - 2.0).abs() < 1e-9);
        assert!((estimate.half_width - 4.303 / 3f64.sqrt()).abs() < 1e-3);
        assert_eq!(Estimate::of(&[5.0]).half_width, 0.0);
        for (degrees, quantile) in [
            (1, 12.706),
            (20, 2.086),
            (21, 2.080),
            (30, 2.042),
            (120, 1.980),
        ] {
            assert!((student(degrees) - quantile).abs() < 1e-3, "{degrees}");
        }
    }
}
