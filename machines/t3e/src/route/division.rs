//! The most even division of adaptive packets over their paths.
//!
//! A router offers an adaptive packet two directions, the lowest and the highest of those that
//! remain ([`decide`](super::decide)). The routers' choices divide each flow over the resulting
//! paths. For any *lengths* of the links, at least 0 each, no division is shorter than one that
//! uses only the shortest paths; so
//!
//! > most loaded link >= sum over flows of packets x shortest path / sum over links of length
//!
//! since the most loaded link is no less than the mean of all, weighted by the lengths. The search
//! for lengths that maximise the right side also finds the best division: one flow after another
//! takes its shortest path, which lengthens its links a little, less in each round (Garg and
//! Koenemann's multicommodity flow). The mean of all lengths so far gives the better bound.

use phitwire_framing::t3e::direction::Direction;

use super::broken::Broken;
use super::entry::Entry;
use super::load::{Flow, Loads};
use super::registers::RouteRegisters;
use super::shape::Shape;
use super::tables::Tables;
use super::walk::{Stray, walk};

const ROUNDS: u32 = 1_000;
const STEPS: u64 = 200_000_000;
/// Number of rounds between evaluations of the lengths.
const LOOK: u32 = 25;
/// A division is good enough when its most loaded link exceeds the bound by at most this fraction.
const NEAR: f64 = 0.002;

/// Bounds on the best division of flows over their paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Division {
    /// Lower bound on the packets on the most loaded link, for any division.
    pub least: f64,
    /// Packets on the most loaded link of the best division found.
    pub found: f64,
}

/// A machine whose packets are divided.
#[derive(Clone, Copy, Debug)]
pub struct RoutedMachine<'a> {
    pub shape: &'a Shape,
    pub broken: &'a Broken,
    pub registers: &'a [RouteRegisters],
    pub tables: &'a Tables,
}

/// The nodes on the paths of an adaptive packet: the box from the node after its initial hop to the
/// one before its final hop, indexed by remaining hops. Reused between packets.
#[derive(Debug, Default)]
struct Region {
    directions: Vec<Direction>,
    /// For each direction, the number of nodes (one more than hops) and their stride in the lists.
    sizes: Vec<usize>,
    strides: Vec<usize>,
    nodes: Vec<u32>,
    /// The links of the packet's initial and final hops, where it does not adapt.
    outside: Vec<(u32, Direction)>,
    /// For each node, the length of the shortest path from there and its first direction.
    shortest: Vec<(f64, usize)>,
    links: Vec<(u32, Direction)>,
}

impl Region {
    /// Sets the region of a packet from `from` with this entry. Returns `None` if it cannot adapt.
    fn set(&mut self, shape: &Shape, from: u32, entry: &Entry) -> Option<()> {
        let tag = &entry.tag;
        if !tag.adaptive {
            return None;
        }
        self.outside.clear();
        let mut start = from;
        if let Some(hop) = entry.initial {
            self.outside.push((from, hop));
            start = shape.neighbour(from, hop)?;
        }
        if tag.final_hop {
            self.outside.push((shape.node(tag.to)?, Direction::MinusZ));
        }
        self.directions.clear();
        self.directions
            .extend(tag.unsatisfied(shape.coordinates(start)).iter());
        if self.directions.len() < 2 {
            return None;
        }
        self.sizes.clear();
        self.strides.clear();
        let mut all = 1;
        for &direction in &self.directions {
            let dimension = direction.dimension();
            let mut node = start;
            let mut size = 1;
            while shape.coordinates(node).0[dimension] != tag.to.0[dimension] {
                node = shape.neighbour(node, direction)?;
                size += 1;
            }
            self.strides.push(all);
            self.sizes.push(size);
            all *= size;
        }
        self.nodes.clear();
        self.nodes.resize(all, start);
        // Downwards from the node where all hops remain.
        for at in (0..all - 1).rev() {
            let before = (0..self.sizes.len()).find(|&i| self.left(at, i) + 1 < self.sizes[i]);
            let before = before.expect("the first node is excluded");
            let node = self.nodes[at + self.strides[before]];
            self.nodes[at] = shape.neighbour(node, self.directions[before])?;
        }
        Some(())
    }

    fn left(&self, at: usize, direction: usize) -> usize {
        at / self.strides[direction] % self.sizes[direction]
    }

    /// The lowest and the highest remaining direction, as indices into the order.
    fn choices(&self, at: usize) -> [usize; 2] {
        let left = |&i: &usize| self.left(at, i) > 0;
        let all = 0..self.sizes.len();
        let lowest = all.clone().find(left);
        let highest = all.rev().find(left);
        [lowest, highest].map(|choice| choice.expect("the last node is excluded"))
    }

