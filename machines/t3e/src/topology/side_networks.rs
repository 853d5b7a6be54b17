//! Trees of barriers, and paths of maintenance packets, over the links of a torus.

use std::collections::{BTreeMap, VecDeque};

use phitwire_framing::t3e::barrier::UNITS;
use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::maintenance::LEGS;
use phitwire_framing::t3e::maintenance::SourceRoute;

use super::model::Torus;
use crate::barrier::SpanningTree;
use crate::router::PROCESSOR;
use phitwire::net::{BarrierPlan, Network as _, NodeRef, RegisterValue, SideNetworks};

impl Torus {
    /// By node: the neighbour in each direction if the link works, and whether the processor's link
    /// works.
    fn working(&self, works: &dyn Fn(usize) -> bool) -> Vec<([Option<u32>; 6], bool)> {
        let mut links = BTreeMap::new();
        for (number, link) in self.graph.links.iter().enumerate() {
            for end in [link.a, link.b] {
                links.insert((end.node, end.port), number);
            }
        }
        let nodes = 0..self.shape.nodes();
        let of = |node: u32| {
            let router = NodeRef::Chip(node);
            let link_works = |port| {
                let found = links.get(&(router, port));
                found.is_some_and(|&link| works(link) && !self.is_broken(&self.graph.links[link]))
            };
            let neighbours = Direction::ALL.map(|direction| {
                let other = self.shape.neighbour(node, direction);
                other.filter(|_| link_works(direction.index() as u8))
            });
            (neighbours, link_works(PROCESSOR as u8))
        };
        nodes.map(of).collect()
    }
}

impl SideNetworks for Torus {
    fn units(&self) -> u8 {
        UNITS as u8
    }

    fn barrier(
        &self,
        unit: u8,
        nics: &[(NodeRef, u16)],
        works: &dyn Fn(usize) -> bool,
    ) -> Result<BarrierPlan, String> {
        let working = self.working(works);
        // Use the NIC's node, not its number, because the description does not contain run-time
        // replacements.
        let node_of = |&(nic, number): &(NodeRef, u16)| {
            let name = || self.node_name(nic);
            let NodeRef::Processor(node) = nic else {
                return Err(format!("{} is not a NIC", name()));
            };
            if usize::from(number) >= self.destinations.len() {
                return Err(format!("{} is an unreachable spare", name()));
            }
            match working.get(node as usize) {
                Some((_, true)) => Ok(node),
                _ => Err(format!("the link of {} is down", name())),
            }
        };
        let nodes: Vec<u32> = nics.iter().map(node_of).collect::<Result<_, _>>()?;
        let neighbour =
            |node: u32, direction: Direction| working.get(node as usize)?.0[direction.index()];
        let tree = match nodes.is_empty() {
            true => None,
            false => {
                let tree = SpanningTree::build(&nodes, neighbour);
                Some(tree.map_err(|error| error.to_string())?)
            }
        };
        let register = |node| RegisterValue {
            node: NodeRef::Chip(node),
            register: format!("barrier.{unit}"),
            value: tree
                .as_ref()
                .map_or(0, |tree| tree.register(node).bits().into()),
        };
        let summary = match &tree {
            Some(tree) => format!(
                "unit {unit}, tree of height {} over {} links from router {}",
                tree.height(),
                tree.links(),
                tree.root()
            ),
            None => format!("unit {unit}, not in use"),
        };
        Ok(BarrierPlan {
            registers: (0..self.shape.nodes()).map(register).collect(),
            summary,
        })
    }

    fn way(&self, from: NodeRef, to: NodeRef, works: &dyn Fn(usize) -> bool) -> Option<Vec<i8>> {
        let (NodeRef::Chip(from), NodeRef::Chip(to)) = (from, to) else {
            return None;
        };
        let working = self.working(works);
        let neighbours =
            |node: u32, direction: Direction| working.get(node as usize)?.0[direction.index()];
        shortest(self.shape.nodes(), (from, to), neighbours).map(|way| way.0.to_vec())
    }
}

/// A search state: node, leg, and whether the leg goes in minus direction.
type State = (u32, usize, bool);

/// The path with the fewest hops in six legs of one direction each.
fn shortest(
    nodes: u32,
    (from, to): (u32, u32),
    neighbour: impl Fn(u32, Direction) -> Option<u32>,
) -> Option<SourceRoute> {
    let number = |(node, leg, minus): State| (node as usize * LEGS + leg) * 2 + usize::from(minus);
    // The previous state, and whether a hop led here.
    let mut before: Vec<Option<(State, bool)>> = vec![None; nodes as usize * LEGS * 2];
    let starts = [(from, 0, false), (from, 0, true)];
    let mut queue = VecDeque::new();
    for start in starts {
        *before.get_mut(number(start))? = Some((start, false));
        queue.push_back(start);
    }
    let mut end = None;
    while let Some(state) = queue.pop_front() {
        let (node, leg, minus) = state;
        if node == to {
            end = Some(state);
            break;
        }
        // Visit the next leg, which costs nothing, before states that are one hop farther.
        if leg + 1 < LEGS {
            for minus in [true, false] {
                let next = (node, leg + 1, minus);
                let entry = &mut before[number(next)];
                if entry.is_none() {
                    *entry = Some((state, false));
                    queue.push_front(next);
                }
            }
        }
        if let Some(other) = neighbour(node, Direction::of(leg % 3, minus)) {
            let next = (other, leg, minus);
            let entry = &mut before[number(next)];
            if entry.is_none() {
                *entry = Some((state, true));
                queue.push_back(next);
            }
        }
    }
    let mut state = end?;
    let mut way = SourceRoute::default();
    while !starts.contains(&state) || state.0 != from {
        let (previous, hop) = before[number(state)]?;
        if previous == state {
            break;
        }
        if hop {
            way.0[state.1] += if state.2 { -1 } else { 1 };
        }
        state = previous;
    }
    way.fits().then_some(way)
}
