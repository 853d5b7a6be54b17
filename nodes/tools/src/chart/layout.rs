//! Sizes and positions of the parts of a chart.

use super::legend::Entry;
use super::{Axis, Chart, Colour, GREY};

/// Width of the panels, including the numbers at their sides.
pub(super) const WIDTH: i32 = 700;
/// Height of all panels together, without title and scale: at least this, at most the other where
/// the legend is higher.
const HEIGHT: i32 = 440;
const MOST_HEIGHT: i32 = 600;
pub(super) const MARGIN: i32 = 16;
/// Height of the title without the subtitle.
pub(super) const TITLE: i32 = 30;
/// Height of a row of numbers above vertical lines.
const ROW: i32 = 16;
/// Maximum number of such rows. If more are needed, only the legend has the numbers.
const MOST_ROWS: usize = 3;
/// Space between the first panel and the numbers above it: more than the radius of a point.
const ABOVE: i32 = 6;
/// Space for the numbers left of the panels and below them.
pub(super) const LEFT: i32 = 76;
pub(super) const BELOW: i32 = 48;
const BETWEEN: i32 = 14;
/// Sizes in the legend: height of a line, space between entries, width of a letter and of a key.
pub(super) const LINE: i32 = 17;
pub(super) const APART: i32 = 7;
const LETTER: f64 = 6.7;
pub(super) const KEY: i32 = 34;

/// A number above a vertical line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Label<'a> {
    pub text: &'a str,
    pub colour: Colour,
    /// The middle of its lower edge.
    pub position: (i32, i32),
}

pub(super) struct Layout<'a> {
    pub labels: Vec<Label<'a>>,
    /// The upper edge of the first panel.
    pub top: i32,
    /// Upper edge and height of each panel.
    pub panels: Vec<(i32, i32)>,
    pub size: (i32, i32),
}

/// Pixels from the left edge of the panels to a value.
fn across(x: &Axis, value: f64) -> i32 {
    let (low, high) = (x.scale.position(x.range.0), x.scale.position(x.range.1));
    let part = (x.scale.position(value) - low) / (high - low);
    (part * f64::from(WIDTH - LEFT)).round() as i32
}

/// Half of the width of a number, and half of the space to its neighbours.
fn half_width(text: &str) -> i32 {
    (text.len() as f64 * LETTER / 2.0) as i32 + 3
}

/// The numbers above the vertical lines, in as many rows as they need in order not to overlap, with
/// their positions relative to the upper edge of the first panel; and the number of rows. Equal
/// numbers at one position are one.
pub(super) fn labels(chart: &Chart) -> (Vec<Label<'_>>, usize) {
    let mut marks: Vec<_> = chart.marks.iter().collect();
    marks.sort_by(|a, b| a.x.total_cmp(&b.x));
    let mut labels: Vec<Label<'_>> = Vec::new();
    // The right end of each row.
    let mut ends: Vec<i32> = Vec::new();
    for mark in marks {
        let at = MARGIN + LEFT + across(&chart.x, mark.x);
        let is_same = |label: &&mut Label<'_>| label.text == mark.label && label.position.0 == at;
        if let Some(label) = labels.iter_mut().find(is_same) {
            if label.colour != mark.colour {
                label.colour = GREY;
            }
            continue;
        }
        let half = half_width(&mark.label);
        let row = ends.iter().position(|&end| end < at - half);
        let row = row.unwrap_or(ends.len());
        match ends.get_mut(row) {
            Some(end) => *end = at + half,
            None => ends.push(at + half),
        }
        labels.push(Label {
            text: &mark.label,
            colour: mark.colour,
            position: (at, -ABOVE - ROW * row as i32),
        });
    }
    match ends.len() {
        rows @ ..=MOST_ROWS => (labels, rows),
        _ => (Vec::new(), 0),
    }
}

impl<'a> Layout<'a> {
    pub(super) fn new(chart: &'a Chart, entries: &[Entry]) -> Self {
        let (mut labels, rows) = labels(chart);
        let subtitle = if chart.subtitle.is_empty() { 0 } else { 20 };
        let top = MARGIN + TITLE + subtitle + ROW * rows as i32 + ABOVE;
        for label in &mut labels {
            label.position.1 += top;
        }
        let of_entry = |entry: &Entry| LINE * entry.lines.len() as i32 + APART;
        let legend: i32 = entries.iter().map(of_entry).sum();
        let all_panels = HEIGHT.max((legend - BELOW).min(MOST_HEIGHT));
        let shares: u32 = chart.panels.iter().map(|panel| panel.share).sum();
        let between = BETWEEN * (chart.panels.len() as i32 - 1);
        let mut panels = Vec::new();
        let mut y = top;
        for panel in &chart.panels {
            let height = (all_panels - between) * panel.share as i32 / shares.max(1) as i32;
            panels.push((y, height));
            y += height + BETWEEN;
        }
        let lines = entries.iter().flat_map(|entry| &entry.lines);
        let longest = lines.map(String::len).max().unwrap_or(0);
        let beside = match entries.is_empty() {
            true => 10,
            false => KEY + (longest as f64 * LETTER) as i32 + 12,
        };
        let height = (y - BETWEEN + BELOW).max(top + legend) + MARGIN;
        let title = (chart.title.len() as f64 * 9.6) as i32 + 2 * MARGIN;
        let width = (MARGIN + WIDTH + 14 + beside + MARGIN).max(title);
        Self {
            labels,
            top,
            panels,
            size: (width, height),
        }
    }
}
