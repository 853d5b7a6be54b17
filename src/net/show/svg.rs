//! SVG drawings of networks.

use core::fmt::{Display, Write as _};

use super::layout::Point;

/// Colour of names and frames.
pub const INK: &str = "#22272e";
/// Colour of secondary text.
pub const FAINT: &str = "#6b7480";

/// A drawing, or a part of one, under construction. Texts are escaped.
#[derive(Default)]
pub struct Svg(String);

impl Svg {
    /// A drawing of this width and height in pixels. Its title begins at (x, y), and is split at
    /// the first colon into a large line and a small one below.
    pub fn new((width, height): Point, title: &str, (x, y): Point) -> Self {
        let mut svg = Self(String::new());
        svg.tag(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, sans-serif\">"
        ));
        svg.tag(format_args!("<title>{}</title>", escaped(title)));
        svg.tag(format_args!(
            "<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>"
        ));
        let (name, rest) = title.split_once(": ").unwrap_or((title, ""));
        svg.part("title", |svg| {
            svg.text(x, y, "start", 19.0, INK, name);
            svg.text(x, y + 22.0, "start", 12.5, FAINT, rest);
        });
        svg
    }

    /// Adds markup.
    pub fn tag(&mut self, tag: impl Display) {
        // Writing into a String never fails.
        let _ = writeln!(self.0, "{tag}");
    }

    /// Marks the output of `draw` as the links with these numbers, so that viewers of a live
    /// network can find them.
    pub fn links(
        &mut self,
        numbers: impl IntoIterator<Item = usize>,
        draw: impl FnOnce(&mut Self),
    ) {
        let numbers: Vec<_> = numbers.into_iter().map(|link| link.to_string()).collect();
        self.group("link", "links", &numbers.join(" "), draw);
    }

    /// Marks the output of `draw` as these nodes. `names` are separated by spaces, which node names
    /// cannot contain.
    pub fn nodes(&mut self, names: &str, draw: impl FnOnce(&mut Self)) {
        self.group("node", "nodes", names, draw);
    }

    /// Marks the output of `draw` as the drawing's `title` or `legend`, so that pages with their
    /// own can leave it out.
    pub fn part(&mut self, class: &str, draw: impl FnOnce(&mut Self)) {
        self.tag(format_args!("<g class=\"{class}\">"));
        draw(self);
        self.tag("</g>");
    }

    fn group(&mut self, class: &str, what: &str, of: &str, draw: impl FnOnce(&mut Self)) {
        let of = escaped(of);
        self.tag(format_args!("<g class=\"{class}\" data-{what}=\"{of}\">"));
        draw(self);
        self.tag("</g>");
    }

    /// Draws another drawing on top.
    pub fn append(&mut self, other: Self) {
        self.0.push_str(&other.0);
    }

    /// A box with its upper left corner at (x, y), and further attributes.
    pub fn frame(&mut self, (x, y): Point, (width, height): Point, style: &str) {
        self.tag(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" {style}/>"
        ));
    }

    /// A box around (x, y) with centred lines of text. Each line has its distance below (x, y),
    /// size, colour and words.
    pub fn block(
        &mut self,
        (x, y): Point,
        size: Point,
        style: &str,
        lines: &[(f64, f64, &str, &str)],
    ) {
        self.frame((x - size.0 / 2.0, y - size.1 / 2.0), size, style);
        for &(below, size, colour, words) in lines {
            self.text(x, y + below, "middle", size, colour, words);
        }
    }

    /// An entry of a legend at (x, y): a piece of a line, and words of this size.
    pub fn sample(&mut self, (x, y): Point, length: f64, style: &str, size: f64, words: &str) {
        self.path(format_args!("M{x:.1} {y:.1}h{length}"), style);
        self.text(x + length + 6.0, y + 4.0, "start", size, FAINT, words);
    }

    /// A line along `path`, straight or bent.
    pub fn path(&mut self, path: impl Display, style: &str) {
        self.tag(format_args!("<path d=\"{path}\" {style}/>"));
    }

    /// A text; draws nothing if it is empty.
    pub fn text(&mut self, x: f64, y: f64, anchor: &str, size: f64, colour: &str, words: &str) {
        if !words.is_empty() {
            self.tag(format_args!(
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\" \
                 fill=\"{colour}\">{}</text>",
                escaped(words)
            ));
        }
    }

    /// A text with a white halo, to be readable on top of lines.
    pub fn haloed(&mut self, x: f64, y: f64, anchor: &str, colour: &str, words: &str) {
        self.tag(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"10.5\" \
             fill=\"{colour}\" stroke=\"#ffffff\" stroke-width=\"4\" stroke-linejoin=\"round\" \
             paint-order=\"stroke\">{}</text>",
            escaped(words)
        ));
    }

    pub fn finish(mut self) -> String {
        self.tag("</svg>");
        self.0
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
