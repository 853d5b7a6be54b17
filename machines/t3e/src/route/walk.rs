//! The path of a packet through the routers.

use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::tag::Tag;

use super::broken::Broken;
use super::decision::{Arrival, Decision, decide};
use super::entry::Entry;
use super::registers::RouteRegisters;
use super::shape::Shape;

/// A deterministic channel of a link. Requests and responses have separate channels with the same
/// use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel {
    pub node: u32,
    pub direction: Direction,
    pub vc: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stray {
    #[error("node {node} has no working link in {direction}")]
    NoLink {
        /// The node that the packet has reached.
        node: u32,
        direction: Direction,
    },
    #[error("the packet loops")]
    Loop,
    #[error("the packet is discarded at node {0}, whose line lacks its ordinate")]
    Nowhere(u32),
    #[error("the packet is delivered at node {0}")]
    Delivered(u32),
}

/// The deterministic channels that a packet for `to` takes, in order, if all routers make their
/// deterministic choice.
///
/// # Errors
/// If the packet does not arrive.
///
/// # Panics
/// If a node does not exist or has no registers.
pub fn walk(
    shape: &Shape,
    broken: &Broken,
    registers: &[RouteRegisters],
    from: u32,
    to: u32,
    entry: &Entry,
) -> Result<Vec<Channel>, Stray> {
    let mut channels = Vec::new();
    let mut node = from;
    let mut arrival = Err(entry.initial);
    // A packet that takes a channel twice takes it forever.
    let most = shape.nodes() as usize * Direction::ALL.len() * 2;
    while channels.len() <= most {
        let (direction, vc) = match decide(&registers[node as usize], &entry.tag, arrival) {
            Decision::Go { deterministic, .. } => deterministic,
            Decision::Deliver if node == to => return Ok(channels),
            Decision::Deliver => return Err(Stray::Delivered(node)),
            Decision::Nowhere => return Err(Stray::Nowhere(node)),
        };
        let next = shape.neighbour(node, direction);
        let works = broken.works(node, direction);
        let Some(next) = next.filter(|_| works) else {
            return Err(Stray::NoLink { node, direction });
        };
        channels.push(Channel {
            node,
            direction,
            vc,
        });
        node = next;
        arrival = Ok(Arrival {
            direction,
            vc: Some(vc),
        });
    }
    Err(Stray::Loop)
}

/// A search through all minimal paths of packets, reused between packets.
#[derive(Clone, Debug)]
pub struct MinimalPathSearch {
    /// The last search that visited each node.
    seen: Vec<u32>,
    search: u32,
    stack: Vec<u32>,
}

impl MinimalPathSearch {
    pub fn new(shape: &Shape) -> Self {
        Self {
            seen: vec![0; shape.nodes() as usize],
            search: 0,
            stack: Vec::new(),
        }
    }

