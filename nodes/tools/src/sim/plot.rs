//! Draws latency-load curves.

use super::measure::Estimate;
use super::sweep::Sample;
use crate::chart::{
    Axis, COLOURS, Chart, Colour, Curve, GREY, Mark, Panel, Point, Scale, Stroke, around,
};

/// Latencies above this multiple of the lowest mean are cut off, to keep the steady range visible.
const HIGHEST: f64 = 12.0;
/// Ratio of the scale's end to the highest steady latency, so that the rise of a curve is visible.
const ROOM: f64 = 1.25;

/// Plots mean and 99th percentile of the latency over offered load, and below them accepted load;
/// for several modes, networks or patterns only the means. Points of one network, pattern and
/// options are in cycles and fractions of a port's rate, others in ns and GB/s, with their
/// differences in the legend. Known bounds and the highest steady loads are vertical lines.
///
/// # Errors
/// If there is nothing to draw, or drawing fails.
pub fn svg(all: &[Sample]) -> miette::Result<String> {
    chart(all).svg()
}

/// Units of the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Units {
    /// Cycles, and fractions of a port's rate.
    OfMachine,
    /// Nanoseconds and GB/s.
    Common,
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
    match units {
        Units::OfMachine => (1.0, 1.0),
        Units::Common => (
            sample.full_gbytes_per_second.unwrap_or(1.0),
            sample.cycle_ns,
        ),
    }
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

fn chart(all: &[Sample]) -> Chart {
    let is_one = all.windows(2).all(|pair| pair[0].suits(&pair[1]));
    let units = if is_one {
        Units::OfMachine
    } else {
        Units::Common
    };
    let modes = modes(all, units);
    let is_alone = modes.len() < 2;
    let (mut latencies, mut accepted) = (Vec::new(), Vec::new());
    for (mode, &colour) in modes.iter().zip(COLOURS.iter().cycle()) {
        if is_alone {
            latencies.push(curve(
                "99th percentile",
                COLOURS[1],
                Stroke::Dashed,
                mode,
                |point| latency(point, point.slowest),
            ));
        }
        let name = match is_alone {
            true => "mean latency".to_owned(),
            false => mode_name(mode),
        };
        latencies.push(curve(&name, colour, Stroke::Solid, mode, |point| {
            latency(point, point.mean)
        }));
        let (name, colour) = match is_alone {
            true => ("accepted load", COLOURS[2]),
            false => ("", colour),
        };
        accepted.push(curve(name, colour, Stroke::Solid, mode, carried));
    }
    let points = || modes.iter().flat_map(|mode| &mode.points);
    let right = points().map(|point| point.x).fold(0.0, f64::max);
    let most = points()
        .map(|point| point.accepted.mean)
        .fold(0.0, f64::max);
    let (x, y) = (
        Scale::Linear.around(0.0, right),
        Scale::Linear.around(0.0, most.max(1e-6)),
    );
    accepted.insert(0, offered(x.1.min(y.1)));
    let mut marks = bounds(&modes);
    marks.retain(|mark| mark.x <= x.1);
    marks.extend(saturations(&modes));
    let axis = |name: &str, range| Axis {
        name: name.to_owned(),
        scale: Scale::Linear,
        range,
    };
    let (offered, latency, accepted_load) = match units {
        Units::OfMachine => (
            "offered load (fraction of a port's rate)",
            "latency (cycles)",
            "accepted load",
        ),
        Units::Common => (
            "offered (GB/s of messages, each processor)",
            "latency (ns)",
            "accepted (GB/s)",
        ),
    };
    Chart {
        title: title(all),
        subtitle: subtitle(all, units),
        x: axis(offered, x),
        panels: vec![
            Panel {
                axis: axis(latency, (0.0, highest(&modes))),
                share: 62,
                curves: latencies,
            },
            Panel {
                axis: axis(accepted_load, y),
                share: 38,
                curves: accepted,
            },
        ],
        marks,
        unsteady: "not known to be steady: saturated (queues grow) or unsettled".to_owned(),
        band: "95 % interval over seeds".to_owned(),
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
    match units {
        Units::OfMachine => format!("a cycle is {} ns; {seeds}", all[0].cycle_ns),
        Units::Common => seeds,
    }
}

fn curve(
    name: &str,
    colour: Colour,
    stroke: Stroke,
    mode: &Mode,
    of: fn(&LoadPoint) -> Option<Point>,
) -> Curve {
    Curve {
        name: name.to_owned(),
        colour,
        stroke,
        points: mode.points.iter().filter_map(of).collect(),
    }
}

fn latency(point: &LoadPoint, estimate: Option<Estimate>) -> Option<Point> {
    let estimate = estimate?;
    Some(Point {
        x: point.x,
        y: estimate.mean,
        half_width: estimate.half_width,
        is_steady: point.is_steady,
    })
}

/// Accepted load, which is a rate in either unit.
fn carried(point: &LoadPoint) -> Option<Point> {
    Some(Point {
        half_width: point.accepted.half_width,
        ..Point::new(point.x, point.accepted.mean)
    })
}

/// The line on which all offered load is accepted.
fn offered(to: f64) -> Curve {
    Curve {
        name: "accepted = offered".to_owned(),
        colour: GREY,
        stroke: Stroke::Thin,
        points: vec![Point::new(0.0, 0.0), Point::new(to, to)],
    }
}

/// The top of the latency scale, above all steady points.
fn highest(modes: &[Mode]) -> f64 {
    let points = || modes.iter().flat_map(|mode| &mode.points);
    let mean = |estimate: Option<Estimate>| estimate.map(|estimate| estimate.mean);
    let means = points().filter_map(|point| mean(point.mean));
    let lowest = means.fold(f64::INFINITY, f64::min);
    let is_alone = modes.len() < 2;
    let steady = points().filter(|point| point.is_steady);
    let shown = steady.filter_map(|point| match is_alone {
        true => mean(point.slowest),
        false => mean(point.mean),
    });
    let most = shown.fold(3.0 * lowest, |most, one| most.max(ROOM * one));
    let range = around(Scale::Linear, [most.min(HIGHEST * lowest)]);
    range.map_or(1.0, |(_, high)| high)
}

/// The name of a mode, with the load up to which it is steady.
fn mode_name(mode: &Mode) -> String {
    let name = &mode.name;
    match saturation(mode) {
        Saturation::Never => format!("{name}: steady at all loads"),
        Saturation::Always => format!("{name}: not steady at any load"),
        Saturation::Above(load) => format!("{name}: steady up to {}", rounded(load)),
    }
}

/// A load without the rounding errors of its conversion.
fn rounded(load: f64) -> f64 {
    (load * 1e4).round() / 1e4
}

/// The load above which a mode is not steady.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Saturation {
    Never,
    Always,
    /// Saturation is between this load and the next one of the sweep.
    Above(f64),
}

