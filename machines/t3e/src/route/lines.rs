//! How far packets can travel along the lines of a machine.

use phitwire_framing::t3e::direction::{Direction, DirectionSet};
use phitwire_framing::t3e::tag::{Coordinates, Tag};

use super::broken::Broken;
use super::registers::RouteRegisters;
use super::shape::Shape;

/// Positions of nodes in their rings, and how far packets from them can travel in each direction.
/// With these, a path takes three look-ups instead of a walk.
pub(super) struct Lines<'a> {
    shape: &'a Shape,
    /// By node and dimension: index of the node in its ring.
    index: Vec<[u8; 3]>,
    /// By node and dimension: number of nodes of the ring.
    length: Vec<[u8; 3]>,
    /// By node and direction: number of hops up to the next link that does not work.
    reach: Vec<[u8; 6]>,
    /// By node: dimensions in which it is an odd number of nodes past the dateline, one bit each.
    odd: Vec<u8>,
    /// By node and direction: ordinates to which packets from here must not travel, one bit each,
    /// because they would start on VC1 and pass the dateline.
    barred: Vec<[u32; 6]>,
    /// By direction and ordinate: ordinates that are barred for any node on the path there,
    /// whatever its other ordinates. Empty if nothing is barred.
    barred_anywhere: Vec<[u32; 32]>,
}

/// A path in direction order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Path {
    pub(super) hops: u32,
    /// Number of legs of half a ring in the direction opposite to the tie rule.
    pub(super) against_rule: u32,
}

impl<'a> Lines<'a> {
    pub(super) fn new(shape: &'a Shape, broken: &Broken, registers: &[RouteRegisters]) -> Self {
        let nodes = shape.nodes() as usize;
        let mut lines = Self {
            shape,
            index: vec![[0; 3]; nodes],
            length: vec![[0; 3]; nodes],
            reach: vec![[0; 6]; nodes],
            odd: vec![0; nodes],
            barred: vec![[0; 6]; nodes],
            barred_anywhere: Vec::new(),
        };
        for dimension in 0..3 {
            for node in 0..shape.nodes() {
                let ring = shape.ring(node, dimension).nodes;
                if ring[0] == node {
                    lines.measure(broken, registers, dimension, &ring);
                    lines.bar(registers, dimension, &ring);
                }
            }
        }
        lines.sum_up_barred();
        lines
    }

    /// Records the paths that a ring's virtual channel tables forbid.
    fn bar(&mut self, registers: &[RouteRegisters], dimension: usize, ring: &[u32]) {
        let ordinate = |node: u32| self.shape.coordinates(node).0[dimension];
        for direction in [false, true].map(|minus| Direction::of(dimension, minus)) {
            let step = if direction.is_minus() {
                ring.len() - 1
            } else {
                1
            };
            for (index, &node) in ring.iter().enumerate() {
                let mut crossed = false;
                let mut barred = 0;
                for hops in 1..ring.len() {
                    let to = ring[(index + hops * step) % ring.len()];
                    let vc = registers[node as usize].entry_vc(direction, ordinate(to));
                    barred |= u32::from(crossed && vc == 1) << ordinate(to);
                    crossed |= registers[to as usize].is_dateline(direction);
                }
                self.barred[node as usize][direction.index()] = barred;
            }
        }
    }

    fn sum_up_barred(&mut self) {
        if self.barred.iter().flatten().all(|&barred| barred == 0) {
            return;
        }
        let mut here = [[0; 32]; 6];
        for (node, barred) in (0..).zip(&self.barred) {
            let coordinates = self.shape.coordinates(node);
            for direction in Direction::ALL {
                let ordinate = usize::from(coordinates.0[direction.dimension()]);
                here[direction.index()][ordinate] |= barred[direction.index()];
            }
        }
        self.barred_anywhere = vec![[0; 32]; 6];
        for direction in Direction::ALL {
            let size = 1 << Coordinates::BITS[direction.dimension()];
            let step = if direction.is_minus() { size - 1 } else { 1 };
            for from in 0..size {
                for to in 0..size {
                    let mut at = from;
                    while at != to {
                        let barred = here[direction.index()][at] & 1 << to;
                        self.barred_anywhere[direction.index()][from] |= barred;
                        at = (at + step) % size;
                    }
                }
            }
        }
    }

    /// Whether a packet from `from` with `tag` may return from adaptive channels at every node of
    /// its minimal paths, where it looks up its virtual channel again.
    #[inline]
    pub(super) fn may_come_back(&self, from: Coordinates, tag: &Tag) -> bool {
        let may = |direction: Direction| {
            let [from, to] = [from, tag.to].map(|coordinates| coordinates.0[direction.dimension()]);
            self.barred_anywhere[direction.index()][usize::from(from)] >> to & 1 == 0
        };
        self.barred_anywhere.is_empty() || tag.unsatisfied(from).iter().all(may)
    }

    /// Records positions and reach of the nodes of a ring.
    fn measure(
        &mut self,
        broken: &Broken,
        registers: &[RouteRegisters],
        dimension: usize,
        ring: &[u32],
    ) {
        let plus = Direction::of(dimension, false);
        let dateline = ring
            .iter()
            .position(|&node| registers[node as usize].is_dateline(plus))
            .unwrap_or(0);
        for (index, &node) in ring.iter().enumerate() {
            let node = node as usize;
            self.index[node][dimension] = index as u8;
            self.length[node][dimension] = ring.len() as u8;
            let behind = (index + ring.len() - dateline) % ring.len();
            self.odd[node] |= (behind as u8 & 1) << dimension;
        }
        let mut ahead: Vec<u32> = ring.to_vec();
        for direction in [plus.opposite(), plus] {
            // Twice around the ring: in the second pass the reach of the nodes ahead is known.
            let mut reach = 0;
            for &node in ahead.iter().chain(&ahead) {
                // This node reaches one hop further than the node ahead.
                reach = if broken.works(node, direction) {
                    (reach + 1).min(ring.len() as u8)
                } else {
                    0
                };
                self.reach[node as usize][direction.index()] = reach;
            }
            ahead.reverse();
        }
    }

