//! Graph isomorphism: checks whether two graphs differ only in the names and order of their nodes,
//! and matches their nodes.
//!
//! Colour refinement gives nodes colours, first by their own properties, then by the colours of
//! their neighbours, until nothing changes any more. Where several nodes share a colour, one of
//! them gets a unique colour in the first graph, and each candidate in the second is tried in turn.
//! The total work is bounded, because some graphs would take exponential time.

use std::collections::BTreeMap;

use super::graph::{Graph, Node};

/// Size limit: larger graphs are only compared in order.
const MOST_NODES: usize = 8_192;
/// Maximum number of link ends examined.
const MOST_STEPS: u64 = 100_000_000;

/// A graph for colouring: routers, then NICs with links to several routers.
struct Plain {
    colours: Vec<u32>,
    joined: Vec<Vec<(u32, u32)>>,
    /// NICs with one router each, by router. NICs of the same router are interchangeable.
    leaves: Vec<Vec<usize>>,
    /// The other NICs, which follow the routers.
    others: Vec<usize>,
}

impl Plain {
    fn of(graph: &Graph, counts: bool) -> Self {
        let routers = graph.routers.len();
        let mut homes: Vec<Vec<(usize, u32)>> = vec![Vec::new(); graph.nics.len()];
        let mut pairs = Vec::new();
        for (pair, count) in graph.joined() {
            let count = if counts { count as u32 } else { 1 };
            match pair {
                [Node::Router(a), Node::Router(b)] => pairs.push((a, b, count)),
                [Node::Router(router), Node::Nic(nic)] | [Node::Nic(nic), Node::Router(router)] => {
                    homes[nic].push((router, count));
                }
                // Ignore a link between NICs. Networks of phitwire have none, so the link counts
                // differ.
                [Node::Nic(_), Node::Nic(_)] => {}
            }
        }
        let mut leaves = vec![Vec::new(); routers];
        let mut others = Vec::new();
        for (nic, homes) in homes.iter().enumerate() {
            match homes[..] {
                [(router, 1)] => leaves[router].push(nic),
                _ => {
                    let node = routers + others.len();
                    pairs.extend(homes.iter().map(|&(router, count)| (router, node, count)));
                    others.push(nic);
                }
            }
        }
        let mut joined = vec![Vec::new(); routers + others.len()];
        for (a, b, count) in pairs {
            joined[a].push((b as u32, count));
            joined[b].push((a as u32, count));
        }
        let of_router = leaves.iter().map(|leaves| 1 + leaves.len() as u32);
        let colours = of_router.chain(others.iter().map(|_| 0)).collect();
        Self {
            colours,
            joined,
            leaves,
            others,
        }
    }
}

/// The colours of the nodes of both graphs.
type Colours = [Vec<u32>; 2];

/// The colour of a node, and those of its neighbours with the numbers of links.
type Around = (u32, Vec<(u32, u32)>);

struct Search<'a> {
    graphs: [&'a Plain; 2],
    steps: u64,
}

impl Search<'_> {
    /// Refines the colours of both graphs. Returns false if they differ, or the work limit is
    /// reached.
    fn refine(&mut self, colours: &mut Colours) -> bool {
        let mut classes = 0;
        loop {
            let mut keys = self.graphs.map(|_| Vec::new());
            for side in [0, 1] {
                for (node, joined) in self.graphs[side].joined.iter().enumerate() {
                    let around = joined
                        .iter()
                        .map(|&(to, count)| (colours[side][to as usize], count));
                    let mut around: Vec<_> = around.collect();
                    self.steps += 1 + around.len() as u64;
                    around.sort_unstable();
                    keys[side].push((colours[side][node], around));
                }
            }
            if self.steps > MOST_STEPS {
                return false;
            }
            let mut counts: BTreeMap<&Around, [usize; 2]> = BTreeMap::new();
            for side in [0, 1] {
                for key in &keys[side] {
                    counts.entry(key).or_default()[side] += 1;
                }
            }
            if counts.values().any(|[a, b]| a != b) {
                return false;
            }
            let numbers: BTreeMap<_, u32> = counts.keys().copied().zip(0..).collect();
            for side in [0, 1] {
                colours[side] = keys[side].iter().map(|key| numbers[key]).collect();
            }
            if numbers.len() == classes {
                return true;
            }
            classes = numbers.len();
        }
    }

    /// Finds colours that each belong to one node per graph.
    fn distinct(&mut self, mut colours: Colours) -> Option<Colours> {
        if !self.refine(&mut colours) {
            return None;
        }
        let mut classes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (node, &colour) in colours[0].iter().enumerate() {
            classes.entry(colour).or_default().push(node);
        }
        let own = classes.len() as u32;
        let several = classes.into_iter().filter(|(_, nodes)| nodes.len() > 1);
        let Some((colour, nodes)) = several.min_by_key(|(_, nodes)| nodes.len()) else {
            return Some(colours);
        };
        colours[0][nodes[0]] = own;
        let others = colours[1].iter().enumerate();
        let others = others
            .filter(|(_, of)| **of == colour)
            .map(|(node, _)| node);
        for other in others.collect::<Vec<_>>() {
            let mut next = colours.clone();
            next[1][other] = own;
            if let Some(found) = self.distinct(next) {
                return Some(found);
            }
            if self.steps > MOST_STEPS {
                break;
            }
        }
        None
    }
}

/// Matches two graphs with equal numbers of routers and of NICs. Returns, for every router and
/// every NIC of `network`, its index in `file`; `None` if the graphs are not isomorphic, or the
/// search was given up.
pub(super) fn isomorphism(file: &Graph, network: &Graph) -> Option<[Vec<usize>; 2]> {
    if file.routers.len() + file.nics.len() > MOST_NODES {
        return None;
    }
    let counts = file.counts_links && network.counts_links;
    let (a, b) = (Plain::of(network, counts), Plain::of(file, counts));
    if a.others.len() != b.others.len() {
        return None;
    }
    let mut search = Search {
        graphs: [&a, &b],
        steps: 0,
    };
    let [ours, theirs] = search.distinct([a.colours.clone(), b.colours.clone()])?;
    let indices: BTreeMap<u32, usize> = theirs.into_iter().zip(0..).collect();
    let indices: Vec<usize> = ours.iter().map(|colour| indices[colour]).collect();
    let routers = network.routers.len();
    let mut nics = vec![0; network.nics.len()];
    for (router, &index) in indices[..routers].iter().enumerate() {
        for (&nic, &other) in a.leaves[router].iter().zip(&b.leaves[index]) {
            nics[nic] = other;
        }
    }
    for (&nic, &index) in a.others.iter().zip(&indices[routers..]) {
        nics[nic] = b.others[index - routers];
    }
    Some([indices[..routers].to_vec(), nics])
}
