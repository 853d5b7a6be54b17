//! Draws groups on a circle, each as a grid of chassis and blades.

use core::f64::consts::PI;
use std::collections::BTreeMap;

use super::table::nics_name;
use super::{joined, summary};
use crate::route::registers::PortKind;
use crate::topology::model::Dragonfly;
use phitwire::net::show::{FAINT, Grid, INK, Point, Svg, bounds, on_circle};
use phitwire::net::{End, NodeRef, TooLarge};

const MOST_GROUPS: usize = 48;
/// Maximum number of routers in a group that is drawn with names and internal links.
const MOST_NAMED: usize = 16;
pub(super) const GREEN: &str = "#2f8a4c";
pub(super) const BLACK: &str = "#22272e";
pub(super) const BLUE: &str = "#2f6db5";

/// Whether routers are drawn with names and with the links inside groups.
pub(super) fn names_all(network: &Dragonfly) -> bool {
    network.shape.group_routers() <= MOST_NAMED
}

const BOX: Point = (78.0, 34.0);
/// Distance between two groups.
const TWO_APART: f64 = 96.0;
/// Height of the links below three groups.
const BELOW_THREE: f64 = 90.0;

/// The path of a blue link out of its group.
struct Exit {
    /// Start of the link at the router.
    from: Point,
    /// Horizontal position of the lane between columns.
    lane: f64,
    /// Vertical position of the group's edge.
    edge: f64,
    /// -1 for the upper edge, otherwise the lower edge.
    ahead: f64,
}

/// The width of the drawing in full, in pixels.
pub(super) fn width(network: &Dragonfly) -> f64 {
    Layout::new(network).size.0
}

struct Layout {
    cell: Point,
    group: Point,
    corners: Vec<Point>,
    size: Point,
    middle: Point,
    named: bool,
}

impl Layout {
    fn new(network: &Dragonfly) -> Self {
        let shape = &network.shape;
        let named = names_all(network);
        let cell = if named { (112.0, 66.0) } else { (17.0, 17.0) };
        let group = (
            f64::from(shape.blades) * cell.0 + 24.0,
            f64::from(shape.chassis) * cell.1 + 40.0,
        );
        let groups = usize::from(shape.groups);
        let diagonal = group.0.hypot(group.1);
        let radius = match groups {
            1 => 0.0,
            // One above the other.
            2 => f64::midpoint(group.1, TWO_APART),
            _ => diagonal * 0.62 / (PI / groups as f64).sin(),
        };
        let around = (0..groups as u32).map(|g| {
            // Three groups are numbered in reading order, row by row.
            let number = if groups == 3 { 3 - g } else { g };
            on_circle((0.0, 0.0), radius, number, groups as u32)
        });
        let around: Vec<Point> = around.collect();
        let below = if groups == 3 { BELOW_THREE } else { 0.0 };
        // The first group is at the top; the extent of the others depends on their number.
        let [low, high] = bounds(around.iter().copied().chain([(0.0, 0.0)]));
        let middle = (-low.0 + group.0 / 2.0 + 30.0, -low.1 + group.1 / 2.0 + 80.0);
        let size = (
            (middle.0 + high.0 + group.0 / 2.0 + 30.0).max(560.0),
            middle.1 + high.1 + group.1 / 2.0 + 30.0 + below,
        );
        let corner = |(x, y): Point| (middle.0 + x - group.0 / 2.0, middle.1 + y - group.1 / 2.0);
        Self {
            cell,
            group,
            corners: around.into_iter().map(corner).collect(),
            size,
            middle,
            named,
        }
    }

