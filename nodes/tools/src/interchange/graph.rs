//! A network as other tools see it: nodes and links, without router configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use phitwire::catalogue::Outline;
use phitwire::net::{self, Network, NodeRef};

use super::isomorphism::isomorphism;

/// A node, by its index among those of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    Router(usize),
    Nic(usize),
}

/// An end of a link; formats without ports have no `port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub node: Node,
    pub port: Option<u8>,
}

/// Nodes by name, in order, and links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    pub(super) title: String,
    pub(super) routers: Vec<String>,
    pub(super) nics: Vec<String>,
    pub(super) links: Vec<[End; 2]>,
    /// Whether the format distinguishes one link between two nodes from several.
    pub(super) counts_links: bool,
}

/// How a graph differs from a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A difference in words.
    Other(String),
    /// The graph lacks these links of the network, but is otherwise equal.
    Missing(BTreeSet<usize>),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(words) => f.write_str(words),
            Self::Missing(links) if links.len() == 1 => f.write_str("the file lacks a link"),
            Self::Missing(links) => write!(f, "the file lacks {} links", links.len()),
        }
    }
}

/// How the nodes of a graph match those of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Same {
    InOrder,
    /// By name, in another order.
    ByName,
    /// By structure: for each router and each NIC of the network, its name in the graph.
    ByLinks([Vec<String>; 2]),
}

impl Graph {
    pub fn of(network: &dyn Network) -> Self {
        let mut graph = Self {
            title: network.name().to_owned(),
            counts_links: true,
            ..Self::default()
        };
        let mut indices = BTreeMap::new();
        for node in network.nodes() {
            let name = network.node_name(node).into_owned();
            let (list, make): (_, fn(usize) -> Node) = match node {
                NodeRef::Chip(_) => (&mut graph.routers, Node::Router),
                NodeRef::Processor(_) => (&mut graph.nics, Node::Nic),
            };
            indices.insert(node, make(list.len()));
            list.push(name);
        }
        let end = |end: net::End| End {
            node: indices[&end.node],
            port: Some(end.port),
        };
        graph.links = (0..network.link_count())
            .map(|id| network.ends(id))
            .map(|(a, b)| [end(a), end(b)])
            .collect();
        graph
    }

    pub(super) fn name(&self, node: Node) -> &str {
        match node {
            Node::Router(index) => &self.routers[index],
            Node::Nic(index) => &self.nics[index],
        }
    }

    /// Numbers of routers and NICs.
    pub fn counts(&self) -> (usize, usize) {
        (self.routers.len(), self.nics.len())
    }

    /// Number of links by pair of nodes.
    pub(super) fn joined(&self) -> BTreeMap<[Node; 2], usize> {
        let mut joined = BTreeMap::new();
        for [a, b] in &self.links {
            let mut pair = [a.node, b.node];
            pair.sort_unstable();
            *joined.entry(pair).or_default() += 1;
        }
        joined
    }

    /// A summary that narrows the search for a matching network.
    pub fn outline(&self) -> Outline {
        let mut nics = vec![(0, 0); self.routers.len()];
        let mut links = vec![0; self.nics.len()];
        for (pair, count) in self.joined() {
            match pair {
                [Node::Router(a), Node::Router(b)] => {
                    nics[a].1 += 1;
                    nics[b].1 += 1;
                }
                [Node::Router(router), Node::Nic(nic)] => {
                    nics[router].0 += 1;
                    links[nic] += count;
                }
                _ => {}
            }
        }
        let with_nics = nics.iter().filter(|(nics, _)| *nics > 0);
        Outline {
            routers: self.routers.len(),
            nics: self.nics.len(),
            nic_links: links.into_iter().max().unwrap_or(0),
            nics_of_router: nics.iter().map(|(nics, _)| *nics).max().unwrap_or(0),
            peers: with_nics.map(|(_, peers)| *peers).max().unwrap_or(0),
            joined: nics.iter().map(|(_, peers)| *peers).sum::<usize>() / 2,
            links: self.counts_links.then_some(self.links.len()),
        }
    }

