use phitwire_framing::t3e::direction::Direction;

use super::shape::Shape;

/// Broken links, and isolated nodes, which have failed or whose board is being swapped (T3E sec.
/// 9). A link is always broken in both directions, since each direction carries the credits of the
/// other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Missing or broken links by node, one bit per direction.
    links: Vec<u8>,
    isolated: Vec<bool>,
    /// Links by which packets can leave a node, one bit per direction.
    works: Vec<u8>,
}

impl Broken {
    pub fn none(shape: &Shape) -> Self {
        let nodes = shape.nodes() as usize;
        let mut broken = Self {
            links: vec![0; nodes],
            isolated: vec![false; nodes],
            works: vec![0; nodes],
        };
        for node in 0..shape.nodes() {
            for direction in Direction::ALL {
                let missing = u8::from(shape.neighbour(node, direction).is_none());
                broken.links[node as usize] |= missing << direction.index();
            }
            broken.works[node as usize] = !broken.links[node as usize];
        }
        broken
    }

    /// Breaks the link of `node` in `direction`, or restores it. A link that is not in `shape`
    /// stays missing.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn set_link(&mut self, shape: &Shape, node: u32, direction: Direction, broken: bool) {
        let Some(peer) = shape.neighbour(node, direction) else {
            return;
        };
        for (node, direction) in [(node, direction), (peer, direction.opposite())] {
            let bit = 1 << direction.index();
            let links = &mut self.links[node as usize];
            *links = if broken { *links | bit } else { *links & !bit };
        }
        self.look_at(shape, node);
    }

    /// Isolates a node, or reconnects it.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn set_isolated(&mut self, shape: &Shape, node: u32, isolated: bool) {
        self.isolated[node as usize] = isolated;
        self.look_at(shape, node);
    }

    /// Updates the set of working links of `node`.
    fn look_at(&mut self, shape: &Shape, node: u32) {
        for direction in Direction::ALL {
            let Some(peer) = shape.neighbour(node, direction) else {
                continue;
            };
            let whole = self.links[node as usize] >> direction.index() & 1 == 0;
            let works = whole && !self.is_isolated(node) && !self.is_isolated(peer);
            for (node, direction) in [(node, direction), (peer, direction.opposite())] {
                let bit = 1 << direction.index();
                let bits = &mut self.works[node as usize];
                *bits = if works { *bits | bit } else { *bits & !bit };
            }
        }
    }

    /// Whether a node is isolated.
    ///
    /// # Panics
    /// If the node does not exist.
    #[inline]
    pub fn is_isolated(&self, node: u32) -> bool {
        self.isolated[node as usize]
    }

    /// Whether packets can leave `node` in `direction`: the link exists and is not broken, and
    /// neither of its nodes is isolated.
    ///
    /// # Panics
    /// If the node does not exist.
    #[inline]
    pub fn works(&self, node: u32, direction: Direction) -> bool {
        self.works[node as usize] >> direction.index() & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire_framing::t3e::tag::Coordinates;

    #[test]
    fn links_break_at_both_ends_and_mend() {
        let shape: Shape = "4x4x4".parse().expect("a shape");
        let whole = Broken::none(&shape);
        let mut broken = whole.clone();
        let peer = shape.neighbour(9, Direction::MinusY).expect("a torus");
        broken.set_link(&shape, 9, Direction::MinusY, true);
        assert!(!broken.works(9, Direction::MinusY) && !broken.works(peer, Direction::PlusY));
        assert!(broken.works(9, Direction::PlusY) && broken.works(peer, Direction::MinusY));
        // Reconnecting a node does not restore the link.
        broken.set_isolated(&shape, peer, true);
        for direction in Direction::ALL {
            let from = shape.neighbour(peer, direction).expect("a torus");
            assert!(!broken.works(peer, direction));
            assert!(!broken.works(from, direction.opposite()));
        }
        broken.set_isolated(&shape, peer, false);
        assert!(!broken.works(9, Direction::MinusY));
        broken.set_link(&shape, 9, Direction::MinusY, false);
        assert_eq!(broken, whole);
    }

    #[test]
    fn missing_links_do_not_work() {
        let shape: Shape = "4x4x2+4x2x1".parse().expect("a shape");
        let mut broken = Broken::none(&shape);
        let end = shape.node(Coordinates([0, 1, 2])).expect("a partial node");
        broken.set_link(&shape, end, Direction::PlusY, false);
        assert!(!broken.works(end, Direction::PlusY));
        assert!(broken.works(end, Direction::MinusY));
    }
}