    /// The path of a blue link out of its router's group towards another group. It follows a lane
    /// between columns to the upper or lower edge, so that it passes behind no router. `across` is
    /// its position across the lane, from 0 to 1. Returns the start at the router, the lane, the
    /// edge and its direction.
    fn exit(&self, network: &Dragonfly, router: u32, to: u16, across: f64) -> Exit {
        let (x, y) = self.router(network, router);
        let half = if self.named { BOX.0 / 2.0 } else { 6.0 };
        let room = self.cell.0 - 2.0 * half - 6.0;
        let lane = x + half + 3.0 + room * across;
        let own = self.corners[usize::from(network.shape.group_of(router))];
        let other = self.corners[usize::from(to)];
        let (down, away) = (other.1 - own.1, self.group.1 / 2.0);
        let is_below = match down.abs() > away {
            true => down > 0.0,
            // The lower two of three groups are connected below them, others that stand side by
            // side through the middle of the drawing.
            false => (self.corners.len() == 3) != (self.middle.1 > own.1 + away),
        };
        let (edge, ahead) = match is_below {
            true => (own.1 + self.group.1, 1.0),
            false => (own.1, -1.0),
        };
        Exit {
            from: (x + half, y + 0.25 * self.cell.1 * across),
            lane,
            edge,
            ahead,
        }
    }

    fn router(&self, network: &Dragonfly, router: u32) -> Point {
        let (x, y) = self.corners[usize::from(network.shape.group_of(router))];
        let (chassis, blade) = network.shape.place_of(router);
        let routers = Grid {
            first: (x + 12.0, y + 28.0),
            step: self.cell,
        };
        routers.at(f64::from(blade) + 0.5, f64::from(chassis) + 0.5)
    }
}

/// The network as an SVG document with a box per group. Routers are placed by chassis (row) and
/// slot (column), and the links between two routers are one line.
///
/// # Errors
/// [`TooLarge`] for more than 48 groups.
pub fn svg(network: &Dragonfly) -> Result<String, TooLarge> {
    let groups = usize::from(network.shape.groups);
    if groups > MOST_GROUPS {
        return Err(TooLarge(groups, "groups", MOST_GROUPS));
    }
    let layout = Layout::new(network);
    let (width, height) = (layout.size.0.ceil(), layout.size.1.ceil() + 30.0);
    let mut out = Svg::new((width, height), &summary(network), (30.0, 34.0));
    for (group, &(x, y)) in layout.corners.iter().enumerate() {
        let style = "rx=\"12\" fill=\"#f5f7fa\" stroke=\"#c4ccd6\"";
        out.frame((x, y), layout.group, style);
        let name = format!("group {group}");
        out.text(x + 14.0, y + 19.0, "start", 12.5, FAINT, &name);
    }
    lines(&mut out, network, &layout);
    for router in network.routers() {
        router_box(&mut out, network, &layout, router);
    }
    out.part("legend", |out| legend(out, network, &layout, height - 18.0));
    Ok(out.finish())
}

fn lines(out: &mut Svg, network: &Dragonfly, layout: &Layout) {
    let joined = joined(network);
    let (mut counts, mut taken) = (Svg::default(), Vec::new());
    let mut lanes = Lanes::of(network, &joined);
    for ((a, b), (kind, numbers)) in joined {
        let links = numbers.len();
        let (from, to) = (layout.router(network, a), layout.router(network, b));
        let wide = if links > 1 { 2.4 } else { 1.4 };
        let (x, y) = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1));
        match kind {
            PortKind::Blue => {
                let groups = [a, b].map(|router| network.shape.group_of(router));
                let exits = [
                    layout.exit(network, a, groups[1], lanes.next(network, a)),
                    layout.exit(network, b, groups[0], lanes.next(network, b)),
                ];
                let style = format!(
                    "fill=\"none\" stroke=\"{BLUE}\" stroke-width=\"{wide}\" \
                     stroke-opacity=\"0.75\""
                );
                out.links(numbers, |out| out.path(blue(&exits), &style));
                if links > 1 {
                    let (x, y) = free_place(&mut taken, &bend(&exits));
                    counts.haloed(x, y + 3.5, "middle", BLUE, &format!("x{links}"));
                }
            }
            PortKind::Green | PortKind::Black if layout.named => {
                let colour = if kind == PortKind::Green {
                    GREEN
                } else {
                    BLACK
                };
                // Links that pass other routers of the row or column bend around them.
                let (dx, dy) = (to.0 - from.0, to.1 - from.1);
                let far = dx.abs() > layout.cell.0 * 1.5 || dy.abs() > layout.cell.1 * 1.5;
                let bow = if far { 26.0 } else { 0.0 };
                let (bow_x, bow_y) = if kind == PortKind::Green {
                    (0.0, -bow)
                } else {
                    (2.2 * bow, 0.0)
                };
                let style = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"{wide}\"");
                let bend = (x + 2.0 * bow_x, y + 2.0 * bow_y);
                out.links(numbers, |out| out.path(curve(from, bend, to), &style));
                if links > 1 && !far {
                    let words = format!("x{links}");
                    out.text(x + 6.0, y + 4.0, "start", 9.5, FAINT, &words);
                }
            }
            _ => {}
        }
    }
    out.append(counts);
}

