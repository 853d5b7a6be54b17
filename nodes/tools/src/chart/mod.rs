//! Drawings of figures over figures: panels below each other that share an upright scale.
//!
//! One way of drawing for all commands: the latency-load curves of `phitwire sim`, and what the
//! measuring tools measure over size or loss. Ticks are at round numbers, the legend is beside the
//! panels where it hides nothing, spreads over several runs are bands, and points that are no
//! steady state (latency past saturation) look otherwise than those that are.

mod draw;
mod legend;
mod scale;

use miette::miette;

pub use scale::Scale;

/// A colour, as red, green and blue.
pub type Colour = (u8, u8, u8);

/// Colours of curves, in the order in which they are taken.
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

/// The colour of what stands beside the curves, such as the line of equal loads.
pub const GREY: Colour = (120, 128, 138);

/// What a scale measures, and from where to where.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What, with its unit.
    pub name: String,
    /// How far numbers are from each other.
    pub scale: Scale,
    /// Least and most that is shown.
    pub range: (f64, f64),
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where on the scale that all panels share.
    pub x: f64,
    /// How high.
    pub y: f64,
    /// Half of the width of its 95 % interval; zero if it is from one run.
    pub half_width: f64,
    /// Whether a longer run would give the same.
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

/// How the line of a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// A line with a dot at each point.
    Solid,
    /// A dashed line with a dot at each point.
    Dashed,
    /// A thin line without dots: no measurement.
    Thin,
}

/// A curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its words in the legend; those that have none are explained by another one of their colour.
    pub name: String,
    /// Its colour.
    pub colour: Colour,
    /// Its line.
    pub stroke: Stroke,
    /// Its points, from left to right.
    pub points: Vec<Point>,
}

/// A panel: a scale of its own, and curves.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The scale.
    pub axis: Axis,
    /// Its part of the height.
    pub share: u32,
    /// The curves, those on top last.
    pub curves: Vec<Curve>,
}

/// An upright line through all panels.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Where.
    pub x: f64,
    /// What stands above it: a number.
    pub label: String,
    /// Its words in the legend.
    pub name: String,
    /// Its colour.
    pub colour: Colour,
    /// Whether it is dotted or dashed.
    pub is_dotted: bool,
}

/// A drawing.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// How that was found, in smaller letters.
    pub subtitle: String,
    /// The scale that all panels share.
    pub x: Axis,
    /// The panels, from above.
    pub panels: Vec<Panel>,
    /// Upright lines.
    pub marks: Vec<Mark>,
    /// What points that are not steady are.
    pub unsteady: String,
    /// What bands are.
    pub band: String,
}

impl Chart {
    /// The drawing as an SVG document.
    ///
    /// # Errors
    /// Nothing to draw, or a drawing that fails.
    pub fn svg(&self) -> miette::Result<String> {
        let curves = self.panels.iter().flat_map(|panel| &panel.curves);
        let mut measured = curves.filter(|curve| curve.stroke != Stroke::Thin);
        if measured.all(|curve| curve.points.is_empty()) {
            return Err(miette!("cannot draw: nothing was measured"));
        }
        let mut text = String::new();
        draw::draw(self, &mut text).map_err(|error| miette!("cannot draw: {error}"))?;
        Ok(text)
    }

    /// Whether some curve has a band.
    fn has_bands(&self) -> bool {
        self.points().any(|point| point.half_width > 0.0)
    }

    /// Whether some point is not steady.
    fn has_unsteady(&self) -> bool {
        self.points().any(|point| !point.is_steady)
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        let curves = self.panels.iter().flat_map(|panel| &panel.curves);
        curves.flat_map(|curve| &curve.points)
    }
}

/// The least and the most of `values` that a scale can show, as round numbers; none if there are
/// no such values.
pub fn around(scale: Scale, values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let shown = values.into_iter().filter(|&value| scale.has(value));
    let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    (low <= high).then(|| scale.around(low, high))
}

#[cfg(test)]
mod tests;
