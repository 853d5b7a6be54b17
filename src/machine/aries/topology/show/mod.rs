//! A dragonfly for the eye: tables, Graphviz, a drawing.

mod dot;
mod svg;
mod table;

use std::collections::BTreeMap;

use super::model::Dragonfly;
use crate::machine::aries::route::registers::PortKind;
use crate::net::NodeRef;
use crate::net::show::counted;

pub use dot::dot;
pub use svg::svg;
pub use table::{inventory, table};

/// The name and measure of a network, in one line.
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

/// The numbers of the links that join each two routers, by kind: green, black and blue.
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
