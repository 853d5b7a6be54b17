//! The latency-load curve as a drawing.

use miette::miette;
use plotters::chart::DualCoordChartContext;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::measure::Measured;

const SIZE: (u32, u32) = (900, 560);
/// Latencies above this multiple of the lowest mean are not drawn: a saturated network has none.
const HIGHEST: f64 = 12.0;

/// Colours of several modes.
const COLOURS: [RGBColor; 8] = [
    BLUE,
    RED,
    RGBColor(0, 130, 60),
    RGBColor(200, 120, 0),
    RGBColor(130, 0, 160),
    RGBColor(0, 150, 170),
    RGBColor(110, 70, 30),
    BLACK,
];
/// Colour of what is measured on the right scale.
const GREEN: RGBColor = RGBColor(0, 130, 60);

/// Draws mean, 99th percentile and accepted load over offered load, as SVG; of several routing
/// modes mean and accepted load. Bounds, where they are known, are upright lines.
///
/// # Errors
/// Nothing to draw, or a drawing that fails.
pub fn svg(title: &str, all: &[Measured]) -> miette::Result<String> {
    let curves = curves(all);
    let mut text = String::new();
    draw(title, all, &curves, &mut text).map_err(|error| miette!("cannot draw: {error}"))?;
    Ok(text)
}

type Points = Vec<(f64, f64)>;

/// A line to draw.
struct Curve {
    name: String,
    colour: RGBColor,
    /// Load and latency; or load and accepted load, for the right scale.
    points: Points,
    is_accepted: bool,
}

/// The curves of all modes, or of the only one.
fn curves(all: &[Measured]) -> Vec<Curve> {
    let load = |m: &Measured| m.load.fraction();
    let latencies = |part: &[Measured], of: fn(&Measured) -> f64| -> Points {
        let measured = part.iter().filter(|m| m.report.latency_cycles.count > 0);
        measured.map(|m| (load(m), of(m))).collect()
    };
    let mean = |m: &Measured| m.report.latency_cycles.mean;
    let accepted = |part: &[Measured]| {
        part.iter()
            .map(|m| (load(m), m.report.accepted_load))
            .collect()
    };
    let parts: Vec<&[Measured]> = all.chunk_by(|a, b| a.routing == b.routing).collect();
    let curve = |name: &str, colour, points, is_accepted| Curve {
        name: name.to_owned(),
        colour,
        points,
        is_accepted,
    };
    if parts.len() < 2 {
        let slowest = |m: &Measured| m.report.latency_cycles.p99 as f64;
        return vec![
            curve("mean latency", BLUE, latencies(all, mean), false),
            curve("99th percentile", RED, latencies(all, slowest), false),
            curve("accepted load (right)", GREEN, accepted(all), true),
        ];
    }
    let mut curves = Vec::new();
    for (part, &colour) in parts.into_iter().zip(COLOURS.iter().cycle()) {
        let name = part[0].routing.unwrap_or("");
        curves.push(curve(name, colour, latencies(part, mean), false));
        curves.push(curve("", colour, accepted(part), true));
    }
    curves
}

/// An upright line at a load that cannot be exceeded.
struct Bound {
    name: String,
    colour: RGBColor,
    load: f64,
}

