//! "Bandwidth profile" (T3E figure 8): the network bandwidth of each processor "assuming all PEs
//! are making requests uniformly across the whole machine".
//!
//! The figure is computed, not measured: "twice the bisection bandwidth, divided by the number of
//! nodes", limited by a processor's port. Here the bandwidth is computed from the links of the
//! torus, and compared with the uniform traffic that a simulated network carries.

use phitwire_framing::t3e::direction::Direction;

use super::sizes::{self, torus};
use super::table4::PEAK_MB_PER_S;
use crate::cycle::{T3e, T3eOptions};
use crate::route::Shape;
use crate::topology::{Channels, Torus};
use phitwire::reproduce::{Kind, Observation, Row, Settings, Source, Table, Tolerance};
use phitwire::sim::direct::{Config, Load, Serial, Simulation, Traffic, Warmup};

/// A machine size, and two bounds per processor in MB/s that follow from T3E: twice the bisection
/// bandwidth divided by the number of processors, and the bandwidth of the port.
type Size = (&'static str, f64, f64);

/// The machine sizes. T3E sec. 11 prints 153.6 GB/s of bisection from 512 processors on, and the
/// three regimes; the other values follow from those.
pub const SIZES: [Size; 9] = [
    ("2x2x2", 2_400.0, 686.0),
    ("2x4x2", 1_200.0, 640.0),
    ("4x4x2", 1_200.0, 619.0),
    ("4x4x4", 1_200.0, 610.0),
    ("4x8x4", 600.0, 605.0),
    ("8x8x4", 600.0, 602.0),
    ("8x8x8", 600.0, 601.0),
    ("8x16x8", 300.0, 601.0),
    ("8x32x8", 150.0, 600.0),
];

/// Duration of a run at each load.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub warmup: u64,
    pub clocks: u64,
}

/// The duration used by the command.
pub const RUN: Run = Run {
    warmup: 2_500,
    clocks: 2_500,
};

/// Offered loads in percent of the bound: the first, and the step to each next one, up to 100 %.
/// The series stops when less arrives than at the previous load.
const LOADS_PERCENT: (u32, u32) = (50, 5);
/// Allowed shortfall at the first load: packets in flight when the measurement begins and ends.
const UNDER_WAY: Tolerance = Tolerance::Relative(0.03);

/// GB/s of one direction of a link.
const LINK_GB_PER_S: f64 = 0.6;

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    nodes: u32,
    bisection_gb_per_s: f64,
    /// MB/s offered and accepted at the first load.
    first_mb_per_s: [f64; 2],
    /// Maximum MB/s that arrived at any load.
    saturation_mb_per_s: f64,
    /// MB/s that arrive when ports send at full rate.
    overload_mb_per_s: f64,
}

impl Seen {
    fn share(&self) -> f64 {
        2.0 * self.bisection_gb_per_s / f64::from(self.nodes) * 1_000.0
    }

    /// The bound of a port for uniform traffic, including traffic to a processor's own memory,
    /// which does not use the port.
    fn port(&self) -> f64 {
        PEAK_MB_PER_S * self.uniform()
    }

    /// Ratio of all uniform traffic to the part of it that goes to other processors.
    fn uniform(&self) -> f64 {
        f64::from(self.nodes) / f64::from(self.nodes - 1)
    }

    fn bound(&self) -> f64 {
        self.share().min(self.port())
    }
}

/// GB/s of the links between the halves of the longest dimension, sum of both directions.
fn bisection_gb_per_s(shape: &Shape) -> f64 {
    let longest = shape.size().into_iter().max().unwrap_or(0);
    let dimension = (0..3).rfind(|&at| shape.size()[at] == longest);
    let dimension = dimension.unwrap_or(0);
    let is_low = |node| shape.coordinates(node).0[dimension] < longest / 2;
    let crosses = |&(from, direction, to): &(u32, Direction, u32)| {
        direction.dimension() == dimension && is_low(from) != is_low(to)
    };
    2.0 * LINK_GB_PER_S * shape.links().filter(crosses).count() as f64
}

