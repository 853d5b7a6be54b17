//! Draws one group of a dragonfly: each router with its NICs, green links as arcs above the rows,
//! black links as curves beside the columns, and blue links as numbers.

use std::collections::{BTreeMap, BTreeSet};

use super::svg::{BLACK, BLUE, GREEN, curve};
use super::table::nics_name;
use super::{joined, summary};
use crate::route::registers::PortKind;
use crate::topology::model::Dragonfly;
use phitwire::net::show::{FAINT, Grid, INK, Point, Svg, title_of_part};

/// Centres of the routers, by slot and chassis.
const ROUTERS: Grid = Grid {
    first: (90.0, 190.0),
    step: (118.0, 150.0),
};
const BOX: Point = (84.0, 46.0);
const HIGHEST: f64 = 66.0;
/// Number of groups per line in the list of blue links.
const IN_A_LINE: usize = 8;

fn point(network: &Dragonfly, router: u32) -> Point {
    let (chassis, blade) = network.shape.place_of(router);
    ROUTERS.at(blade, chassis)
}

/// One group of the network as an SVG document.
pub fn group(network: &Dragonfly, group: u16) -> String {
    let shape = &network.shape;
    let joined = joined(network);
    let mut to: BTreeMap<u16, usize> = BTreeMap::new();
    let mut blue: BTreeMap<u32, (BTreeSet<u16>, Vec<usize>)> = BTreeMap::new();
    for (&(a, b), (kind, numbers)) in &joined {
        for (own, other) in [(a, b), (b, a)] {
            if *kind == PortKind::Blue && shape.group_of(own) == group {
                let other = shape.group_of(other);
                *to.entry(other).or_default() += numbers.len();
                let of_router = blue.entry(own).or_default();
                of_router.0.insert(other);
                of_router.1.extend(numbers);
            }
        }
    }
    let lines = to.len().div_ceil(IN_A_LINE);
    let last = ROUTERS.at(shape.blades - 1, shape.chassis - 1);
    let (width, below) = (last.0 + BOX.0 / 2.0 + 70.0, last.1 + 76.0);
    let size = (width.max(760.0), below + 18.0 * lines as f64 + 60.0);
    let title = title_of_part(&summary(network), format_args!("group {group}"));
    let mut out = Svg::new(size, &title, (30.0, 34.0));
    for (&(a, b), (kind, numbers)) in &joined {
        if shape.group_of(a) == group && shape.group_of(b) == group {
            inside(&mut out, network, (a, b), *kind, numbers);
        }
    }
    for router in network
        .routers()
        .filter(|&router| shape.group_of(router) == group)
    {
        let of_router = blue.remove(&router).unwrap_or_default();
        router_box(&mut out, network, router, &of_router);
    }
    let leads: Vec<_> = to
        .iter()
        .map(|(other, links)| format!("group {other}: {links}"))
        .collect();
    for (line, groups) in leads.chunks(IN_A_LINE).enumerate() {
        let head = if line == 0 { "blue links to " } else { "" };
        let words = format!("{head}{}", groups.join(", "));
        out.text(
            30.0,
            below + 18.0 * line as f64,
            "start",
            12.0,
            BLUE,
            &words,
        );
    }
    let y = size.1 - 24.0;
    out.part("legend", |out| {
        let mut x = 30.0;
        for (colour, words) in [
            (GREEN, "green: chassis (row)"),
            (BLACK, "black: slot (column)"),
            (BLUE, "blue: to other groups"),
        ] {
            let style = format!("stroke=\"{colour}\" stroke-width=\"2.4\"");
            out.sample((x, y), 26.0, &style, 11.5, words);
            x += 190.0;
        }
    });
    out.finish()
}

/// Draws the links between two routers of the group.
fn inside(
    out: &mut Svg,
    network: &Dragonfly,
    (a, b): (u32, u32),
    kind: PortKind,
    numbers: &[usize],
) {
    let (from, to) = (point(network, a), point(network, b));
    let shape = &network.shape;
    let positions = [a, b].map(|router| shape.place_of(router));
    let (path, colour) = match kind {
        PortKind::Green => {
            let furthest = f64::from(shape.blades.max(2) - 1);
            let apart = f64::from(positions[0].1.abs_diff(positions[1].1));
            // Starts at the upper edges and rises with the distance; a curve reaches half of the
            // way to its third point.
            let rise = 12.0 + (HIGHEST - 12.0) * (apart - 1.0) / (furthest - 1.0).max(1.0);
            let lean = 3.0 + 24.0 * (apart - 1.0) / furthest.max(1.0);
            let (from, to) = (
                (from.0 + lean, from.1 - BOX.1 / 2.0),
                (to.0 - lean, to.1 - BOX.1 / 2.0),
            );
            let middle = (f64::midpoint(from.0, to.0), from.1 - 2.0 * rise);
            (curve(from, middle, to), GREEN)
        }
        _ => {
            let apart = f64::from(positions[0].0.abs_diff(positions[1].0));
            let side = BOX.0 / 2.0;
            let (from, to) = (
                (from.0 + side, from.1 + 4.0 * apart - 6.0),
                (to.0 + side, to.1 - 4.0 * apart),
            );
            let middle = (from.0 + 14.0 + 9.0 * apart, f64::midpoint(from.1, to.1));
            (curve(from, middle, to), BLACK)
        }
    };
    let wide = if numbers.len() > 1 { 1.8 } else { 0.9 };
    let style =
        format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"{wide}\" stroke-opacity=\"0.7\"");
    out.links(numbers.iter().copied(), |out| out.path(path, &style));
}

fn router_box(
    out: &mut Svg,
    network: &Dragonfly,
    router: u32,
    (groups, blue): &(BTreeSet<u16>, Vec<usize>),
) {
    let (x, y) = point(network, router);
    let name = network.shape.router_name(router);
    if !blue.is_empty() {
        let style = format!("fill=\"none\" stroke=\"{BLUE}\" stroke-width=\"2.4\"");
        let path = format!("M{x:.1} {:.1}v14", y + BOX.1 / 2.0);
        out.links(blue.iter().copied(), |out| out.path(path, &style));
        let words = format!("{} to {} groups", blue.len(), groups.len());
        let words = if groups.len() == 1 {
            words.trim_end_matches('s')
        } else {
            &words
        };
        out.haloed(x, y + BOX.1 / 2.0 + 24.0, "middle", BLUE, words);
    }
    out.nodes(&name, |out| {
        let style = format!("rx=\"4\" fill=\"#e3edfb\" stroke=\"{BLUE}\"");
        let nics = nics_name(network, router);
        let lines = [(-2.0, 12.0, INK, &*name), (13.0, 9.5, FAINT, &nics)];
        out.block((x, y), BOX, &style, &lines);
    });
}
