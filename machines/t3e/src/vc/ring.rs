//! Rings, their two directions, and their minimal routes.

use thiserror::Error;

/// Minimum and maximum number of nodes in a ring: Y has ordinates of five bits.
pub const NODES: core::ops::RangeInclusive<usize> = 2..=32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RingError {
    #[error("a ring of {0} nodes: expected 2 to 32")]
    Nodes(usize),
    #[error("ordinate {0} does not follow the previous one: ordinates must be sorted and distinct")]
    Order(u8),
    #[error("no node at dateline ordinate {0}")]
    Dateline(u8),
}

/// A ring: nodes in the order of their ordinates, of which the last is next to the first, and the
/// dateline node of each direction (T3E sec. 3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    ordinates: Vec<u8>,
    /// Positions in `ordinates` for + and for -.
    datelines: [usize; 2],
}

impl Ring {
    /// The ring of ordinates 0 to `nodes` - 1. Its dateline is at 0 for + and at the other end for
    /// -, so the two directions are mirror images.
    ///
    /// # Errors
    /// If the ring has fewer than 2 nodes or more than 32.
    pub fn whole(nodes: usize) -> Result<Self, RingError> {
        if !NODES.contains(&nodes) {
            return Err(RingError::Nodes(nodes));
        }
        Ok(Self {
            ordinates: (0..nodes as u8).collect(),
            datelines: [0, nodes - 1],
        })
    }

    /// The ring of `ordinates`, which are sorted and may have gaps, with datelines for + and - at
    /// the ordinates `datelines`. A column through a partial plane is such a ring (T3E sec. 2.3).
    ///
    /// # Errors
    /// If there are fewer than 2 ordinates or more than 32, if they are not in ascending order, or
    /// if a dateline is not one of them.
    pub fn new(ordinates: &[u8], datelines: [u8; 2]) -> Result<Self, RingError> {
        if !NODES.contains(&ordinates.len()) {
            return Err(RingError::Nodes(ordinates.len()));
        }
        if let Some(pair) = ordinates.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(RingError::Order(pair[1]));
        }
        let position = |dateline| {
            let found = ordinates.iter().position(|&ordinate| ordinate == dateline);
            found.ok_or(RingError::Dateline(dateline))
        };
        Ok(Self {
            datelines: [position(datelines[0])?, position(datelines[1])?],
            ordinates: ordinates.to_vec(),
        })
    }

    /// The ordinates of the ring's nodes, in ascending order.
    pub fn ordinates(&self) -> &[u8] {
        &self.ordinates
    }

    /// The ordinates of the ring's datelines, of + and of -.
    pub fn datelines(&self) -> [u8; 2] {
        self.datelines.map(|position| self.ordinates[position])
    }

    /// Whether the minimal path from ordinate `source` to ordinate `destination` is -; `None` if
    /// the ring lacks one of them, or if they are equal. At ties, a source at an even number of
    /// nodes after the dateline of + goes +, and the others go -. This is the only rule found that
    /// yields T3E table 1; T3E states none.
    pub fn is_minus(&self, source: u8, destination: u8) -> Option<bool> {
        let position = |wanted| {
            let mut ordinates = self.ordinates.iter();
            ordinates.position(|&ordinate| ordinate == wanted)
        };
        let (source, destination) = (position(source)?, position(destination)?);
        let nodes = self.ordinates.len();
        let hops = (destination + nodes - source) % nodes;
        if hops == 0 {
            return None;
        }
        let after = (source + nodes - self.datelines[0]) % nodes;
        Some(2 * hops > nodes || 2 * hops == nodes && after % 2 == 1)
    }

    /// One direction of the ring: towards smaller ordinates if `minus`.
    pub fn one_way(&self, minus: bool) -> UnidirectionalRing {
        let nodes = self.ordinates.len();
        let [plus_dateline, minus_dateline] = self.datelines;
        let position = |after: usize| {
            if minus {
                (minus_dateline + nodes - after) % nodes
            } else {
                (plus_dateline + after) % nodes
            }
        };
        let ordinates = (0..nodes).map(|after| self.ordinates[position(after)]);
        // The dateline of - is a node that goes + at ties if its distance from that of + is even. A
        // ring with an odd number of nodes has no ties.
        let apart = (minus_dateline + nodes - plus_dateline) % nodes;
        let differs = minus && nodes.is_multiple_of(2) && apart.is_multiple_of(2);
        UnidirectionalRing {
            ordinates: ordinates.collect(),
            minus,
            tie_parity: usize::from(differs),
        }
    }
}

/// One direction of a ring. Nodes are identified by position, counted in the direction of travel
/// from the dateline, which is position 0. Link n leads from position n to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnidirectionalRing {
    ordinates: Vec<u8>,
    minus: bool,
    tie_parity: usize,
}

impl UnidirectionalRing {
    /// Number of nodes, which is also the number of links.
    #[inline]
    pub fn nodes(&self) -> usize {
        self.ordinates.len()
    }