fn saturation(mode: &Mode) -> Saturation {
    let steady = mode.points.iter().take_while(|point| point.is_steady);
    match (steady.last(), mode.points.iter().all(|p| p.is_steady)) {
        (_, true) => Saturation::Never,
        (None, false) => Saturation::Always,
        (Some(last), false) => Saturation::Above(last.x),
    }
}

/// The highest load before saturation of each mode.
fn saturations(modes: &[Mode]) -> Vec<Mark> {
    let is_alone = modes.len() < 2;
    let of = |(mode, &colour): (&Mode, &Colour)| match saturation(mode) {
        Saturation::Above(load) => Some(Mark {
            x: load,
            label: rounded(load).to_string(),
            name: match is_alone {
                true => format!("steady up to {}", rounded(load)),
                false => "end of steady range".to_owned(),
            },
            colour: if is_alone { GREY } else { colour },
            is_dotted: false,
        }),
        Saturation::Never | Saturation::Always => None,
    };
    modes
        .iter()
        .zip(COLOURS.iter().cycle())
        .filter_map(of)
        .collect()
}

/// The bounds of all modes, each once, in the colour of the first mode that has it.
fn bounds(modes: &[Mode]) -> Vec<Mark> {
    let is_alone = modes.len() < 2;
    let mut bounds: Vec<(f64, Colour, Vec<&str>)> = Vec::new();
    for (mode, &colour) in modes.iter().zip(COLOURS.iter().cycle()) {
        let Some(load) = mode.bound else { continue };
        let name = mode.name.as_str();
        let colour = if is_alone { COLOURS[7] } else { colour };
        let known = bounds
            .iter_mut()
            .find(|(other, ..)| (other - load).abs() < 1e-3);
        match known {
            Some((.., names)) => names.push(name),
            None => bounds.push((load, colour, vec![name])),
        }
    }
    let is_one = bounds.len() == 1;
    let named = |(load, colour, names): (f64, Colour, Vec<&str>)| {
        let whose = if is_one {
            String::new()
        } else {
            common(&names)
        };
        Mark {
            x: load,
            label: format!("{load:.3}"),
            name: format!("bound {whose}").trim_end().to_owned(),
            colour,
            is_dotted: true,
        }
    };
    bounds.into_iter().map(named).collect()
}

