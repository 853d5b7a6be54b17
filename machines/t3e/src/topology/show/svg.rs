//! Draws the planes of Z side by side, with X to the right and Y down.

use core::ops::Range;

use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::tag::Place;

use super::{role, summary};
use crate::route::Broken;
use crate::router::PROCESSOR;
use crate::topology::defects::Defect;
use crate::topology::model::Torus;
use phitwire::net::show::{FAINT, INK, Svg};
use phitwire::net::{Network, NodeRef, TooLarge};

const MOST_NODES: usize = 1_024;
/// Number of planes in a row of the drawing.
const PLANES_IN_ROW: usize = 4;
/// Distance between adjacent nodes in X and in Y.
const STEP: (f64, f64) = (96.0, 76.0);
/// Half the width and height of a node's box.
const HALF: (f64, f64) = (25.0, 16.0);
/// Length of a stub, in X or Y.
const STUB: f64 = 13.0;
/// Length of a stub in Z, both across and down.
const SLANT: f64 = 9.0;
/// Offset from the upper left corner of a plane to the centre of its first node.
const FIRST: (f64, f64) = (96.0, 92.0);
/// Offset from the centre of the last node of a plane to the lower right corner.
const LAST: (f64, f64) = (76.0, 50.0);
const GAP: f64 = 24.0;
const HEADER: f64 = 78.0;
const FOOTER: f64 = 48.0;
/// Colour of working parts.
pub(super) const BLUE: &str = "#2f6db5";
/// Colour of broken parts.
pub(super) const RED: &str = "#c0392b";
/// Colour of spares.
pub(super) const AMBER: &str = "#b7791f";

/// Positions and sizes in a drawing.
struct Layout {
    plane: (f64, f64),
    size: (f64, f64),
    /// The first plane that is drawn.
    first: usize,
}

impl Layout {
    fn new(torus: &Torus, drawn: &Range<usize>) -> Self {
        let [x, y, _] = torus.shape().size();
        let along = |size: u8, first, step, last| first + f64::from(size - 1) * step + last;
        let plane = (
            along(x, FIRST.0, STEP.0, LAST.0),
            along(y, FIRST.1, STEP.1, LAST.1),
        );
        let planes = drawn.len();
        let (across, down) = (
            planes.min(PLANES_IN_ROW) as f64,
            planes.div_ceil(PLANES_IN_ROW) as f64,
        );
        let size = (
            (GAP + across * (plane.0 + GAP)).max(760.0),
            HEADER + down * (plane.1 + GAP) + FOOTER,
        );
        let first = drawn.start;
        Self { plane, size, first }
    }

    fn corner(&self, z: usize) -> (f64, f64) {
        let place = z - self.first;
        let (column, row) = (place % PLANES_IN_ROW, place / PLANES_IN_ROW);
        (
            GAP + column as f64 * (self.plane.0 + GAP),
            HEADER + row as f64 * (self.plane.1 + GAP),
        )
    }

    fn node(&self, Place([x, y, z]): Place) -> (f64, f64) {
        let corner = self.corner(usize::from(z));
        (
            corner.0 + FIRST.0 + f64::from(x) * STEP.0,
            corner.1 + FIRST.1 + f64::from(y) * STEP.1,
        )
    }
}

/// Number of Z planes, including partial ones.
pub(super) fn planes(torus: &Torus) -> usize {
    let partial = torus.shape().partial().iter();
    let above: usize = partial.map(|[_, _, high]| usize::from(*high)).sum();
    usize::from(torus.shape().size()[2]) + above
}

/// The torus as an SVG document. Links between nodes that are drawn side by side are lines. All
/// others are stubs labelled with the router at the other end: X and Y stubs at the edges of a
/// plane, +Z at the upper right corner of a node, and -Z at the lower left.
///
/// # Errors
/// [`TooLarge`].
pub fn svg(torus: &Torus) -> Result<String, TooLarge> {
    let nodes = torus.shape().nodes() as usize;
    if nodes > MOST_NODES {
        return Err(TooLarge(nodes, "nodes", MOST_NODES));
    }
    Ok(of_planes(torus, &(0..planes(torus)), &summary(torus)))
}

