//! A drawing: groups on a circle, each a grid of chassis and blades.

use core::f64::consts::PI;

use super::table::nics_name;
use super::{joined, summary};
use crate::machine::aries::route::registers::PortKind;
use crate::machine::aries::topology::model::Dragonfly;
use crate::net::show::{FAINT, INK, Svg};
use crate::net::{End, NodeRef, TooLarge};

/// Groups above which nobody could read the drawing.
const MOST_GROUPS: usize = 48;
/// Routers of a group up to which each has its name and its links inside the group.
const MOST_NAMED: usize = 16;
const GREEN: &str = "#2f8a4c";
const BLACK: &str = "#22272e";
const BLUE: &str = "#2f6db5";

/// Where everything is.
struct Layout {
    /// Width and height of a router's cell.
    cell: (f64, f64),
    /// Width and height of a group.
    group: (f64, f64),
    /// Upper left corners of the groups.
    corners: Vec<(f64, f64)>,
    size: (f64, f64),
    middle: (f64, f64),
    named: bool,
}

impl Layout {
    fn new(network: &Dragonfly) -> Self {
        let shape = &network.shape;
        let named = shape.group_routers() <= MOST_NAMED;
        let cell = if named { (104.0, 66.0) } else { (17.0, 17.0) };
        let group = (
            f64::from(shape.blades) * cell.0 + 24.0,
            f64::from(shape.chassis) * cell.1 + 40.0,
        );
        let groups = usize::from(shape.groups);
        let diagonal = group.0.hypot(group.1);
        let radius = match groups {
            1 => 0.0,
            _ => diagonal * 0.62 / (PI / groups as f64).sin(),
        };
        let middle = (radius + group.0 / 2.0 + 30.0, radius + group.1 / 2.0 + 80.0);
        let corners = (0..groups)
            .map(|g| {
                let angle = 2.0 * PI * g as f64 / groups as f64 - PI / 2.0;
                let (x, y) = (
                    middle.0 + radius * angle.cos(),
                    middle.1 + radius * angle.sin(),
                );
                (x - group.0 / 2.0, y - group.1 / 2.0)
            })
            .collect();
        let width = (2.0 * middle.0).max(560.0);
        Self {
            cell,
            group,
            corners,
            size: (width, 2.0 * middle.1 - 40.0),
            middle,
            named,
        }
    }

    /// The middle of a router's box.
    fn router(&self, network: &Dragonfly, router: u32) -> (f64, f64) {
        let (x, y) = self.corners[usize::from(network.shape.group_of(router))];
        let (chassis, blade) = network.shape.place_of(router);
        (
            x + 12.0 + (f64::from(blade) + 0.5) * self.cell.0,
            y + 28.0 + (f64::from(chassis) + 0.5) * self.cell.1,
        )
    }
}

/// The network as an SVG document: a box per group, routers in it by chassis (row) and slot
/// (column), and the links between two routers as one line.
///
/// # Errors
/// [`TooLarge`] for more than 48 groups.
pub fn svg(network: &Dragonfly) -> Result<String, TooLarge> {
    let groups = usize::from(network.shape.groups);
    if groups > MOST_GROUPS {
        return Err(TooLarge(groups, "groups", MOST_GROUPS));
    }
    let layout = Layout::new(network);
    let (width, height) = (layout.size.0.ceil(), layout.size.1.ceil() + 40.0);
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
    for ((a, b), (kind, numbers)) in joined(network) {
        let links = numbers.len();
        let (from, to) = (layout.router(network, a), layout.router(network, b));
        let wide = if links > 1 { 2.4 } else { 1.4 };
        let (x, y) = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1));
        match kind {
            PortKind::Blue => {
                // Bent towards the middle, so that lines along the circle do not cross groups.
                let bend = (
                    x + (layout.middle.0 - x) * 0.45,
                    y + (layout.middle.1 - y) * 0.45,
                );
                let style = format!(
                    "fill=\"none\" stroke=\"{BLUE}\" stroke-width=\"{wide}\" stroke-opacity=\"0.75\""
                );
                out.links(numbers, |out| out.path(curve(from, bend, to), &style));
            }
            PortKind::Green | PortKind::Black if layout.named => {
                let colour = if kind == PortKind::Green {
                    GREEN
                } else {
                    BLACK
                };
                // Links that pass over other routers of the row or column run in a bow beside them.
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
}

/// From one point to another, bent towards a third.
fn curve((x1, y1): (f64, f64), (x, y): (f64, f64), (x2, y2): (f64, f64)) -> String {
    format!("M{x1:.1} {y1:.1} Q{x:.1} {y:.1} {x2:.1} {y2:.1}")
}

fn router_box(out: &mut Svg, network: &Dragonfly, layout: &Layout, router: u32) {
    let (x, y) = layout.router(network, router);
    let (w, h) = if layout.named {
        (78.0, 34.0)
    } else {
        (12.0, 12.0)
    };
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

/// The network interfaces of a router and their links, below its box, whose lower edge is at (x, y).
fn nics(out: &mut Svg, network: &Dragonfly, router: u32, (x, y): (f64, f64)) {
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
    for (place, (number, nic)) in links.iter().enumerate() {
        // Beside the middle, where links to the router below are.
        let x = x - 30.0 + 14.0 * place as f64;
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
            out.path(format_args!("M{x:.1} {y:.1} h26"), &style);
            out.text(x + 32.0, y + 4.0, "start", 11.5, FAINT, words);
            x += 150.0;
        }
    }
    if !layout.named {
        let words = "rows are chassis, columns are slots; links inside groups are not drawn";
        out.text(x, y + 4.0, "start", 11.5, FAINT, words);
    }
}
