//! Draws a large dragonfly: one box per group, one line for all links between two groups.

use core::f64::consts::PI;
use std::collections::BTreeMap;

use super::svg::BLUE;
use super::{joined, summary};
use crate::route::registers::PortKind;
use crate::topology::model::Dragonfly;
use phitwire::net::NodeRef;
use phitwire::net::show::{FAINT, Grid, INK, Point, Svg, on_circle};

/// Maximum number of groups on a circle. With more, lines would fill it, and a field of squares is
/// drawn.
const MOST_IN_CIRCLE: u16 = 40;
/// Maximum number of lines that are labelled with the number of links.
const MOST_NUMBERED: usize = 66;
const BOX: Point = (170.0, 64.0);
/// Width and height of a group's box when there are many groups.
const SMALL_BOX: Point = (58.0, 30.0);
/// Maximum number of groups with large boxes.
const MOST_LARGE: u16 = 16;

/// The links between each pair of groups, with the lower group first.
pub(super) type Bundles = BTreeMap<(u16, u16), Vec<usize>>;

/// Number of nodes and links in a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Inside {
    routers: usize,
    nics: usize,
    green: usize,
    black: usize,
}

/// Blue links by the groups that they connect.
pub(super) fn bundles(network: &Dragonfly) -> Bundles {
    let mut bundles = Bundles::new();
    for ((a, b), (kind, numbers)) in joined(network) {
        if kind == PortKind::Blue {
            let [a, b] = [a, b].map(|router| network.shape.group_of(router));
            let known = bundles.entry((a.min(b), a.max(b))).or_default();
            known.extend(numbers);
        }
    }
    bundles
}

fn insides(network: &Dragonfly) -> Vec<Inside> {
    let mut insides = vec![Inside::default(); usize::from(network.shape.groups)];
    let group = |router: u32| usize::from(network.shape.group_of(router));
    for router in network.routers() {
        insides[group(router)].routers += 1;
    }
    for link in &network.links {
        let chips = [link.a.node, link.b.node].map(|node| match node {
            NodeRef::Chip(router) => Some(router),
            NodeRef::Processor(_) => None,
        });
        match (chips, network.kind(link)) {
            ([Some(router), Some(_)], Some(PortKind::Green)) => insides[group(router)].green += 1,
            ([Some(router), Some(_)], Some(PortKind::Black)) => insides[group(router)].black += 1,
            ([Some(router), None] | [None, Some(router)], _) => insides[group(router)].nics += 1,
            _ => {}
        }
    }
    insides
}

/// Names of all nodes of a group, routers first.
fn nodes_of(network: &Dragonfly, group: u16) -> String {
    let routers = network
        .routers()
        .filter(|&router| network.shape.group_of(router) == group);
    let names = routers.map(|router| network.shape.router_name(router));
    names.collect::<Vec<_>>().join(" ")
}

/// The network as an SVG document with a box per group.
pub fn overview(network: &Dragonfly) -> String {
    let bundles = bundles(network);
    match network.shape.groups <= MOST_IN_CIRCLE {
        true => circle(network, &bundles),
        false => field(network, &bundles),
    }
}

/// Number of links between each pair of groups: `4 links`, or `3 to 4 links`.
fn each(bundles: &Bundles) -> String {
    let counts = || bundles.values().map(Vec::len);
    match (counts().min().unwrap_or(0), counts().max().unwrap_or(0)) {
        (1, 1) => "1 link".to_owned(),
        (least, most) if least == most => format!("{most} links"),
        (least, most) => format!("{least} to {most} links"),
    }
}

fn circle(network: &Dragonfly, bundles: &Bundles) -> String {
    let groups = network.shape.groups;
    let large = groups <= MOST_LARGE;
    let (width, height) = if large { BOX } else { SMALL_BOX };
    let radius = f64::max(
        220.0,
        f64::from(groups) * (width + if large { 100.0 } else { 14.0 }) / (2.0 * PI),
    );
    let middle = (radius + width / 2.0 + 40.0, radius + height / 2.0 + 90.0);
    let size = (
        (2.0 * middle.0).max(620.0),
        middle.1 + radius + height / 2.0 + 60.0,
    );
    let point = |group: u16| on_circle(middle, radius, group.into(), groups.into());
    let mut out = Svg::new(size, &summary(network), (30.0, 34.0));
    let boxes: Vec<Point> = (0..groups).map(point).collect();
    let is_numbered = bundles.len() <= MOST_NUMBERED;
    let mut numbers: Vec<(f64, f64, usize)> = Vec::new();
    for (&(a, b), links) in bundles {
        let (from, to) = (point(a), point(b));
        let wide = 1.0 + (links.len() as f64).log2() * 0.4;
        let opacity = if is_numbered { 0.75 } else { 0.4 };
        let style = format!(
            "fill=\"none\" stroke=\"{BLUE}\" stroke-width=\"{wide:.1}\" \
             stroke-opacity=\"{opacity}\""
        );
        let path = format!("M{:.1} {:.1}L{:.1} {:.1}", from.0, from.1, to.0, to.1);
        out.links(links.iter().copied(), |out| out.path(path, &style));
        if is_numbered {
            let (x, y) = free_place(&numbers, &boxes, from, to);
            numbers.push((x, y, links.len()));
        }
    }
    for (x, y, links) in numbers {
        out.haloed(x, y + 3.5, "middle", BLUE, &links.to_string());
    }
    for (group, inside) in (0..groups).zip(insides(network)) {
        group_box(&mut out, network, group, inside, point(group), large);
    }
    let legend = size.1 - 24.0;
    out.part("legend", |out| {
        let style = format!("stroke=\"{BLUE}\" stroke-width=\"3\"");
        let inside = if large {
            ""
        } else {
            "; in the boxes: routers, NICs"
        };
        let words = format!(
            "all blue links between two groups ({} each){inside}; --expand GROUP draws the inside \
             of a group",
            each(bundles)
        );
        out.sample((30.0, legend), 26.0, &style, 11.5, &words);
    });
    out.finish()
}