/// A position on a bent line where its number hides no other.
fn free_place(taken: &mut Vec<Point>, [a, b, c, d]: &[Point; 4]) -> Point {
    let at = |t: f64| {
        let (s, mix) = (1.0 - t, |w: [f64; 4], of: fn(&Point) -> f64| {
            w[0] * of(a) + w[1] * of(b) + w[2] * of(c) + w[3] * of(d)
        });
        let weights = [s * s * s, 3.0 * s * s * t, 3.0 * s * t * t, t * t * t];
        (mix(weights, |p| p.0), mix(weights, |p| p.1))
    };
    let is_free = |&(x, y): &Point| {
        let is_apart = |&(ox, oy): &Point| (x - ox).abs() > 24.0 || (y - oy).abs() > 13.0;
        taken.iter().all(is_apart)
    };
    let parts = [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8];
    let point = parts.into_iter().map(at).find(is_free).unwrap_or(at(0.5));
    taken.push(point);
    point
}

/// Number of blue links in the lanes beside the columns of routers, by group and column.
struct Lanes(BTreeMap<(u16, u8), (usize, usize)>);

impl Lanes {
    fn of(network: &Dragonfly, joined: &BTreeMap<(u32, u32), (PortKind, Vec<usize>)>) -> Self {
        let mut lanes = BTreeMap::new();
        let blue = joined
            .iter()
            .filter(|(_, (kind, _))| *kind == PortKind::Blue);
        for router in blue.flat_map(|(&(a, b), _)| [a, b]) {
            lanes.entry(column(network, router)).or_insert((0, 0)).1 += 1;
        }
        Self(lanes)
    }

    /// The next position in the lane beside a router's column, from 0 to 1.
    fn next(&mut self, network: &Dragonfly, router: u32) -> f64 {
        let (taken, of) = self.0.entry(column(network, router)).or_insert((0, 1));
        *taken += 1;
        (*taken as f64 - 0.5) / (*of).max(*taken) as f64
    }
}

fn column(network: &Dragonfly, router: u32) -> (u16, u8) {
    (
        network.shape.group_of(router),
        network.shape.place_of(router).1,
    )
}

/// The path of a blue link: out of its router, along the lane, out of the group, and into the other
/// group in the same way.
fn blue(exits: &[Exit; 2]) -> String {
    let ([a, b], [_, (ax, ay), (bx, by), _]) = (exits, bend(exits));
    format!(
        "M{:.1} {:.1}L{:.1} {:.1}V{:.1}C{ax:.1} {ay:.1} {bx:.1} {by:.1} {:.1} {:.1}V{:.1}L{:.1} \
         {:.1}",
        a.from.0,
        a.from.1,
        a.lane,
        a.from.1 + 3.0 * a.ahead,
        a.edge,
        b.lane,
        b.edge,
        b.from.1 + 3.0 * b.ahead,
        b.from.0,
        b.from.1,
    )
}