fn seen(size: &str, run: Run, seed: u64) -> Result<Seen, String> {
    let torus = torus(size)?;
    let mut seen = Seen {
        nodes: torus.shape().nodes(),
        bisection_gb_per_s: bisection_gb_per_s(torus.shape()),
        ..Seen::default()
    };
    let scale = PEAK_MB_PER_S * seen.uniform();
    let carries = |percent: u32| {
        let load = seen.bound() / scale * f64::from(percent) / 100.0;
        let millionths = (load * f64::from(Load::UNIT)) as u32;
        let load = Load::from_millionths(millionths).unwrap_or(Load::FULL);
        let carried = carried(&torus, load, run, seed)?;
        Ok::<_, String>(carried.map(|part| scale * part))
    };
    let (first, step) = LOADS_PERCENT;
    let (mut offered_first, mut saturation) = (None, 0.0);
    for percent in (first..=100).step_by(step as usize) {
        let [offered, arrived] = carries(percent)?;
        offered_first = offered_first.or(Some([offered, arrived]));
        if arrived < saturation {
            break;
        }
        saturation = arrived;
    }
    seen.first_mb_per_s = offered_first.unwrap_or_default();
    let [_, overload] = carried(&torus, Load::FULL, run, seed)?;
    seen.overload_mb_per_s = scale * overload;
    seen.saturation_mb_per_s = saturation.max(seen.overload_mb_per_s);
    Ok(seen)
}

/// Offered and accepted traffic at a load, as fractions of the ports' rate.
fn carried(torus: &Torus, load: Load, run: Run, seed: u64) -> Result<[f64; 2], String> {
    let config = Config {
        seed,
        traffic: Traffic {
            load,
            message_bytes: 64,
            ..Traffic::default()
        },
        warmup: Warmup::Cycles(run.warmup),
        measure_cycles: run.clocks,
        drain_cycles: 0,
        ..Config::default()
    };
    let options = T3eOptions {
        adaptive: Some(true),
        channels: Some(Channels::Optimised),
        ..T3eOptions::default()
    };
    let simulation = Simulation::<T3e>::new(torus, &config, &options, 1);
    let mut simulation = simulation.map_err(|error| error.to_string())?;
    let report = simulation.run(&mut Serial, |_| {});
    match report.violations.first() {
        None => Ok([report.offered_load, report.accepted_load]),
        Some(violation) => Err(format!("{}: {violation:?}", torus.shape())),
    }
}

/// Computes and measures the given sizes.
///
/// # Errors
/// If a network cannot be simulated, or violates an invariant.
pub fn table(settings: &Settings<'_>, sizes: &[Size], run: Run) -> Result<Table, String> {
    let seed = settings.seed;
    let seen = sizes::each(settings, sizes, |size| seen(size.0, run, seed))?;
    Ok(table_of(sizes, &seen, run))
}

fn table_of(sizes: &[Size], all: &[Seen], run: Run) -> Table {
    let (mut rows, mut also) = (Vec::new(), Vec::new());
    for (&(size, share, port), seen) in sizes.iter().zip(all) {
        let label = |what| format!("{} PEs, {size}: {what}", seen.nodes);
        // Only floating-point errors; values of the port are rounded.
        let exact = Tolerance::Absolute(1e-6);
        let row = |kind, what, expected, ours, within| {
            Row::new(kind, Source::Expected, label(what), expected, ours, within)
        };
        let (bound, saturation) = (seen.bound(), seen.saturation_mb_per_s);
        let [offered, arrived] = seen.first_mb_per_s;
        let first = "accepted at half the bound";
        let rounded = Tolerance::Absolute(0.5);
        rows.extend([
            row(Kind::Count, "2 x bisection / N", share, seen.share(), exact),
            row(Kind::Formula, "port", port, seen.port(), rounded),
            row(Kind::Running, first, offered, arrived, UNDER_WAY),
            row(
                Kind::Running,
                "saturation",
                bound,
                saturation,
                Tolerance::AtMost(0.0),
            ),
        ]);
        for (what, ours) in [
            ("saturation, % of the bound", saturation),
            ("overload, % of the bound", seen.overload_mb_per_s),
        ] {
            let percent = 100.0 * ours / bound;
            also.push(Observation::new(Kind::Running, label(what), None, percent));
        }
        if seen.nodes >= FULL_BISECTION {
            let (kind, label) = (Kind::Count, label("bisection, GB/s"));
            let (paper, ours) = (BISECTION_GB_PER_S, seen.bisection_gb_per_s);
            rows.push(Row::new(kind, Source::Paper, label, paper, ours, exact));
        }
    }
    rows.extend(steps(all));
    Table {
        title: "Global bandwidth of each processor (T3E figure 8)".into(),
        unit: "MB/s",
        decimals: 1,
        rows,
        also,
        assumptions: assumptions(run),
    }
}

