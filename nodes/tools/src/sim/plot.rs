//! Draws latency-load curves.

mod marks;

use clap::ValueEnum;
use miette::miette;

use self::marks::{bounds, mode_name, saturations};
use super::measure::Estimate;
use super::sweep::Sample;
use crate::chart::{
    Axis, COLOURS, Chart, Colour, Curve, GREY, Panel, Point, Scale, Stroke, around,
};

/// Latencies above this multiple of a mode's lowest mean are cut off, to keep the steady range
/// visible.
const HIGHEST: f64 = 12.0;
/// Ratio of the scale's end to the highest steady latency, so that the rise of a curve is visible.
const ROOM: f64 = 1.25;
/// Ratio of capacities, or of lowest latencies, above which scales are logarithmic: on linear ones
/// the curves of the smaller network would be too close to the origin.
const WIDE: f64 = 4.0;
/// Ratio of a logarithmic scale's end to the outermost point.
const MARGIN: f64 = 1.2;

/// The unit of loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadUnit {
    /// Fractions of a port's rate
    Load,
    /// GB/s of messages of each processor
    Gbytes,
}

/// Choices for a drawing.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// The title; by default the settings that all points share.
    pub title: Option<String>,
    /// The unit of loads; by default `Load` for points of one network, pattern and options,
    /// otherwise `Gbytes`.
    pub units: Option<LoadUnit>,
}

/// [`svg_with`] the default choices.
///
/// # Errors
/// If there is nothing to draw, or drawing fails.
pub fn svg(all: &[Sample]) -> miette::Result<String> {
    svg_with(all, &Choices::default())
}

/// Plots mean and 99th percentile of the latency over offered load, and below them accepted load;
/// for several modes, networks or patterns only the means. Points of one network, pattern and
/// options are in cycles and fractions of a port's rate, others in ns and GB/s, with their
/// differences in the legend. Scales are logarithmic if capacities differ much. Known bounds and
/// the highest steady loads are vertical lines.
///
/// # Errors
/// If there is nothing to draw, a point lacks the figures for its unit, or drawing fails.
pub fn svg_with(all: &[Sample], choices: &Choices) -> miette::Result<String> {
    let units = Units::of(all, choices.units);
    let has_no_rate = |sample: &Sample| sample.full_gbytes_per_second.is_none();
    if units.load == LoadUnit::Gbytes && all.iter().any(has_no_rate) {
        return Err(miette!(
            "cannot draw in GB/s: some rows have no `full_gbytes_per_second`, which `phitwire sim \
             --csv` writes"
        ));
    }
    let mut chart = chart(all, units);
    if let Some(title) = &choices.title {
        chart.title.clone_from(title);
    }
    chart.svg()
}

/// Units of the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Units {
    load: LoadUnit,
    /// Whether latencies are in cycles, not in nanoseconds.
    is_in_cycles: bool,
}

impl Units {
    fn of(all: &[Sample], wanted: Option<LoadUnit>) -> Self {
        let is_one = all.windows(2).all(|pair| pair[0].suits(&pair[1]));
        let mut cycles = all.windows(2);
        let is_one_cycle = cycles.all(|pair| pair[0].cycle_ns == pair[1].cycle_ns);
        let load = wanted.unwrap_or(match is_one {
            true => LoadUnit::Load,
            false => LoadUnit::Gbytes,
        });
        let is_in_cycles = load == LoadUnit::Load && is_one_cycle;
        Self { load, is_in_cycles }
    }
}

/// A load with the results of all its seeds.
#[derive(Clone, Copy, Debug)]
struct LoadPoint {
    x: f64,
    mean: Option<Estimate>,
    slowest: Option<Estimate>,
    accepted: Estimate,
    /// Whether all seeds of the point are steady.
    is_steady: bool,
}

/// The points of one network, pattern and mode.
#[derive(Clone, Debug)]
struct Mode {
    name: String,
    bound: Option<f64>,
    points: Vec<LoadPoint>,
}

