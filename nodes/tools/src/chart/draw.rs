//! Draws a chart as SVG.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::layout::{APART, BELOW, KEY, LEFT, LINE, Layout, MARGIN, TITLE, WIDTH};
use super::legend::{Entry, Key, entries};
use super::{Axis, Chart, Colour, Curve, GREY, Panel, Point, Stroke};

type Failure = Box<dyn std::error::Error>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Context<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Ticked, Ticked>>;

fn rgb((red, green, blue): Colour) -> RGBColor {
    RGBColor(red, green, blue)
}

pub(super) fn draw(chart: &Chart, text: &mut String) -> Result<(), Failure> {
    let entries = entries(chart);
    let layout = Layout::new(chart, &entries);
    let size = (layout.size.0 as u32, layout.size.1 as u32);
    let root = SVGBackend::with_string(text, size).into_drawing_area();
    root.fill(&WHITE)?;
    let title = ("sans-serif", 19).into_font().color(&BLACK);
    root.draw_text(&chart.title, &title, (MARGIN, MARGIN))?;
    let subtitle = ("sans-serif", 13).into_font().color(&rgb(GREY));
    root.draw_text(&chart.subtitle, &subtitle, (MARGIN, MARGIN + TITLE - 4))?;
    let last = chart.panels.len().saturating_sub(1);
    for (number, (panel, &(y, height))) in chart.panels.iter().zip(&layout.panels).enumerate() {
        let below = if number == last { BELOW } else { 0 };
        let area = root.clone().shrink((MARGIN, y), (WIDTH, height + below));
        draw_panel(&area, chart, panel, below)?;
    }
    for label in &layout.labels {
        let font = ("sans-serif", 12).into_font().color(&rgb(label.colour));
        let centred = font.pos(Pos::new(HPos::Center, VPos::Bottom));
        root.draw_text(label.text, &centred, label.position)?;
    }
    draw_legend(&root, &entries, (MARGIN + WIDTH + 14, layout.top))?;
    root.present()?;
    Ok(())
}

/// A scale in screen coordinates, with its ticks.
struct Ticked {
    range: RangedCoordf64,
    ticks: Vec<f64>,
    /// Positions of fine lines without labels.
    fine: Vec<f64>,
}

impl Ticked {
    fn new(axis: &Axis) -> Self {
        let position = |value| axis.scale.position(value);
        let ticks = axis.scale.ticks(axis.range);
        let fine = axis.scale.fine_ticks(axis.range);
        Self {
            range: (position(axis.range.0)..position(axis.range.1)).into(),
            ticks: ticks.into_iter().map(position).collect(),
            fine: fine.into_iter().map(position).collect(),
        }
    }
}

impl Ranged for Ticked {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.range.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            true => self.fine.clone(),
            false => self.ticks.clone(),
        }
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.range.range()
    }
}

fn draw_panel(area: &Area<'_>, chart: &Chart, panel: &Panel, below: i32) -> Result<(), Failure> {
    let (x, y) = (&chart.x, &panel.axis);
    let mut context = ChartBuilder::on(area)
        .x_label_area_size(below)
        .y_label_area_size(LEFT)
        .build_cartesian_2d(Ticked::new(x), Ticked::new(y))?;
    let label =
        |axis: &Axis, position: f64| axis.scale.label(axis.scale.value(position), axis.range);
    context
        .configure_mesh()
        .x_desc(if below > 0 { x.name.as_str() } else { "" })
        .y_desc(&y.name)
        .x_label_formatter(&|position| label(x, *position))
        .y_label_formatter(&|position| label(y, *position))
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 14))
        .bold_line_style(rgb(GREY).mix(0.25))
        .light_line_style(rgb(GREY).mix(0.1))
        .axis_style(rgb(GREY))
        .draw()?;
    for curve in &panel.curves {
        draw_band(&mut context, x, y, curve)?;
    }
    for mark in &chart.marks {
        let position = x.scale.position(mark.x);
        let ends = [y.range.0, y.range.1].map(|end| (position, y.scale.position(end)));
        let style = rgb(mark.colour).stroke_width(1);
        let (size, spacing) = if mark.is_dotted { (2, 3) } else { (7, 4) };
        context.draw_series(DashedLineSeries::new(ends, size, spacing, style))?;
    }
    for curve in &panel.curves {
        draw_curve(&mut context, x, y, curve)?;
    }
    Ok(())
}

