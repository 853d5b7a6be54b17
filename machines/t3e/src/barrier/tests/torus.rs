//! Tori with broken links, for building trees.

use std::collections::BTreeSet;

use phitwire_framing::t3e::direction::Direction;

use phitwire::rng::Rng;

/// A torus; node numbers have X lowest.
#[derive(Clone, Debug)]
pub struct Torus {
    radix: [u32; 3],
    /// Broken links; each is in the set twice, once per end.
    broken: BTreeSet<(u32, Direction)>,
}

impl Torus {
    pub fn new(radix: [u32; 3]) -> Self {
        let broken = BTreeSet::new();
        Self { radix, broken }
    }

    pub fn nodes(&self) -> u32 {
        self.radix.iter().product()
    }

    /// The neighbour behind a link, whether the link works or not.
    fn wired(&self, node: u32, direction: Direction) -> u32 {
        let [x, y, _] = self.radix;
        let stride = [1, x, x * y][direction.dimension()];
        let radix = self.radix[direction.dimension()];
        let at = node / stride % radix;
        let step = if direction.is_minus() { radix - 1 } else { 1 };
        node - at * stride + (at + step) % radix * stride
    }

    pub fn neighbour(&self, node: u32, direction: Direction) -> Option<u32> {
        let works = !self.broken.contains(&(node, direction));
        works.then(|| self.wired(node, direction))
    }

    pub fn break_link(&mut self, node: u32, direction: Direction) {
        let other = self.wired(node, direction);
        self.broken.insert((node, direction));
        self.broken.insert((other, direction.opposite()));
    }

    pub fn break_some(&mut self, links: u64, rng: &mut Rng) {
        for _ in 0..links {
            let node = rng.below(self.nodes().into()) as u32;
            self.break_link(node, Direction::ALL[rng.below(6) as usize]);
        }
    }

    pub fn some_nodes(&self, count: usize, rng: &mut Rng) -> Vec<u32> {
        let mut nodes: Vec<u32> = (0..self.nodes()).collect();
        for at in 0..count {
            let other = at + rng.below((nodes.len() - at) as u64) as usize;
            nodes.swap(at, other);
        }
        nodes.truncate(count);
        nodes
    }
}
