//! The tables of virtual channels of all routers.

use std::collections::BTreeMap;

use crate::machine::t3e::route::{Direction, RouteRegisters, Shape};
use crate::machine::t3e::vc::{self, VcTables};

/// How packets that may choose between VC0 and VC1 do so (paper, section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Channels {
    /// By tables that balance the two.
    #[default]
    Optimised,
    /// On VC0 up to the dateline, "the time-of-crossing assignment".
    TimeOfCrossing,
}

impl Channels {
    /// All of them, by the words of descriptions.
    pub const ALL: [(&'static str, Self); 2] = [
        ("optimised", Self::Optimised),
        ("time-of-crossing", Self::TimeOfCrossing),
    ];

    /// The words.
    pub const NAMES: &'static [&'static str] = &[Self::ALL[0].0, Self::ALL[1].0];

    /// Those of a word.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(word, _)| *word == name);
        found.map(|(_, channels)| *channels)
    }

    /// Its word in descriptions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Optimised => "optimised",
            Self::TimeOfCrossing => "time-of-crossing",
        }
    }
}

/// A ring as its tables depend on it: ordinates, those of the datelines, and whether final hops
/// are taken in it.
type Kind = (Vec<u8>, [u8; 2], bool);

/// Tables of virtual channels, made once for all rings that are alike.
#[derive(Debug, Default)]
pub struct ChannelTables(BTreeMap<Kind, Option<VcTables>>);

/// Ordinates up to which each has an entry of its own.
const ENTRIES: usize = 8;

impl ChannelTables {
    /// Fills in the tables of all routers. Datelines have to be there.
    ///
    /// Destinations of rings of more than eight nodes share entries, so that a way that is longer
    /// than half of the ring may share one with a way that may begin on VC1, and would then cross
    /// the dateline on VC1. There are such ways around what is broken, and in machines with partial
    /// planes: such rings are left at the time of crossing if `detours` says so.
    ///
    /// # Panics
    /// If there are not as many registers as nodes.
    pub fn fill(&mut self, shape: &Shape, registers: &mut [RouteRegisters], detours: bool) {
        assert_eq!(registers.len(), shape.nodes() as usize, "one for each node");
        for dimension in 0..3 {
            for node in 0..shape.nodes() {
                let ring = shape.ring(node, dimension);
                let shares = ring.nodes.len() > ENTRIES;
                if !ring.closed || ring.nodes[0] != node || shares && detours {
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
    }

    /// The tables of a closed ring; `None` if it has not a dateline in each direction.
    fn of(
        &mut self,
        shape: &Shape,
        registers: &[RouteRegisters],
        nodes: &[u32],
        dimension: usize,
    ) -> Option<&VcTables> {
        let ordinate = |&node: &u32| shape.place(node).0[dimension];
        let dateline = |minus| {
            let direction = Direction::of(dimension, minus);
            let has = |&&node: &&u32| registers[node as usize].is_dateline(direction);
            nodes.iter().find(has).map(ordinate)
        };
        let datelines = [dateline(false)?, dateline(true)?];
        let ordinates: Vec<u8> = nodes.iter().map(ordinate).collect();
        // Final hops lead down to partial nodes, and to others behind broken links; only in rings
        // that share entries it makes a difference, and those are not filled where links are broken.
        let height = usize::from(shape.size()[2]);
        let final_hops = dimension == 2 && nodes.len() > height;
        let tables = self.0.entry((ordinates, datelines, final_hops));
        let tables = tables.or_insert_with_key(|(ordinates, datelines, final_hops)| {
            let ring = vc::Ring::new(ordinates, *datelines).ok()?;
            Some(vc::optimised(ring, *final_hops))
        });
        tables.as_ref()
    }
}
