//! How much deterministic packets load the links.

use super::broken::Broken;
use super::direction::Direction;
use super::registers::RouteRegisters;
use super::shape::Shape;
use super::tables::Tables;
use super::walk::{Stray, walk};

/// Packets on each link, by the node that sends on it and the direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loads {
    packets: Vec<[u32; 6]>,
}

impl Loads {
    /// Those of packets between nodes and logical processors, each on its deterministic way. Packets
    /// that have none are left out.
    ///
    /// # Errors
    /// If a packet strays.
    ///
    /// # Panics
    /// If a node does not exist or has no registers.
    pub fn of(
        shape: &Shape,
        broken: &Broken,
        registers: &[RouteRegisters],
        tables: &Tables,
        packets: impl Iterator<Item = (u32, u32)>,
    ) -> Result<Self, Stray> {
        let mut loads = vec![[0; 6]; shape.nodes() as usize];
        for (from, pe) in packets {
            let Some(entry) = tables.route(from, pe) else {
                continue;
            };
            let to = tables.destinations()[pe as usize];
            for channel in walk(shape, broken, registers, from, to, &entry)? {
                loads[channel.node as usize][channel.direction.index()] += 1;
            }
        }
        Ok(Self { packets: loads })
    }

    /// Packets on a link.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn on(&self, node: u32, direction: Direction) -> u32 {
        self.packets[node as usize][direction.index()]
    }

    /// Packets on the link that has most.
    pub fn most(&self) -> u32 {
        self.packets.iter().flatten().copied().max().unwrap_or(0)
    }

    /// What part of the rate of a link each node can send of such packets, if it sends `per_node` of
    /// them each time: no network does better without adaptive routing.
    pub fn bound(&self, per_node: u32) -> f64 {
        f64::from(per_node) / f64::from(self.most())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::t3e::route::{Place, generate};

    struct Machine {
        shape: Shape,
        broken: Broken,
        registers: Vec<RouteRegisters>,
        tables: Tables,
    }

    impl Machine {
        fn new(text: &str) -> Self {
            let shape: Shape = text.parse().expect("a shape");
            let broken = Broken::none(&shape);
            let registers: Vec<_> = (0..shape.nodes())
                .map(|node| shape.registers(node))
                .collect();
            let all: Vec<u32> = (0..shape.nodes()).collect();
            let tables = generate(&shape, &broken, &registers, &all).expect("tables");
            Self {
                shape,
                broken,
                registers,
                tables,
            }
        }

        fn loads(&self, packets: impl Iterator<Item = (u32, u32)>) -> Loads {
            let loads = Loads::of(
                &self.shape,
                &self.broken,
                &self.registers,
                &self.tables,
                packets,
            );
            loads.expect("all arrive")
        }

        /// The loads of packets from each place to another one.
        fn pattern(&self, to: fn([u8; 3]) -> [u8; 3]) -> Loads {
            self.loads((0..self.shape.nodes()).map(|node| {
                let to = Place(to(self.shape.place(node).0));
                (node, self.shape.node(to).expect("a place of it"))
            }))
        }
    }

    /// A place of 8x8x8 as a number of nine bits, X lowest.
    fn number([x, y, z]: [u8; 3]) -> u16 {
        u16::from(x) | u16::from(y) << 3 | u16::from(z) << 6
    }

    fn of_number(number: u16) -> [u8; 3] {
        [0, 3, 6].map(|bit| (number >> bit & 7) as u8)
    }

    #[test]
    fn patterns_have_bounds() {
        type Pattern = (&'static str, fn([u8; 3]) -> [u8; 3], u32);
        let machine = Machine::new("8x8x8");
        let patterns: [Pattern; 8] = [
            ("xy transpose", |[x, y, z]| [y, x, z], 4),
            ("zx reversal", |[x, y, z]| [z, y, x], 4),
            ("rotation", |[x, y, z]| [y, z, x], 7),
            ("complement", |place| place.map(|at| 7 - at), 8),
            (
                "bit reversal",
                |place| of_number(number(place).reverse_bits() >> 7),
                10,
            ),
            (
                "shuffle",
                |place| of_number(number(place) << 1 & 0x1ff | number(place) >> 8),
                6,
            ),
            ("tornado", |[x, y, z]| [(x + 3) % 8, y, z], 3),
            ("opposite node", |place| place.map(|at| at ^ 4), 2),
        ];
        let found = patterns.map(|(name, to, _)| (name, machine.pattern(to).most()));
        assert_eq!(found, patterns.map(|(name, _, most)| (name, most)));
    }

    #[test]
    fn uniform_packets_load_all_links_alike() {
        for (text, bound) in [("8x8x8", 1.0), ("4x4x4", 2.0), ("4x8x4", 1.0)] {
            let machine = Machine::new(text);
            let nodes = machine.shape.nodes();
            let loads = machine.loads((0..nodes * nodes).map(|pair| (pair / nodes, pair % nodes)));
            assert_eq!(loads.bound(nodes), bound, "{text}");
            let size = machine.shape.size();
            for (node, direction, peer) in machine.shape.links() {
                // A quarter of the ring on average, on two links.
                let expected = nodes * u32::from(size[direction.dimension()]) / 8;
                assert_eq!(loads.on(node, direction), expected);
                assert_eq!(loads.on(peer, direction.opposite()), expected);
            }
        }
    }
}