    pub fn leads_minus(&self) -> bool {
        self.minus
    }

    pub fn ordinates(&self) -> &[u8] {
        &self.ordinates
    }

    pub fn position(&self, ordinate: u8) -> Option<usize> {
        self.ordinates.iter().position(|&other| other == ordinate)
    }

    #[inline]
    pub fn hops(&self, source: usize, destination: usize) -> usize {
        (destination + self.nodes() - source) % self.nodes()
    }

    /// Whether the minimal route between two positions takes this direction: at most half the ring,
    /// and for exactly half only from every second node (see [`Ring::is_minus`]).
    pub fn is_minimal(&self, source: usize, destination: usize) -> bool {
        let twice = 2 * self.hops(source, destination);
        let tie = twice == self.nodes();
        twice > 0 && (twice < self.nodes() || tie && source % 2 == self.tie_parity)
    }

    /// The minimal routes in this direction: source and destination, as positions.
    pub fn routes(&self) -> impl Iterator<Item = (usize, usize)> {
        let pairs =
            (0..self.nodes()).flat_map(|source| (0..self.nodes()).map(move |to| (source, to)));
        pairs.filter(|&(source, destination)| self.is_minimal(source, destination))
    }

    /// Whether a route passes through the dateline node. A route that starts or ends there does
    /// not.
    #[inline]
    pub fn passes_dateline(&self, source: usize, destination: usize) -> bool {
        source > destination && destination != 0
    }

    /// Whether positions are equivalent for routes and for eight-entry tables in both rings, so
    /// that channels chosen for one suit the other.
    pub fn is_like(&self, other: &Self) -> bool {
        let shared =
            |ring: &Self, a: usize, b: usize| ring.ordinates[a] & 7 == ring.ordinates[b] & 7;
        self.nodes() == other.nodes()
            && self.tie_parity == other.tie_parity
            && (0..self.nodes()).all(|a| (0..a).all(|b| shared(self, a, b) == shared(other, a, b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_by_parity_and_each_route_one_way() {
        for nodes in NODES {
            let ring = Ring::whole(nodes).expect("a valid ring size");
            let ways = [ring.one_way(false), ring.one_way(true)];
            for (source, destination) in
                (0..nodes as u8).flat_map(|a| (0..nodes as u8).map(move |b| (a, b)))
            {
                let minus = ring.is_minus(source, destination);
                for way in &ways {
                    let positions = [source, destination].map(|o| way.position(o).expect("there"));
                    let expected = minus == Some(way.leads_minus());
                    assert_eq!(way.is_minimal(positions[0], positions[1]), expected);
                }
                if 2 * source.abs_diff(destination) as usize == nodes {
                    assert_eq!(minus, Some(source % 2 == 1), "{source} to {destination}");
                }
            }
            assert!(ways[0].is_like(&ways[1]), "the mirror image");
            assert_eq!(
                ways[0].routes().count() + ways[1].routes().count(),
                nodes * (nodes - 1)
            );
        }
    }

    #[test]
    fn a_column_through_a_partial_plane_is_a_ring() {
        let ordinates = [0, 1, 2, 3, 4, 5, 6, 7, 10];
        let ring = Ring::new(&ordinates, [4, 3]).expect("a ring");
        let plus = ring.one_way(false);
        assert_eq!(plus.ordinates(), [4, 5, 6, 7, 10, 0, 1, 2, 3]);
        assert_eq!(ring.one_way(true).ordinates(), [3, 2, 1, 0, 10, 7, 6, 5, 4]);
        assert!(plus.passes_dateline(8, 1) && !plus.passes_dateline(8, 0));
        assert!(!plus.passes_dateline(0, 4));
        assert_eq!(ring.is_minus(7, 1), Some(false));
        assert_eq!(ring.is_minus(1, 7), Some(true));
        assert_eq!((ring.is_minus(8, 1), ring.is_minus(1, 1)), (None, None));
        // Both datelines may be at one node: then - starts at a node that goes + at ties.
        let ring = Ring::new(&[0, 1, 2, 3], [2, 2]).expect("a ring");
        let routes: Vec<_> = ring
            .one_way(true)
            .routes()
            .filter(|(a, b)| b.abs_diff(*a) == 2)
            .collect();
        assert_eq!(routes, [(1, 3), (3, 1)]);
        assert_eq!(ring.is_minus(1, 3), Some(true));
    }

    #[test]
    fn invalid_rings_are_refused() {
        assert_eq!(Ring::whole(1), Err(RingError::Nodes(1)));
        assert_eq!(Ring::whole(33), Err(RingError::Nodes(33)));
        assert_eq!(Ring::new(&[4], [4, 4]), Err(RingError::Nodes(1)));
        assert_eq!(Ring::new(&[0, 2, 2], [0, 2]), Err(RingError::Order(2)));
        assert_eq!(Ring::new(&[0, 2, 3], [0, 1]), Err(RingError::Dateline(1)));
    }
}