/// The common prefix of names up to a comma, in parentheses.
fn common(names: &[&str]) -> String {
    let parts = |name: &str| name.split(", ").map(str::to_owned).collect::<Vec<_>>();
    let mut common = names.first().map_or_else(Vec::new, |name| parts(name));
    for name in names {
        let alike = common.iter().zip(parts(name)).take_while(|(a, b)| *a == b);
        common.truncate(alike.count());
    }
    match common.join(", ") {
        common if common.is_empty() => common,
        common => format!("({common})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(load: f64, latency: f64, saturated: bool) -> Sample {
        Sample {
            load,
            seed: 1,
            accepted_load: load.min(0.7),
            saturated,
            latency_mean: Some(latency),
            latency_p99: Some(2.0 * latency),
            topology: "r1-32".to_owned(),
            traffic: "uniform".to_owned(),
            cycle_ns: 1.25,
            full_gbytes_per_second: Some(2.0),
            ..Sample::default()
        }
    }

    fn of_machine(all: &[Sample]) -> Vec<Mode> {
        modes(all, Units::OfMachine)
    }

    #[test]
    fn what_bounds_share_names_them() {
        assert_eq!(common(&["steady, one", "steady, other"]), "(steady)");
        assert_eq!(common(&["steady, one"]), "(steady, one)");
        assert_eq!(common(&["steady, one", "steadier, one"]), "");
        assert_eq!(common(&[""]), "");
    }

    #[test]
    fn saturation_is_above_the_last_steady_load_before_it() {
        let at = |saturated: &[bool]| {
            let loads = saturated.iter().zip([0.2, 0.4, 0.6]);
            let all: Vec<_> = loads.map(|(&is, load)| sample(load, 50.0, is)).collect();
            saturation(&of_machine(&all)[0])
        };
        assert_eq!(at(&[false, false, true]), Saturation::Above(0.4));
        assert_eq!(at(&[false, true, false]), Saturation::Above(0.2));
        assert_eq!(at(&[true, true, true]), Saturation::Always);
        assert_eq!(at(&[false, false, false]), Saturation::Never);
        let mut unsettled = [sample(0.2, 50.0, false), sample(0.4, 60.0, false)];
        unsettled[1].state = "unsettled".to_owned();
        let mode = &of_machine(&unsettled)[0];
        assert_eq!(saturation(mode), Saturation::Above(0.2));
    }

    #[test]
    fn the_scale_is_of_what_is_steady() {
        let all = [
            sample(0.2, 50.0, false),
            sample(0.4, 100.0, false),
            sample(0.6, 9e6, true),
        ];
        assert_eq!(highest(&of_machine(&all)), 250.0);
        let all = [sample(0.2, 50.0, false), sample(0.4, 4e3, false)];
        assert_eq!(highest(&of_machine(&all)), 600.0);
        assert_eq!(highest(&[]), 1.0);
    }

    #[test]
    fn points_past_saturation_are_not_drawn_as_latency() {
        let all = [sample(0.2, 50.0, false), sample(0.6, 60.0, true)];
        let drawing = svg(&all).expect("a drawing");
        for words in [
            "r1-32: uniform traffic",
            "not known to be steady",
            "mean latency",
        ] {
            assert!(drawing.contains(words), "{words}");
        }
        let steady = svg(&all[..1]).expect("a drawing");
        assert!(!steady.contains("not known to be steady") && !steady.contains("steady up to"));
        assert!(drawing.contains("steady up to"));
        assert!(!drawing.contains("95 % interval"));
        assert!(svg(&[]).is_err());
    }

    #[test]
    fn seeds_of_a_load_are_one_point_with_an_interval() {
        let mut all = [sample(0.2, 50.0, false), sample(0.2, 60.0, false)];
        all[1].seed = 2;
        let mode = &of_machine(&all)[0];
        assert_eq!(mode.points.len(), 1);
        let mean = mode.points[0].mean.expect("both have one");
        assert_eq!(mean.mean, 55.0);
        assert!(mean.half_width > 0.0);
        let drawing = svg(&all).expect("a drawing");
        assert!(drawing.contains("95 % interval over seeds"));
        assert!(drawing.contains("means over 2 seeds"));
    }

    #[test]
    fn different_networks_of_one_name_are_two_curves() {
        let mut all = [1, 2].map(|_| sample(0.2, 50.0, false));
        for (sample, description) in all.iter_mut().zip(["rate = 12.5", "rate = 14"]) {
            sample.network = Some(super::super::sweep::fingerprint(description));
        }
        let names: Vec<_> = modes(&all, Units::Common)
            .into_iter()
            .map(|mode| mode.name)
            .collect();
        let own =
            |sample: &Sample| format!("r1-32 #{:.8}", sample.network.as_deref().unwrap_or(""));
        assert_eq!(names, [own(&all[0]), own(&all[1])]);
        assert!(!svg(&all).expect("a drawing").contains("95 % interval"));
        // An old file does not identify its network.
        all[1].network = None;
        assert_eq!(modes(&all, Units::OfMachine).len(), 1);
    }

    #[test]
    fn several_networks_and_options_are_labelled_in_common_units() {
        let mut all = [0.2, 0.4, 0.2, 0.4].map(|load| sample(load, 50.0, false));
        for other in &mut all[2..] {
            other.topology = "t3e-4x4x4".to_owned();
            other.cycle_ns = 13.0;
            other.full_gbytes_per_second = Some(0.5);
            other.options = "message-bytes 8".to_owned();
        }
        let both = modes(&all, Units::Common);
        assert_eq!(both[0].name, "r1-32, default options");
        assert_eq!(both[1].name, "t3e-4x4x4, message-bytes 8");
        assert_eq!(both[1].points[1].x, 0.2);
        assert_eq!(both[1].points[0].mean.expect("it has one").mean, 650.0);
        let drawing = svg(&all).expect("a drawing");
        for words in [
            "latency (ns)",
            "GB/s",
            "t3e-4x4x4, message-bytes 8",
            "uniform traffic",
        ] {
            assert!(drawing.contains(words), "{words}");
        }
    }
}
