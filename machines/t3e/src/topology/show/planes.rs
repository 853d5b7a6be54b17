//! Planes of Z side by side, with X to the right and Y down.

use core::ops::Range;

use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::tag::Coordinates;

use crate::route::Broken;
use crate::topology::defects::Defect;
use crate::topology::model::Torus;
use phitwire::net::show::{FAINT, Grid, Point, Svg};

/// Colour of working parts.
pub(super) const BLUE: &str = "#2f6db5";
/// Colour of broken parts.
pub(super) const RED: &str = "#c0392b";
/// Colour of spares.
pub(super) const AMBER: &str = "#b7791f";

/// Distances and font sizes of a drawing of planes.
pub(super) struct Style {
    /// Distance between adjacent nodes in X and in Y.
    pub(super) step: Point,
    /// Offset from the upper left corner of a plane to the centre of its first node.
    pub(super) first: Point,
    /// Offset from the centre of the last node of a plane to the lower right corner.
    pub(super) last: Point,
    /// Distance between planes.
    pub(super) gap: f64,
    pub(super) header: f64,
    pub(super) footer: f64,
    /// Radius of a plane's corners.
    pub(super) radius: u8,
    /// Position of a plane's title, its size, its colour, and its words for a partial plane.
    pub(super) title: (Point, f64, &'static str, &'static str),
    /// Font size of the names of X and Y.
    pub(super) names: f64,
    /// Distance of the names of X below the upper edge.
    pub(super) across: f64,
    /// Offset of the names of Y from the left edge, and below the centre of the nodes.
    pub(super) down: Point,
}

/// Positions and sizes in a drawing.
pub(super) struct Planes {
    style: &'static Style,
    plane: Point,
    corners: Grid,
    in_row: usize,
    pub(super) size: Point,
    /// The first plane that is drawn.
    first: usize,
}

/// Number of Z planes, including partial ones.
pub(super) fn planes(torus: &Torus) -> usize {
    let partial = torus.shape().partial().iter();
    let above: usize = partial.map(|[_, _, high]| usize::from(*high)).sum();
    usize::from(torus.shape().size()[2]) + above
}

impl Planes {
    /// The planes `drawn`; `in_row` computes how many are side by side, from the size of one.
    pub(super) fn new(
        torus: &Torus,
        drawn: &Range<usize>,
        style: &'static Style,
        in_row: impl FnOnce(Point) -> usize,
    ) -> Self {
        let [x, y, _] = torus.shape().size();
        let nodes = Grid {
            first: style.first,
            step: style.step,
        };
        let last = nodes.at(x - 1, y - 1);
        let plane = (last.0 + style.last.0, last.1 + style.last.1);
        let in_row = in_row(plane).clamp(1, drawn.len().max(1));
        let corners = Grid {
            first: (style.gap, style.header),
            step: (plane.0 + style.gap, plane.1 + style.gap),
        };
        let end = corners.at(in_row as f64, drawn.len().div_ceil(in_row) as f64);
        Self {
            style,
            plane,
            corners,
            in_row,
            size: (end.0.max(760.0), end.1 + style.footer),
            first: drawn.start,
        }
    }

    fn corner(&self, z: usize) -> Point {
        let (column, row) = (
            (z - self.first) % self.in_row,
            (z - self.first) / self.in_row,
        );
        self.corners.at(column as f64, row as f64)
    }

    /// The nodes of a plane, by X and Y.
    fn nodes(&self, z: usize) -> Grid {
        let (corner, first) = (self.corner(z), self.style.first);
        Grid {
            first: (corner.0 + first.0, corner.1 + first.1),
            step: self.style.step,
        }
    }

    pub(super) fn node(&self, Coordinates([x, y, z]): Coordinates) -> Point {
        self.nodes(z.into()).at(x, y)
    }

    /// Draws a plane's frame, its title, and the names of X and Y.
    pub(super) fn frame(&self, out: &mut Svg, torus: &Torus, z: usize) {
        let (style, (x, y)) = (self.style, self.corner(z));
        let corners = style.radius;
        let frame = format!("rx=\"{corners}\" fill=\"#f5f7fa\" stroke=\"#c4ccd6\"");
        out.frame((x, y), self.plane, &frame);
        let [across, deep, high] = torus.shape().size();
        let (at, size, colour, partial) = style.title;
        let partial = match z < usize::from(high) {
            true => "",
            false => partial,
        };
        let title = format!("Z {z}{partial}");
        out.text(x + at.0, y + at.1, "start", size, colour, &title);
        let (nodes, size) = (self.nodes(z), style.names);
        for ordinate in 0..across {
            let name = format!("X {ordinate}");
            let at = (nodes.at(ordinate, 0).0, y + style.across);
            out.text(at.0, at.1, "middle", size, FAINT, &name);
        }
        for ordinate in 0..deep {
            let name = format!("Y {ordinate}");
            let at = (x + style.down.0, nodes.at(0, ordinate).1 + style.down.1);
            out.text(at.0, at.1, "start", size, FAINT, &name);
        }
    }
}

/// A link of a node, in the direction in which it is drawn.
pub(super) struct DrawnLink {
    pub(super) direction: Direction,
    pub(super) peer: u32,
    pub(super) works: bool,
    pub(super) number: Option<usize>,
    /// Whether the peer is the next node of the same plane. Other links are stubs.
    pub(super) is_next: bool,
}

/// The links of a node, except those that are drawn from the other node.
pub(super) fn drawn_links(
    torus: &Torus,
    broken: &Broken,
    node: u32,
) -> impl Iterator<Item = DrawnLink> {
    let shape = torus.shape();
    Direction::ALL.into_iter().filter_map(move |direction| {
        let peer = shape.neighbour(node, direction)?;
        let dimension = direction.dimension();
        let [own, other] = [node, peer].map(|node| shape.coordinates(node).0[dimension]);
        let is_next = match direction.is_minus() {
            false => own < other,
            true => other < own,
        };
        let is_next = dimension < 2 && is_next;
        let way = DrawnLink {
            direction,
            peer,
            works: broken.works(node, direction),
            number: torus.link_at(node, direction.index() as u8),
            is_next,
        };
        (!is_next || !direction.is_minus()).then_some(way)
    })
}

/// Fill and stroke colours of a node.
pub(super) fn colours(torus: &Torus, node: u32) -> (&'static str, &'static str) {
    match torus.defects().has(Defect::Node(node)) {
        true => ("#f6dedb", RED),
        false if torus.processor(node).is_none() => ("#fdf3d8", AMBER),
        false => ("#e3edfb", BLUE),
    }
}