/// Draws the known spreads of the points as a band between the ends of their intervals. A point
/// that is not steady is part of it only if its spread is known.
fn draw_band(
    context: &mut Context<'_, '_>,
    x: &Axis,
    y: &Axis,
    curve: &Curve,
) -> Result<(), Failure> {
    let style = rgb(curve.colour).mix(0.2).filled();
    let points = curve
        .points
        .iter()
        .copied()
        .filter(|point| x.scale.has(point.x));
    let known = points.filter(|point| point.is_steady || point.half_width > 0.0);
    let known: Vec<Point> = known.collect();
    if known.iter().all(|point| point.half_width <= 0.0) {
        return Ok(());
    }
    let end = |point: Point, sign: f64| {
        let value = (point.y + sign * point.half_width).clamp(y.range.0, y.range.1);
        (x.scale.position(point.x), y.scale.position(value))
    };
    let upper = known.iter().map(|&point| end(point, 1.0));
    let lower = known.iter().rev().map(|&point| end(point, -1.0));
    context.draw_series([Polygon::new(upper.chain(lower).collect::<Vec<_>>(), style)])?;
    // Mark the ends of the intervals: a thin band, or one of a single point, would be invisible.
    for point in known {
        let ends = [end(point, 1.0), end(point, -1.0)];
        let line = rgb(curve.colour).stroke_width(1);
        context.draw_series([PathElement::new(ends, line)])?;
    }
    Ok(())
}

/// Draws a curve up to the end of the scale. Its line joins steady points; a dotted one joins the
/// others.
fn draw_curve(
    context: &mut Context<'_, '_>,
    x: &Axis,
    y: &Axis,
    curve: &Curve,
) -> Result<(), Failure> {
    let points = curve.points.iter().copied();
    let can_show = |point: &Point| x.scale.has(point.x) && y.scale.has(point.y);
    let points: Vec<Point> = points.filter(can_show).collect();
    let top = y.scale.position(y.range.1);
    let position = |point: &Point| (x.scale.position(point.x), y.scale.position(point.y));
    let colour = rgb(curve.colour);
    let steady = points.iter().take_while(|point| point.is_steady);
    let steady: Points = steady.map(position).collect();
    let from = steady.len().saturating_sub(1);
    let rest: Points = points[from..].iter().map(position).collect();
    let steady = up_to(top, &steady);
    let line = colour.stroke_width(2);
    match curve.stroke {
        Stroke::Solid => context.draw_series(LineSeries::new(steady, line))?,
        Stroke::Dashed => context.draw_series(DashedLineSeries::new(steady, 6, 4, line))?,
        Stroke::Thin => context.draw_series(LineSeries::new(steady, colour.stroke_width(1)))?,
    };
    if rest.len() > 1 {
        for piece in pieces_below(top, &rest) {
            context.draw_series(DashedLineSeries::new(piece, 2, 3, colour.stroke_width(1)))?;
        }
    }
    if curve.stroke == Stroke::Thin {
        return Ok(());
    }
    for point in points
        .iter()
        .filter(|point| position(point).1 <= top + 1e-9)
    {
        let fill = if point.is_steady { colour } else { WHITE };
        context.draw_series([Circle::new(position(point), 3, fill.filled())])?;
        context.draw_series([Circle::new(position(point), 3, colour.stroke_width(1))])?;
    }
    Ok(())
}

type Points = Vec<(f64, f64)>;

