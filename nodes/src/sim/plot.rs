//! The latency-load curve as a drawing.

use super::sweep::Sample;
use crate::chart::{
    Axis, COLOURS, Chart, Colour, Curve, GREY, Mark, Panel, Point, Scale, Stroke, around,
};

/// Latencies above this multiple of the lowest mean are not drawn: what is steady is seen.
const HIGHEST: f64 = 12.0;
/// Room above the highest latency of a steady state, so that a curve is seen to rise.
const ROOM: f64 = 1.25;

/// Draws mean and 99th percentile of the latency over offered load, and below them accepted load;
/// of several routing modes the means. Bounds, where they are known, and the highest loads without
/// saturation are upright lines.
///
/// # Errors
/// Nothing to draw, or a drawing that fails.
pub fn svg(all: &[Sample]) -> miette::Result<String> {
    chart(all).svg()
}

fn chart(all: &[Sample]) -> Chart {
    let modes: Vec<&[Sample]> = all.chunk_by(|a, b| a.routing == b.routing).collect();
    let is_alone = modes.len() < 2;
    let (mut latencies, mut accepted) = (Vec::new(), Vec::new());
    for (mode, &colour) in modes.iter().zip(COLOURS.iter().cycle()) {
        if is_alone {
            latencies.push(curve(
                "99th percentile",
                COLOURS[1],
                Stroke::Dashed,
                mode,
                slowest,
            ));
        }
        let name = match is_alone {
            true => "mean latency".to_owned(),
            false => mode_name(mode),
        };
        latencies.push(curve(&name, colour, Stroke::Solid, mode, mean));
        let (name, colour) = match is_alone {
            true => ("accepted load", COLOURS[2]),
            false => ("", colour),
        };
        accepted.push(Curve {
            points: mode.iter().map(carried).collect(),
            ..curve(name, colour, Stroke::Solid, &[], mean)
        });
    }
    let right = all.iter().map(|sample| sample.load).fold(0.0, f64::max);
    let most = all
        .iter()
        .map(|sample| sample.accepted_load)
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
    Chart {
        title: all.first().map_or_else(String::new, Sample::setting),
        subtitle: subtitle(all),
        x: axis("offered load (fraction of a port's rate)", x),
        panels: vec![
            Panel {
                axis: axis("latency (cycles)", (0.0, highest(all))),
                share: 62,
                curves: latencies,
            },
            Panel {
                axis: axis("accepted load", y),
                share: 38,
                curves: accepted,
            },
        ],
        marks,
        unsteady: "past saturation: queues grow, latency is not steady".to_owned(),
        band: "95 % interval over seeds".to_owned(),
    }
}

/// What latencies are told in, and whose they are.
fn subtitle(all: &[Sample]) -> String {
    let Some(first) = all.first() else {
        return String::new();
    };
    let seeds = match first.seeds {
        0 | 1 => format!("seed {}", first.seed),
        seeds => format!("means over {seeds} seeds"),
    };
    format!("a cycle is {} ns; {seeds}", first.cycle_ns)
}

fn curve(
    name: &str,
    colour: Colour,
    stroke: Stroke,
    mode: &[Sample],
    of: fn(&Sample) -> Option<Point>,
) -> Curve {
    Curve {
        name: name.to_owned(),
        colour,
        stroke,
        points: mode.iter().filter_map(of).collect(),
    }
}

fn latency(sample: &Sample, y: Option<f64>, half_width: Option<f64>) -> Option<Point> {
    Some(Point {
        x: sample.load,
        y: y?,
        half_width: half_width.unwrap_or(0.0),
        is_steady: !sample.saturated,
    })
}

fn mean(sample: &Sample) -> Option<Point> {
    latency(
        sample,
        sample.latency_mean,
        sample.latency_mean_half_width_95,
    )
}

fn slowest(sample: &Sample) -> Option<Point> {
    latency(sample, sample.latency_p99, sample.latency_p99_half_width_95)
}

/// What is accepted is a rate in any case.
fn carried(sample: &Sample) -> Point {
    Point {
        half_width: sample.accepted_load_half_width_95.unwrap_or(0.0),
        ..Point::new(sample.load, sample.accepted_load)
    }
}

/// The line on which everything that is offered is accepted.
fn offered(to: f64) -> Curve {
    Curve {
        name: "all that is offered".to_owned(),
        colour: GREY,
        stroke: Stroke::Thin,
        points: vec![Point::new(0.0, 0.0), Point::new(to, to)],
    }
}

