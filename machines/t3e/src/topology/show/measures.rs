use std::collections::VecDeque;

use phitwire_framing::t3e::direction::Direction;

use crate::route::Shape;
use crate::topology::model::Torus;

/// Megabytes per second of a link, per direction: 64 bits in each of 75 million clocks (T3E sec.
/// 1).
const LINK_MBYTES: f64 = 600.0;

#[derive(Clone, Debug, PartialEq)]
pub struct Measures {
    /// Number of closed rings in X, Y and Z.
    pub rings: [u32; 3],
    /// Number of open lines of several nodes in X, Y and Z, which are short rows of partial planes.
    pub open: [u32; 3],
    pub links: u32,
    /// Number of hops between the two nodes farthest apart, over working links.
    pub diameter: u32,
    /// Average number of hops between two different nodes.
    pub average_hops: f64,
    /// Number of links between the halves of the torus, cut through its longest rings, without
    /// partial planes; 0 for a single node.
    pub bisection_links: u32,
}

impl Measures {
    /// Measures a torus, in time quadratic in its nodes.
    pub fn of(torus: &Torus) -> Self {
        let shape = torus.shape();
        let (mut rings, mut open) = ([0; 3], [0; 3]);
        for node in 0..shape.nodes() {
            for dimension in 0..3 {
                let ring = shape.ring(node, dimension);
                if ring.nodes[0] == node && ring.nodes.len() > 1 {
                    let counted = if ring.closed { &mut rings } else { &mut open };
                    counted[dimension] += 1;
                }
            }
        }
        let (diameter, average_hops) = distances(torus);
        Self {
            rings,
            open,
            links: shape.links().count() as u32,
            diameter,
            average_hops,
            bisection_links: bisection(shape),
        }
    }

    /// Gigabytes per second across the bisection, sum of both directions.
    pub fn bisection_gbytes(&self) -> f64 {
        2.0 * f64::from(self.bisection_links) * LINK_MBYTES / 1e3
    }

    /// Bound on the rate in megabytes per second, including headers, at which each of `nodes` nodes
    /// can send when all send to all: half of the traffic crosses the bisection, and a node's share
    /// to itself stays local.
    pub fn global_mbytes(&self, nodes: u32) -> f64 {
        let nodes = f64::from(nodes);
        let port = LINK_MBYTES * nodes / (nodes - 1.0).max(1.0);
        let halves = 2e3 * self.bisection_gbytes() / nodes;
        if self.bisection_links == 0 {
            return port;
        }
        port.min(halves)
    }
}

/// The bisection cuts each ring of the longest dimension twice.
fn bisection(shape: &Shape) -> u32 {
    let size = shape.size();
    let longest = size.into_iter().max().unwrap_or(1);
    let nodes: u32 = size.into_iter().map(u32::from).product();
    match longest {
        1 => 0,
        longest => 2 * nodes / u32::from(longest),
    }
}

fn distances(torus: &Torus) -> (u32, f64) {
    let (shape, broken) = (torus.shape(), torus.broken());
    let (mut most, mut sum, mut pairs) = (0, 0_u64, 0_u64);
    for from in 0..shape.nodes() {
        let mut hops = vec![u32::MAX; shape.nodes() as usize];
        hops[from as usize] = 0;
        let mut next = VecDeque::from([from]);
        while let Some(node) = next.pop_front() {
            let beyond = hops[node as usize] + 1;
            for direction in Direction::ALL {
                let Some(peer) = shape.neighbour(node, direction) else {
                    continue;
                };
                if broken.works(node, direction) && hops[peer as usize] == u32::MAX {
                    hops[peer as usize] = beyond;
                    most = most.max(beyond);
                    sum += u64::from(beyond);
                    pairs += 1;
                    next.push_back(peer);
                }
            }
        }
    }
    (most, sum as f64 / pairs.max(1) as f64)
}