/// The modes, in the order of their first points.
fn modes(all: &[Sample], units: Units) -> Vec<Mode> {
    let mut groups: Vec<Vec<&Sample>> = Vec::new();
    for sample in all {
        let is_alike = |group: &&mut Vec<&Sample>| {
            group[0].suits(sample) && group[0].routing == sample.routing
        };
        match groups.iter_mut().find(is_alike) {
            // Ignore repeated samples, since a file may be given twice.
            Some(group) if group.contains(&sample) => {}
            Some(group) => group.push(sample),
            None => groups.push(vec![sample]),
        }
    }
    let of = |group: &Vec<&Sample>| {
        let (x_unit, _) = factors(group[0], units);
        let mut loads: Vec<Vec<&Sample>> = Vec::new();
        for &sample in group {
            match loads.iter_mut().find(|load| load[0].load == sample.load) {
                Some(load) => load.push(sample),
                None => loads.push(vec![sample]),
            }
        }
        let mut points: Vec<_> = loads.iter().map(|load| load_point(load, units)).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Mode {
            name: what_differs(group[0], all),
            bound: group[0].bound.map(|bound| bound * x_unit),
            points,
        }
    };
    groups.iter().map(of).collect()
}

/// Factors that convert loads and latencies to `units`.
fn factors(sample: &Sample, units: Units) -> (f64, f64) {
    let load = match units.load {
        LoadUnit::Load => 1.0,
        LoadUnit::Gbytes => sample.full_gbytes_per_second.unwrap_or(1.0),
    };
    let latency = match units.is_in_cycles {
        true => 1.0,
        false => sample.cycle_ns,
    };
    (load, latency)
}

fn load_point(seeds: &[&Sample], units: Units) -> LoadPoint {
    let (load, latency) = factors(seeds[0], units);
    let over = |of: fn(&Sample) -> Option<f64>, unit: f64| {
        let values = seeds.iter().filter_map(|seed| of(seed));
        let values: Vec<f64> = values.map(|value| value * unit).collect();
        (!values.is_empty()).then(|| Estimate::of(&values))
    };
    LoadPoint {
        x: seeds[0].load * load,
        mean: over(|seed| seed.latency_mean, latency),
        slowest: over(|seed| seed.latency_p99, latency),
        accepted: over(|seed| Some(seed.accepted_load), load).unwrap_or_default(),
        is_steady: seeds.iter().all(|seed| seed.is_steady()),
    }
}

/// The legend's text for the differences between a sample's curve and the others.
fn what_differs(sample: &Sample, all: &[Sample]) -> String {
    let differs = |of: fn(&Sample) -> &str| {
        let own = of(sample);
        all.iter().any(|other| of(other) != own).then_some(own)
    };
    let namesake = all.iter().any(|other| sample.is_of_namesake(other));
    let network = sample.network.as_deref().filter(|_| namesake);
    let network = network.map(|network| format!("{} #{:.8}", sample.topology, network));
    let parts = [
        network.as_deref().or(differs(|sample| &sample.topology)),
        differs(|sample| &sample.traffic),
        differs(|sample| &sample.options).map(|own| match own {
            "" => "default options",
            own => own,
        }),
        sample.routing.as_deref(),
    ];
    let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(", ")
}

/// The title, from the settings common to all samples.
fn title(all: &[Sample]) -> String {
    let Some(first) = all.first() else {
        return String::new();
    };
    if all.iter().all(|sample| sample.suits(first)) {
        return first.setting();
    }
    let common = |of: fn(&Sample) -> &str| {
        let own = of(first);
        let is_common = !own.is_empty() && all.iter().all(|other| of(other) == own);
        is_common.then(|| own.to_owned())
    };
    let traffic = |sample: String| format!("{sample} traffic");
    let parts = [
        common(|sample| &sample.topology),
        common(|sample| &sample.traffic).map(traffic),
        common(|sample| &sample.options),
    ];
    match parts.into_iter().flatten().collect::<Vec<_>>() {
        parts if parts.is_empty() => "several networks and patterns".to_owned(),
        parts => parts.join(", "),
    }
}