    /// Finds the shortest path, and returns its length.
    fn measure(&mut self, lengths: &[[f64; 6]]) -> f64 {
        self.shortest.clear();
        self.shortest.push((0.0, 0));
        for at in 1..self.nodes.len() {
            let node = self.nodes[at] as usize;
            let of = |choice: usize| {
                let link = lengths[node][self.directions[choice].index()];
                (link + self.shortest[at - self.strides[choice]].0, choice)
            };
            let [lowest, highest] = self.choices(at).map(of);
            let best = if highest.0 < lowest.0 {
                highest
            } else {
                lowest
            };
            self.shortest.push(best);
        }
        let mut at = self.nodes.len() - 1;
        while at > 0 {
            let choice = self.shortest[at].1;
            self.links.push((self.nodes[at], self.directions[choice]));
            at -= self.strides[choice];
        }
        let length = |&(node, to): &(u32, Direction)| lengths[node as usize][to.index()];
        let outside: f64 = self.outside.iter().map(length).sum();
        self.links.extend_from_slice(&self.outside);
        self.shortest[self.nodes.len() - 1].0 + outside
    }
}

impl RoutedMachine<'_> {
    /// The loads of the given flows without adaptive routing.
    ///
    /// # Errors
    /// If a packet does not reach its destination.
    ///
    /// # Panics
    /// If a node does not exist or has no registers.
    pub fn fixed(&self, flows: &[Flow]) -> Result<Loads, Stray> {
        let Self {
            shape,
            broken,
            registers,
            tables,
        } = *self;
        Loads::of(shape, broken, registers, tables, flows.iter().copied())
    }

    /// The best division of the given flows that is found in bounded time.
    ///
    /// # Errors
    /// If a packet does not reach its destination.
    ///
    /// # Panics
    /// If a node does not exist or has no registers.
    pub fn divide(&self, flows: &[Flow]) -> Result<Division, Stray> {
        let fixed = self.fixed(flows)?;
        let mut best = Division {
            least: 0.0,
            found: fixed.most(),
        };
        // Links that are full without adaptive routing may be full in any division, so often no
        // search is needed.
        let full = best.found * (1.0 - 1e-9);
        let is_full = |load: &f64| f64::from(u8::from(*load >= full));
        let first = fixed.packets.iter().map(|of| of.each_ref().map(is_full));
        best.least = self.needed(flows, &first.collect::<Vec<_>>())?;
        let is_there = |node, to| f64::from(u8::from(self.shape.neighbour(node, to).is_some()));
        let mut lengths: Vec<[f64; 6]> = (0..self.shape.nodes())
            .map(|node| Direction::ALL.map(|to| is_there(node, to)))
            .collect();
        let mut mean = vec![[0.0; 6]; lengths.len()];
        let mut divided = Loads::none(self.shape);
        let largest = flows
            .iter()
            .map(|&(.., packets)| packets)
            .fold(0.0, f64::max);
        let mut region = Region::default();
        let (mut steps, mut round) = (0, 0);
        while best.found > best.least * (1.0 + NEAR) && round < ROUNDS && steps < STEPS {
            let all = sum(&lengths);
            let both = mean.iter_mut().flatten().zip(lengths.iter_mut().flatten());
            both.for_each(|(mean, length)| {
                *length /= all;
                *mean += *length;
            });
            if round % LOOK == 0 {
                let needed = self
                    .needed(flows, &lengths)?
                    .max(self.needed(flows, &mean)?);
                best.least = best.least.max(needed);
            }
            round += 1;
            let rate = f64::from(round).sqrt().recip() / largest;
            for at in 0..flows.len() {
                // Alternate the order, so that no flow is always first.
                let turned = round % 2 == 0;
                let (from, pe, packets) = flows[if turned { flows.len() - 1 - at } else { at }];
                self.shortest(&mut region, (from, pe), &lengths)?;
                steps += region.nodes.len() as u64;
                for &(node, direction) in &region.links {
                    divided.add(node, direction, packets);
                    lengths[node as usize][direction.index()] *= 1.0 + rate * packets;
                }
            }
            best.found = best.found.min(divided.most() / f64::from(round));
        }
        Ok(best)
    }

    /// Lower bound on the load of the most loaded link, for the given lengths.
    fn needed(&self, flows: &[Flow], lengths: &[[f64; 6]]) -> Result<f64, Stray> {
        let mut region = Region::default();
        let mut total = 0.0;
        for &(from, pe, packets) in flows {
            total += packets * self.shortest(&mut region, (from, pe), lengths)?;
        }
        Ok(total / sum(lengths))
    }

    /// Finds the shortest path from a node to a processor, stores its links in `region`, and
    /// returns its length. A packet that cannot adapt has only one path; a packet without a path
    /// uses no links.
    fn shortest(
        &self,
        region: &mut Region,
        (from, pe): (u32, u32),
        lengths: &[[f64; 6]],
    ) -> Result<f64, Stray> {
        region.links.clear();
        region.nodes.clear();
        let Some(entry) = self.tables.route(from, pe) else {
            return Ok(0.0);
        };
        if region.set(self.shape, from, &entry).is_some() {
            return Ok(region.measure(lengths));
        }
        let to = self.tables.destinations()[pe as usize];
        let way = walk(self.shape, self.broken, self.registers, from, to, &entry)?;
        let links = way
            .into_iter()
            .map(|channel| (channel.node, channel.direction));
        region.links.extend(links);
        let length = |&(node, to): &(u32, Direction)| lengths[node as usize][to.index()];
        Ok(region.links.iter().map(length).sum())
    }
}