    /// Whether an adaptive packet with `tag` can go in every remaining direction, from `from` and
    /// from every node that it reaches in this way. If not, adaptivity must be off: "it may attempt
    /// to take a broken path" (T3E sec. 2.4). A router offers only one of these directions. All of
    /// them count here, according to T3E sec. 2 ("a faulty link in one of the minimal paths"),
    /// which covers routers that offer others.
    ///
    /// Adaptivity must also be off where a line lacks the ordinate that the packet needs: near
    /// partial planes the packet would travel around a column, past the ordinate where it should
    /// have left it.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn is_free(&mut self, shape: &Shape, broken: &Broken, from: u32, tag: &Tag) -> bool {
        self.search += 1;
        self.stack.clear();
        self.stack.push(from);
        while let Some(node) = self.stack.pop() {
            let coordinates = shape.coordinates(node);
            for direction in tag.unsatisfied(coordinates).iter() {
                let mut corner = coordinates;
                corner.0[direction.dimension()] = tag.to.0[direction.dimension()];
                if shape.node(corner).is_none() {
                    return false;
                }
                let next = shape.neighbour(node, direction);
                let Some(next) = next.filter(|_| broken.works(node, direction)) else {
                    return false;
                };
                if self.seen[next as usize] != self.search {
                    self.seen[next as usize] = self.search;
                    self.stack.push(next);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire_framing::t3e::tag::Coordinates;

    fn torus() -> (Shape, Vec<RouteRegisters>) {
        let shape: Shape = "4x4x4".parse().expect("a shape");
        let registers = (0..64).map(|node| shape.registers(node)).collect();
        (shape, registers)
    }

    fn entry(to: [u8; 3], signs: u8, initial: Option<Direction>) -> Entry {
        let tag = Tag {
            to: Coordinates(to),
            signs,
            ..Tag::default()
        };
        Entry { tag, initial }
    }

    #[test]
    fn channels_change_behind_the_dateline() {
        let (shape, registers) = torus();
        let node = |coordinates| shape.node(Coordinates(coordinates)).expect("a node");
        // +Y before -X, across the dateline of +Y at 0.
        let entry = entry([0, 1, 2], 0b001, Some(Direction::PlusZ));
        let walked = walk(
            &shape,
            &Broken::none(&shape),
            &registers,
            node([1, 3, 1]),
            node([0, 1, 2]),
            &entry,
        );
        let expected = [
            ([1, 3, 1], Direction::PlusZ, 0),
            ([1, 3, 2], Direction::PlusY, 0),
            ([1, 0, 2], Direction::PlusY, 1),
            ([1, 1, 2], Direction::MinusX, 0),
        ];
        let expected = expected.map(|(coordinates, direction, vc)| Channel {
            node: node(coordinates),
            direction,
            vc,
        });
        assert_eq!(walked, Ok(expected.to_vec()));
    }

    #[test]
    fn strays_are_distinguished() {
        let (shape, mut registers) = torus();
        let node = |coordinates| shape.node(Coordinates(coordinates)).expect("a node");
        let [from, to] = [[0, 0, 0], [2, 0, 0]].map(node);
        let mut broken = Broken::none(&shape);
        let go = |broken: &Broken, registers: &[RouteRegisters], entry| {
            walk(&shape, broken, registers, from, to, &entry).map(|channels| channels.len())
        };
        let right = entry([2, 0, 0], 0, None);
        assert_eq!(go(&broken, &registers, right), Ok(2));
        let aside = Stray::Delivered(node([3, 0, 0]));
        assert_eq!(
            go(&broken, &registers, entry([3, 0, 0], 1, None)),
            Err(aside)
        );
        let outside = entry([5, 0, 0], 0, None);
        assert_eq!(go(&broken, &registers, outside), Err(Stray::Nowhere(from)));
        broken.set_link(&shape, to, Direction::MinusX, true);
        let direction = Direction::PlusX;
        let cut = Stray::NoLink {
            node: node([1, 0, 0]),
            direction,
        };
        assert_eq!(go(&broken, &registers, right), Err(cut));
        assert_eq!(go(&broken, &registers, entry([2, 0, 0], 1, None)), Ok(2));
        // A router with a wrong address forwards the packet.
        registers[to as usize].coordinates = Coordinates([1, 0, 0]);
        let again = go(&Broken::none(&shape), &registers, right);
        assert_eq!(again, Err(Stray::Loop));
    }

    #[test]
    fn adaptive_packets_may_meet_what_deterministic_ones_do_not() {
        let (shape, _) = torus();
        let mut broken = Broken::none(&shape);
        let mut path_search = MinimalPathSearch::new(&shape);
        let at = |x, y| shape.node(Coordinates([x, y, 0])).expect("a node");
        broken.set_link(&shape, at(0, 1), Direction::PlusX, true);
        let mut free = |from, entry: Entry| path_search.is_free(&shape, &broken, from, &entry.tag);
        // +X first avoids the broken link.
        assert!(!free(at(0, 0), entry([2, 2, 0], 0, None)));
        assert!(free(at(0, 0), entry([2, 0, 0], 0, None)));
        assert!(free(at(0, 0), entry([2, 2, 0], 2, None)));
        assert!(free(at(1, 0), entry([2, 2, 0], 0, None)));
        assert!(!free(at(1, 0), entry([0, 1, 0], 1, None)));
    }

    #[test]
    fn adaptive_packets_keep_out_of_columns_without_their_plane() {
        let shape: Shape = "4x4x4+4x2x1".parse().expect("a shape");
        let broken = Broken::none(&shape);
        let mut path_search = MinimalPathSearch::new(&shape);
        let mut free = |from, to| {
            let from = shape.node(Coordinates(from)).expect("a node");
            path_search.is_free(&shape, &broken, from, &entry(to, 0, None).tag)
        };
        assert!(free([1, 0, 2], [3, 1, 4]));
        assert!(!free([1, 2, 2], [3, 0, 4]), "no plane 4 at Y=2");
        // Across the ends of columns, at any position.
        assert!(free([1, 2, 3], [3, 3, 0]));
        assert!(!free([1, 0, 3], [3, 2, 0]), "no route from plane 4 to Y=2");
    }
}
