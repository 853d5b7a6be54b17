//! The virtual channel tables of all routers.

use std::collections::BTreeMap;

use phitwire_framing::t3e::direction::Direction;
use schemars::JsonSchema;
use serde::Serialize;

use crate::route::{Entry, RouteRegisters, Shape, Tables};
use crate::vc::{self, Tries, VcTables};

/// How packets that may choose between VC0 and VC1 do so (T3E sec. 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Channels {
    #[default]
    Optimised,
    /// VC0 up to the dateline, "the time-of-crossing assignment".
    TimeOfCrossing,
}

impl Channels {
    /// All variants, with their names in descriptions.
    pub const ALL: [(&'static str, Self); 2] = [
        ("optimised", Self::Optimised),
        ("time-of-crossing", Self::TimeOfCrossing),
    ];

    pub const NAMES: &'static [&'static str] = &[Self::ALL[0].0, Self::ALL[1].0];

    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(word, _)| *word == name);
        found.map(|(_, channels)| *channels)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Optimised => "optimised",
            Self::TimeOfCrossing => "time-of-crossing",
        }
    }
}

/// Properties of a ring that determine its tables: ordinates, ordinates of the datelines, and
/// whether final hops use it.
type Kind = (Vec<u8>, [u8; 2], bool);

/// Virtual channel tables, computed once for all equivalent rings.
#[derive(Debug, Default)]
pub struct ChannelTables {
    found: BTreeMap<Kind, Option<VcTables>>,
    tries: Tries,
}

impl ChannelTables {
    /// Tables that are searched with `tries`.
    pub fn by(tries: Tries) -> Self {
        Self {
            tries,
            ..Self::default()
        }
    }

    /// Fills in the tables of all routers, for packets routed by `tables`. Datelines must be set.
    ///
    /// The optimised tables assume minimal paths. Other paths exist around defects, in machines
    /// with partial planes, and where four processors share an entry, one of which may be beyond
    /// the half of the ring that has the others. If such a path would cross the dateline on VC1,
    /// its entries and all that share them are reset to VC0.
    ///
    /// # Panics
    /// If the numbers of registers and nodes differ.
    pub fn fill(&mut self, shape: &Shape, registers: &mut [RouteRegisters], tables: &Tables) {
        assert_eq!(
            registers.len(),
            shape.nodes() as usize,
            "one set of registers per node"
        );
        for dimension in 0..3 {
            for node in 0..shape.nodes() {
                let ring = shape.ring(node, dimension);
                if !ring.closed || ring.nodes[0] != node {
                    continue;
                }
                if let Some(tables) = self.of(shape, registers, &ring.nodes, dimension) {
                    for (&node, (_, entries)) in ring.nodes.iter().zip(tables.routers()) {
                        for (minus, entries) in [false, true].into_iter().zip(entries) {
                            let direction = Direction::of(dimension, minus);
                            registers[node as usize].vc_tables[direction.index()] = entries;
                        }
                    }
                }
            }
        }
        constrain(shape, registers, tables);
    }

    /// The tables of a closed ring; `None` unless it has a dateline in each direction.
    fn of(
        &mut self,
        shape: &Shape,
        registers: &[RouteRegisters],
        nodes: &[u32],
        dimension: usize,
    ) -> Option<&VcTables> {
        let ordinate = |&node: &u32| shape.coordinates(node).0[dimension];
        let dateline = |minus| {
            let direction = Direction::of(dimension, minus);
            let has = |&&node: &&u32| registers[node as usize].is_dateline(direction);
            nodes.iter().find(has).map(ordinate)
        };
        let datelines = [dateline(false)?, dateline(true)?];
        let ordinates: Vec<u8> = nodes.iter().map(ordinate).collect();
        // Final hops lead down to partial nodes. To other nodes they are rare, and are constrained.
        let final_hops = dimension == 2 && nodes.len() > usize::from(shape.size()[2]);
        let tables = self.found.entry((ordinates, datelines, final_hops));
        let tables = tables.or_insert_with_key(|(ordinates, datelines, final_hops)| {
            let ring = vc::Ring::new(ordinates, *datelines).ok()?;
            Some(vc::searched(ring, *final_hops, self.tries))
        });
        tables.as_ref()
    }
}

/// Resets to VC0 the entries of all rings by which packets routed by `tables` would cross a
/// dateline on VC1, and all entries that share them.
pub(super) fn constrain(shape: &Shape, registers: &mut [RouteRegisters], tables: &Tables) {
    let travelled = Travelled::of(shape, tables);
    for dimension in 0..3 {
        for node in 0..shape.nodes() {
            let ring = shape.ring(node, dimension);
            if !ring.closed || ring.nodes[0] != node {
                continue;
            }
            for minus in [false, true] {
                let direction = Direction::of(dimension, minus);
                travelled.constrain(shape, registers, &ring.nodes, direction);
            }
        }
    }
}