/// Latency at the upper end of the scale: what is steady is below it.
fn highest(all: &[Sample]) -> f64 {
    let means = all.iter().filter_map(|sample| sample.latency_mean);
    let lowest = means.fold(f64::INFINITY, f64::min);
    let is_alone = all
        .windows(2)
        .all(|pair| pair[0].routing == pair[1].routing);
    let steady = all.iter().filter(|sample| !sample.saturated);
    let shown = steady.filter_map(|sample| match is_alone {
        true => sample.latency_p99,
        false => sample.latency_mean,
    });
    let most = shown.fold(3.0 * lowest, |most, one| most.max(ROOM * one));
    let range = around(Scale::Linear, [most.min(HIGHEST * lowest)]);
    range.map_or(1.0, |(_, high)| high)
}

/// The name of a mode, and up to where it is steady.
fn mode_name(mode: &[Sample]) -> String {
    let name = mode[0].routing.clone().unwrap_or_default();
    match saturation(mode) {
        Saturation::Never => format!("{name}: steady at all loads"),
        Saturation::Always => format!("{name}: saturated at all loads"),
        Saturation::Above(load) => format!("{name}: steady up to {load}"),
    }
}

/// Where a mode saturates.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Saturation {
    Never,
    Always,
    /// Between this load and the next one of the sweep.
    Above(f64),
}

fn saturation(mode: &[Sample]) -> Saturation {
    let steady = mode.iter().take_while(|sample| !sample.saturated);
    match (steady.last(), mode.iter().any(|sample| sample.saturated)) {
        (_, false) => Saturation::Never,
        (None, true) => Saturation::Always,
        (Some(last), true) => Saturation::Above(last.load),
    }
}

/// The highest load before saturation of each mode.
fn saturations(modes: &[&[Sample]]) -> Vec<Mark> {
    let is_alone = modes.len() < 2;
    let of = |(mode, &colour): (&&[Sample], &Colour)| match saturation(mode) {
        Saturation::Above(load) => Some(Mark {
            x: load,
            label: load.to_string(),
            name: match is_alone {
                true => format!("saturation: steady up to {load}"),
                false => "saturation: steady up to there".to_owned(),
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
fn bounds(modes: &[&[Sample]]) -> Vec<Mark> {
    let is_alone = modes.len() < 2;
    let mut bounds: Vec<(f64, Colour, Vec<&str>)> = Vec::new();
    for (mode, &colour) in modes.iter().zip(COLOURS.iter().cycle()) {
        let Some(load) = mode[0].bound else { continue };
        let name = mode[0].routing.as_deref().unwrap_or("");
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

/// What names have in common from their beginning up to a comma, in brackets.
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
            accepted_load: load.min(0.7),
            saturated,
            latency_mean: Some(latency),
            latency_p99: Some(2.0 * latency),
            topology: "r1-32".to_owned(),
            traffic: "uniform".to_owned(),
            seeds: 1,
            ..Sample::default()
        }
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
            saturation(&all)
        };
        assert_eq!(at(&[false, false, true]), Saturation::Above(0.4));
        assert_eq!(at(&[false, true, false]), Saturation::Above(0.2));
        assert_eq!(at(&[true, true, true]), Saturation::Always);
        assert_eq!(at(&[false, false, false]), Saturation::Never);
    }

    #[test]
    fn the_scale_is_of_what_is_steady() {
        let all = [
            sample(0.2, 50.0, false),
            sample(0.4, 100.0, false),
            sample(0.6, 9e6, true),
        ];
        assert_eq!(highest(&all), 250.0);
        assert_eq!(
            highest(&[sample(0.2, 50.0, false), sample(0.4, 4e3, false)]),
            600.0
        );
        assert_eq!(highest(&[]), 1.0);
    }

    #[test]
    fn points_past_saturation_are_not_drawn_as_latency() {
        let all = [sample(0.2, 50.0, false), sample(0.6, 60.0, true)];
        let drawing = svg(&all).expect("a drawing");
        for words in [
            "r1-32: uniform traffic",
            "past saturation: queues grow,",
            "mean latency",
        ] {
            assert!(drawing.contains(words), "{words}");
        }
        let steady = svg(&all[..1]).expect("a drawing");
        assert!(!steady.contains("past saturation") && !steady.contains("saturation: steady"));
        assert!(drawing.contains("saturation: steady up to"));
        let mut bands = all.to_vec();
        bands[0].latency_mean_half_width_95 = Some(4.0);
        assert!(!drawing.contains("95 % interval"));
        assert!(
            svg(&bands)
                .expect("a drawing")
                .contains("95 % interval over seeds")
        );
        assert!(svg(&[]).is_err());
    }
}
