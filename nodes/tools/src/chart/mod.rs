//! Line charts: stacked panels with a common horizontal scale.
//!
//! All commands use them: the latency-load curves of `phitwire sim`, and the measuring tools'
//! results over size or loss. Ticks are at round numbers. The legend is outside the panels and
//! hides nothing. Bands show the spread over several runs. Points that are not steady (past
//! saturation) are drawn differently.

mod draw;
mod layout;
mod legend;
mod scale;

use miette::miette;

pub use scale::Scale;

pub type Colour = (u8, u8, u8);

/// Colours of curves, in order of use.
pub const COLOURS: [Colour; 8] = [
    (31, 90, 180),
    (200, 50, 40),
    (0, 130, 60),
    (200, 120, 0),
    (130, 0, 160),
    (0, 150, 170),
    (110, 70, 30),
    (40, 40, 40),
];

/// The colour of auxiliary lines, such as the one on which all offered load is accepted.
pub const GREY: Colour = (120, 128, 138);

/// The quantity on a scale, and its range.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The quantity, with its unit.
    pub name: String,
    pub scale: Scale,
    /// Smallest and largest value shown.
    pub range: (f64, f64),
}

impl Axis {
    /// Whether a value is within the range.
    pub fn shows(&self, value: f64) -> bool {
        let (low, high) = self.range;
        self.scale.has(value) && (low..=high).contains(&value)
    }
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Position on the common scale.
    pub x: f64,
    pub y: f64,
    /// Half-width of its 95 % interval; zero for a single run, or if it has no meaning.
    pub half_width: f64,
    /// Whether a longer run would give the same result.
    pub is_steady: bool,
}

impl Point {
    /// A point of one run in a steady state.
    pub const fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            half_width: 0.0,
            is_steady: true,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// A line with a dot at each point.
    Solid,
    /// A dashed line with a dot at each point.
    Dashed,
    /// A thin line without dots, for quantities that are not measured.
    Thin,
}

#[derive(Clone, Debug)]
pub struct Curve {
    /// Text of the curve in the legend. If empty, another curve of the same colour explains it.
    pub name: String,
    pub colour: Colour,
    pub stroke: Stroke,
    /// Points of the curve, from left to right.
    pub points: Vec<Point>,
}

/// A panel: curves over a vertical scale.
#[derive(Clone, Debug)]
pub struct Panel {
    pub axis: Axis,
    /// The panel's share of the height.
    pub share: u32,
    /// The curves, topmost last.
    pub curves: Vec<Curve>,
}

/// A vertical line through all panels.
#[derive(Clone, Debug)]
pub struct Mark {
    pub x: f64,
    /// The number above the line. With many lines only the legend has numbers, so `name` or that
    /// of a curve must state it, too.
    pub label: String,
    /// Text of the mark in the legend.
    pub name: String,
    pub colour: Colour,
    /// Whether the line is dotted instead of dashed.
    pub is_dotted: bool,
}

/// A chart with its title and legend.
#[derive(Clone, Debug)]
pub struct Chart {
    pub title: String,
    /// Conditions of the measurement, in smaller letters.
    pub subtitle: String,
    /// The scale that all panels share.
    pub x: Axis,
    /// The panels, from top to bottom.
    pub panels: Vec<Panel>,
    pub marks: Vec<Mark>,
    /// The legend's text for points that are not steady.
    pub unsteady: String,
    /// The legend's text for bands.
    pub band: String,
}

impl Chart {
    /// Renders the chart as an SVG document.
    ///
    /// # Errors
    /// If there is nothing to draw, or drawing fails.
    pub fn svg(&self) -> miette::Result<String> {
        let curves = self.panels.iter().flat_map(|panel| &panel.curves);
        let mut measured = curves.filter(|curve| curve.stroke != Stroke::Thin);
        if measured.all(|curve| curve.points.is_empty()) {
            return Err(miette!("cannot draw: no measurements"));
        }
        let mut text = String::new();
        draw::draw(self, &mut text).map_err(|error| miette!("cannot draw: {error}"))?;
        Ok(text)
    }

    fn has_bands(&self) -> bool {
        self.points().any(|point| point.half_width > 0.0)
    }

    /// Whether a point that is not steady is visible.
    fn has_unsteady(&self) -> bool {
        let is_visible = |panel: &Panel, point: &Point| {
            !point.is_steady && self.x.shows(point.x) && panel.axis.shows(point.y)
        };
        self.panels.iter().any(|panel| {
            let mut points = panel.curves.iter().flat_map(|curve| &curve.points);
            points.any(|point| is_visible(panel, point))
        })
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        let curves = self.panels.iter().flat_map(|panel| &panel.curves);
        curves.flat_map(|curve| &curve.points)
    }
}

/// A range with round ends around those `values` that the scale can show; `None` if it can show
/// none.
pub fn around(scale: Scale, values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let shown = values.into_iter().filter(|&value| scale.has(value));
    let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    (low <= high).then(|| scale.around(low, high))
}

#[cfg(test)]
mod tests;
