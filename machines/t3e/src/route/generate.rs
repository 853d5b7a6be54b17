use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::tag::{Coordinates, Tag};

use super::broken::Broken;
use super::entry::Entry;
use super::lines::{Lines, Path};
use super::region::Regions;
use super::registers::RouteRegisters;
use super::shape::Shape;
use super::tables::{GROUP, NO_ROUTE, TABLE_ENTRIES, Tables};
use super::walk::MinimalPathSearch;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TablesError {
    #[error(
        "{0} processors: look-up tables allow at most {most}",
        most = TABLE_ENTRIES * GROUP
    )]
    TooMany(usize),
    #[error("processor {pe} is at node {node}, which does not exist")]
    NoNode {
        pe: u32,
        /// The node that was given for it.
        node: u32,
    },
    #[error(
        "processors {0} to {last} share an entry, but are not a block of X=2, Y=2 in this order",
        last = .0 + 3
    )]
    NoBlock(u32),
}

/// Generates the look-up tables of all routers, for logical processors at the nodes `destinations`.
///
/// The route to a processor is the first of these that exists:
/// 1. the shortest path in direction order; if both paths around a ring are equally long, towards
///    plus from an even ordinate, counted from the dateline, and towards minus from an odd one (see
///    `docs/guide/src/deviations.md`);
/// 2. another choice of signs, the shortest first;
/// 3. an initial hop and then one of these;
/// 4. one of these and then a final hop;
/// 5. both.
///
/// Initial hops do not lead into a dateline (T3E sec. 3.1). No packet passes a dateline on VC1 (T3E
/// sec. 3.2), whatever the virtual channel tables in `registers` say: paths on which they would
/// cause this are not used. In rings of more than eight nodes this may affect the longer path
/// around the ring, since it shares an entry with a shorter one. A packet may adapt if none of its
/// minimal paths meets a missing or failed part, and if it can return to deterministic channels at
/// every node.
///
/// Above 544 processors one entry serves four, and must reach all of them.
///
/// # Errors
/// If tables cannot describe the positions of the processors.
///
/// # Panics
/// If the numbers of registers and nodes differ.
pub fn generate(
    shape: &Shape,
    broken: &Broken,
    registers: &[RouteRegisters],
    destinations: &[u32],
) -> Result<Tables, TablesError> {
    assert_eq!(
        registers.len(),
        shape.nodes() as usize,
        "one set of registers per node"
    );
    let size = check(shape, destinations)?;
    let mut generator = Generator {
        shape,
        broken,
        registers,
        lines: Lines::new(shape, broken, registers),
        regions: Regions::new(shape, broken),
        path_search: MinimalPathSearch::new(shape),
    };
    let mut tables = Tables {
        entries: Vec::new(),
        destinations: destinations.to_vec(),
        unreachable: Vec::new(),
    };
    for from in 0..shape.nodes() {
        let mut table = Vec::new();
        if !broken.is_isolated(from) {
            for (index, group) in destinations.chunks(size).enumerate() {
                let entry = generator.serve(from, group);
                for (pe, &to) in (index * size..).zip(group) {
                    if entry.is_none() || broken.is_isolated(to) {
                        tables.unreachable.push((from, pe as u32));
                    }
                }
                table.push(entry.map_or(NO_ROUTE, Entry::bits));
            }
        }
        tables.entries.push(table.into_boxed_slice());
    }
    Ok(tables)
}

/// Checks the destinations, and returns the number of processors that share an entry.
fn check(shape: &Shape, destinations: &[u32]) -> Result<usize, TablesError> {
    for (pe, &node) in (0..).zip(destinations) {
        if node >= shape.nodes() {
            return Err(TablesError::NoNode { pe, node });
        }
    }
    if destinations.len() <= TABLE_ENTRIES {
        return Ok(1);
    }
    if destinations.len() > TABLE_ENTRIES * GROUP {
        return Err(TablesError::TooMany(destinations.len()));
    }
    for (index, group) in destinations.chunks(GROUP).enumerate() {
        let Coordinates([x, y, z]) = shape.coordinates(group[0]);
        let fits = |(n, &node): (u8, &u32)| {
            let coordinates = Coordinates([x & !1 | n & 1, y & !1 | n >> 1, z]);
            shape.coordinates(node) == coordinates
        };
        if !(0..).zip(group).all(fits) {
            return Err(TablesError::NoBlock((index * GROUP) as u32));
        }
    }
    Ok(GROUP)
}

struct Generator<'a> {
    shape: &'a Shape,
    broken: &'a Broken,
    registers: &'a [RouteRegisters],
    lines: Lines<'a>,
    regions: Regions,
    path_search: MinimalPathSearch,
}

/// Targets of packets: nodes that share an entry, or the nodes above them where their final hops
/// begin.
#[derive(Clone, Copy, Default)]
struct Targets {
    nodes: [u32; GROUP],
    count: usize,
    final_hop: bool,
}

impl Targets {
    fn push(&mut self, node: u32) {
        self.nodes[self.count] = node;
        self.count += 1;
    }

    fn nodes(&self) -> &[u32] {
        &self.nodes[..self.count]
    }
}

/// A path to all targets, ordered by preference.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PathChoice {
    /// Sums over all targets.
    path: Path,
    signs: u8,
}

