//! Channels that wait for each other in a circle: deadlock (paper, sections 7.3 and 7.7).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use petgraph::algo::{kosaraju_scc, toposort};
use petgraph::graph::{DiGraph, NodeIndex};

use crate::router::yarc::registers::PORTS;
use crate::topology::mistake::{Mistake, MistakeKind, Place};
use crate::topology::model::Topology;
use crate::topology::ports::PortSet;
use crate::topology::wiring::{Neighbour, Wiring};

/// A vertex of the channel-dependency graph (Dally and Seitz, the paper's reference 8).
#[derive(Clone, Copy, Debug)]
enum Vertex {
    /// The channel into this port of a router.
    Channel(u32, u8),
    /// All inputs of a router from which packets go on by the same outputs: it has an edge from
    /// each of these and to each of those, instead of an edge from each to each.
    Turn,
}

/// Both virtual channels take the same ways and never wait for each other, so that one graph
/// stands for both.
pub(super) fn check(
    topology: &Topology,
    wiring: &Wiring,
    waits_for: &[[u64; PORTS]],
) -> Option<Mistake> {
    let graph = dependencies(wiring, waits_for);
    toposort(&graph, None).err()?;
    let circle = shortest_circle(&graph);
    let channels: Vec<(u32, u8)> = circle
        .iter()
        .filter_map(|&vertex| match graph[vertex] {
            Vertex::Channel(router, port) => Some((router, port)),
            Vertex::Turn => None,
        })
        .collect();
    let names: Vec<String> = channels
        .iter()
        .map(|&(router, port)| topology.port_name(wiring, router, port))
        .collect();
    let (first, _) = *channels.first()?;
    let (chip, router) = wiring.place_of(first);
    let place = named_entry(topology, wiring, &channels).unwrap_or(Place::Router(chip, router));
    Some(
        Mistake::new(
            MistakeKind::CyclicDependency,
            place,
            format!(
                "packets can wait for each other in a circle through {}, {}: a deadlock",
                names.join(", "),
                names[0]
            ),
        )
        .label("part of the circle")
        .help(
            "send packets up or over on one side only: a table entry that leads back towards where \
             packets come from closes the circle",
        ),
    )
}

/// The entry of the circle's routers with the highest index: what somebody has put in last.
fn named_entry(topology: &Topology, wiring: &Wiring, channels: &[(u32, u8)]) -> Option<Place> {
    let highest = |&(number, _): &(u32, u8)| {
        let table = &wiring.router(topology, number).registers.table;
        let index = table.iter().rposition(|entry| entry.ports != 0)?;
        let (chip, router) = wiring.place_of(number);
        Some((index, Place::Entry(chip, router, index as u8)))
    };
    channels
        .iter()
        .filter_map(highest)
        .max_by_key(|(index, _)| *index)
        .map(|(_, place)| place)
}

fn dependencies(wiring: &Wiring, waits_for: &[[u64; PORTS]]) -> DiGraph<Vertex, ()> {
    let mut graph = DiGraph::new();
    let mut channel: Vec<[NodeIndex; PORTS]> = vec![[NodeIndex::end(); PORTS]; waits_for.len()];
    for (router, inputs) in waits_for.iter().enumerate() {
        for (port, _) in inputs.iter().enumerate().filter(|(_, out)| **out != 0) {
            channel[router][port] = graph.add_node(Vertex::Channel(router as u32, port as u8));
        }
    }
    for (router, inputs) in waits_for.iter().enumerate() {
        let chip = wiring.chip_of(router as u32);
        let mut turns: BTreeMap<u64, NodeIndex> = BTreeMap::new();
        for (port, &out) in inputs.iter().enumerate().filter(|(_, out)| **out != 0) {
            let turn = *turns.entry(out).or_insert_with(|| {
                let turn = graph.add_node(Vertex::Turn);
                for output in PortSet::from_bits(out).iter() {
                    if let Some(Neighbour::Router(peer, input)) = wiring.neighbour(chip, output) {
                        let next = channel[peer as usize][usize::from(input)];
                        if next != NodeIndex::end() {
                            graph.add_edge(turn, next, ());
                        }
                    }
                }
                turn
            });
            graph.add_edge(channel[router][port], turn, ());
        }
    }
    graph
}

/// The vertices of a shortest circle through the first vertex of the smallest knot.
fn shortest_circle(graph: &DiGraph<Vertex, ()>) -> Vec<NodeIndex> {
    let knots = kosaraju_scc(graph);
    let Some(knot) = knots
        .iter()
        .filter(|knot| knot.len() > 1)
        .min_by_key(|knot| knot.len())
    else {
        return Vec::new();
    };
    let inside: BTreeSet<NodeIndex> = knot.iter().copied().collect();
    let Some(&start) = inside.first() else {
        return Vec::new();
    };
    let mut before: BTreeMap<NodeIndex, NodeIndex> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(vertex) = queue.pop_front() {
        for next in graph.neighbors(vertex).filter(|next| inside.contains(next)) {
            if next == start {
                let mut circle = vec![vertex];
                let mut at = vertex;
                while at != start {
                    at = before[&at];
                    circle.push(at);
                }
                circle.reverse();
                return circle;
            }
            if let std::collections::btree_map::Entry::Vacant(slot) = before.entry(next) {
                slot.insert(vertex);
                queue.push_back(next);
            }
        }
    }
    Vec::new()
}
