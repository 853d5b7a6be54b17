//! Views of a folded Clos: tables, Graphviz output and drawings.

mod dot;
mod layout;
mod overview;
mod svg;
mod table;

use std::collections::BTreeMap;

use crate::route::registers::PortKind;
use phitwire::link::LaneRate;

use super::model::FoldedClos;
use super::wiring::ClosWiring;
use phitwire::net::show::counted;
use phitwire::net::{NodeRef, PortSet};

pub use dot::dot;
pub use phitwire::net::{DrawError, TooLarge};
pub use svg::svg;
pub use table::table;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    Processor(u32),
    /// All processors of rank-1 subtrees with this location, which are too many to draw
    /// individually.
    Group(u16),
    /// A virtual router, by its number in [`ClosWiring`].
    Router(u32),
}

/// Links between the same two shapes, drawn as one line.
#[derive(Clone, Debug)]
struct Bundle {
    a: Shape,
    b: Shape,
    /// Kind of the links as seen from `a`: up or side.
    kind: PortKind,
    rate: LaneRate,
    slice: u8,
    numbers: Vec<usize>,
    ports_a: PortSet,
    ports_b: PortSet,
}

/// The network's class, derived from its routers.
fn class(topology: &FoldedClos, wiring: &ClosWiring) -> String {
    let top = topology.routers().map(|(_, r)| r.rank).max().unwrap_or(0);
    let side = (0..wiring.router_count() as u32)
        .any(|r| !wiring.ports_of_kind(topology, r, PortKind::Side).is_empty());
    format!("R{top}{}", if side { ".5" } else { "" })
}

/// Maximum number of lines and boxes of a full drawing.
const MOST_LINES: usize = 1_200;
/// Maximum width of a full drawing, in pixels: the words of a wider one are illegible on a page.
const MOST_WIDTH: f64 = 1_400.0;

/// The drawing of a network: in full, with a box per subtree, or of one subtree.
///
/// # Errors
/// [`DrawError::NoPart`].
pub fn drawing(topology: &FoldedClos, part: Option<&str>) -> Result<String, DrawError> {
    let subtrees = overview::Subtrees::of(topology);
    let Some(part) = part else {
        let wiring = ClosWiring::new(topology);
        let is_small = bundles(topology, &wiring, true).len() <= MOST_LINES
            && layout::layout(topology, &wiring).width <= MOST_WIDTH;
        return match svg(topology) {
            Ok(drawing) if is_small => Ok(drawing),
            _ => Ok(overview::overview(topology)),
        };
    };
    match subtrees.named(part) {
        Some(number) => Ok(svg(&overview::subtree(topology, &subtrees, number))?),
        None => Err(DrawError::NoPart {
            wanted: part.to_owned(),
            parts: format!("subtrees 0 to {}", subtrees.ranges.len().saturating_sub(1)),
        }),
    }
}

/// All links as bundles, ordered by their shapes.
fn bundles(topology: &FoldedClos, wiring: &ClosWiring, grouped: bool) -> Vec<Bundle> {
    let mut bundles: BTreeMap<(Shape, Shape, u8), Bundle> = BTreeMap::new();
    for (number, link) in topology.links.iter().enumerate() {
        let (mut low, mut high) = (link.a, link.b);
        if topology.rank_of(low) > topology.rank_of(high) {
            (low, high) = (high, low);
        }
        let Some(router) = wiring.router_at(high) else {
            continue;
        };
        let upper = wiring.router(topology, router);
        let lower = match low.node {
            NodeRef::Processor(_) if grouped => Shape::Group(upper.subtree.location),
            NodeRef::Processor(p) => Shape::Processor(p),
            NodeRef::Chip(_) => match wiring.router_at(low) {
                Some(router) => Shape::Router(router),
                None => continue,
            },
        };
        let bundle = bundles
            .entry((lower, Shape::Router(router), link.rate.code()))
            .or_insert_with(|| Bundle {
                a: lower,
                b: Shape::Router(router),
                kind: topology.kind_of(low, high),
                rate: link.rate,
                slice: upper.slice,
                numbers: Vec::new(),
                ports_a: PortSet::EMPTY,
                ports_b: PortSet::EMPTY,
            });
        bundle.numbers.push(number);
        bundle.ports_a = bundle.ports_a.with(low.port);
        bundle.ports_b = bundle.ports_b.with(high.port);
    }
    bundles.into_values().collect()
}

pub fn summary(topology: &FoldedClos) -> String {
    headline(topology, &ClosWiring::new(topology))
}

/// Like [`summary`], with existing wiring.
fn headline(topology: &FoldedClos, wiring: &ClosWiring) -> String {
    format!(
        "{}: {}, {}, {}, {} on {}, {}",
        topology.name,
        class(topology, wiring),
        counted(topology.processors.len(), "processor"),
        counted(usize::from(topology.slices), "slice"),
        counted(wiring.router_count(), "router"),
        counted(topology.chips.len(), "chip"),
        counted(topology.links.len(), "link"),
    )
}

#[cfg(test)]
mod tests;