impl Generator<'_> {
    /// The entry for the nodes of `group` that are not isolated; `None` if no entry serves all of
    /// them.
    fn serve(&mut self, from: u32, group: &[u32]) -> Option<Entry> {
        let mut targets = Targets::default();
        for &node in group {
            if !self.broken.is_isolated(node) {
                targets.push(node);
            }
        }
        if targets.count == 0 {
            return None;
        }
        if let Some(way) = self.shortest(from, &targets) {
            return Some(self.entry(from, None, way, &targets));
        }
        if let Some((hop, next, way)) = self.after_initial_hop(from, &targets) {
            return Some(self.entry(next, Some(hop), way, &targets));
        }
        let above = self.above(&targets)?;
        if let Some(way) = self.shortest(from, &above) {
            return Some(self.entry(from, None, way, &above));
        }
        let (hop, next, way) = self.after_initial_hop(from, &above)?;
        Some(self.entry(next, Some(hop), way, &above))
    }

    /// The nodes where final hops to `targets` begin.
    fn above(&self, targets: &Targets) -> Option<Targets> {
        let mut above = Targets {
            final_hop: true,
            ..Targets::default()
        };
        for &node in targets.nodes() {
            if !self.broken.works(node, Direction::PlusZ) {
                return None;
            }
            above.push(self.shape.neighbour(node, Direction::PlusZ)?);
        }
        Some(above)
    }

    /// The shortest path from `from` to all targets without an initial hop.
    fn shortest(&self, from: u32, targets: &Targets) -> Option<PathChoice> {
        if self.shape.partial().is_empty() {
            let signs = self.lines.minimal_signs(from, targets.nodes());
            if let Some(way) = self.way(from, targets, signs) {
                return Some(way);
            }
        }
        let coordinates = self.shape.coordinates(from);
        let mut travelled = 0;
        for &node in targets.nodes() {
            let to = self.shape.coordinates(node);
            for dimension in 0..3 {
                travelled |= u8::from(to.0[dimension] != coordinates.0[dimension]) << dimension;
            }
        }
        (0..8)
            .filter(|signs| signs & !travelled == 0)
            .filter_map(|signs| self.way(from, targets, signs))
            .min()
    }

    /// The path with these signs, if it reaches all targets.
    fn way(&self, from: u32, targets: &Targets, signs: u8) -> Option<PathChoice> {
        let mut sum = Path::default();
        for &node in targets.nodes() {
            let to = self.shape.coordinates(node);
            let path = self.lines.in_direction_order(from, to, signs)?;
            if targets.final_hop && self.through_dateline(from, node, signs) == Some(1) {
                return None;
            }
            sum.hops += path.hops;
            sum.against_rule += path.against_rule;
        }
        Some(PathChoice { path: sum, signs })
    }

    /// The channel on which a packet arrives that has travelled to `to` in -Z, if its final hop
    /// then passes the dateline, where a packet keeps its channel.
    fn through_dateline(&self, from: u32, to: u32, signs: u8) -> Option<u8> {
        let [start, end] = [from, to].map(|node| self.shape.coordinates(node));
        let goes_on = signs & 4 != 0 && start.0[2] != end.0[2];
        if !goes_on || !self.registers[to as usize].is_dateline(Direction::MinusZ) {
            return None;
        }
        let [x, y, _] = end.0;
        let corner = self.shape.node(Coordinates([x, y, start.0[2]]))?;
        let registers = &self.registers[corner as usize];
        Some(registers.entry_vc(Direction::MinusZ, end.0[2]))
    }

    /// The initial hop with the shortest path after it, the node to which it leads, and that path.
    fn after_initial_hop(
        &self,
        from: u32,
        targets: &Targets,
    ) -> Option<(Direction, u32, PathChoice)> {
        let hops = Direction::ALL[..3].iter().filter_map(|&hop| {
            let next = self.shape.neighbour(from, hop)?;
            if !self.broken.works(from, hop) || self.registers[next as usize].is_dateline(hop) {
                return None;
            }
            Some((hop, next, self.shortest(next, targets)?))
        });
        hops.min_by_key(|&(hop, _, way)| (way, hop))
    }

    /// The entry for a path that begins at `start`, after the initial hop.
    fn entry(
        &mut self,
        start: u32,
        initial: Option<Direction>,
        way: PathChoice,
        targets: &Targets,
    ) -> Entry {
        let mut tag = Tag {
            to: self.shape.coordinates(targets.nodes[0]),
            signs: way.signs,
            final_hop: targets.final_hop,
            adaptive: true,
        };
        for &node in targets.nodes() {
            tag.to = self.shape.coordinates(node);
            tag.adaptive &= self.may_adapt(start, node, &tag);
        }
        // If several processors share the entry, the look-up replaces the low bits of `tag.to`.
        Entry { tag, initial }
    }

    fn may_adapt(&mut self, start: u32, to: u32, tag: &Tag) -> bool {
        // Do not adapt: a packet that returns from an adaptive channel on the path in -Z would look
        // up its channel again, in the table of another router.
        if tag.final_hop && self.through_dateline(start, to, tag.signs).is_some() {
            return false;
        }
        if !self.lines.may_come_back(self.shape.coordinates(start), tag) {
            return false;
        }
        self.regions.is_clear(self.shape.coordinates(start), tag)
            || !self.shape.partial().is_empty()
                && self
                    .path_search
                    .is_free(self.shape, self.broken, start, tag)
    }
}

#[cfg(test)]
#[path = "generate_tests.rs"]
mod tests;
