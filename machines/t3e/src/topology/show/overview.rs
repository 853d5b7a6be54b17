//! Draws a large torus plane by plane, with each node as a small box with its processor's number.

use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::tag::Place;

use super::summary;
use crate::route::Broken;
use crate::topology::defects::Defect;
use crate::topology::model::Torus;
use phitwire::net::Network;
use phitwire::net::NodeRef;
use phitwire::net::show::{FAINT, INK, Svg};

use super::svg::{AMBER, BLUE, RED, planes};

/// Distance between adjacent nodes in X and in Y.
const STEP: (f64, f64) = (40.0, 26.0);
const BOX: (f64, f64) = (28.0, 15.0);
/// Offset from the upper left corner of a plane to the centre of its first node.
const FIRST: (f64, f64) = (44.0, 52.0);
/// Offset from the centre of the last node to the lower right corner.
const LAST: (f64, f64) = (28.0, 24.0);
const GAP: f64 = 16.0;
const HEADER: f64 = 72.0;
const FOOTER: f64 = 56.0;
/// Length of the visible part of a link that wraps or leaves the plane.
const STUB: f64 = 4.0;

struct Layout {
    plane: (f64, f64),
    in_row: usize,
    size: (f64, f64),
}

impl Layout {
    fn new(torus: &Torus) -> Self {
        let [x, y, _] = torus.shape().size();
        let along = |count: u8, first, step, last| first + f64::from(count - 1) * step + last;
        let plane = (
            along(x, FIRST.0, STEP.0, LAST.0),
            along(y, FIRST.1, STEP.1, LAST.1),
        );
        let planes = planes(torus);
        // Approximate the shape of a page.
        let square = (planes as f64 * 1.3 * plane.1 / plane.0).sqrt().round();
        let in_row = (square as usize).clamp(1, planes);
        let rows = planes.div_ceil(in_row) as f64;
        let size = (
            (GAP + in_row as f64 * (plane.0 + GAP)).max(760.0),
            HEADER + rows * (plane.1 + GAP) + FOOTER,
        );
        Self {
            plane,
            in_row,
            size,
        }
    }

    fn corner(&self, z: usize) -> (f64, f64) {
        (
            GAP + (z % self.in_row) as f64 * (self.plane.0 + GAP),
            HEADER + (z / self.in_row) as f64 * (self.plane.1 + GAP),
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

/// The torus as an SVG document of small boxes.
pub fn overview(torus: &Torus) -> String {
    let layout = Layout::new(torus);
    let mut out = Svg::new(layout.size, &summary(torus), (GAP, 32.0));
    let broken = torus.broken();
    for z in 0..planes(torus) {
        frame(&mut out, torus, &layout, z);
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
        out.text(GAP, y, "start", 11.0, FAINT, words);
        let mut words = String::from("--expand PLANE draws a plane with all names");
        if !torus.defects().is_empty() {
            words.push_str("; red: broken or cut off");
        }
        if torus.spares() > 0 {
            words.push_str("; amber: spare");
        }
        out.text(GAP, y + 17.0, "start", 11.0, FAINT, &words);
    });
    out.finish()
}

fn frame(out: &mut Svg, torus: &Torus, layout: &Layout, z: usize) {
    let (x, y) = layout.corner(z);
    let style = "rx=\"8\" fill=\"#f5f7fa\" stroke=\"#c4ccd6\"";
    out.frame((x, y), layout.plane, style);
    let [across, deep, high] = torus.shape().size();
    let partial = if z < usize::from(high) {
        ""
    } else {
        ", partial"
    };
    out.text(
        x + 8.0,
        y + 15.0,
        "start",
        11.0,
        INK,
        &format!("Z {z}{partial}"),
    );
    for ordinate in 0..across {
        let middle = x + FIRST.0 + f64::from(ordinate) * STEP.0;
        let name = format!("X {ordinate}");
        out.text(middle, y + 30.0, "middle", 8.5, FAINT, &name);
    }
    for ordinate in 0..deep {
        let middle = y + FIRST.1 + f64::from(ordinate) * STEP.1;
        let name = format!("Y {ordinate}");
        out.text(x + 4.0, middle + 3.0, "start", 8.5, FAINT, &name);
    }
}

fn links(out: &mut Svg, torus: &Torus, broken: &Broken, layout: &Layout, node: u32) {
    let shape = torus.shape();
    let place = shape.place(node);
    let (x, y) = layout.node(place);
    for direction in Direction::ALL {
        let Some(peer) = shape.neighbour(node, direction) else {
            continue;
        };
        let colour = match broken.works(node, direction) {
            true => BLUE,
            false => RED,
        };
        let style = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.2\"");
        let number = torus.link_at(node, direction.index() as u8);
        let dimension = direction.dimension();
        let [own, other] = [place, shape.place(peer)].map(|place| place.0[dimension]);
        let is_next = match direction.is_minus() {
            false => own < other,
            true => other < own,
        };
        let (half_x, half_y) = (BOX.0 / 2.0, BOX.1 / 2.0);
        let path = match (dimension, direction.is_minus()) {
            (0 | 1, false) if is_next => {
                let (to_x, to_y) = layout.node(shape.place(peer));
                format!("M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}")
            }
            (0 | 1, true) if is_next => continue,
            (0, false) => format!("M{:.1} {y:.1}h{STUB}", x + half_x),
            (0, true) => format!("M{:.1} {y:.1}h-{STUB}", x - half_x),
            (1, false) => format!("M{x:.1} {:.1}v{STUB}", y + half_y),
            (1, true) => format!("M{x:.1} {:.1}v-{STUB}", y - half_y),
            (_, false) => format!("M{:.1} {:.1}l{STUB} -{STUB}", x + half_x - 2.0, y - half_y),
            (_, true) => format!("M{:.1} {:.1}l-{STUB} {STUB}", x - half_x + 2.0, y + half_y),
        };
        out.links(number, |out| out.path(path, &style));
    }
}

fn node_box(out: &mut Svg, torus: &Torus, layout: &Layout, node: u32) {
    let place = torus.shape().place(node);
    let (x, y) = layout.node(place);
    let processor = torus.processor(node);
    let (fill, stroke) = match (torus.defects().has(Defect::Node(node)), processor) {
        (true, _) => ("#f6dedb", RED),
        (false, None) => ("#fdf3d8", AMBER),
        (false, Some(_)) => ("#e3edfb", BLUE),
    };
    let names = [NodeRef::Chip(node), NodeRef::Processor(node)].map(|node| torus.node_name(node));
    let words = processor.map_or_else(|| "-".to_owned(), |number| number.to_string());
    out.nodes(&names.join(" "), |out| {
        let corner = (x - BOX.0 / 2.0, y - BOX.1 / 2.0);
        out.frame(
            corner,
            BOX,
            &format!("rx=\"3\" fill=\"{fill}\" stroke=\"{stroke}\""),
        );
        out.text(x, y + 3.2, "middle", 9.0, INK, &words);
    });
}