/// The bounds of all curves, each once, in the colour of the first curve that has it.
fn bounds(all: &[Measured]) -> Vec<Bound> {
    let parts: Vec<&[Measured]> = all.chunk_by(|a, b| a.routing == b.routing).collect();
    let is_alone = parts.len() < 2;
    let mut bounds: Vec<(f64, RGBColor, Vec<&str>)> = Vec::new();
    for (part, &colour) in parts.into_iter().zip(COLOURS.iter().cycle()) {
        let Some(load) = part[0].bound else { continue };
        let name = part[0].routing.unwrap_or("");
        let colour = if is_alone { BLACK } else { colour };
        match bounds
            .iter_mut()
            .find(|(other, ..)| (other - load).abs() < 1e-3)
        {
            Some((.., names)) => names.push(name),
            None => bounds.push((load, colour, vec![name])),
        }
    }
    let is_one = bounds.len() == 1;
    let named = |(load, colour, names): (f64, RGBColor, Vec<&str>)| {
        let whose = if is_one {
            String::new()
        } else {
            common(&names)
        };
        let name = format!("bound {load:.3} {whose}").trim_end().to_owned();
        Bound { name, colour, load }
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

/// What latencies are told in.
fn cycles_of(all: &[Measured]) -> String {
    let ps = all.first().map_or(0, |measured| measured.cycle.as_ps());
    format!("latency in cycles of {} ns", ps as f64 / 1e3)
}

/// Latency at the upper end of the scale.
fn highest(all: &[Measured]) -> Result<f64, Box<dyn std::error::Error>> {
    let lowest = all
        .iter()
        .map(|m| m.report.latency_cycles.mean)
        .filter(|&mean| mean > 0.0)
        .fold(f64::INFINITY, f64::min);
    if !lowest.is_finite() {
        return Err("no packet was measured".into());
    }
    Ok(all
        .iter()
        .map(|m| m.report.latency_cycles.p99 as f64)
        .fold(lowest, f64::max)
        .min(lowest * HIGHEST))
}

fn draw(
    title: &str,
    all: &[Measured],
    curves: &[Curve],
    text: &mut String,
) -> Result<(), Box<dyn std::error::Error>> {
    let highest = highest(all)?;
    let right = all.iter().map(|m| m.load.fraction()).fold(0.0, f64::max);
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .right_y_label_area_size(64)
        .build_cartesian_2d(0.0..right, 0.0..highest * 1.05)?
        .set_secondary_coord(0.0..right, 0.0..1.0);
    chart
        .configure_mesh()
        .x_desc("offered load (fraction of a port's rate)")
        .y_desc(cycles_of(all))
        .label_style(("sans-serif", 14))
        .max_light_lines(2)
        .draw()?;
    chart
        .configure_secondary_axes()
        .y_desc(if curves.iter().any(|curve| curve.name.is_empty()) {
            "accepted load (dashed)"
        } else {
            "accepted load"
        })
        .label_style(("sans-serif", 14))
        .draw()?;
    let top = highest * 1.05;
    let bounds: Vec<Bound> = bounds(all)
        .into_iter()
        .filter(|b| b.load <= right)
        .collect();
    let position = legend_position(curves, &bounds, right, top);
    for curve in curves {
        draw_curve(&mut chart, curve, top)?;
    }
    for Bound { name, colour, load } in bounds {
        let line = colour.stroke_width(1);
        let upright = [(load, 0.0), (load, top)];
        chart
            .draw_series(DashedLineSeries::new(upright, 2, 3, line))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x + 9, y - 6), (x + 9, y + 6)], line));
    }
    chart
        .configure_series_labels()
        .position(position)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .label_font(("sans-serif", 14))
        .draw()?;
    root.present()?;
    drop(chart);
    Ok(())
}

type Scales = Cartesian2d<RangedCoordf64, RangedCoordf64>;
type Chart<'a, 'b> = DualCoordChartContext<'a, SVGBackend<'b>, Scales, Scales>;

/// Draws a curve, of latency as far as `top`.
fn draw_curve(
    chart: &mut Chart<'_, '_>,
    curve: &Curve,
    top: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let line = curve.colour.stroke_width(2);
    let legend = move |(x, y)| PathElement::new([(x, y), (x + 18, y)], line);
    let points = curve.points.iter().copied();
    if curve.is_accepted {
        if curve.name.is_empty() {
            chart.draw_secondary_series(DashedLineSeries::new(points, 6, 4, line))?;
        } else {
            chart
                .draw_secondary_series(LineSeries::new(points, line))?
                .label(&curve.name)
                .legend(legend);
        }
        return Ok(());
    }
    chart
        .draw_series(LineSeries::new(up_to(top, &curve.points), line))?
        .label(&curve.name)
        .legend(legend);
    let within = points.filter(|&(_, y)| y <= top);
    chart.draw_series(within.map(|at| Circle::new(at, 3, curve.colour.filled())))?;
    Ok(())
}

/// A curve as far as it is not above `top` for the first time: it ends there, so that it is seen to go on.
fn up_to(top: f64, points: &[(f64, f64)]) -> Points {
    let inside = points.iter().take_while(|&&(_, y)| y <= top).count();
    let mut shown = points[..inside].to_vec();
    if let (Some(&(x0, y0)), Some(&(x1, y1))) = (shown.last(), points.get(inside)) {
        shown.push((x0 + (x1 - x0) * (top - y0) / (y1 - y0), top));
    }
    shown
}

