//! Measurement of one point of a latency-load curve.

use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use phitwire::net::Network;
use phitwire::nic::LatencyCounts;
use phitwire::sim::direct::{
    Config, ConfigError, Found, Links, Load, Report, SimProgress, Simulator, State,
};
use phitwire::sim::tap::Tap;
use phitwire::time::Duration;
use schemars::JsonSchema;
use serde::Serialize;

use super::record::Record;
use super::threads::Threads;

/// Quantile 0.975 of Student's t distribution by degrees of freedom, from 1 on.
const STUDENT: [f64; 20] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
];

/// Quantile 0.975 of Student's t distribution.
fn student(degrees: usize) -> f64 {
    if let Some(&quantile) = degrees.checked_sub(1).and_then(|at| STUDENT.get(at)) {
        return quantile;
    }
    // Beyond the table: the normal quantile, with the first terms of its expansion in 1 / degrees.
    const NORMAL: f64 = 1.959_964;
    let n = degrees.max(1) as f64;
    NORMAL
        + (NORMAL.powi(3) + NORMAL) / (4.0 * n)
        + (5.0 * NORMAL.powi(5) + 16.0 * NORMAL.powi(3) + 3.0 * NORMAL) / (96.0 * n * n)
}

/// A mean over several seeds, with the half-width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    /// Mean over the seeds.
    pub mean: f64,
    /// In 95 of 100 cases the true mean is within this distance of `mean`.
    #[serde(rename = "half_width_95")]
    pub half_width: f64,
}

impl Estimate {
    pub(super) fn of(values: &[f64]) -> Self {
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

/// Estimates over several seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct OverSeeds {
    /// Count of seeds.
    pub seeds: u64,
    /// Mean latency in cycles; null if fewer than two seeds measured any.
    pub latency_mean: Option<Estimate>,
    /// 99th percentile of the latency in cycles; null if fewer than two seeds measured any.
    pub latency_p99: Option<Estimate>,
    /// Offered load.
    pub offered_load: Estimate,
    /// Accepted load.
    pub accepted_load: Estimate,
    /// Number of saturated seeds.
    pub saturated: u64,
    /// Number of unsettled seeds: neither known to be steady nor saturated.
    pub unsettled: u64,
}

/// The run of one seed of a point.
#[derive(Clone, Debug)]
pub struct SeedRun {
    pub report: Report,
    /// The least served source.
    pub least_served: Option<LeastServed>,
    /// Wall time of its phases, without building the network.
    pub wall_seconds: f64,
    /// Wall time of building the network.
    pub build_seconds: f64,
}

/// The least served source. Loads are fractions of its rate.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LeastServed {
    /// The NIC.
    pub source: String,
    /// The load that it sent.
    pub served: f64,
    /// The load that it offered.
    pub offered: f64,
}

/// Reports of all seeds, with figures of the host.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The requested load.
    pub load: Load,
    /// The values of the compared options, if several are compared.
    pub routing: Option<&'static str>,
    pub cycle: Duration,
    /// Runs of the seeds, at least one.
    pub seeds: Vec<SeedRun>,
    /// The process's peak memory so far.
    pub peak_resident_bytes: u64,
    /// The messages to trace, of the first seed.
    pub found: Option<Found>,
    /// The highest load at which every source can be served, if requested and computable.
    pub bound: Option<f64>,
}

impl Measured {
    pub fn first(&self) -> &SeedRun {
        &self.seeds[0]
    }

    pub fn reports(&self) -> impl Iterator<Item = &Report> {
        self.seeds.iter().map(|seed| &seed.report)
    }

    /// Nanoseconds per cycle.
    pub fn cycle_ns(&self) -> f64 {
        self.cycle.as_ps() as f64 / 1e3
    }

    /// GB/s of message bytes that a terminal sends at full load.
    pub fn full_gbytes_per_second(&self) -> f64 {
        self.first().report.bytes_per_cycle / self.cycle_ns()
    }

    /// Estimates over all seeds; `None` for a single one.
    pub fn over_seeds(&self) -> Option<OverSeeds> {
        if self.seeds.len() < 2 {
            return None;
        }
        let estimate = |of: fn(&Report) -> f64| {
            let values: Vec<f64> = self.reports().map(of).collect();
            Estimate::of(&values)
        };
        let latency = |of: fn(&Report) -> f64| {
            let with = self.reports().filter(|r| r.latency_cycles.count > 0);
            let values: Vec<f64> = with.map(of).collect();
            (values.len() > 1).then(|| Estimate::of(&values))
        };
        let count = |is: fn(State) -> bool| self.reports().filter(|r| is(r.state)).count() as u64;
        Some(OverSeeds {
            seeds: self.seeds.len() as u64,
            latency_mean: latency(|r| r.latency_cycles.mean),
            latency_p99: latency(|r| r.latency_cycles.p99 as f64),
            offered_load: estimate(|r| r.offered_load),
            accepted_load: estimate(|r| r.accepted_load),
            saturated: count(|state| state == State::Saturated),
            unsettled: count(|state| matches!(state, State::Unsettled(_))),
        })
    }
}

/// Runs `config` on this number of threads, once per seed, and records the first run. The tap gets
/// all frames that leave once the links are up.
///
/// # Errors
/// See [`ConfigError`].
#[allow(clippy::too_many_arguments, reason = "each argument is independent")]
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
    let mut all = Vec::new();
    let mut found = None;
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
        let mut report = run.run(&mut Threads, &mut |p| progress(number, p));
        let wall_seconds = built.elapsed().as_secs_f64();
        if number == 0 {
            found = config.traced.is_some().then(|| run.found());
        } else {
            // Drop the distribution, which is output only for the first seed.
            report.latency_counts = LatencyCounts::default();
        }
        all.push(SeedRun {
            least_served: least_served(simulator, network, &report),
            report,
            wall_seconds,
            build_seconds: (built - began).as_secs_f64(),
        });
    }
    Ok(Measured {
        load: config.traffic.load,
        routing: simulator.name(),
        cycle,
        seeds: all,
        peak_resident_bytes: peak_resident_bytes(),
        found,
        bound: None,
    })
}

fn least_served(
    simulator: &dyn Simulator,
    network: &dyn Network,
    report: &Report,
) -> Option<LeastServed> {
    let (terminal, offered) = report.fairness.least?;
    let node = simulator.source(network, terminal)?;
    Some(LeastServed {
        source: network.node_name(node).into_owned(),
        served: report.fairness.min,
        offered,
    })
}

/// The peak resident memory of this process; zero if the system does not report it.
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