/// The part of a blue link between the edges of its groups, as the points of a cubic curve.
fn bend([a, b]: &[Exit; 2]) -> [Point; 4] {
    // A link that leaves both groups at the same side bends less.
    let part = if (a.edge - b.edge).abs() < 1.0 {
        0.2
    } else {
        0.45
    };
    let reach = part * (a.lane - b.lane).hypot(a.edge - b.edge).max(60.0);
    let [(ax, ay), (bx, by)] = [a, b].map(|exit| (exit.lane, exit.edge + exit.ahead * reach));
    [(a.lane, a.edge), (ax, ay), (bx, by), (b.lane, b.edge)]
}

/// A line between two points, bent towards a third.
pub(super) fn curve((x1, y1): Point, (x, y): Point, (x2, y2): Point) -> String {
    format!("M{x1:.1} {y1:.1} Q{x:.1} {y:.1} {x2:.1} {y2:.1}")
}

fn router_box(out: &mut Svg, network: &Dragonfly, layout: &Layout, router: u32) {
    let (x, y) = layout.router(network, router);
    let (w, h) = if layout.named { BOX } else { (12.0, 12.0) };
    let name = network.shape.router_name(router);
    if layout.named {
        nics(out, network, router, (x, y + h / 2.0));
    }
    out.nodes(&name, |out| {
        out.tag(format_args!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{w}\" height=\"{h}\" rx=\"4\" fill=\"#e3edfb\" \
             stroke=\"{BLUE}\"><title>{name}</title></rect>",
            x - w / 2.0,
            y - h / 2.0,
        ));
        if layout.named {
            let nics = nics_name(network, router);
            out.text(x, y - 2.0, "middle", 11.5, INK, &name);
            out.text(x, y + 11.0, "middle", 9.5, FAINT, &nics);
        }
    });
}

/// Draws the NICs of a router and their links below its box, whose lower edge is at (x, y).
fn nics(out: &mut Svg, network: &Dragonfly, router: u32, (x, y): Point) {
    let of_router = |end: End| end.node == NodeRef::Chip(router);
    let links = network
        .links
        .iter()
        .enumerate()
        .filter_map(|(number, link)| {
            let nic = match (link.a.node, link.b.node) {
                (nic @ NodeRef::Processor(_), _) if of_router(link.b) => nic,
                (_, nic @ NodeRef::Processor(_)) if of_router(link.a) => nic,
                _ => return None,
            };
            Some((number, nic))
        });
    let links: Vec<_> = links.collect();
    for (index, (number, nic)) in links.iter().enumerate() {
        // Avoid the centre, which is used by links to the router below.
        let x = x - 30.0 + 14.0 * index as f64;
        let style = format!("fill=\"none\" stroke=\"{FAINT}\" stroke-width=\"1.4\"");
        out.links([*number], |out| {
            out.path(format_args!("M{x:.1} {y:.1}v7"), &style)
        });
        let name = network.node_name(*nic);
        out.nodes(&name, |out| {
            out.tag(format_args!(
                "<circle cx=\"{x:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"#f1f2f4\" stroke=\"{FAINT}\">\
                 <title>{name}</title></circle>",
                y + 11.0
            ));
        });
    }
}

fn legend(out: &mut Svg, network: &Dragonfly, layout: &Layout, y: f64) {
    let shape = &network.shape;
    let mut x = 30.0;
    for (colour, words, drawn) in [
        (GREEN, "green: chassis", layout.named && shape.blades > 1),
        (BLACK, "black: slot", layout.named && shape.chassis > 1),
        (BLUE, "blue: groups", shape.groups > 1),
    ] {
        if drawn {
            let style = format!("stroke=\"{colour}\" stroke-width=\"2.4\"");
            out.sample((x, y), 26.0, &style, 11.5, words);
            x += 150.0;
        }
    }
    if !layout.named {
        let words = "rows are chassis, columns are slots; links within groups are not drawn";
        out.text(x, y + 4.0, "start", 11.5, FAINT, words);
    }
}
