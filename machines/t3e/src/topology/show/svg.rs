//! Draws a torus with the names of all nodes.

use core::ops::Range;

use phitwire_framing::t3e::direction::Direction;

use super::planes::{AMBER, BLUE, DrawnLink, Planes, RED, Style, colours, drawn_links, planes};
use super::{role, summary};
use crate::route::Broken;
use crate::router::PROCESSOR;
use crate::topology::model::Torus;
use phitwire::net::show::{FAINT, INK, Point, Svg, title_of_part};
use phitwire::net::{Network, NodeRef, TooLarge};

const MOST_NODES: usize = 1_024;
/// Width of a row of planes that is legible on a page, and the maximum number of planes in it.
const ROW_WIDTH: f64 = 1_320.0;
const PLANES_IN_ROW: f64 = 4.0;
/// Half the width and height of a node's box.
const HALF: Point = (25.0, 16.0);
/// Length of a stub, in X or Y.
const STUB: f64 = 13.0;
/// Length of a stub in Z, both across and down.
const SLANT: f64 = 9.0;
const STYLE: Style = Style {
    step: (96.0, 76.0),
    first: (96.0, 92.0),
    last: (76.0, 50.0),
    gap: 24.0,
    header: 78.0,
    footer: 48.0,
    radius: 12,
    title: ((14.0, 20.0), 12.5, FAINT, ", partial plane"),
    names: 9.5,
    across: 38.0,
    down: (8.0, 3.5),
};

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

/// One plane of the torus as an SVG document, in the style of [`svg`].
pub(super) fn plane(torus: &Torus, z: usize) -> String {
    let title = title_of_part(&summary(torus), format_args!("plane Z {z}"));
    of_planes(torus, &(z..z + 1), &title)
}

fn of_planes(torus: &Torus, drawn: &Range<usize>, title: &str) -> String {
    let layout = Planes::new(torus, drawn, &STYLE, |plane| {
        ((ROW_WIDTH - STYLE.gap) / (plane.0 + STYLE.gap)).clamp(1.0, PLANES_IN_ROW) as usize
    });
    let mut out = Svg::new(layout.size, title, (STYLE.gap, 34.0));
    for z in drawn.clone() {
        layout.frame(&mut out, torus, z);
    }
    let broken = torus.broken();
    let is_drawn = |node: &u32| drawn.contains(&usize::from(torus.shape().coordinates(*node).0[2]));
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

/// Draws the links of a node: lines in plus directions, and stubs.
fn links(out: &mut Svg, torus: &Torus, broken: &Broken, layout: &Planes, node: u32) {
    let shape = torus.shape();
    let (x, y) = layout.node(shape.coordinates(node));
    for way in drawn_links(torus, broken, node) {
        let DrawnLink { peer, number, .. } = way;
        let (colour, dashes, words) = match way.works {
            true => (BLUE, "", FAINT),
            false => (RED, " stroke-dasharray=\"3 3\"", RED),
        };
        let style = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"{dashes}");
        if way.is_next {
            let (to_x, to_y) = layout.node(shape.coordinates(peer));
            let path = format!("M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}");
            out.links(number, |out| out.path(path, &style));
            continue;
        }
        let Stub { from, along, label } = stub(way.direction);
        let path = format!(
            "M{:.1} {:.1}l{:.1} {:.1}",
            x + from.0,
            y + from.1,
            along.0,
            along.1
        );
        out.links(number, |out| out.path(path, &style));
        let name = torus.node_name(NodeRef::Chip(peer));
        let (dx, dy, anchor) = label;
        out.text(x + dx, y + dy, anchor, 9.0, words, &name);
    }
}

/// A stub at a node: its start, its extent, and the position of its label.
struct Stub {
    from: Point,
    along: Point,
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

fn router(out: &mut Svg, torus: &Torus, layout: &Planes, node: u32) {
    let coordinates = torus.shape().coordinates(node);
    let (x, y) = layout.node(coordinates);
    let (fill, stroke) = colours(torus, node);
    let (words, dashes) = match stroke {
        BLUE => (FAINT, ""),
        _ => (stroke, " stroke-dasharray=\"4 2\""),
    };
    let name = torus.node_name(NodeRef::Chip(node));
    let corner = (x - HALF.0, y - HALF.1);
    out.nodes(&name, |out| {
        out.tag(format_args!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"4\" fill=\"{fill}\" \
             stroke=\"{stroke}\"{dashes}><title>{name} {coordinates}</title></rect>",
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
    let mut x = STYLE.gap;
    let mut entry = |out: &mut Svg, colour: &str, dashes: &str, words: &str, width: f64| {
        let style = format!("stroke=\"{colour}\" stroke-width=\"2\"{dashes}");
        out.sample((x, y), 22.0, &style, 11.0, words);
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
