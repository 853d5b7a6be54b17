//! Packet loads of the links.

use phitwire_framing::t3e::direction::Direction;

use super::broken::Broken;
use super::registers::RouteRegisters;
use super::shape::Shape;
use super::tables::Tables;
use super::walk::{Stray, walk};

/// Source node, logical processor, and number of packets, which may be fractional.
pub type Flow = (u32, u32, f64);

/// Number of packets on each link, by sending node and direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Loads {
    pub(super) packets: Vec<[f64; 6]>,
}

impl Loads {
    /// The loads of flows, each on its deterministic path. Flows without a path are omitted.
    ///
    /// # Errors
    /// If a packet does not reach its destination.
    ///
    /// # Panics
    /// If a node does not exist or has no registers.
    pub fn of(
        shape: &Shape,
        broken: &Broken,
        registers: &[RouteRegisters],
        tables: &Tables,
        flows: impl Iterator<Item = Flow>,
    ) -> Result<Self, Stray> {
        let mut loads = Self::none(shape);
        for (from, pe, packets) in flows {
            let Some(entry) = tables.route(from, pe) else {
                continue;
            };
            let to = tables.destinations()[pe as usize];
            for channel in walk(shape, broken, registers, from, to, &entry)? {
                loads.add(channel.node, channel.direction, packets);
            }
        }
        Ok(loads)
    }

    pub(super) fn none(shape: &Shape) -> Self {
        Self {
            packets: vec![[0.0; 6]; shape.nodes() as usize],
        }
    }

    pub(super) fn add(&mut self, node: u32, direction: Direction, packets: f64) {
        self.packets[node as usize][direction.index()] += packets;
    }

    /// Number of packets on a link.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn on(&self, node: u32, direction: Direction) -> f64 {
        self.packets[node as usize][direction.index()]
    }

    pub fn most(&self) -> f64 {
        self.packets.iter().flatten().copied().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::generate;
    use phitwire_framing::t3e::tag::Coordinates;

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

        fn loads(&self, flows: impl Iterator<Item = Flow>) -> Loads {
            let loads = Loads::of(
                &self.shape,
                &self.broken,
                &self.registers,
                &self.tables,
                flows,
            );
            loads.expect("all packets arrive")
        }

        /// The loads if each node sends one packet to the position that `to` returns.
        fn pattern(&self, to: fn([u8; 3]) -> [u8; 3]) -> Loads {
            self.loads((0..self.shape.nodes()).map(|node| {
                let to = Coordinates(to(self.shape.coordinates(node).0));
                (node, self.shape.node(to).expect("a node of the torus"), 1.0)
            }))
        }
    }

    /// A position in 8x8x8 as a number of nine bits, with X lowest.
    fn number([x, y, z]: [u8; 3]) -> u16 {
        u16::from(x) | u16::from(y) << 3 | u16::from(z) << 6
    }

    fn of_number(number: u16) -> [u8; 3] {
        [0, 3, 6].map(|bit| (number >> bit & 7) as u8)
    }

    #[test]
    fn patterns_have_bounds() {
        type Pattern = (&'static str, fn([u8; 3]) -> [u8; 3], f64);
        let machine = Machine::new("8x8x8");
        let patterns: [Pattern; 8] = [
            ("xy transpose", |[x, y, z]| [y, x, z], 4.0),
            ("zx reversal", |[x, y, z]| [z, y, x], 4.0),
            ("rotation", |[x, y, z]| [y, z, x], 7.0),
            (
                "complement",
                |coordinates| coordinates.map(|at| 7 - at),
                8.0,
            ),
            (
                "bit reversal",
                |coordinates| of_number(number(coordinates).reverse_bits() >> 7),
                10.0,
            ),
            (
                "shuffle",
                |coordinates| {
                    of_number(number(coordinates) << 1 & 0x1ff | number(coordinates) >> 8)
                },
                6.0,
            ),
            ("tornado", |[x, y, z]| [(x + 3) % 8, y, z], 3.0),
            (
                "opposite node",
                |coordinates| coordinates.map(|at| at ^ 4),
                2.0,
            ),
        ];
        let found = patterns.map(|(name, to, _)| (name, machine.pattern(to).most()));
        assert_eq!(found, patterns.map(|(name, _, most)| (name, most)));
    }

    #[test]
    fn uniform_packets_load_all_links_alike() {
        // Each node sends as many packets as there are nodes.
        for (text, most) in [("8x8x8", 1.0), ("4x4x4", 0.5), ("4x8x4", 1.0)] {
            let machine = Machine::new(text);
            let nodes = machine.shape.nodes();
            let pairs = (0..nodes * nodes).map(|pair| (pair / nodes, pair % nodes, 1.0));
            let loads = machine.loads(pairs);
            assert_eq!(loads.most(), f64::from(nodes) * most, "{text}");
            let size = machine.shape.size();
            for (node, direction, peer) in machine.shape.links() {
                // A packet travels a quarter of the ring on average, and both directions share the
                // packets.
                let expected = f64::from(nodes * u32::from(size[direction.dimension()]) / 8);
                assert_eq!(loads.on(node, direction), expected);
                assert_eq!(loads.on(peer, direction.opposite()), expected);
            }
        }
    }
}
