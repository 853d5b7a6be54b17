//! Replacement of tables while the router runs (T3E sec. 9: renaming, isolation).

use std::sync::Arc;

use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::tag::Coordinates;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

use super::core::{RouterCore, RouterRegisters, T3eRouter};
use super::lookup::LookUpTable;
use super::names::Names;
use super::ports::PORTS;
use crate::link::FlitEnd;
use crate::route::{Entry, RouteRegisters};
use phitwire::chip::CoreRerouting;
use phitwire::device::{DeviceError, Routing};
use phitwire::kit::Digest;
use phitwire::link::LinkView;

/// Routing state of a router, for serialisation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterTables {
    /// The physical "who am I", which is never replaced: tables of another router are rejected.
    coordinates: u16,
    /// The logical "who am I".
    processor: u16,
    /// Entries of the look-up table, encoded by [`Entry::bits`].
    entries: Vec<Option<u32>>,
    /// Virtual channel tables, by direction.
    channels: [u8; Direction::ALL.len()],
    /// Directions whose rings have their dateline here, one bit each.
    datelines: u8,
    cut_off: u8,
    /// Processor numbers by the positions where paths end.
    names: Vec<(u16, u16)>,
}

#[derive(Debug, Error)]
enum TablesError {
    #[error("cannot parse the tables: {0}")]
    Form(#[from] serde_json::Error),
    #[error("the tables belong to the router at {theirs}, but this one is at {own}")]
    Coordinates {
        own: Coordinates,
        theirs: Coordinates,
    },
    #[error(
        "the look-up table has {new} entries, but this router has {own}: are the tables for \
         another topology?"
    )]
    Length { own: usize, new: usize },
    #[error("entry {0} of the look-up table has undefined bits set")]
    Entry(usize),
    /// Datelines in unknown directions, or unknown ports.
    #[error("{0} has undefined bits set")]
    Bits(&'static str),
}

impl RouterTables {
    /// The tables of a router with the given configuration.
    pub fn of(registers: &RouterRegisters) -> Self {
        let RouterRegisters {
            route,
            table,
            processor,
            cut_off,
            names,
        } = registers;
        let entry = |entry: &Option<Entry>| entry.map(Entry::bits);
        Self {
            coordinates: route.coordinates.bits(),
            processor: *processor,
            entries: table.entries().iter().map(entry).collect(),
            channels: route.vc_tables,
            datelines: route.datelines,
            cut_off: *cut_off,
            names: names.pairs().collect(),
        }
    }

    /// A hexadecimal digest, equal for equal tables.
    pub fn digest(&self) -> String {
        let mut digest = Digest::new();
        let mut add = |number| digest.add(number);
        for number in [self.coordinates, self.processor] {
            add(number.into());
        }
        add(self.entries.len() as u64);
        for entry in &self.entries {
            add(entry.map_or(u64::MAX, u64::from));
        }
        for byte in self
            .channels
            .into_iter()
            .chain([self.datelines, self.cut_off])
        {
            add(byte.into());
        }
        for (end, number) in &self.names {
            add(u64::from(*end) << 16 | u64::from(*number));
        }
        digest.to_string()
    }

    /// The configuration `own` with the tables applied.
    fn applied(self, own: &RouterRegisters) -> Result<RouterRegisters, TablesError> {
        let coordinates = own.route.coordinates;
        if self.coordinates != coordinates.bits() {
            let theirs = Coordinates::from_bits(self.coordinates);
            return Err(TablesError::Coordinates {
                own: coordinates,
                theirs,
            });
        }
        let (had, new) = (own.table.entries().len(), self.entries.len());
        if had != new {
            return Err(TablesError::Length { own: had, new });
        }
        if self.datelines >> Direction::ALL.len() != 0 {
            return Err(TablesError::Bits("datelines"));
        }
        if self.cut_off >> PORTS != 0 {
            return Err(TablesError::Bits("cut_off"));
        }
        let mut table = own.table.clone();
        for (index, bits) in self.entries.iter().enumerate() {
            let entry = bits
                .map(|bits| Entry::from_bits(bits).ok_or(TablesError::Entry(index)))
                .transpose()?;
            table.set(index, entry);
        }
        Ok(RouterRegisters {
            route: RouteRegisters {
                datelines: self.datelines,
                vc_tables: self.channels,
                ..own.route
            },
            table,
            processor: self.processor,
            cut_off: self.cut_off,
            names: Arc::new(Names::from_pairs(self.names)),
        })
    }
}

pub fn router_registers(chip: &T3eRouter) -> RouterRegisters {
    let crossbar = chip.core().crossbar();
    RouterRegisters {
        route: crossbar.registers,
        table: LookUpTable::clone(&crossbar.table),
        processor: crossbar.processor,
        cut_off: crossbar.cut_off(),
        names: crossbar.names().clone(),
    }
}

/// Whether no packet is inside the router, or between it and its neighbours.
fn is_drained(chip: &T3eRouter) -> bool {
    let rests = |end: &FlitEnd| !end.is_active() || end.unacknowledged_packets() == 0;
    let mut links = chip.links().iter();
    chip.core().crossbar().is_empty() && links.all(|(_, link)| rests(link))
}

impl CoreRerouting for RouterCore {
    fn quiesce(chip: &mut T3eRouter) {
        chip.core_mut().crossbar_mut().quiesce(true);
    }

    fn release(chip: &mut T3eRouter) {
        chip.core_mut().crossbar_mut().quiesce(false);
    }

    fn routing(chip: &T3eRouter) -> Routing {
        Routing {
            quiesced: chip.core().crossbar().is_quiesced(),
            drained: is_drained(chip),
            digest: RouterTables::of(&router_registers(chip)).digest(),
        }
    }

    fn tables(chip: &T3eRouter) -> Value {
        json!(RouterTables::of(&router_registers(chip)))
    }

    fn install(chip: &mut T3eRouter, tables: Value) -> Result<(), DeviceError> {
        let own = router_registers(chip);
        let read = |tables| -> Result<RouterRegisters, TablesError> {
            serde_json::from_value::<RouterTables>(tables)?.applied(&own)
        };
        let RouterRegisters {
            route,
            table,
            processor,
            cut_off,
            names,
        } = read(tables).map_err(|why| DeviceError::Tables(why.into()))?;
        let crossbar = chip.core_mut().crossbar_mut();
        crossbar.registers = route;
        crossbar.table = table;
        crossbar.processor = processor;
        crossbar.rename(names);
        crossbar.set_cut_off(cut_off);
        crossbar.invalidate_decisions();
        Ok(())
    }
}
