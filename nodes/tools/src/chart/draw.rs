//! Draws a chart as SVG.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::legend::{Entry, Key, entries};
use super::{Axis, Chart, Colour, Curve, GREY, Panel, Point, Stroke};

/// Width of the panels, including the numbers at their sides.
const WIDTH: i32 = 700;
/// Height of all panels together, without title and scale.
const HEIGHT: i32 = 440;
const MARGIN: i32 = 16;
/// Height of the title without the subtitle.
const TITLE: i32 = 30;
/// Height of a row of numbers above vertical lines.
const ROW: i32 = 16;
/// Space for the numbers left of the panels and below them.
const LEFT: i32 = 76;
const BELOW: i32 = 48;
const BETWEEN: i32 = 14;
/// Sizes in the legend: height of a line, space between entries, width of a letter and of a key.
const LINE: i32 = 17;
const APART: i32 = 7;
const LETTER: f64 = 6.7;
const KEY: i32 = 34;

type Failure = Box<dyn std::error::Error>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Context<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Ticked, Ticked>>;

fn rgb((red, green, blue): Colour) -> RGBColor {
    RGBColor(red, green, blue)
}

struct Layout {
    /// The row of each number above the vertical lines.
    rows: Vec<i32>,
    /// The upper edge of the first panel.
    top: i32,
    /// Upper edge and height of each panel.
    panels: Vec<(i32, i32)>,
    size: (i32, i32),
}

/// Pixels from the left edge of the panels to a value.
fn across(x: &Axis, value: f64) -> i32 {
    let (low, high) = (x.scale.place(x.range.0), x.scale.place(x.range.1));
    let part = (x.scale.place(value) - low) / (high - low);
    (part * f64::from(WIDTH - LEFT)).round() as i32
}

impl Layout {
    fn new(chart: &Chart, entries: &[Entry]) -> Self {
        // Stack numbers in rows where they would overlap.
        let mut ends: Vec<i32> = Vec::new();
        let mut order: Vec<usize> = (0..chart.marks.len()).collect();
        order.sort_by(|&a, &b| chart.marks[a].x.total_cmp(&chart.marks[b].x));
        let mut rows = vec![0; chart.marks.len()];
        for mark in order {
            let at = across(&chart.x, chart.marks[mark].x);
            let half = (chart.marks[mark].label.len() as f64 * LETTER / 2.0) as i32 + 3;
            let free = ends.iter().position(|&end| end < at - half);
            let row = free.unwrap_or(ends.len());
            match ends.get_mut(row) {
                Some(end) => *end = at + half,
                None => ends.push(at + half),
            }
            rows[mark] = row as i32;
        }
        let subtitle = if chart.subtitle.is_empty() { 0 } else { 20 };
        let top = MARGIN + TITLE + subtitle + ROW * ends.len() as i32 + 4;
        let shares: u32 = chart.panels.iter().map(|panel| panel.share).sum();
        let between = BETWEEN * (chart.panels.len() as i32 - 1);
        let mut panels = Vec::new();
        let mut y = top;
        for panel in &chart.panels {
            let height = (HEIGHT - between) * panel.share as i32 / shares.max(1) as i32;
            panels.push((y, height));
            y += height + BETWEEN;
        }
        let lines = entries.iter().flat_map(|entry| &entry.lines);
        let longest = lines.map(String::len).max().unwrap_or(0);
        let beside = match entries.is_empty() {
            true => 10,
            false => KEY + (longest as f64 * LETTER) as i32 + 12,
        };
        let of_entry = |entry: &Entry| LINE * entry.lines.len() as i32 + APART;
        let legend: i32 = entries.iter().map(of_entry).sum();
        let height = (y - BETWEEN + BELOW).max(top + legend) + MARGIN;
        let title = (chart.title.len() as f64 * 9.6) as i32 + 2 * MARGIN;
        let width = (MARGIN + WIDTH + 14 + beside + MARGIN).max(title);
        Self {
            rows,
            top,
            panels,
            size: (width, height),
        }
    }
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
    for (mark, row) in chart.marks.iter().zip(&layout.rows) {
        let font = ("sans-serif", 12).into_font().color(&rgb(mark.colour));
        let centred = font.pos(Pos::new(HPos::Center, VPos::Bottom));
        let at = MARGIN + LEFT + across(&chart.x, mark.x);
        root.draw_text(&mark.label, &centred, (at, layout.top - 3 - row * ROW))?;
    }
    draw_legend(&root, &entries, (MARGIN + WIDTH + 14, layout.top))?;
    root.present()?;
    Ok(())
}

/// A scale in screen coordinates, with its ticks.
struct Ticked {
    range: RangedCoordf64,
    ticks: Vec<f64>,
}

