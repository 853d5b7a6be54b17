//! Checks a torus before a process starts.

use super::model::{MAX_NODES, Torus};
use crate::route::{Dependencies, Entry, RouteRegisters, TablesError};
use phitwire::net::{Effort, Location, Mistake, MistakeKind as K, Mistakes, Network, NodeRef};

/// Maximum number of nodes for which a bounded check looks for circular waits. In larger tori it
/// only finds unreachable nodes, unless channel tables are given.
pub const MAX_FOLLOWED: u32 = 1_024;

/// Mistakes in a torus, found with the given effort, and whether all packets were followed.
///
/// The structure is checked first: name, numbers, and whether look-up tables can describe it. Then
/// the tables are generated. Every pair of nodes without a path is a mistake, unless a defect
/// isolates one of the two. Finally the channels that packets hold while they wait for others are
/// searched for a cycle.
pub(super) fn within(torus: &Torus, effort: Effort) -> (Mistakes, bool) {
    let mut mistakes = torus.graph.judge_name();
    mistakes.extend(structure(torus));
    if !mistakes.is_empty() {
        return (mistakes, false);
    }
    let routes = match torus.routes() {
        Ok(routes) => routes,
        Err(error) => {
            mistakes.push(no_tables(error));
            return (mistakes, false);
        }
    };
    for &(from, processor) in routes.tables.unreachable() {
        let to = torus.destinations[processor as usize];
        if !routes.broken.is_isolated(to) {
            mistakes.add(|| unreachable(torus, from, to));
        }
    }
    let followed = effort == Effort::Exact
        || torus.shape.nodes() <= MAX_FOLLOWED
        || !torus.vc_tables.is_empty();
    if followed {
        let entries = routes.tables.routes();
        let entries = entries.map(|(from, _, entry)| (from, entry));
        mistakes.extend(dependency_cycle(torus, &[&routes.registers], entries));
    }
    (mistakes, followed)
}

/// A cycle of channels in which packets routed by these entries can wait for each other, if each
/// router has any one of these register sets.
pub(super) fn dependency_cycle(
    torus: &Torus,
    registers: &[&[RouteRegisters]],
    entries: impl Iterator<Item = (u32, Entry)>,
) -> Option<Mistake> {
    let entries = entries.map(|(from, mut entry)| {
        entry.tag.adaptive &= torus.adaptive;
        (from, entry)
    });
    let circle = Dependencies::while_changing(&torus.shape, registers, entries).find_cycle()?;
    let named = |(coordinates, direction, vc): &_| format!("{coordinates} {direction} VC{vc}");
    let names: Vec<String> = circle.0.iter().map(named).collect();
    let (first, direction, _) = circle.0[0];
    let dimension = direction.dimension();
    let node = torus.shape.node(first);
    // Report the position of the ring's tables, if the description has them.
    let (location, help) = match node {
        Some(node) if torus.vc_tables.names(&torus.shape, node, dimension) => (
            Location::Router(node, dimension as u32),
            "reset to 0 the entries by which packets cross a dateline on VC1; `phitwire topology \
             channels` finds tables without such entries",
        ),
        _ => (
            node.map_or(Location::Network, Location::Chip),
            "write channels = \"time-of-crossing\", or break fewer links",
        ),
    };
    Some(Mistake::dependency_cycle(location, &names).help(help))
}

fn structure(torus: &Torus) -> Option<Mistake> {
    let nodes = torus.shape.nodes();
    if nodes > MAX_NODES {
        let message =
            format!("{nodes} nodes are too many: look-up tables distinguish at most {MAX_NODES}");
        let help = "choose smaller sizes";
        return Some(K::TooLarge.at(Location::Network, message).help(help));
    }
    (torus.spares >= nodes).then(|| {
        let message = format!("all {nodes} nodes are spare ({} spares)", torus.spares);
        let help = "leave some nodes for processors";
        K::BadValue.at(Location::Network, message).help(help)
    })
}

fn no_tables(error: TablesError) -> Mistake {
    let help = match error {
        TablesError::NoBlock(_) => {
            "above 544 processors, table entries cover groups of four: sizes in X and Y must be \
             even, and the number of spares a multiple of four"
        }
        TablesError::TooMany(_) | TablesError::NoNode { .. } => "choose smaller sizes",
    };
    let location = match error {
        TablesError::NoBlock(processor) => Location::Processor(processor),
        _ => Location::Network,
    };
    K::BadValue.at(location, error.to_string()).help(help)
}

fn unreachable(torus: &Torus, from: u32, to: u32) -> Mistake {
    let name = |node| {
        let router = torus.node_name(NodeRef::Chip(node));
        format!("{router} {}", torus.shape.coordinates(node))
    };
    let message = format!(
        "packets from {} have no route to {}: none in direction order, with an initial or a final \
         hop",
        name(from),
        name(to)
    );
    let help = match torus.defects.is_empty() {
        true => "partial planes must leave each node a path along Z",
        false => {
            "too many broken links around the node: repair one of them, or mark the node as broken"
        }
    };
    K::Unreachable.at(Location::Chip(to), message).help(help)
}
