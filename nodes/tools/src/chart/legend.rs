//! The legend at the side of the panels.

use super::{Chart, Colour, GREY, Stroke};

/// Maximum number of letters per line of the legend.
const MOST_LETTERS: usize = 30;

/// The symbol of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A piece of a curve.
    Line(Stroke),
    /// A piece of a vertical line, dotted or dashed.
    Upright { is_dotted: bool },
    /// A point past saturation.
    Hollow,
    /// A piece of a band.
    Band,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub key: Key,
    pub colour: Colour,
    /// Text of the entry, in lines.
    pub lines: Vec<String>,
}

/// The entries: curves, vertical lines, and other marks that need an explanation.
pub(super) fn entries(chart: &Chart) -> Vec<Entry> {
    let entry = |key, colour, words: &str| Entry {
        key,
        colour,
        lines: broken(words),
    };
    let curves = chart.panels.iter().flat_map(|panel| &panel.curves);
    let named = curves.filter(|curve| !curve.name.is_empty() && !curve.points.is_empty());
    let mut all: Vec<Entry> = Vec::new();
    let lines = named.map(|curve| entry(Key::Line(curve.stroke), curve.colour, &curve.name));
    let marks = chart
        .marks
        .iter()
        .filter(|mark| !mark.name.is_empty())
        .map(|mark| {
            let is_dotted = mark.is_dotted;
            // Lines of the same name share one entry, even if their colours differ.
            let mut others = chart.marks.iter().filter(|other| other.name == mark.name);
            let colour = match others.all(|other| other.colour == mark.colour) {
                true => mark.colour,
                false => GREY,
            };
            entry(Key::Upright { is_dotted }, colour, &mark.name)
        });
    for one in lines.chain(marks) {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    if chart.has_unsteady() {
        all.push(entry(Key::Hollow, GREY, &chart.unsteady));
    }
    if chart.has_bands() {
        all.push(entry(Key::Band, GREY, &chart.band));
    }
    all
}

/// Wraps text; only words longer than a line exceed it.
pub(super) fn broken(words: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= MOST_LETTERS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
