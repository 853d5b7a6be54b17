//! Balance of the two channels of links (T3E sec. 4).

use super::ring::UnidirectionalRing;
use super::tables::RingTables;

/// A level of the "hierarchical traffic model": the ring, or sub-rings of one size into which it is
/// cut from the dateline on, which represent jobs in partitions. In each of them every node sends a
/// packet to every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    pub nodes: usize,
}

impl Level {
    pub const LEAST: usize = 4;

    /// The levels of a ring of `nodes`: the ring and, by repeated halving, the sub-rings of at
    /// least four nodes. T3E sec. 4 covers only powers of two.
    pub fn of(nodes: usize) -> impl Iterator<Item = Self> {
        let half = |nodes: &usize| {
            let halves = nodes.is_multiple_of(2) && nodes / 2 >= Self::LEAST;
            halves.then_some(nodes / 2)
        };
        core::iter::successors(Some(nodes), half).map(|nodes| Self { nodes })
    }

    /// Routes of the level in `ring`, as positions. A sub-ring "is effectively a mesh rather than a
    /// torus": in this direction its routes lead to later positions.
    pub fn routes(self, ring: &UnidirectionalRing) -> impl Iterator<Item = (usize, usize)> {
        let whole = self.nodes == ring.nodes();
        let within = move |&(source, destination): &(usize, usize)| {
            source < destination && source / self.nodes == destination / self.nodes
        };
        ring.routes().filter(move |route| whole || within(route))
    }

    /// Number of routes on the busiest link: k²/8 in a ring of k nodes if k is a multiple of four,
    /// and m²/4 in a sub-ring of m nodes if m is even. Never less than 1.
    pub fn busiest(self, ring: &UnidirectionalRing) -> u32 {
        let loads = RingTables::time_of_crossing(ring.clone()).loads(self);
        let busiest = loads.iter().map(|[vc0, vc1]| vc0 + vc1).max();
        busiest.unwrap_or(0).max(1)
    }
}

/// The imbalance of a ring's links: 0 if VC0 and VC1 are used equally, at most 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Balance {
    /// Average imbalance of all links. Links without traffic count as 0.
    pub average: f64,
    /// Imbalance of the worst link.
    pub maximum: f64,
}

impl RingTables {
    /// Number of routes of `level` on each link, on VC0 and on VC1, by link number.
    pub fn loads(&self, level: Level) -> Vec<[u32; 2]> {
        let mut loads = vec![[0; 2]; self.ring().nodes()];
        for (source, destination) in level.routes(self.ring()) {
            self.follow(source, destination, |link, vc| {
                loads[link][usize::from(vc)] += 1;
            });
        }
        loads
    }

    /// The imbalance of each link at `level`: "the absolute difference in the number of VC0 and VC1
    /// routes crossing the link divided by the maximum number of routes crossing any link in that
    /// ring or subring" (T3E sec. 4).
    pub fn imbalances(&self, level: Level) -> Vec<f64> {
        let busiest = f64::from(level.busiest(self.ring()));
        let of = |[vc0, vc1]: [u32; 2]| f64::from(vc0.abs_diff(vc1)) / busiest;
        self.loads(level).into_iter().map(of).collect()
    }

    /// The average and the maximum of the links' imbalances at `level`.
    pub fn balance(&self, level: Level) -> Balance {
        let imbalances = self.imbalances(level);
        Balance {
            average: imbalances.iter().sum::<f64>() / imbalances.len() as f64,
            maximum: imbalances.iter().copied().fold(0.0, f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::Ring;
    use super::*;

    #[test]
    fn levels_halve_as_long_as_they_can() {
        let of = |nodes| {
            Level::of(nodes)
                .map(|level| level.nodes)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(32), [32, 16, 8, 4]);
        assert_eq!(of(24), [24, 12, 6]);
        assert_eq!(of(10), [10, 5]);
        assert_eq!((of(9), of(4), of(2)), (vec![9], vec![4], vec![2]));
    }

    #[test]
    fn the_busiest_links_carry_the_computed_load() {
        for nodes in [4, 8, 12, 16, 32] {
            let ring = Ring::whole(nodes)
                .expect("a valid ring size")
                .one_way(false);
            for level in Level::of(nodes) {
                let n = level.nodes as u32;
                let expected = if level.nodes == nodes {
                    n * n / 8
                } else {
                    n * n / 4
                };
                assert_eq!(level.busiest(&ring), expected);
            }
        }
    }
}
