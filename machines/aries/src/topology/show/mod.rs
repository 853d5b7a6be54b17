//! Views of a dragonfly: tables, Graphviz output and drawings.

mod dot;
mod group;
mod overview;
mod svg;
mod table;

use std::collections::BTreeMap;

use super::model::Dragonfly;
use crate::route::registers::PortKind;
use phitwire::net::DrawError;
use phitwire::net::NodeRef;
use phitwire::net::show::counted;

pub use dot::dot;
pub use svg::svg;
pub use table::{inventory, table};

pub fn summary(network: &Dragonfly) -> String {
    let shape = &network.shape;
    format!(
        "{}: dragonfly, {} of {} x {}, {}, {}, {}",
        network.name,
        counted(usize::from(shape.groups), "group"),
        shape.chassis,
        counted(usize::from(shape.blades), "blade"),
        counted(network.routers().count(), "router"),
        counted(network.nics().count(), "NIC"),
        counted(network.links.len(), "link"),
    )
}

/// Maximum number of lines between groups that are drawn separately for each pair of routers.
const MOST_LINES: usize = 60;
/// Maximum width of a full drawing, in pixels: the words of a wider one are illegible on a page.
const MOST_WIDTH: f64 = 1_400.0;

/// The drawing of a network: in full, with a box per group, or of one group.
///
/// # Errors
/// [`DrawError::NoPart`].
pub fn drawing(network: &Dragonfly, part: Option<&str>) -> Result<String, DrawError> {
    let Some(part) = part else {
        let joined = joined(network);
        let blue = joined.values().filter(|(kind, _)| *kind == PortKind::Blue);
        let is_small = blue.count() <= MOST_LINES && svg::width(network) <= MOST_WIDTH;
        // A single group needs no box around it.
        let is_one = network.shape.groups == 1 && !svg::names_all(network);
        return match svg(network) {
            _ if is_one => Ok(group::group(network, 0)),
            Ok(drawing) if is_small => Ok(drawing),
            _ => Ok(overview::overview(network)),
        };
    };
    let number = part.strip_prefix("group").unwrap_or(part).trim();
    let number = number.strip_prefix('g').unwrap_or(number);
    match number.parse() {
        Ok(number) if number < network.shape.groups => Ok(group::group(network, number)),
        _ => Err(DrawError::NoPart {
            wanted: part.to_owned(),
            parts: format!("groups 0 to {}", network.shape.groups - 1),
        }),
    }
}

/// The numbers of the links between each pair of routers, by kind: green, black and blue.
fn joined(network: &Dragonfly) -> BTreeMap<(u32, u32), (PortKind, Vec<usize>)> {
    let mut joined = BTreeMap::new();
    for (number, link) in network.links.iter().enumerate() {
        if let (NodeRef::Chip(a), NodeRef::Chip(b)) = (link.a.node, link.b.node)
            && let Some(kind) = network.kind(link)
        {
            let ends = (a.min(b), a.max(b));
            let known = joined.entry(ends).or_insert((kind, Vec::new()));
            known.1.push(number);
        }
    }
    joined
}
