//! Registers and look-up tables of all routers, derived from a description.

use core::fmt;
use std::sync::{Arc, OnceLock};

use phitwire_framing::t3e::direction::Direction;

use super::channels::{self, ChannelTables, Channels};
use super::model::Torus;
use crate::route::{
    Broken, Entry, GROUP, NO_ROUTE, RouteRegisters, Shape, TABLE_ENTRIES, Tables, TablesError,
    generate,
};
use crate::router::{LookUpTable, Names, RouterRegisters};

/// Routing state of all routers of a torus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes {
    pub broken: Broken,
    pub registers: Vec<RouteRegisters>,
    /// Routes from every node to every processor.
    pub tables: Tables,
    /// Processor numbers by the positions where paths end.
    pub names: Arc<Names>,
}

/// Routes, computed on first use. They are derived from the rest of the torus, so comparisons
/// ignore them.
#[derive(Clone, Default)]
pub(super) struct Computed(OnceLock<Result<Routes, TablesError>>);

impl PartialEq for Computed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Computed {}

impl fmt::Debug for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Computed")
    }
}

/// The nodes of the logical processors, without the last `spares` nodes. Each processor is at the
/// node with its number, but isolated nodes are replaced by spares, lowest first, while there are
/// any ("renaming", T3E sec. 9). Where four processors share an entry, four nodes are replaced by
/// four.
pub(super) fn destinations(shape: &Shape, broken: &Broken, spares: u32) -> Vec<u32> {
    let processors = shape.nodes().saturating_sub(spares);
    let in_group = match processors as usize > TABLE_ENTRIES {
        true => GROUP as u32,
        false => 1,
    };
    let is_dead = |first: u32| {
        let mut nodes = first..(first + in_group).min(shape.nodes());
        nodes.any(|node| broken.is_isolated(node))
    };
    let firsts = |from: u32, to: u32| (from..to).step_by(in_group as usize);
    let mut spare = firsts(processors.next_multiple_of(in_group), shape.nodes())
        .filter(|&first| first + in_group <= shape.nodes() && !is_dead(first));
    let mut nodes = Vec::with_capacity(processors as usize);
    for first in firsts(0, processors) {
        let replaced = match is_dead(first) {
            true => spare.next(),
            false => None,
        };
        let group = (first + in_group).min(processors) - first;
        let first = replaced.unwrap_or(first);
        nodes.extend(first..first + group);
    }
    nodes
}

impl Torus {
    /// Registers and look-up tables of all routers, computed once.
    ///
    /// # Errors
    /// If tables cannot describe the positions of the processors.
    pub fn routes(&self) -> Result<&Routes, TablesError> {
        let computed = self.computed.0.get_or_init(|| self.compute());
        computed.as_ref().map_err(Clone::clone)
    }

    /// Routes with other defects, for faults found while the machine runs. Spares are not assigned
    /// here: `destinations` are the nodes of the logical processors.
    ///
    /// # Errors
    /// If tables cannot describe the positions of the processors.
    pub fn routes_around(
        &self,
        broken: Broken,
        destinations: &[u32],
    ) -> Result<Routes, TablesError> {
        let shape = &self.shape;
        let mut registers: Vec<RouteRegisters> = (0..shape.nodes())
            .map(|node| shape.registers(node))
            .collect();
        // The first tables use channels that permit all paths; then channels are chosen to suit
        // those paths.
        let tables = generate(shape, &broken, &registers, destinations)?;
        if self.channels == Channels::Optimised {
            ChannelTables::default().fill(shape, &mut registers, &tables);
        }
        self.vc_tables.fill(shape, &mut registers);
        // Tables of the description are used unchanged and checked with it; paths other than the
        // description's may need other tables.
        let is_described = broken == self.broken() && destinations == self.destinations;
        if !self.vc_tables.is_empty() && !is_described {
            channels::constrain(shape, &mut registers, &tables);
        }
        let above = |node| shape.neighbour(node, Direction::PlusZ);
        let ends = destinations.iter().map(|&node| {
            (
                shape.coordinates(node),
                above(node).map(|above| shape.coordinates(above)),
            )
        });
        Ok(Routes {
            names: Arc::new(Names::new(ends)),
            broken,
            registers,
            tables,
        })
    }

    fn compute(&self) -> Result<Routes, TablesError> {
        self.routes_around(self.broken(), &self.destinations)
    }

    /// The registers of a router.
    ///
    /// # Errors
    /// If there are no tables.
    ///
    /// # Panics
    /// If the router does not exist.
    pub fn registers_of(&self, router: u32) -> Result<RouterRegisters, TablesError> {
        Ok(self.registers_by(self.routes()?, router, self.own_number(router)))
    }

    /// The registers of a router for other routes, with the given processor number.
    pub(super) fn registers_by(
        &self,
        routes: &Routes,
        router: u32,
        processor: u16,
    ) -> RouterRegisters {
        RouterRegisters {
            route: routes.registers[router as usize],
            table: self.look_up_table(routes.tables.of(router)),
            processor,
            cut_off: 0,
            names: routes.names.clone(),
        }
    }

    /// The registers of all routers.
    ///
    /// # Errors
    /// If there are no tables.
    pub fn registers(&self) -> Result<Vec<RouterRegisters>, TablesError> {
        let routers = 0..self.shape.nodes();
        routers.map(|router| self.registers_of(router)).collect()
    }

    /// Converts entries of [`Tables`] to a look-up table.
    fn look_up_table(&self, entries: &[u32]) -> LookUpTable {
        let mut table = LookUpTable::new(self.destinations.len());
        for (index, &bits) in entries.iter().enumerate() {
            let mut entry = match bits {
                NO_ROUTE => None,
                bits => Entry::from_bits(bits),
            };
            if let Some(entry) = &mut entry {
                entry.tag.adaptive &= self.adaptive;
            }
            table.set(index, entry);
        }
        table
    }
}