/// One plane of the torus as an SVG document, in the same style.
pub(super) fn plane(torus: &Torus, z: usize) -> String {
    let summary = summary(torus);
    let (name, rest) = summary.split_once(": ").unwrap_or((&summary, ""));
    of_planes(
        torus,
        &(z..z + 1),
        &format!("{name}, plane Z {z}: of {rest}"),
    )
}

fn of_planes(torus: &Torus, drawn: &Range<usize>, title: &str) -> String {
    let layout = Layout::new(torus, drawn);
    let mut out = Svg::new(layout.size, title, (GAP, 34.0));
    for z in drawn.clone() {
        frame(&mut out, torus, &layout, z);
    }
    let broken = torus.broken();
    let is_drawn = |node: &u32| drawn.contains(&usize::from(torus.shape().place(*node).0[2]));
    let nodes = || (0..torus.shape().nodes()).filter(is_drawn);
    for node in nodes() {
        links(&mut out, torus, &broken, &layout, node);
    }
    for node in nodes() {
        router(&mut out, torus, &layout, node);
    }
    out.part("legend", |out| legend(out, torus, layout.size.1 - 20.0));
    out.finish()
}

fn frame(out: &mut Svg, torus: &Torus, layout: &Layout, z: usize) {
    let (x, y) = layout.corner(z);
    let style = "rx=\"12\" fill=\"#f5f7fa\" stroke=\"#c4ccd6\"";
    out.frame((x, y), layout.plane, style);
    let [across, deep, high] = torus.shape().size();
    let partial = match z < usize::from(high) {
        true => "",
        false => ", partial plane",
    };
    let title = format!("Z {z}{partial}");
    out.text(x + 14.0, y + 20.0, "start", 12.5, FAINT, &title);
    for ordinate in 0..across {
        let middle = x + FIRST.0 + f64::from(ordinate) * STEP.0;
        let name = format!("X {ordinate}");
        out.text(middle, y + 38.0, "middle", 9.5, FAINT, &name);
    }
    for ordinate in 0..deep {
        let middle = y + FIRST.1 + f64::from(ordinate) * STEP.1;
        let name = format!("Y {ordinate}");
        out.text(x + 8.0, middle + 3.5, "start", 9.5, FAINT, &name);
    }
}

/// Draws the links of a node: lines in plus directions, and stubs.
fn links(out: &mut Svg, torus: &Torus, broken: &Broken, layout: &Layout, node: u32) {
    let shape = torus.shape();
    let place = shape.place(node);
    let (x, y) = layout.node(place);
    for direction in Direction::ALL {
        let Some(peer) = shape.neighbour(node, direction) else {
            continue;
        };
        let (colour, dashes) = match broken.works(node, direction) {
            true => (BLUE, ""),
            false => (RED, " stroke-dasharray=\"3 3\""),
        };
        let style = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"{dashes}");
        let number = torus.link_at(node, direction.index() as u8);
        let dimension = direction.dimension();
        let [own, other] = [place, shape.place(peer)].map(|place| place.0[dimension]);
        let is_next = match direction.is_minus() {
            false => own < other,
            true => other < own,
        };
        if dimension < 2 && is_next {
            if !direction.is_minus() {
                let (to_x, to_y) = layout.node(shape.place(peer));
                let path = format!("M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}");
                out.links(number, |out| out.path(path, &style));
            }
            continue;
        }
        let name = torus.node_name(NodeRef::Chip(peer));
        let words = if colour == RED { RED } else { FAINT };
        let Stub { from, along, label } = stub(direction);
        let path = format!(
            "M{:.1} {:.1}l{:.1} {:.1}",
            x + from.0,
            y + from.1,
            along.0,
            along.1
        );
        out.links(number, |out| out.path(path, &style));
        let (dx, dy, anchor) = label;
        out.text(x + dx, y + dy, anchor, 9.0, words, &name);
    }
}