/// Maximum number of ordinates, which have five bits in Y.
const ORDINATES: usize = 32;

/// Paths of packets within rings, by direction.
struct Travelled {
    /// By direction and ordinate of the first node: the ordinates of the last node, one bit each.
    ways: [[u32; ORDINATES]; 6],
    /// The same for packets that continue in -Z by a final hop, by ordinate of the first node.
    further: [u32; ORDINATES],
    /// Z ordinates at which final hops follow another direction, one bit each.
    final_hops: u32,
}

impl Travelled {
    fn of(shape: &Shape, tables: &Tables) -> Self {
        let mut travelled = Self {
            ways: [[0; ORDINATES]; 6],
            further: [0; ORDINATES],
            final_hops: 0,
        };
        for (from, _, Entry { tag, initial }) in tables.routes() {
            let start = initial.and_then(|hop| shape.neighbour(from, hop));
            let start = shape.coordinates(start.unwrap_or(from));
            for direction in tag.unsatisfied(start).iter() {
                let dimension = direction.dimension();
                let first = usize::from(start.0[dimension]);
                let last = 1 << tag.to.0[dimension];
                travelled.ways[direction.index()][first] |= last;
                if tag.final_hop && direction == Direction::MinusZ {
                    travelled.further[first] |= last;
                }
            }
            if tag.final_hop {
                travelled.final_hops |= 1 << tag.to.0[2];
            }
        }
        travelled.enter_transit_links(shape);
        travelled
    }

    /// An adaptive packet may enter a direction again at every ordinate of its path, even in a
    /// column that lacks the ordinate where it began.
    fn enter_transit_links(&mut self, shape: &Shape) {
        for direction in Direction::ALL {
            let dimension = direction.dimension();
            let ordinates = (0..shape.nodes()).map(|node| shape.coordinates(node).0[dimension]);
            let count = ordinates.max().map_or(0, |last| usize::from(last) + 1);
            let step = if direction.is_minus() { count - 1 } else { 1 };
            let ways = &mut self.ways[direction.index()];
            let begun = *ways;
            // A column without a partial plane skips the ordinates of that plane, so an adaptive
            // packet may enter it at any ordinate.
            if dimension == 2 && !shape.partial().is_empty() {
                let planes = u32::MAX << shape.size()[2];
                let to_planes = begun.iter().fold(0, |all, lasts| all | lasts & planes);
                ways.iter_mut().for_each(|lasts| *lasts |= to_planes);
            }
            for (first, lasts) in begun.into_iter().enumerate().take(count) {
                let mut left = lasts;
                let mut here = first;
                while left != 0 {
                    ways[here] |= left;
                    here = (here + step) % count;
                    left &= !(1 << here);
                }
            }
        }
    }

    /// Resets to VC0 the entries of a ring by which packets would cross the dateline on VC1.
    fn constrain(
        &self,
        shape: &Shape,
        registers: &mut [RouteRegisters],
        nodes: &[u32],
        direction: Direction,
    ) {
        let count = nodes.len();
        let is_dateline = |&node: &u32| registers[node as usize].is_dateline(direction);
        let Some(dateline) = nodes.iter().position(is_dateline) else {
            return;
        };
        // Nodes in the order of travel, from the dateline on.
        let way: Vec<u32> = (0..count)
            .map(|after| match direction.is_minus() {
                false => nodes[(dateline + after) % count],
                true => nodes[(dateline + count - after) % count],
            })
            .collect();
        let ordinate = |node: u32| shape.coordinates(node).0[direction.dimension()];
        let table = direction.index();
        for (first, &from) in way.iter().enumerate() {
            let start = usize::from(ordinate(from));
            for (last, &to) in way[..first].iter().enumerate() {
                let bit = 1 << ordinate(to);
                let is_further = direction == Direction::MinusZ && self.further[start] & bit != 0;
                let crosses = last > 0 || is_further;
                if self.ways[table][start] & bit != 0 && crosses {
                    registers[from as usize].vc_tables[table] &= !(1 << (ordinate(to) & 7));
                }
            }
            if direction == Direction::MinusZ && self.final_hops >> start & 1 != 0 {
                registers[from as usize].vc_tables[table] &= !(1 << (start & 7));
            }
        }
    }
}