    /// This graph with its nodes in the order of `order`; `None` if the names differ.
    pub(super) fn by_name(&self, order: &Self) -> Option<Self> {
        let indices = |of: &[String], in_order: &[String]| {
            let all: BTreeMap<&str, usize> = in_order.iter().map(String::as_str).zip(0..).collect();
            let found = of.iter().map(|name| all.get(&**name).copied());
            let found: Vec<usize> = found.collect::<Option<_>>()?;
            let distinct: BTreeSet<_> = found.iter().collect();
            (distinct.len() == in_order.len()).then_some(found)
        };
        let routers = indices(&self.routers, &order.routers)?;
        let nics = indices(&self.nics, &order.nics)?;
        let moved = |end: End| End {
            node: match end.node {
                Node::Router(index) => Node::Router(routers[index]),
                Node::Nic(index) => Node::Nic(nics[index]),
            },
            ..end
        };
        Some(Self {
            links: self.links.iter().map(|link| link.map(moved)).collect(),
            routers: order.routers.clone(),
            nics: order.nics.clone(),
            ..self.clone()
        })
    }

    /// Compares the graph with that of `network`: node for node in the same order, or by name.
    ///
    /// # Errors
    /// The difference.
    pub fn compare(&self, network: &dyn Network) -> Result<Same, Difference> {
        let other = Self::of(network);
        let difference = match self.compare_in_order(&other) {
            Ok(()) => return Ok(Same::InOrder),
            Err(difference) => difference,
        };
        let Some(named) = self.by_name(&other).filter(|named| named != self) else {
            return Err(difference);
        };
        named.compare_in_order(&other).map(|()| Same::ByName)
    }

    /// Like [`compare`](Self::compare), but if that fails, compares by structure alone.
    ///
    /// # Errors
    /// The difference in order or by name.
    pub fn compare_all(&self, network: &dyn Network) -> Result<Same, Difference> {
        self.compare(network).or_else(|difference| {
            let other = Self::of(network);
            let has_as_many = self.counts() == other.counts() && self.has_as_many_links(&other);
            let [routers, nics] = has_as_many
                .then(|| isomorphism(self, &other))
                .flatten()
                .ok_or(difference)?;
            let names = |indices: Vec<usize>, of: &[String]| {
                indices.into_iter().map(|index| of[index].clone()).collect()
            };
            Ok(Same::ByLinks([
                names(routers, &self.routers),
                names(nics, &self.nics),
            ]))
        })
    }

    /// Whether the numbers of links, or of linked pairs, are equal.
    fn has_as_many_links(&self, other: &Self) -> bool {
        match self.counts_links && other.counts_links {
            true => self.links.len() == other.links.len(),
            false => self.joined().len() == other.joined().len(),
        }
    }

    fn compare_in_order(&self, other: &Self) -> Result<(), Difference> {
        let (ours, theirs) = (self.counts(), other.counts());
        if ours != theirs {
            return Err(Difference::Other(format!(
                "the file has {} routers and {} NICs, but {} has {} and {}",
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
        let Some(&first) = pairs.first() else {
            return Ok(());
        };
        if pairs
            .iter()
            .all(|&pair| links(&joined, pair) < links(&wanted, pair))
        {
            return Err(Difference::Missing(self.missing(other, &pairs)));
        }
        Err(Difference::Other(format!(
            "between {} and {} the file has {} links, but {} has {}{}",
            other.name(first[0]),
            other.name(first[1]),
            links(&joined, first),
            other.title,
            links(&wanted, first),
            match pairs.len() {
                1 => String::new(),
                all => format!("; {all} pairs of nodes differ"),
            }
        )))
    }

    /// The links of `other` between these nodes that are missing here: matched by port if known,
    /// otherwise the last ones.
    fn missing(&self, other: &Self, pairs: &[[Node; 2]]) -> BTreeSet<usize> {
        let pair_of = |link: &[End; 2]| {
            let mut pair = link.map(|end| end.node);
            pair.sort_unstable();
            pair
        };
        let sorted = |link: &[End; 2]| {
            let mut ends = link.map(|end| (end.node, end.port));
            ends.sort_unstable();
            ends
        };
        let mut missing = BTreeSet::new();
        for pair in pairs {
            let theirs = self.links.iter().filter(|link| pair_of(link) == *pair);
            let mut theirs: Vec<_> = theirs.map(sorted).collect();
            let ours = other.links.iter().enumerate();
            let ours = ours.filter(|(_, link)| pair_of(link) == *pair);
            let mut left = Vec::new();
            for (id, link) in ours {
                match theirs.iter().position(|their| *their == sorted(link)) {
                    Some(index) => drop(theirs.swap_remove(index)),
                    None => left.push(id),
                }
            }
            // Links of the file with other ports, or without ports, match any of the rest.
            missing.extend(left.into_iter().skip(theirs.len()));
        }
        missing
    }
}