    /// Number of hops from `from` to `to` in `direction`; both must be in the same ring.
    fn hops(&self, from: u32, to: u32, direction: Direction) -> u8 {
        let dimension = direction.dimension();
        let [from_index, to_index] = [from, to].map(|node| self.index[node as usize][dimension]);
        let length = self.length[from as usize][dimension];
        let [behind, ahead] = if direction.is_minus() {
            [to_index, from_index]
        } else {
            [from_index, to_index]
        };
        (ahead + length - behind) % length
    }

    /// The path from `from` to `to` along these directions in this order, each at most once and up
    /// to the ordinate of `to`. `None` if a node or link on it is missing or broken, or if it would
    /// pass a dateline on VC1.
    #[inline]
    pub(super) fn path(
        &self,
        from: u32,
        to: Coordinates,
        directions: impl Iterator<Item = Direction>,
    ) -> Option<Path> {
        let mut path = Path::default();
        let mut node = from;
        for direction in directions {
            let dimension = direction.dimension();
            let mut corner = self.shape.coordinates(node);
            corner.0[dimension] = to.0[dimension];
            let corner = self.shape.node(corner)?;
            let hops = self.hops(node, corner, direction);
            let barred = self.barred[node as usize][direction.index()] >> to.0[dimension] & 1 != 0;
            if barred || self.reach[node as usize][direction.index()] < hops {
                return None;
            }
            path.hops += u32::from(hops);
            let half = hops * 2 == self.length[node as usize][dimension];
            path.against_rule +=
                u32::from(half && direction.is_minus() != self.odd(node, dimension));
            node = corner;
        }
        Some(path)
    }

    #[inline]
    pub(super) fn in_direction_order(&self, from: u32, to: Coordinates, signs: u8) -> Option<Path> {
        self.path(from, to, self.directions(from, to, signs).iter())
    }

    /// The path in the order X, Y, Z, regardless of signs. The T3E does not use this order.
    pub(super) fn in_dimension_order(&self, from: u32, to: Coordinates, signs: u8) -> Option<Path> {
        let directions = self.directions(from, to, signs);
        let in_order = [0, 1, 2, 3, 4, 5].map(|n| Direction::of(n / 2, n % 2 == 1));
        let travelled = in_order.into_iter().filter(|&d| directions.contains(d));
        self.path(from, to, travelled)
    }

    fn directions(&self, from: u32, to: Coordinates, signs: u8) -> DirectionSet {
        let tag = Tag {
            to,
            signs,
            ..Tag::default()
        };
        tag.unsatisfied(self.shape.coordinates(from))
    }

    fn odd(&self, node: u32, dimension: usize) -> bool {
        self.odd[node as usize] >> dimension & 1 != 0
    }

    /// The signs of the shorter path in each dimension, summed over all of `group`. Ties go towards
    /// plus from an even ordinate, counted from the dateline, and towards minus from an odd one.
    /// This is the shortest path if no plane is partial and all links work.
    #[inline]
    pub(super) fn minimal_signs(&self, from: u32, group: &[u32]) -> u8 {
        let mut signs = 0;
        for dimension in 0..3 {
            let length = self.length[from as usize][dimension];
            let odd = self.odd(from, dimension);
            let [mut plus, mut minus] = [Path::default(); 2];
            for &to in group {
                let mut corner = self.shape.coordinates(from);
                corner.0[dimension] = self.shape.coordinates(to).0[dimension];
                let Some(corner) = self.shape.node(corner) else {
                    continue;
                };
                let hops = self.hops(from, corner, Direction::of(dimension, false));
                let half = hops * 2 == length;
                plus.hops += u32::from(hops);
                plus.against_rule += u32::from(half && odd);
                minus.hops += u32::from((length - hops) % length);
                minus.against_rule += u32::from(half && !odd);
            }
            signs |= u8::from(minus < plus) << dimension;
        }
        signs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_end_where_links_do_not_work() {
        let shape: Shape = "8x1x1".parse().expect("a shape");
        let registers: Vec<_> = (0..8).map(|node| shape.registers(node)).collect();
        let mut broken = Broken::none(&shape);
        let hops = |broken: &Broken, from, to, signs| {
            let lines = Lines::new(&shape, broken, &registers);
            let path = lines.in_direction_order(from, Coordinates([to, 0, 0]), signs);
            path.map(|path| (path.hops, path.against_rule))
        };
        assert_eq!(hops(&broken, 6, 1, 0), Some((3, 0)));
        assert_eq!(hops(&broken, 6, 1, 1), Some((5, 0)));
        // Half a ring: from even ordinates towards plus.
        assert_eq!(hops(&broken, 6, 2, 0), Some((4, 0)));
        assert_eq!(hops(&broken, 6, 2, 1), Some((4, 1)));
        assert_eq!(hops(&broken, 7, 3, 0), Some((4, 1)));
        broken.set_link(&shape, 0, Direction::PlusX, true);
        assert_eq!(hops(&broken, 6, 1, 0), None);
        assert_eq!(hops(&broken, 6, 1, 1), Some((5, 0)));
        assert_eq!(hops(&broken, 6, 0, 0), Some((2, 0)));
        assert_eq!(hops(&broken, 2, 1, 0), None);
        assert_eq!(hops(&broken, 1, 0, 0), Some((7, 0)));
        assert_eq!(hops(&broken, 1, 0, 1), None);
    }
}
