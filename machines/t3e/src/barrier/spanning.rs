//! Spanning trees for sets of processors.
//!
//! "This register allows the node to be configured as an internal node in the BSU's logical
//! spanning tree" (T3E sec. 6), but the paper does not say how the machine's software chose trees.
//! Here they are breadth-first trees from a root at a centre of the participants: no tree over the
//! same links has a smaller height, and the height determines the latency of a barrier. Trees may
//! use any order of directions, since barrier messages never wait.

use std::collections::{BTreeMap, BTreeSet};

use phitwire_framing::t3e::direction::Direction;
use thiserror::Error;

use super::tree::{Port, PortSet, TreeRegister};

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SpanningError {
    #[error("the barrier has no participants")]
    NoParticipants,
    #[error("no path of working links from node {from} to participant {to}")]
    NotConnected {
        /// The root, or the first participant.
        from: u32,
        /// The first unreachable participant.
        to: u32,
    },
}

/// Why registers do not form a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TreeFault {
    /// Every router has a parent, or none uses the unit.
    #[error("no node is the root")]
    NoRoot,
    #[error("node {0} and node {1} are both roots")]
    TwoRoots(u32, u32),
    /// The child does not exist, or this node is not its parent.
    #[error("node {node} has a child in {direction} whose parent is another node")]
    Child { node: u32, direction: Direction },
    /// The parent does not exist, or this node is not its child.
    #[error("node {node} has a parent in {direction} that does not list it as a child")]
    Parent { node: u32, direction: Direction },
    #[error("no path from the root to node {0}")]
    Loop(u32),
}

/// The neighbour behind a link that works in both directions, as barrier messages require.
fn behind(
    neighbour: &impl Fn(u32, Direction) -> Option<u32>,
    node: u32,
    direction: Direction,
) -> Option<u32> {
    let other = neighbour(node, direction)?;
    let back = neighbour(other, direction.opposite()) == Some(node);
    (back && other != node).then_some(other)
}

/// The nodes that can be reached from a start node, numbered in order of discovery.
struct Component {
    nodes: Vec<u32>,
    numbers: BTreeMap<u32, u32>,
    /// The neighbour behind each link, or [`NONE`].
    links: Vec<[u32; 6]>,
}

impl Component {
    fn explore(start: u32, neighbour: &impl Fn(u32, Direction) -> Option<u32>) -> Self {
        let mut nodes = vec![start];
        let mut numbers = BTreeMap::from([(start, 0)]);
        let mut links = Vec::new();
        while let Some(&node) = nodes.get(links.len()) {
            links.push(Direction::ALL.map(|direction| {
                let Some(other) = behind(neighbour, node, direction) else {
                    return NONE;
                };
                *numbers.entry(other).or_insert_with(|| {
                    nodes.push(other);
                    nodes.len() as u32 - 1
                })
            }));
        }
        Self {
            nodes,
            numbers,
            links,
        }
    }

    /// Hops from `start` to every node, and the nodes in order of distance.
    fn distances(&self, start: u32) -> (Vec<u32>, Vec<u32>) {
        let mut hops = vec![NONE; self.nodes.len()];
        hops[start as usize] = 0;
        let mut order = vec![start];
        let mut next = 0;
        while let Some(&node) = order.get(next) {
            next += 1;
            for &other in &self.links[node as usize] {
                if other != NONE && hops[other as usize] == NONE {
                    hops[other as usize] = hops[node as usize] + 1;
                    order.push(other);
                }
            }
        }
        (hops, order)
    }

    /// Numbers of the participants in this component.
    fn participants(&self, participants: &BTreeSet<u32>) -> Result<Vec<u32>, SpanningError> {
        let number = |&to| {
            let from = self.nodes[0];
            let number = self.numbers.get(&to).copied();
            number.ok_or(SpanningError::NotConnected { from, to })
        };
        participants.iter().map(number).collect()
    }

    /// The node with the smallest distance to its farthest participant. Ties go to a participant,
    /// then to the lowest node number.
    fn centre(&self, participants: &[u32]) -> u32 {
        let mut farthest = vec![0; self.nodes.len()];
        let mut outside = vec![true; self.nodes.len()];
        for &participant in participants {
            outside[participant as usize] = false;
            let (hops, _) = self.distances(participant);
            for (farthest, hops) in farthest.iter_mut().zip(hops) {
                *farthest = hops.max(*farthest);
            }
        }
        let rank = |&node: &u32| {
            let at = node as usize;
            (farthest[at], outside[at], self.nodes[at])
        };
        let nodes = 0..self.nodes.len() as u32;
        nodes
            .min_by_key(rank)
            .expect("a component has at least one node")
    }
}

/// A tree, as the registers of its routers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanningTree {
    root: u32,
    height: u32,
    registers: BTreeMap<u32, TreeRegister>,
}

impl SpanningTree {
    /// A tree of minimal height for the processors of `participants`; duplicates count once.
    /// `neighbour` returns the neighbour behind a working link. A link is not used if it does not
    /// lead back in the opposite direction.
    ///
    /// Takes time proportional to participants times nodes: tenths of a second for all of 2,048.
    ///
    /// # Errors
    /// If there are no participants, or they are not connected.
    pub fn build(
        participants: &[u32],
        neighbour: impl Fn(u32, Direction) -> Option<u32>,
    ) -> Result<Self, SpanningError> {
        let participants: BTreeSet<u32> = participants.iter().copied().collect();
        let &first = participants.first().ok_or(SpanningError::NoParticipants)?;
        let component = Component::explore(first, &neighbour);
        let participants = component.participants(&participants)?;
        let root = component.centre(&participants);
        Ok(Self::grow(&component, root, &participants))
    }