fn sum(lengths: &[[f64; 6]]) -> f64 {
    lengths.iter().flatten().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::{Arrival, Decision, decide, generate};
    use phitwire::rng::Rng;
    use phitwire_framing::t3e::tag::Tag;

    /// The shortest of all paths that the routers' decisions allow.
    fn shortest(
        routed: &RoutedMachine<'_>,
        (node, entry): (u32, &Entry),
        arrival: Result<Arrival, Option<Direction>>,
        lengths: &[[f64; 6]],
    ) -> f64 {
        let decision = decide(&routed.registers[node as usize], &entry.tag, arrival);
        let Decision::Go {
            deterministic: (lowest, _),
            adaptive,
        } = decision
        else {
            assert_eq!(decision, Decision::Deliver);
            return 0.0;
        };
        let choices = [Some(lowest), adaptive].into_iter().flatten();
        let by = |direction: Direction| {
            assert!(routed.broken.works(node, direction));
            let next = routed
                .shape
                .neighbour(node, direction)
                .expect("the link works");
            let arrival = Ok(Arrival {
                direction,
                vc: None,
            });
            lengths[node as usize][direction.index()]
                + shortest(routed, (next, entry), arrival, lengths)
        };
        choices.map(by).fold(f64::INFINITY, f64::min)
    }

    fn machine(shape: &Shape, broken: &Broken) -> (Vec<RouteRegisters>, Tables) {
        let nodes = 0..shape.nodes();
        let registers: Vec<_> = nodes.clone().map(|node| shape.registers(node)).collect();
        let all: Vec<u32> = nodes.collect();
        let tables = generate(shape, broken, &registers, &all).expect("tables");
        (registers, tables)
    }

    fn lengths(shape: &Shape, rng: &mut Rng) -> Vec<[f64; 6]> {
        let mut length = |_: Direction| rng.below(1_000) as f64;
        (0..shape.nodes())
            .map(|_| Direction::ALL.map(&mut length))
            .collect()
    }

    /// Checks every packet, including those that adapt after an initial hop.
    #[test]
    fn the_shortest_path_is_the_minimum_over_allowed_paths() {
        let shape: Shape = "4x4x4".parse().expect("a shape");
        let mut rng = Rng::new(5, 5);
        let mut found = 0;
        for broken_links in [0, 12, 30, 60] {
            let mut broken = Broken::none(&shape);
            for _ in 0..broken_links {
                let node = rng.below(shape.nodes().into()) as u32;
                let direction = Direction::ALL[rng.below(3) as usize];
                broken.set_link(&shape, node, direction, true);
            }
            let (registers, tables) = machine(&shape, &broken);
            let routed = RoutedMachine {
                shape: &shape,
                broken: &broken,
                registers: &registers,
                tables: &tables,
            };
            let lengths = lengths(&shape, &mut rng);
            let mut region = Region::default();
            for (from, pe, entry) in tables.routes() {
                let least = shortest(&routed, (from, &entry), Err(entry.initial), &lengths);
                let measured = routed.shortest(&mut region, (from, pe), &lengths).unwrap();
                assert_eq!(measured, least, "{from} to {pe}: {entry:?}");
                let links = region.links.iter();
                let sum: f64 = links
                    .map(|&(node, to)| lengths[node as usize][to.index()])
                    .sum();
                assert_eq!(sum, least);
                found += u32::from(entry.tag.adaptive && entry.initial.is_some());
            }
        }
        assert!(found > 10, "{found}");
    }

    /// Covers adaptive packets with a final hop, which tables of a full torus no longer have.
    #[test]
    fn the_hops_outside_the_region_count() {
        let shape: Shape = "4x5x4".parse().expect("a shape");
        let broken = Broken::none(&shape);
        let (registers, tables) = machine(&shape, &broken);
        let routed = RoutedMachine {
            shape: &shape,
            broken: &broken,
            registers: &registers,
            tables: &tables,
        };
        let mut rng = Rng::new(6, 6);
        let (mut region, mut adapt) = (Region::default(), 0);
        for _ in 0..2_000 {
            let [from, to] = [(); 2].map(|()| rng.below(shape.nodes().into()) as u32);
            let tag = Tag {
                to: shape.coordinates(to),
                signs: rng.below(8) as u8,
                final_hop: rng.chance(1, 2),
                adaptive: true,
            };
            let initial = rng
                .chance(1, 2)
                .then(|| Direction::ALL[rng.below(3) as usize]);
            let entry = Entry { tag, initial };
            if region.set(&shape, from, &entry).is_none() {
                continue;
            }
            adapt += 1;
            let lengths = lengths(&shape, &mut rng);
            region.links.clear();
            let least = shortest(&routed, (from, &entry), Err(initial), &lengths);
            assert_eq!(region.measure(&lengths), least, "{from}: {entry:?}");
        }
        assert!(adapt > 1_000, "{adapt}");
    }
}