impl Ticked {
    fn new(axis: &Axis) -> Self {
        let place = |value| axis.scale.place(value);
        let ticks = axis.scale.ticks(axis.range);
        Self {
            range: (place(axis.range.0)..place(axis.range.1)).into(),
            ticks: ticks.into_iter().map(place).collect(),
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
            true => Vec::new(),
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
    let label = |axis: &Axis, place: f64| axis.scale.label(axis.scale.value(place), axis.range);
    context
        .configure_mesh()
        .x_desc(if below > 0 { x.name.as_str() } else { "" })
        .y_desc(&y.name)
        .x_label_formatter(&|place| label(x, *place))
        .y_label_formatter(&|place| label(y, *place))
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 14))
        .bold_line_style(rgb(GREY).mix(0.25))
        .light_line_style(TRANSPARENT)
        .axis_style(rgb(GREY))
        .draw()?;
    for curve in &panel.curves {
        draw_band(&mut context, x, y, curve)?;
    }
    for mark in &chart.marks {
        let place = x.scale.place(mark.x);
        let ends = [y.range.0, y.range.1].map(|end| (place, y.scale.place(end)));
        let style = rgb(mark.colour).stroke_width(1);
        let (size, spacing) = if mark.is_dotted { (2, 3) } else { (7, 4) };
        context.draw_series(DashedLineSeries::new(ends, size, spacing, style))?;
    }
    for curve in &panel.curves {
        draw_curve(&mut context, x, y, curve)?;
    }
    Ok(())
}

/// Draws the known spreads of the points as a band between the ends of their intervals.
fn draw_band(
    context: &mut Context<'_, '_>,
    x: &Axis,
    y: &Axis,
    curve: &Curve,
) -> Result<(), Failure> {
    let style = rgb(curve.colour).mix(0.2).filled();
    let steady = curve.points.iter().copied();
    let steady: Vec<Point> = steady.filter(|point| point.is_steady).collect();
    if steady.iter().all(|point| point.half_width <= 0.0) {
        return Ok(());
    }
    let end = |point: Point, sign: f64| {
        let value = (point.y + sign * point.half_width).clamp(y.range.0, y.range.1);
        (x.scale.place(point.x), y.scale.place(value))
    };
    let upper = steady.iter().map(|&point| end(point, 1.0));
    let lower = steady.iter().rev().map(|&point| end(point, -1.0));
    context.draw_series([Polygon::new(upper.chain(lower).collect::<Vec<_>>(), style)])?;
    // Mark the ends of the intervals: a thin band, or one of a single point, would be invisible.
    for point in steady {
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
    let points: Vec<Point> = points.filter(|point| y.scale.has(point.y)).collect();
    let top = y.scale.place(y.range.1);
    let place = |point: &Point| (x.scale.place(point.x), y.scale.place(point.y));
    let colour = rgb(curve.colour);
    let steady = points.iter().take_while(|point| point.is_steady);
    let steady: Places = steady.map(place).collect();
    let from = steady.len().saturating_sub(1);
    let rest: Places = points[from..].iter().map(place).collect();
    let steady = up_to(top, &steady);
    let line = colour.stroke_width(2);
    match curve.stroke {
        Stroke::Solid => context.draw_series(LineSeries::new(steady, line))?,
        Stroke::Dashed => context.draw_series(DashedLineSeries::new(steady, 6, 4, line))?,
        Stroke::Thin => context.draw_series(LineSeries::new(steady, colour.stroke_width(1)))?,
    };
    if rest.len() > 1 {
        let line = colour.mix(0.6).stroke_width(1);
        for piece in pieces_below(top, &rest) {
            context.draw_series(DashedLineSeries::new(piece, 1, 3, line))?;
        }
    }
    if curve.stroke == Stroke::Thin {
        return Ok(());
    }
    for point in points.iter().filter(|point| place(point).1 <= top + 1e-9) {
        let fill = if point.is_steady { colour } else { WHITE };
        context.draw_series([Circle::new(place(point), 3, fill.filled())])?;
        context.draw_series([Circle::new(place(point), 3, colour.stroke_width(1))])?;
    }
    Ok(())
}

type Places = Vec<(f64, f64)>;

/// The point at which the line between two points crosses `top`.
fn crossing(top: f64, (x0, y0): (f64, f64), (x1, y1): (f64, f64)) -> (f64, f64) {
    (x0 + (x1 - x0) * (top - y0) / (y1 - y0), top)
}

/// A curve cut at its first crossing of `top`, so that it visibly leaves the panel.
pub(super) fn up_to(top: f64, points: &[(f64, f64)]) -> Places {
    let inside = points.iter().take_while(|&&(_, y)| y <= top).count();
    let mut shown = points[..inside].to_vec();
    if let (Some(&last), Some(&next)) = (shown.last(), points.get(inside)) {
        shown.push(crossing(top, last, next));
    }
    shown
}

/// The pieces of a line below `top`.
pub(super) fn pieces_below(top: f64, points: &[(f64, f64)]) -> Vec<Places> {
    let mut pieces: Vec<Places> = Vec::new();
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