/// Parts of the width and of the height that a legend takes, at most.
const LEGEND: (f64, f64) = (0.36, 0.3);
/// Where it may stand, and the part of the width and of the height where its left lower corner is
/// then.
const CORNERS: [(SeriesLabelPosition, f64, f64); 3] = [
    (SeriesLabelPosition::UpperLeft, 0.0, 1.0 - LEGEND.1),
    (
        SeriesLabelPosition::UpperRight,
        1.0 - LEGEND.0,
        1.0 - LEGEND.1,
    ),
    (
        SeriesLabelPosition::MiddleRight,
        1.0 - LEGEND.0,
        0.5 - LEGEND.1 / 2.0,
    ),
];

/// Where the legend hides least of curves and bounds; the first such place.
fn legend_position(
    curves: &[Curve],
    bounds: &[Bound],
    right: f64,
    top: f64,
) -> SeriesLabelPosition {
    let mut hidden = [0_usize; CORNERS.len()];
    let mut meet = |x: f64, y: f64| {
        for (hidden, (_, left, low)) in hidden.iter_mut().zip(&CORNERS) {
            let is_inside =
                (*left..left + LEGEND.0).contains(&x) && (*low..low + LEGEND.1).contains(&y);
            *hidden += usize::from(is_inside);
        }
    };
    // So many places of each line are looked at.
    let places = 50;
    let between = |a: f64, b: f64, n: i32| a + (b - a) * f64::from(n) / f64::from(places);
    for curve in curves {
        let (points, scale) = match curve.is_accepted {
            true => (curve.points.clone(), 1.0),
            false => (up_to(top, &curve.points), top),
        };
        for (a, b) in points.iter().zip(points.iter().skip(1)) {
            for n in 0..places {
                meet(between(a.0, b.0, n) / right, between(a.1, b.1, n) / scale);
            }
        }
    }
    for bound in bounds {
        for n in 0..places {
            meet(bound.load / right, between(0.0, 1.0, n));
        }
    }
    let least = hidden
        .into_iter()
        .zip(CORNERS)
        .min_by_key(|(hidden, _)| *hidden);
    least.map_or(SeriesLabelPosition::UpperLeft, |(_, (position, ..))| {
        position
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bounds_share_names_them() {
        assert_eq!(common(&["steady, one", "steady, other"]), "(steady)");
        assert_eq!(common(&["steady, one"]), "(steady, one)");
        assert_eq!(common(&["steady, one", "steadier, one"]), "");
        assert_eq!(common(&[""]), "");
    }

    #[test]
    fn curves_end_at_the_top() {
        let points = [(0.1, 50.0), (0.2, 60.0), (0.4, 160.0), (0.5, 90.0)];
        assert_eq!(
            up_to(110.0, &points),
            [(0.1, 50.0), (0.2, 60.0), (0.30000000000000004, 110.0)]
        );
        assert_eq!(up_to(200.0, &points), points);
        assert_eq!(up_to(40.0, &points), []);
    }

    #[test]
    fn the_legend_is_where_it_hides_least() {
        let curve = |points: &[(f64, f64)]| Curve {
            name: "steady".to_owned(),
            colour: BLUE,
            points: points.to_vec(),
            is_accepted: false,
        };
        let is_left = |points: &[(f64, f64)], bounds: &[Bound]| {
            let position = legend_position(&[curve(points)], bounds, 1.0, 100.0);
            matches!(position, SeriesLabelPosition::UpperLeft)
        };
        let (early, late) = ([(0.1, 50.0), (0.3, 200.0)], [(0.1, 50.0), (0.9, 100.0)]);
        assert!(!is_left(&early, &[]) && is_left(&late, &[]));
        assert!(is_left(&[(0.1, 50.0), (0.9, 60.0)], &[]));
        let bound = Bound {
            name: String::new(),
            colour: BLUE,
            load: 0.2,
        };
        assert!(!is_left(&[(0.1, 50.0), (0.9, 60.0)], &[bound]));
        let both = [curve(&early), curve(&late)];
        let position = legend_position(&both, &[], 1.0, 100.0);
        assert!(matches!(position, SeriesLabelPosition::MiddleRight));
    }
}
