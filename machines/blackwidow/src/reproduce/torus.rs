//! A three-dimensional torus with minimal dimension-order routing, for the comparison in BlackWidow
//! sec. 7.3 and 7.8.1.

/// Loads of the most loaded link and of all links, summed over permutations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TorusLinks {
    pub permutations: u64,
    /// Number of transfers over the most loaded link.
    pub worst: u64,
    /// Number of transfers over all links together.
    pub all: u64,
}

impl TorusLinks {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            permutations: self.permutations + other.permutations,
            worst: self.worst + other.worst,
            all: self.all + other.all,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torus {
    extents: [u32; 3],
}

/// A directed link: the node that it leaves, the dimension, and whether it leads forward.
pub type TorusLink = (u32, usize, bool);

impl Torus {
    /// A torus with these extents.
    ///
    /// # Panics
    /// If an extent is below 2 or above 256, or there are more than 65,536 nodes.
    pub fn new(extents: [u32; 3]) -> Self {
        assert!(
            extents.iter().all(|&k| (2..=256).contains(&k)),
            "{extents:?}"
        );
        let nodes: u64 = extents.iter().map(|&k| u64::from(k)).product();
        assert!(nodes <= 1 << 16, "{nodes} nodes");
        Self { extents }
    }

    pub fn nodes(&self) -> u32 {
        self.extents.iter().product()
    }

    fn coordinates(&self, node: u32) -> [u32; 3] {
        let [x, y, _] = self.extents;
        [node % x, node / x % y, node / (x * y)]
    }

    fn node(&self, [x, y, z]: [u32; 3]) -> u32 {
        (z * self.extents[1] + y) * self.extents[0] + x
    }

    /// The links that a packet takes: first all in X, then in Y, then in Z.
    pub fn route(&self, source: u32, destination: u32) -> Vec<TorusLink> {
        let mut at = self.coordinates(source);
        let to = self.coordinates(destination);
        let mut links = Vec::new();
        for dimension in 0..3 {
            let k = self.extents[dimension];
            let (forward, steps) = shorter(k, at[dimension], to[dimension]);
            for _ in 0..steps {
                links.push((self.node(at), dimension, forward));
                at[dimension] = (at[dimension] + if forward { 1 } else { k - 1 }) % k;
            }
        }
        debug_assert_eq!(at, to, "dimension order ends at the destination");
        links
    }
}

/// Counts the transfers over each link. A transfer is recorded only where it starts and ends in
/// each dimension; prefix sums along the rings then give the loads.
#[derive(Clone, Debug)]
pub struct TorusCounters {
    torus: Torus,
    coordinates: Vec<[u8; 3]>,
    /// Per dimension, backward and forward: for each position of each ring, the number of transfers
    /// that start there minus those that end there.
    steps: [[Vec<i16>; 2]; 3],
}

impl TorusCounters {
    pub fn new(torus: Torus) -> Self {
        let nodes = torus.nodes();
        let coordinates = (0..nodes).map(|node| torus.coordinates(node).map(|c| c as u8));
        let zeros = || vec![0; nodes as usize];
        Self {
            torus,
            coordinates: coordinates.collect(),
            steps: core::array::from_fn(|_| [zeros(), zeros()]),
        }
    }