/// Colours and strokes of the modes: each colour first with solid, then with dashed lines.
fn styles() -> impl Iterator<Item = (Colour, Stroke)> {
    let strokes = [Stroke::Solid, Stroke::Dashed].into_iter().cycle();
    strokes.flat_map(|stroke| COLOURS.map(|colour| (colour, stroke)))
}

/// The curves of latencies, and those of accepted load.
fn curves(modes: &[Mode]) -> (Vec<Curve>, Vec<Curve>) {
    if let [mode] = modes {
        let slowest = |point: &LoadPoint| latency(point, point.slowest);
        let mean = |point: &LoadPoint| latency(point, point.mean);
        let latencies = vec![
            curve(
                "99th percentile",
                (COLOURS[1], Stroke::Dashed),
                mode,
                slowest,
            ),
            curve("mean latency", (COLOURS[0], Stroke::Solid), mode, mean),
        ];
        let style = (COLOURS[2], Stroke::Solid);
        return (
            latencies,
            vec![curve("accepted load", style, mode, carried)],
        );
    }
    let of = |(mode, style): (&Mode, (Colour, Stroke))| {
        let mean = |point: &LoadPoint| latency(point, point.mean);
        let latency = curve(&mode_name(mode), style, mode, mean);
        (latency, curve("", style, mode, carried))
    };
    modes.iter().zip(styles()).map(of).unzip()
}

fn chart(all: &[Sample], units: Units) -> Chart {
    let modes = modes(all, units);
    let (latencies, mut accepted) = curves(&modes);
    let capacities = all.iter().filter_map(|one| one.full_gbytes_per_second);
    let is_wide = units.load == LoadUnit::Gbytes && is_wide(capacities);
    let points = || modes.iter().flat_map(|mode| &mode.points);
    let (offered, accepted_load) = match units.load {
        LoadUnit::Load => ("offered load (fraction of a port's rate)", "accepted load"),
        LoadUnit::Gbytes => (
            "offered (GB/s of messages, each processor)",
            "accepted (GB/s)",
        ),
    };
    let x = load_axis(offered, is_wide, points().map(|point| point.x));
    let loads = points().map(|point| point.accepted.mean);
    let y = load_axis(accepted_load, is_wide, loads);
    accepted.insert(0, all_accepted(&x, &y));
    let mut marks = bounds(&modes);
    marks.extend(saturations(&modes));
    marks.retain(|mark| x.shows(mark.x));
    // A logarithmic scale needs height to show small differences of accepted load.
    let (above, below) = if is_wide { (50, 50) } else { (62, 38) };
    Chart {
        title: title(all),
        subtitle: subtitle(all, units),
        x,
        panels: vec![
            Panel {
                axis: latency_axis(&modes, units),
                share: above,
                curves: latencies,
            },
            Panel {
                axis: y,
                share: below,
                curves: accepted,
            },
        ],
        marks,
        unsteady: "not known to be steady: saturated (queues grow) or unsettled".to_owned(),
        band: "95 % interval over seeds".to_owned(),
    }
}

/// The smallest and largest of positive values; the first is larger if there are none.
fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// Whether values differ too much for a linear scale.
fn is_wide(values: impl Iterator<Item = f64>) -> bool {
    let (low, high) = extent(values);
    high > WIDE * low
}

/// A logarithmic axis around values.
fn decades(name: &str, values: impl Iterator<Item = f64>) -> Axis {
    let (low, high) = extent(values.filter(|&value| Scale::Decades.has(value)));
    Axis {
        name: name.to_owned(),
        scale: Scale::Decades,
        range: match low <= high {
            true => (low / MARGIN, high * MARGIN),
            false => (0.1, 1.0),
        },
    }
}