/// A stub at a node: its start, its extent, and the position of its label.
struct Stub {
    from: (f64, f64),
    along: (f64, f64),
    label: (f64, f64, &'static str),
}

fn stub(direction: Direction) -> Stub {
    let (half, end) = (HALF, (HALF.0 + STUB + 3.0, HALF.1 + STUB + 3.0));
    let (from, along, label) = match direction {
        Direction::PlusX => ((half.0, 0.0), (STUB, 0.0), (end.0, 3.0, "start")),
        Direction::MinusX => ((-half.0, 0.0), (-STUB, 0.0), (-end.0, 3.0, "end")),
        Direction::PlusY => ((0.0, half.1), (0.0, STUB), (0.0, end.1 + 6.0, "middle")),
        Direction::MinusY => ((0.0, -half.1), (0.0, -STUB), (0.0, -end.1, "middle")),
        Direction::PlusZ => (
            (half.0 - 4.0, -half.1 + 2.0),
            (SLANT, -SLANT),
            (half.0 + 7.0, -half.1 - 6.0, "start"),
        ),
        Direction::MinusZ => (
            (-half.0 + 4.0, half.1 - 2.0),
            (-SLANT, SLANT),
            (-half.0 - 7.0, half.1 + 12.0, "end"),
        ),
    };
    Stub { from, along, label }
}

fn router(out: &mut Svg, torus: &Torus, layout: &Layout, node: u32) {
    let place = torus.shape().place(node);
    let (x, y) = layout.node(place);
    let is_dead = torus.defects().has(Defect::Node(node));
    let is_spare = torus.processor(node).is_none();
    let (fill, stroke, words) = match (is_dead, is_spare) {
        (true, _) => ("#f6dedb", RED, RED),
        (false, true) => ("#fdf3d8", AMBER, AMBER),
        (false, false) => ("#e3edfb", BLUE, FAINT),
    };
    let dashes = match is_dead || is_spare {
        true => " stroke-dasharray=\"4 2\"",
        false => "",
    };
    let name = torus.node_name(NodeRef::Chip(node));
    let corner = (x - HALF.0, y - HALF.1);
    out.nodes(&name, |out| {
        out.tag(format_args!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"4\" fill=\"{fill}\" \
             stroke=\"{stroke}\"{dashes}><title>{name} {place}</title></rect>",
            corner.0,
            corner.1,
            2.0 * HALF.0,
            2.0 * HALF.1,
        ));
        out.text(x, y - 1.5, "middle", 11.5, INK, &name);
    });
    // The link to the processor is a line inside the node's box.
    let link = torus.link_at(node, PROCESSOR as u8);
    let line = format!(
        "M{:.1} {:.1}h{:.1}",
        corner.0 + 4.0,
        y + 1.5,
        2.0 * HALF.0 - 8.0
    );
    let style = format!("fill=\"none\" stroke=\"{stroke}\" stroke-width=\"1\" opacity=\"0.7\"");
    out.links(link, |out| out.path(line, &style));
    let processor = torus.node_name(NodeRef::Processor(node));
    let role = role(torus, node);
    out.nodes(&processor, |out| {
        out.text(x, y + 11.5, "middle", 9.0, words, &role)
    });
}

fn legend(out: &mut Svg, torus: &Torus, y: f64) {
    let mut x = GAP;
    let mut entry = |out: &mut Svg, colour: &str, dashes: &str, words: &str, width: f64| {
        let style = format!("stroke=\"{colour}\" stroke-width=\"2\"{dashes}");
        out.path(format_args!("M{x:.1} {y:.1}h22"), &style);
        out.text(x + 28.0, y + 4.0, "start", 11.0, FAINT, words);
        x += width;
    };
    let words = "links; stubs name the router at the other end, +Z up and -Z down";
    entry(out, BLUE, "", words, 400.0);
    if !torus.defects().is_empty() {
        entry(out, RED, " stroke-dasharray=\"3 3\"", "broken", 90.0);
    }
    if torus.spares() > 0 {
        entry(out, AMBER, " stroke-dasharray=\"4 2\"", "spare node", 110.0);
    }
}