/// The point at which the line between two points crosses `top`.
fn crossing(top: f64, (x0, y0): (f64, f64), (x1, y1): (f64, f64)) -> (f64, f64) {
    (x0 + (x1 - x0) * (top - y0) / (y1 - y0), top)
}

/// A curve cut at its first crossing of `top`, so that it visibly leaves the panel.
pub(super) fn up_to(top: f64, points: &[(f64, f64)]) -> Points {
    let inside = points.iter().take_while(|&&(_, y)| y <= top).count();
    let mut shown = points[..inside].to_vec();
    if let (Some(&last), Some(&next)) = (shown.last(), points.get(inside)) {
        shown.push(crossing(top, last, next));
    }
    shown
}

/// The pieces of a line below `top`.
pub(super) fn pieces_below(top: f64, points: &[(f64, f64)]) -> Vec<Points> {
    let mut pieces: Vec<Points> = Vec::new();
    let mut is_open = false;
    for pair in points.windows(2) {
        let [a, b] = [pair[0], pair[1]];
        let piece = match (a.1 <= top, b.1 <= top) {
            (true, true) => vec![a, b],
            (true, false) => vec![a, crossing(top, a, b)],
            (false, true) => vec![crossing(top, a, b), b],
            (false, false) => continue,
        };
        match pieces.last_mut().filter(|_| is_open && a.1 <= top) {
            Some(last) => last.extend(piece.into_iter().skip(1)),
            None => pieces.push(piece),
        }
        is_open = b.1 <= top;
    }
    pieces
}

fn draw_legend(root: &Area<'_>, entries: &[Entry], (x, mut y): (i32, i32)) -> Result<(), Failure> {
    let font = ("sans-serif", 13).into_font().color(&BLACK);
    for Entry { key, colour, lines } in entries {
        let (colour, middle) = (rgb(*colour), y + LINE / 2);
        let ends = [(x, middle), (x + 26, middle)];
        match key {
            Key::Line(stroke) => {
                let width = if *stroke == Stroke::Thin { 1 } else { 2 };
                let style = colour.stroke_width(width);
                let pieces: &[(i32, i32)] = match stroke {
                    Stroke::Dashed => &[(0, 7), (11, 16), (20, 26)],
                    _ => &[(0, 26)],
                };
                for (from, to) in pieces {
                    root.draw(&PathElement::new(
                        [(x + from, middle), (x + to, middle)],
                        style,
                    ))?;
                }
                if *stroke != Stroke::Thin {
                    root.draw(&Circle::new((x + 13, middle), 3, colour.filled()))?;
                }
            }
            Key::Upright { is_dotted } => {
                let pieces: &[(i32, i32)] = match is_dotted {
                    true => &[(-7, -5), (-2, 0), (3, 5)],
                    false => &[(-8, -2), (2, 8)],
                };
                for (from, to) in pieces {
                    let ends = [(x + 13, middle + from), (x + 13, middle + to)];
                    root.draw(&PathElement::new(ends, colour.stroke_width(2)))?;
                }
            }
            Key::Hollow => {
                for at in (0..26).step_by(4) {
                    let ends = [(x + at, middle), (x + at + 1, middle)];
                    root.draw(&PathElement::new(ends, colour.stroke_width(1)))?;
                }
                root.draw(&Circle::new((x + 13, middle), 3, WHITE.filled()))?;
                root.draw(&Circle::new((x + 13, middle), 3, colour.stroke_width(1)))?;
            }
            Key::Band => {
                let corners = [(x, middle - 6), (x + 26, middle + 6)];
                root.draw(&Rectangle::new(corners, colour.mix(0.3).filled()))?;
                root.draw(&PathElement::new(ends, colour.stroke_width(2)))?;
            }
        }
        for line in lines {
            root.draw_text(line, &font, (x + KEY, y + 2))?;
            y += LINE;
        }
        y += APART;
    }
    Ok(())
}