    /// Like [`build`](Self::build), but from a given root, which need not be a participant.
    ///
    /// # Errors
    /// If there are no participants, or the root does not reach them all.
    pub fn build_from(
        root: u32,
        participants: &[u32],
        neighbour: impl Fn(u32, Direction) -> Option<u32>,
    ) -> Result<Self, SpanningError> {
        let participants: BTreeSet<u32> = participants.iter().copied().collect();
        if participants.is_empty() {
            return Err(SpanningError::NoParticipants);
        }
        let component = Component::explore(root, &neighbour);
        let participants = component.participants(&participants)?;
        Ok(Self::grow(&component, 0, &participants))
    }

    /// The breadth-first tree from `root`, without branches that no participant needs.
    fn grow(component: &Component, root: u32, participants: &[u32]) -> Self {
        let (hops, order) = component.distances(root);
        let mut children = vec![PortSet::EMPTY; component.nodes.len()];
        let mut parents = vec![None; component.nodes.len()];
        for &participant in participants {
            children[participant as usize].insert(Port::Local);
        }
        // Farthest nodes first, so that all children of a node are attached before its turn. Of
        // several possible parents, prefer one that is already in the tree.
        for &node in order[1..].iter().rev() {
            let at = node as usize;
            if children[at].is_empty() {
                continue;
            }
            let nearer = |direction: &Direction| {
                let other = component.links[at][direction.index()];
                other != NONE && hops[other as usize] + 1 == hops[at]
            };
            let is_outside = |direction: &Direction| {
                children[component.links[at][direction.index()] as usize].is_empty()
            };
            let ways = Direction::ALL.into_iter().filter(nearer);
            let way = ways
                .min_by_key(is_outside)
                .expect("every node but the root has a neighbour nearer to the root");
            parents[at] = Some(way);
            let parent = component.links[at][way.index()] as usize;
            children[parent].insert(Port::Link(way.opposite()));
        }
        let register = |at: usize| {
            let register = TreeRegister::new(children[at], parents[at]);
            register.expect("a parent is nearer to the root than its children")
        };
        let used = (0..component.nodes.len()).filter(|&at| !children[at].is_empty());
        let farthest = participants.iter().map(|&node| hops[node as usize]).max();
        Self {
            root: component.nodes[root as usize],
            height: farthest.unwrap_or(0),
            registers: used.map(|at| (component.nodes[at], register(at))).collect(),
        }
    }

    pub const fn root(&self) -> u32 {
        self.root
    }

    /// Number of hops from the root to the farthest participant.
    pub const fn height(&self) -> u32 {
        self.height
    }

    /// Number of links in the tree. A barrier sends at most one message up and one down each of
    /// them, and so does a eureka without its repetitions.
    pub fn links(&self) -> usize {
        self.registers.len() - 1
    }

    /// The register of a router: [`TreeRegister::UNUSED`] if it is not in the tree.
    pub fn register(&self, node: u32) -> TreeRegister {
        self.registers.get(&node).copied().unwrap_or_default()
    }

    /// The numbers of the routers in the tree, and their registers.
    pub fn registers(&self) -> impl Iterator<Item = (u32, TreeRegister)> {
        self.registers
            .iter()
            .map(|(&node, &register)| (node, register))
    }
}

/// Checks that the registers of one unit form a tree, and returns its root and height. Nodes that
/// are not listed do not use the unit.
///
/// # Errors
/// The first fault.
pub fn check(
    registers: impl IntoIterator<Item = (u32, TreeRegister)>,
    neighbour: impl Fn(u32, Direction) -> Option<u32>,
) -> Result<(u32, u32), TreeFault> {
    let used = registers
        .into_iter()
        .filter(|(_, register)| register.is_used());
    let registers: BTreeMap<u32, TreeRegister> = used.collect();
    let mut roots = registers
        .iter()
        .filter(|(_, register)| register.parent().is_none());
    let (&root, _) = roots.next().ok_or(TreeFault::NoRoot)?;
    if let Some((&other, _)) = roots.next() {
        return Err(TreeFault::TwoRoots(root, other));
    }
    for (&node, register) in &registers {
        let beyond = |direction| {
            let other = behind(&neighbour, node, direction)?;
            registers.get(&other)
        };
        for direction in links(register) {
            let parent = beyond(direction).and_then(|child| child.parent());
            if parent != Some(direction.opposite()) {
                return Err(TreeFault::Child { node, direction });
            }
        }
        if let Some(direction) = register.parent() {
            let own = Port::Link(direction.opposite());
            if !beyond(direction).is_some_and(|parent| parent.children().contains(own)) {
                return Err(TreeFault::Parent { node, direction });
            }
        }
    }
    let mut reached = BTreeSet::from([root]);
    let mut level = vec![root];
    let mut height = 0;
    loop {
        let ways = |&node: &u32| links(&registers[&node]).map(move |way| (node, way));
        let below = |(node, way)| behind(&neighbour, node, way);
        level = level.iter().flat_map(ways).filter_map(below).collect();
        if level.is_empty() {
            break;
        }
        height += 1;
        reached.extend(&level);
    }
    match registers.keys().find(|node| !reached.contains(node)) {
        Some(&node) => Err(TreeFault::Loop(node)),
        None => Ok((root, height)),
    }
}

/// The directions in which a router has children.
fn links(register: &TreeRegister) -> impl Iterator<Item = Direction> + use<> {
    register.children().iter().filter_map(|port| match port {
        Port::Link(direction) => Some(direction),
        Port::Local => None,
    })
}

#[cfg(test)]
#[path = "tests/spanning.rs"]
mod tests;
