//! The latency-load curve as a drawing.

use miette::miette;
use plotters::prelude::*;

use super::measure::Measured;

const SIZE: (u32, u32) = (900, 560);
/// Latencies above so many times the lowest mean are not drawn: a saturated network has none.
const HIGHEST: f64 = 12.0;

/// Draws mean, 99th percentile and accepted load over offered load, as SVG.
///
/// # Errors
/// Nothing to draw, or a drawing that fails.
pub fn svg(title: &str, all: &[Measured]) -> miette::Result<String> {
    let mut text = String::new();
    draw(title, all, &mut text).map_err(|error| miette!("cannot draw: {error}"))?;
    Ok(text)
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
        .x_desc("offered load (fraction of a port's phit rate)")
        .y_desc("latency in cycles of 1.25 ns")
        .label_style(("sans-serif", 14))
        .draw()?;
    chart
        .configure_secondary_axes()
        .y_desc("accepted load")
        .label_style(("sans-serif", 14))
        .draw()?;
    let latency = |of: fn(&Measured) -> f64| {
        all.iter()
            .filter(|m| m.report.latency_cycles.count > 0)
            .map(move |m| (m.load.fraction(), of(m)))
            .filter(move |&(_, y)| y <= highest * 1.05)
            .collect::<Vec<_>>()
    };
    type Curve = (&'static str, RGBColor, fn(&Measured) -> f64);
    let curves: [Curve; 2] = [
        ("mean latency", BLUE, |m| m.report.latency_cycles.mean),
        ("99th percentile", RED, |m| {
            m.report.latency_cycles.p99 as f64
        }),
    ];
    for (name, colour, of) in curves {
        let points = latency(of);
        chart
            .draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        chart.draw_series(points.iter().map(|&at| Circle::new(at, 3, colour.filled())))?;
    }
    let green = RGBColor(0, 130, 60);
    let accepted: Vec<_> = all
        .iter()
        .map(|m| (m.load.fraction(), m.report.accepted_load))
        .collect();
    chart
        .draw_secondary_series(LineSeries::new(accepted, green.stroke_width(2)))?
        .label("accepted load (right)")
        .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], green.stroke_width(2)));
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .label_font(("sans-serif", 14))
        .draw()?;
    root.present()?;
    drop(chart);
    Ok(())
}
