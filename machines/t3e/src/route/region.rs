//! Regions covered by the minimal paths of adaptive packets.

use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::tag::{Coordinates, Tag};

use super::broken::Broken;
use super::shape::Shape;

/// Numbers of missing nodes and broken links in any box of a machine, from prefix sums over boxes
/// at the origin. Each dimension appears twice, for boxes across its ends.
pub(super) struct Regions {
    size: [usize; 3],
    /// Sums of missing nodes, and of broken links in +X, +Y and +Z; empty if there are none.
    sums: Vec<[u32; 4]>,
}

impl Regions {
    pub(super) fn new(shape: &Shape, broken: &Broken) -> Self {
        let [x, y, z] = shape.size().map(usize::from);
        let partial: usize = shape
            .partial()
            .iter()
            .map(|block| usize::from(block[2]))
            .sum();
        let mut regions = Self {
            size: [x, y, z + partial],
            sums: Vec::new(),
        };
        let whole = |(node, direction, _)| broken.works(node, direction);
        if partial > 0 || !shape.links().all(whole) {
            regions.add_up(shape, broken);
        }
        regions
    }

    fn add_up(&mut self, shape: &Shape, broken: &Broken) {
        let [x, y, z] = self.size;
        self.sums = vec![[0; 4]; (2 * x + 1) * (2 * y + 1) * (2 * z + 1)];
        for at in all(self.size.map(|size| 2 * size)) {
            let coordinates = [0, 1, 2].map(|n| (at[n] % self.size[n]) as u8);
            let mut sum = Self::lacks(shape, broken, Coordinates(coordinates));
            // Inclusion-exclusion over the seven smaller boxes: those that are smaller by two
            // layers were counted twice.
            for less in 1..8_usize {
                let corner = [0, 1, 2].map(|n| at[n] + 1 - (less >> n & 1));
                let other = self.sums[self.index(corner)];
                for (sum, other) in sum.iter_mut().zip(other) {
                    *sum = if less.count_ones() % 2 == 1 {
                        sum.wrapping_add(other)
                    } else {
                        sum.wrapping_sub(other)
                    };
                }
            }
            let index = self.index(at.map(|at| at + 1));
            self.sums[index] = sum;
        }
    }

    /// Whether the node is missing, and which of its links in plus directions do not work.
    fn lacks(shape: &Shape, broken: &Broken, coordinates: Coordinates) -> [u32; 4] {
        let Some(node) = shape.node(coordinates) else {
            return [1, 0, 0, 0];
        };
        let lacks = |direction| {
            // A dimension of one node has no links, and no packet travels in it.
            let ring = shape.neighbour(node, direction).is_some() || !shape.partial().is_empty();
            u32::from(ring && !broken.works(node, direction))
        };
        let [x, y, z] = [Direction::PlusX, Direction::PlusY, Direction::PlusZ].map(lacks);
        [0, x, y, z]
    }

    fn index(&self, [x, y, z]: [usize; 3]) -> usize {
        (z * (2 * self.size[1] + 1) + y) * (2 * self.size[0] + 1) + x
    }

    /// The count of a box from `low` to below `high`.
    fn count(&self, what: usize, low: [usize; 3], high: [usize; 3]) -> u32 {
        let mut sum = 0_u32;
        for lower in 0..8_usize {
            let corner = [0, 1, 2].map(|n| if lower >> n & 1 == 1 { low[n] } else { high[n] });
            let part = self.sums[self.index(corner)][what];
            sum = if lower.count_ones() % 2 == 0 {
                sum.wrapping_add(part)
            } else {
                sum.wrapping_sub(part)
            };
        }
        sum
    }

    /// Whether no part is missing or broken on any minimal path of a packet with `tag` from `from`.
    /// Conservative in columns with partial planes, where the missing part may lie outside all
    /// paths.
    #[inline]
    pub(super) fn is_clear(&self, from: Coordinates, tag: &Tag) -> bool {
        if self.sums.is_empty() {
            return true;
        }
        let [mut low, mut high] = [[0; 3]; 2];
        for n in 0..3 {
            let ends = [from.0[n], tag.to.0[n]].map(usize::from);
            let minus = tag.signs >> n & 1 == 1;
            let [start, end] = if minus { [ends[1], ends[0]] } else { ends };
            low[n] = start;
            high[n] = start + (end + self.size[n] - start) % self.size[n] + 1;
        }
        let links = |n: usize| {
            // Exclude the last nodes, whose links in this direction lead out of the box.
            let mut high = high;
            high[n] -= 1;
            high[n] == low[n] || self.count(n + 1, low, high) == 0
        };
        self.count(0, low, high) == 0 && (0..3).all(links)
    }
}

/// All positions below `size`, X first.
fn all(size: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    let [x, y, z] = size;
    (0..x * y * z).map(move |n| [n % x, n / x % y, n / x / y])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::MinimalPathSearch;
    use phitwire::rng::Rng;

    #[test]
    fn boxes_are_clear_where_a_search_meets_nothing() {
        let mut rng = Rng::new(1996, 0);
        for text in ["4x4x4", "5x3x4", "1x2x6", "4x6x3+4x2x2+2x6x1"] {
            let shape: Shape = text.parse().expect("a shape");
            let mut broken = Broken::none(&shape);
            let mut path_search = MinimalPathSearch::new(&shape);
            for faults in 0..4 {
                let regions = Regions::new(&shape, &broken);
                let mut free = 0;
                for _ in 0..4_000 {
                    let [from, to] = [(); 2].map(|()| rng.below(shape.nodes().into()) as u32);
                    let tag = Tag {
                        to: shape.coordinates(to),
                        signs: rng.below(8) as u8,
                        ..Tag::default()
                    };
                    let found = path_search.is_free(&shape, &broken, from, &tag);
                    let clear = regions.is_clear(shape.coordinates(from), &tag);
                    assert!(found || !clear, "{text} {from} {tag:?}");
                    assert!(
                        clear || !found || !shape.partial().is_empty(),
                        "{from} {tag:?}"
                    );
                    free += u32::from(clear);
                }
                assert!(free > 400 && (free < 4_000) == (faults > 0 || text.contains('+')));
                let node = rng.below(shape.nodes().into()) as u32;
                if faults == 2 {
                    broken.set_isolated(&shape, node, true);
                } else {
                    broken.set_link(&shape, node, Direction::PlusY, true);
                }
            }
        }
    }
}
