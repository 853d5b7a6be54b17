//! A network as other tools see it: nodes and links, and nothing of what routers know.

use std::collections::BTreeMap;
use std::fmt;

use phitwire::net::{self, Network, NodeRef};

/// A node, by its place in the list of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    Router(usize),
    Nic(usize),
}

/// One end of a link; formats without ports leave them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub node: Node,
    pub port: Option<u8>,
}

/// Nodes by name, in their order, and links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    pub(super) title: String,
    pub(super) routers: Vec<String>,
    pub(super) nics: Vec<String>,
    pub(super) links: Vec<[End; 2]>,
    /// Whether the format tells one link between two nodes from several.
    pub(super) counts_links: bool,
}

/// The first thing in which a graph is not that of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference(String);

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Graph {
    /// The graph of a network.
    pub fn of(network: &dyn Network) -> Self {
        let mut graph = Self {
            title: network.name().to_owned(),
            counts_links: true,
            ..Self::default()
        };
        let mut places = BTreeMap::new();
        for node in network.nodes() {
            let name = network.node_name(node).into_owned();
            let (list, place): (_, fn(usize) -> Node) = match node {
                NodeRef::Chip(_) => (&mut graph.routers, Node::Router),
                NodeRef::Processor(_) => (&mut graph.nics, Node::Nic),
            };
            places.insert(node, place(list.len()));
            list.push(name);
        }
        let end = |end: net::End| End {
            node: places[&end.node],
            port: Some(end.port),
        };
        graph.links = (0..network.link_count())
            .map(|id| network.ends(id))
            .map(|(a, b)| [end(a), end(b)])
            .collect();
        graph
    }

    /// The name of a node.
    pub(super) fn name(&self, node: Node) -> &str {
        match node {
            Node::Router(place) => &self.routers[place],
            Node::Nic(place) => &self.nics[place],
        }
    }

    /// So many routers and network interfaces.
    pub fn counts(&self) -> (usize, usize) {
        (self.routers.len(), self.nics.len())
    }

    /// How many links there are between every two nodes that have any.
    pub(super) fn joined(&self) -> BTreeMap<[Node; 2], usize> {
        let mut joined = BTreeMap::new();
        for [a, b] in &self.links {
            let mut pair = [a.node, b.node];
            pair.sort_unstable();
            *joined.entry(pair).or_default() += 1;
        }
        joined
    }

    /// Whether this is the graph of `network`, node for node in the same order; if not, the first
    /// thing that is not so.
    ///
    /// # Errors
    /// That.
    pub fn compare(&self, network: &dyn Network) -> Result<(), Difference> {
        let other = Self::of(network);
        let (ours, theirs) = (self.counts(), other.counts());
        if ours != theirs {
            return Err(Difference(format!(
                "the file has {} routers and {} network interfaces, {} has {} and {}",
                ours.0, ours.1, other.title, theirs.0, theirs.1
            )));
        }
        let count = |links: usize| {
            if self.counts_links {
                links
            } else {
                links.min(1)
            }
        };
        let (joined, wanted) = (self.joined(), other.joined());
        let links = |of: &BTreeMap<[Node; 2], usize>, pair: [Node; 2]| {
            count(of.get(&pair).copied().unwrap_or(0))
        };
        let mut pairs: Vec<_> = joined.keys().chain(wanted.keys()).copied().collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs.retain(|&pair| links(&joined, pair) != links(&wanted, pair));
        match pairs.first() {
            None => Ok(()),
            Some(&pair) => Err(Difference(format!(
                "between {} and {} the file has {} links, {} has {}{}",
                other.name(pair[0]),
                other.name(pair[1]),
                links(&joined, pair),
                other.title,
                links(&wanted, pair),
                match pairs.len() {
                    1 => String::new(),
                    all => format!("; {all} pairs of nodes differ"),
                }
            ))),
        }
    }
}