    /// The loads under a permutation: node `i` sends to `destinations[i]`.
    ///
    /// # Panics
    /// If a destination is not a node.
    pub fn count(&mut self, destinations: &[u16]) -> TorusLinks {
        let extents @ [kx, ky, _] = self.torus.extents;
        let rings_of = extents.map(|k| self.torus.nodes() / k);
        let mut all = 0;
        self.steps
            .as_flattened_mut()
            .iter_mut()
            .for_each(|steps| steps.fill(0));
        for (from, &destination) in self.coordinates.iter().zip(destinations) {
            let from = from.map(u32::from);
            let to = self.coordinates[usize::from(destination)].map(u32::from);
            // Dimension order: the X ring of the source, and the Z ring of the destination.
            let rings = [
                from[1] + ky * from[2],
                to[0] + kx * from[2],
                to[0] + kx * to[1],
            ];
            for dimension in 0..3 {
                let (k, from, to) = (extents[dimension], from[dimension], to[dimension]);
                let (forward, hops) = shorter(k, from, to);
                all += u64::from(hops);
                // Forward rings are summed from 0 up, backward rings from k - 1 down. A transfer
                // that wraps around is also counted as starting where the sum begins.
                let (wraps, begin) = if forward {
                    (to < from, 0)
                } else {
                    (from < to, k - 1)
                };
                let steps = &mut self.steps[dimension][usize::from(forward)][..];
                let at =
                    |position: u32| (position * rings_of[dimension] + rings[dimension]) as usize;
                steps[at(from)] += 1;
                steps[at(to)] -= 1;
                steps[at(begin)] += i16::from(wraps);
            }
        }
        TorusLinks {
            permutations: 1,
            worst: self.worst(),
            all,
        }
    }

    fn worst(&mut self) -> u64 {
        let mut worst = 0;
        for (k, [backward, forward]) in self.torus.extents.into_iter().zip(&mut self.steps) {
            let rings = forward.len() / k as usize;
            worst = worst.max(largest_sum(forward.chunks_exact_mut(rings)));
            worst = worst.max(largest_sum(backward.chunks_exact_mut(rings).rev()));
        }
        worst as u64
    }
}

/// The path from `from` to `to` on a ring of `k`: whether it leads forward, and the number of
/// steps. At half the ring both paths are equally short; then even positions use the forward one,
/// and odd positions the backward one.
#[inline]
fn shorter(k: u32, from: u32, to: u32) -> (bool, u32) {
    let ahead = if to < from { to + k - from } else { to - from };
    let forward = 2 * ahead < k + u32::from(from.is_multiple_of(2));
    (forward, ahead.min(k - ahead))
}

/// Adds each row to the next, and returns the largest sum.
fn largest_sum<'a>(rows: impl Iterator<Item = &'a mut [i16]>) -> i16 {
    let mut largest = 0;
    let mut before: Option<&mut [i16]> = None;
    for row in rows {
        if let Some(before) = before {
            row.iter_mut()
                .zip(before)
                .for_each(|(sum, before)| *sum += *before);
        }
        largest = row.iter().copied().fold(largest, i16::max);
        before = Some(row);
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::permutation::Permutation;
    use phitwire::rng::Rng;

    #[test]
    fn routes_are_minimal_and_in_dimension_order() {
        let torus = Torus::new([4, 3, 6]);
        let mut longest = 0;
        for source in 0..torus.nodes() {
            for destination in 0..torus.nodes() {
                let route = torus.route(source, destination);
                assert!(route.windows(2).all(|w| w[0].1 <= w[1].1));
                longest = longest.max(route.len());
            }
        }
        assert_eq!(longest, 2 + 1 + 3);
    }

    #[test]
    fn counting_gives_what_walking_gives() {
        let mut rng = Rng::new(4, 4);
        for extents in [[2, 2, 2], [4, 4, 4], [5, 3, 6], [8, 2, 3]] {
            let torus = Torus::new(extents);
            let mut permutation = Permutation::new(torus.nodes());
            let mut counters = TorusCounters::new(torus);
            for _ in 0..20 {
                permutation.shuffle(&mut rng);
                let mut walked = std::collections::BTreeMap::new();
                for (source, &to) in (0..).zip(permutation.destinations()) {
                    for link in torus.route(source, to.into()) {
                        *walked.entry(link).or_insert(0u64) += 1;
                    }
                }
                let expected = TorusLinks {
                    permutations: 1,
                    worst: walked.values().copied().max().unwrap_or(0),
                    all: walked.values().sum(),
                };
                assert_eq!(
                    counters.count(permutation.destinations()),
                    expected,
                    "{extents:?}"
                );
            }
        }
    }
}