/// A position near the middle of a line, where its number neither hides another nor is hidden by a
/// box.
fn free_place(taken: &[(f64, f64, usize)], boxes: &[Point], from: Point, to: Point) -> Point {
    let at = |part: f64| {
        (
            from.0 + (to.0 - from.0) * part,
            from.1 + (to.1 - from.1) * part,
        )
    };
    let parts = [0.5, 0.44, 0.56, 0.38, 0.62, 0.33, 0.67, 0.28, 0.72];
    let is_free = |&(x, y): &Point| {
        let is_apart = |other_x: f64, other_y: f64, (width, height): Point| {
            (x - other_x).abs() > width || (y - other_y).abs() > height
        };
        let half = (BOX.0 / 2.0 + 12.0, BOX.1 / 2.0 + 8.0);
        taken.iter().all(|&(x, y, _)| is_apart(x, y, (26.0, 13.0)))
            && boxes.iter().all(|&(x, y)| is_apart(x, y, half))
    };
    parts.into_iter().map(at).find(is_free).unwrap_or(at(0.5))
}

fn group_box(
    out: &mut Svg,
    network: &Dragonfly,
    group: u16,
    inside: Inside,
    point: Point,
    large: bool,
) {
    let Inside {
        routers,
        nics,
        green,
        black,
    } = inside;
    let style = format!("rx=\"8\" fill=\"#e3edfb\" stroke=\"{BLUE}\"");
    let [name, inside, links] = match large {
        true => [
            format!("group {group}"),
            format!("{routers} routers, {nics} NICs"),
            format!("{green} green, {black} black links"),
        ],
        false => [
            format!("g{group}"),
            format!("{routers}, {nics}"),
            String::new(),
        ],
    };
    let lines = match large {
        true => [
            (-13.0, 13.0, INK, &*name),
            (4.0, 11.0, INK, &inside),
            (20.0, 11.0, FAINT, &links),
        ],
        false => [
            (-1.0, 11.5, INK, &*name),
            (11.0, 9.5, FAINT, &inside),
            (0.0, 0.0, FAINT, &links),
        ],
    };
    out.nodes(&nodes_of(network, group), |out| {
        out.block(point, if large { BOX } else { SMALL_BOX }, &style, &lines);
    });
}

/// A square for each pair of groups, darker with more links.
fn field(network: &Dragonfly, bundles: &Bundles) -> String {
    let groups = network.shape.groups;
    let side = (960.0 / f64::from(groups)).clamp(4.0, 14.0).floor();
    let (left, top) = (70.0, 110.0);
    let squares = Grid {
        first: (left, top),
        step: (side, side),
    };
    let across = f64::from(groups) * side;
    let size = ((left + across + 40.0).max(620.0), top + across + 90.0);
    let mut out = Svg::new(size, &summary(network), (30.0, 34.0));
    let most = bundles.values().map(Vec::len).max().unwrap_or(1) as f64;
    let frame = "fill=\"#f5f7fa\" stroke=\"#c4ccd6\"";
    out.frame((left, top), (across, across), frame);
    for (&(a, b), links) in bundles {
        let opacity = 0.25 + 0.75 * links.len() as f64 / most;
        let style = format!("fill=\"{BLUE}\" fill-opacity=\"{opacity:.2}\"");
        out.links(links.iter().copied(), |out| {
            for (column, row) in [(a, b), (b, a)] {
                out.frame(squares.at(column, row), (side - 0.5, side - 0.5), &style);
            }
        });
    }
    let every = [1_u16, 2, 5, 10, 20, 50]
        .into_iter()
        .find(|&n| f64::from(n) * side >= 26.0);
    for group in (0..groups).step_by(every.unwrap_or(50).into()) {
        let middle = f64::from(group) * side + side / 2.0;
        let name = format!("g{group}");
        out.text(left + middle, top - 6.0, "middle", 10.0, FAINT, &name);
        out.text(left - 6.0, top + middle + 3.5, "end", 10.0, FAINT, &name);
    }
    let insides = insides(network);
    let (least, whole) = (
        insides.iter().map(|inside| inside.nics).min(),
        insides.first(),
    );
    let inside = whole.copied().unwrap_or_default();
    let y = size.1 - 52.0;
    out.part("legend", |out| {
        let words = format!(
            "each square shows the blue links between two groups: {} (darkest: {})",
            each(bundles),
            most
        );
        out.text(left, y, "start", 11.5, FAINT, &words);
        let smallest = match least {
            Some(least) if least < inside.nics => {
                format!("; the smallest groups have {least} NICs")
            }
            _ => String::new(),
        };
        let words = format!(
            "a group has {} routers, {} NICs, {} green and {} black links{smallest}",
            inside.routers, inside.nics, inside.green, inside.black
        );
        out.text(left, y + 18.0, "start", 11.5, FAINT, &words);
        let words = "--expand GROUP draws the inside of a group";
        out.text(left, y + 36.0, "start", 11.5, FAINT, words);
    });
    out.finish()
}