/// Number of processors from which the bisection stays constant (T3E sec. 11).
const FULL_BISECTION: u32 = 512;
/// GB/s of this constant bisection (T3E sec. 11).
const BISECTION_GB_PER_S: f64 = 153.6;
/// Tolerance, in percentage points, of the step to one half.
const STEP_PERCENT: f64 = 10.0;

/// "Beyond 512 nodes, the Y dimension becomes the bottleneck": from 512 to 1,024 processors the
/// bandwidth halves.
fn steps(all: &[Seen]) -> Vec<Row> {
    let of = |nodes| all.iter().find(|seen| seen.nodes == nodes);
    let (Some(before), Some(after)) = (of(FULL_BISECTION), of(2 * FULL_BISECTION)) else {
        return Vec::new();
    };
    let row = |kind, what, ours| {
        let label = format!("{what} of 1024 PEs, % of the value for 512");
        let within = Tolerance::Absolute(STEP_PERCENT);
        Row::new(kind, Source::Expected, label, 50.0, 100.0 * ours, within)
    };
    let measured = after.saturation_mb_per_s / before.saturation_mb_per_s;
    vec![
        row(Kind::Count, "bound", after.bound() / before.bound()),
        row(Kind::Running, "saturation", measured),
    ]
}

fn assumptions(run: Run) -> Vec<String> {
    vec![
        "The paper's figure is a bound: the smaller of twice the bisection bandwidth divided by \
         the number of nodes, and the bandwidth of a port, 600 MB/s for the part (N-1)/N of the \
         traffic that crosses it. Our copy lacks the picture; 153.6 GB/s and the regimes (ports \
         up to 64, balance from 128 to 512, Y beyond) are in T3E sec. 11, and the \"expected\" \
         values follow from them. Ours are counted in the links of the torus. Multiply by table 4 \
         for payload."
            .into(),
        format!(
            "Run, for saturation: every processor offers 10-flit puts of 64 bytes to random \
             others, without responses: first {} % of the bound, then {} % more each time, until \
             throughput falls. Saturation is the highest throughput, measured over {} clocks \
             after {} others; adaptive routing, optimised channels. As in the figure, every flit \
             counts 8 bytes, and traffic to oneself, which crosses nothing, is added.",
            LOADS_PERCENT.0, LOADS_PERCENT.1, run.clocks, run.warmup
        ),
        "No network that conserves packets can exceed the bound; what can fail is that it carries \
         half of the bound within 3 %, and the step at 512 processors."
            .into(),
        "The bound is reachable only without contention, and the paper does not say how much \
         contention costs. In overload, when every port offers all it can, throughput is lower \
         than at saturation if rings are long: nothing throttles the sources, whereas processors \
         of the machine have a bounded number of outstanding requests."
            .into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Run = Run {
        warmup: 400,
        clocks: 1_200,
    };

    #[test]
    fn small_machines_stay_below_the_bound() {
        let settings = Settings::of_the_paper(1);
        let table = table(&settings, &SIZES[..4], SHORT).unwrap();
        assert!(table.within(), "{table:#?}");
        assert!(table.also.iter().all(|seen| seen.ours > 40.0), "{table:#?}");
    }

    /// Labels of rows outside their tolerance.
    fn outside(sizes: &[Size], seen: &[Seen]) -> Vec<String> {
        let table = table_of(sizes, seen, SHORT);
        let rows = table.rows.into_iter().filter(|row| !row.within());
        rows.map(|row| row.label).collect()
    }

    /// Canary: with a first load at the ports' full rate, which the network cannot carry, the table
    /// reports the shortfall.
    #[test]
    fn a_first_load_that_does_not_arrive_is_outside() {
        let run = Run {
            warmup: 1_000,
            clocks: 1_500,
        };
        let mut seen = seen("4x4x4", run, 1).unwrap();
        assert_eq!(outside(&SIZES[3..4], &[seen]), [""; 0]);
        let torus = torus("4x4x4").unwrap();
        seen.first_mb_per_s = carried(&torus, Load::FULL, run, 1).unwrap();
        let labels = outside(&SIZES[3..4], &[seen]);
        assert_eq!(labels, ["64 PEs, 4x4x4: accepted at half the bound"]);
    }

    /// Networks whose links do not fit their size: a middle cable is missing, or half of the
    /// machine.
    #[test]
    fn missing_links_are_outside() {
        let mut seen = seen("4x4x4", SHORT, 1).unwrap();
        assert_eq!(outside(&SIZES[3..4], &[seen]), [""; 0]);
        seen.bisection_gb_per_s -= 2.0 * LINK_GB_PER_S;
        assert_eq!(
            outside(&SIZES[3..4], &[seen]),
            ["64 PEs, 4x4x4: 2 x bisection / N"]
        );
        let half = self::seen("4x4x2", SHORT, 1).unwrap();
        let labels = outside(&SIZES[3..4], &[half]);
        assert_eq!(labels, ["32 PEs, 4x4x4: port"], "both have 1,200 MB/s");
    }

    /// A network seems to carry more than its links can: the measurement of a small one, with the
    /// bound of a long one.
    #[test]
    fn more_than_the_bound_is_outside() {
        let small = seen("2x2x2", SHORT, 1).unwrap();
        let long = Seen {
            nodes: 2_048,
            bisection_gb_per_s: 153.6,
            ..small
        };
        let labels = outside(&SIZES[8..], &[long]);
        assert_eq!(labels, ["2048 PEs, 8x32x8: saturation"]);
        let full = Seen {
            saturation_mb_per_s: long.bound(),
            ..long
        };
        assert_eq!(outside(&SIZES[8..], &[full]), [""; 0]);
    }

    #[test]
    fn missing_steps_are_outside() {
        let of = |nodes, saturation_mb_per_s| Seen {
            nodes,
            bisection_gb_per_s: BISECTION_GB_PER_S,
            first_mb_per_s: [300.0; 2],
            saturation_mb_per_s,
            overload_mb_per_s: 0.0,
        };
        let labels = |after| outside(&SIZES[6..8], &[of(512, 350.0), of(1_024, after)]);
        assert_eq!(labels(175.0), [""; 0]);
        for after in [139.0, 211.0] {
            assert_eq!(
                labels(after),
                ["saturation of 1024 PEs, % of the value for 512"]
            );
        }
        let mut narrow = of(512, 350.0);
        narrow.bisection_gb_per_s /= 2.0;
        let labels = outside(&SIZES[6..8], &[narrow, of(1_024, 175.0)]);
        let expected = [
            "512 PEs, 8x8x8: 2 x bisection / N",
            "512 PEs, 8x8x8: saturation",
            "512 PEs, 8x8x8: bisection, GB/s",
            "bound of 1024 PEs, % of the value for 512",
        ];
        assert_eq!(labels, expected);
    }

    #[test]
    fn bounds_of_all_sizes_are_counted() {
        for (size, share, port) in SIZES {
            let shape: Shape = size.parse().unwrap();
            let seen = Seen {
                nodes: shape.nodes(),
                bisection_gb_per_s: bisection_gb_per_s(&shape),
                ..Seen::default()
            };
            assert!((seen.share() - share).abs() < 1e-6, "{size}: {seen:?}");
            assert!((seen.port() - port).abs() < 0.5, "{size}");
            assert_eq!(
                seen.bisection_gb_per_s == 153.6,
                seen.nodes >= 512,
                "{size}"
            );
        }
    }
}
