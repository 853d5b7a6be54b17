//! Draws a large torus plane by plane, with each node as a small box with its processor's number.

use super::planes::{BLUE, Planes, RED, Style, colours, drawn_links, planes};
use super::summary;
use crate::route::Broken;
use crate::topology::model::Torus;
use phitwire::net::Network;
use phitwire::net::NodeRef;
use phitwire::net::show::{FAINT, INK, Point, Svg};

const BOX: Point = (28.0, 15.0);
/// Length of the visible part of a link that wraps or leaves the plane.
const STUB: f64 = 4.0;
const STYLE: Style = Style {
    step: (40.0, 26.0),
    first: (44.0, 52.0),
    last: (28.0, 24.0),
    gap: 16.0,
    header: 72.0,
    footer: 56.0,
    radius: 8,
    title: ((8.0, 15.0), 11.0, INK, ", partial"),
    names: 8.5,
    across: 30.0,
    down: (4.0, 3.0),
};

/// The torus as an SVG document of small boxes.
pub fn overview(torus: &Torus) -> String {
    let drawn = 0..planes(torus);
    let layout = Planes::new(torus, &drawn, &STYLE, |plane| {
        // Approximate the shape of a page.
        let square = (drawn.len() as f64 * 1.3 * plane.1 / plane.0).sqrt();
        square.round() as usize
    });
    let mut out = Svg::new(layout.size, &summary(torus), (STYLE.gap, 32.0));
    let broken = torus.broken();
    for z in drawn.clone() {
        layout.frame(&mut out, torus, z);
    }
    for node in 0..torus.shape().nodes() {
        links(&mut out, torus, &broken, &layout, node);
    }
    for node in 0..torus.shape().nodes() {
        node_box(&mut out, torus, &layout, node);
    }
    out.part("legend", |out| {
        let words = "each box is a router with its processor number; rings close in X and Y; +Z \
                     leads to the same position in the next plane, -Z to that in the previous one";
        let y = layout.size.1 - 32.0;
        out.text(STYLE.gap, y, "start", 11.0, FAINT, words);
        let mut words = String::from("--expand PLANE draws a plane with all names");
        if !torus.defects().is_empty() {
            words.push_str("; red: broken or cut off");
        }
        if torus.spares() > 0 {
            words.push_str("; amber: spare");
        }
        out.text(STYLE.gap, y + 17.0, "start", 11.0, FAINT, &words);
    });
    out.finish()
}

fn links(out: &mut Svg, torus: &Torus, broken: &Broken, layout: &Planes, node: u32) {
    let shape = torus.shape();
    let (x, y) = layout.node(shape.coordinates(node));
    let (half_x, half_y) = (BOX.0 / 2.0, BOX.1 / 2.0);
    for way in drawn_links(torus, broken, node) {
        let colour = if way.works { BLUE } else { RED };
        let style = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.2\"");
        let direction = way.direction;
        let path = match (direction.dimension(), direction.is_minus()) {
            _ if way.is_next => {
                let (to_x, to_y) = layout.node(shape.coordinates(way.peer));
                format!("M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}")
            }
            (0, false) => format!("M{:.1} {y:.1}h{STUB}", x + half_x),
            (0, true) => format!("M{:.1} {y:.1}h-{STUB}", x - half_x),
            (1, false) => format!("M{x:.1} {:.1}v{STUB}", y + half_y),
            (1, true) => format!("M{x:.1} {:.1}v-{STUB}", y - half_y),
            (_, false) => format!("M{:.1} {:.1}l{STUB} -{STUB}", x + half_x - 2.0, y - half_y),
            (_, true) => format!("M{:.1} {:.1}l-{STUB} {STUB}", x - half_x + 2.0, y + half_y),
        };
        out.links(way.number, |out| out.path(path, &style));
    }
}

fn node_box(out: &mut Svg, torus: &Torus, layout: &Planes, node: u32) {
    let (fill, stroke) = colours(torus, node);
    let names = [NodeRef::Chip(node), NodeRef::Processor(node)].map(|node| torus.node_name(node));
    let number = torus.processor(node);
    let words = number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let style = format!("rx=\"3\" fill=\"{fill}\" stroke=\"{stroke}\"");
    out.nodes(&names.join(" "), |out| {
        let at = layout.node(torus.shape().coordinates(node));
        out.block(at, BOX, &style, &[(3.2, 9.0, INK, &words)]);
    });
}