fn load_axis(name: &str, is_wide: bool, loads: impl Iterator<Item = f64>) -> Axis {
    if is_wide {
        return decades(name, loads);
    }
    Axis {
        name: name.to_owned(),
        scale: Scale::Linear,
        range: Scale::Linear.around(0.0, loads.fold(1e-6, f64::max)),
    }
}

/// The subtitle: unit and seeds of the latencies.
fn subtitle(all: &[Sample], units: Units) -> String {
    let mut seeds: Vec<u64> = all.iter().map(|sample| sample.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let seeds = match seeds[..] {
        [] => return String::new(),
        [seed] => format!("seed {seed}"),
        _ => format!("means over {} seeds", seeds.len()),
    };
    match units.is_in_cycles {
        true => format!("a cycle is {} ns; {seeds}", all[0].cycle_ns),
        false => seeds,
    }
}

fn curve(
    name: &str,
    (colour, stroke): (Colour, Stroke),
    mode: &Mode,
    of: impl Fn(&LoadPoint) -> Option<Point>,
) -> Curve {
    Curve {
        name: name.to_owned(),
        colour,
        stroke,
        points: mode.points.iter().filter_map(of).collect(),
    }
}

/// A latency. That of a point which is not steady depends on the length of its run, so its interval
/// over seeds has no meaning.
fn latency(point: &LoadPoint, estimate: Option<Estimate>) -> Option<Point> {
    let estimate = estimate?;
    Some(Point {
        x: point.x,
        y: estimate.mean,
        half_width: if point.is_steady {
            estimate.half_width
        } else {
            0.0
        },
        is_steady: point.is_steady,
    })
}

fn carried(point: &LoadPoint) -> Option<Point> {
    Some(Point {
        x: point.x,
        y: point.accepted.mean,
        half_width: point.accepted.half_width,
        is_steady: point.is_steady,
    })
}

/// The line on which all offered load is accepted.
fn all_accepted(x: &Axis, y: &Axis) -> Curve {
    let (from, to) = (x.range.0.max(y.range.0), x.range.1.min(y.range.1));
    Curve {
        name: "accepted = offered".to_owned(),
        colour: GREY,
        stroke: Stroke::Thin,
        points: [from, to].map(|load| Point::new(load, load)).to_vec(),
    }
}

/// The lowest mean latency of a mode.
fn lowest(mode: &Mode) -> Option<f64> {
    let means = mode.points.iter().filter_map(|point| point.mean);
    means.map(|mean| mean.mean).min_by(f64::total_cmp)
}

/// The latency axis, which ends above all steady points.
fn latency_axis(modes: &[Mode], units: Units) -> Axis {
    let name = match units.is_in_cycles {
        true => "latency (cycles)",
        false => "latency (ns)",
    };
    let is_alone = modes.len() < 2;
    let highest = |mode: &Mode| {
        let steady = mode.points.iter().filter(|point| point.is_steady);
        let shown = steady.filter_map(|point| match is_alone {
            true => point.slowest,
            false => point.mean,
        });
        let most = shown.fold(0.0, |most: f64, one| most.max(ROOM * one.mean));
        Some(most.min(HIGHEST * lowest(mode)?))
    };
    let lowest = || modes.iter().filter_map(lowest);
    let least = lowest().fold(f64::INFINITY, f64::min);
    let most = modes.iter().filter_map(highest).fold(3.0 * least, f64::max);
    if is_wide(lowest()) {
        return decades(name, [least, most / MARGIN].into_iter());
    }
    let range = around(Scale::Linear, [most]);
    Axis {
        name: name.to_owned(),
        scale: Scale::Linear,
        range: (0.0, range.map_or(1.0, |(_, high)| high)),
    }
}

#[cfg(test)]
mod tests;
