//! Positions in drawings.

use core::f64::consts::PI;

/// A position, or a width and height, in pixels.
pub type Point = (f64, f64);

/// Positions in columns and rows.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// Position of column 0, row 0.
    pub first: Point,
    /// Distance between columns, and between rows.
    pub step: Point,
}

impl Grid {
    pub fn at(&self, column: impl Into<f64>, row: impl Into<f64>) -> Point {
        (
            self.first.0 + column.into() * self.step.0,
            self.first.1 + row.into() * self.step.1,
        )
    }
}

/// Position `number` of `count` on a circle, clockwise from the top.
pub fn on_circle(middle: Point, radius: f64, number: u32, count: u32) -> Point {
    let angle = 2.0 * PI * f64::from(number) / f64::from(count.max(1)) - PI / 2.0;
    (
        middle.0 + radius * angle.cos(),
        middle.1 + radius * angle.sin(),
    )
}

/// The upper left and the lower right corner of the smallest box around `points`.
pub fn bounds(points: impl IntoIterator<Item = Point>) -> [Point; 2] {
    let none = [
        (f64::INFINITY, f64::INFINITY),
        (f64::NEG_INFINITY, f64::NEG_INFINITY),
    ];
    points.into_iter().fold(none, |[low, high], (x, y)| {
        [(low.0.min(x), low.1.min(y)), (high.0.max(x), high.1.max(y))]
    })
}

/// The title of a drawing of one part of a network, from the title of the whole.
pub fn title_of_part(whole: &str, part: impl core::fmt::Display) -> String {
    let (name, rest) = whole.split_once(": ").unwrap_or((whole, ""));
    format!("{name}, {part}: of {rest}")
}
