//! The Aries-specific device interface of a router: its registers, and its route tables for tools
//! that replace them.

use std::sync::Arc;

use serde_json::{Value, json};
use thiserror::Error;

use super::node::is_drained;
use super::register_map::register_list;
use super::{Aries, AriesEvent, Core};
use crate::route::registers::{PORTS, RouteTables};
use phitwire::chip::{CoreRegisters, CoreRerouting};
use phitwire::device::{DeviceError, DeviceEvent, RegisterInfo, RegisterName, Routing};
use phitwire::kit::Digest;

impl From<AriesEvent> for DeviceEvent {
    fn from(event: AriesEvent) -> Self {
        let tile = match event {
            AriesEvent::Link { port, event } => return Self::Link { port, event },
            AriesEvent::ForwardProgress { tile, .. }
            | AriesEvent::ForwardProgressRestored { tile, .. }
            | AriesEvent::Unroutable { tile, .. }
            | AriesEvent::NoLivePort { tile, .. } => tile,
        };
        Self::own(Some(tile), event)
    }
}

/// Registers of an Aries have names but no addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("Aries registers are addressed by name only")]
struct ByNameOnly;

impl CoreRegisters for Core {
    fn read(chip: &Aries, register: RegisterName<'_>) -> Result<u64, DeviceError> {
        match register {
            RegisterName::Address(_) => None,
            RegisterName::Name(name) => chip.get(name),
        }
        .ok_or_else(|| DeviceError::UnknownRegister {
            register: register.to_string(),
            hint: " (Aries registers are addressed by name only)",
        })
    }

    fn write(chip: &mut Aries, register: RegisterName<'_>, value: u64) -> Result<(), DeviceError> {
        match register {
            RegisterName::Address(_) => Err(ByNameOnly.into()),
            RegisterName::Name(name) => chip.set(name, value).map_err(Into::into),
        }
        .map_err(|why| DeviceError::RegisterRefused {
            register: register.to_string(),
            why,
        })
    }

    fn list(chip: &Aries) -> Vec<RegisterInfo> {
        register_list(chip.core().registers())
    }
}

#[derive(Debug, Error)]
enum TablesError {
    /// The value does not have the form of route tables.
    #[error("cannot parse the tables: {0}")]
    Form(#[from] serde_json::Error),
    #[error(
        "{name} has {new} entries, but this router has {own}: are the tables for another topology?"
    )]
    Length {
        name: &'static str,
        own: usize,
        new: usize,
    },
    #[error("{name}, entry {index}: a router has only {PORTS} ports")]
    Port { name: &'static str, index: usize },
}

impl RouteTables {
    /// Checks that `new` can replace these tables. Tables of another machine are rejected as a
    /// whole.
    fn check(&self, new: &Self) -> Result<(), TablesError> {
        for ((name, own), (_, new)) in self.by_name().into_iter().zip(new.by_name()) {
            if own.len() != new.len() {
                let (own, new) = (own.len(), new.len());
                return Err(TablesError::Length { name, own, new });
            }
            if let Some(index) = new.iter().position(|ports| ports >> PORTS != 0) {
                return Err(TablesError::Port { name, index });
            }
        }
        Ok(())
    }
}

/// A hexadecimal digest of a router's route tables, equal for equal tables.
pub fn digest(tables: &[Arc<RouteTables>; 4]) -> String {
    let mut digest = Digest::new();
    for (_, table) in tables.iter().flat_map(|of| of.by_name()) {
        digest.add(table.len() as u64);
        table.iter().for_each(|&entry| digest.add(entry));
    }
    digest.to_string()
}

impl CoreRerouting for Core {
    fn quiesce(chip: &mut Aries) {
        chip.core_mut().quiesce();
    }

    fn release(chip: &mut Aries) {
        chip.core_mut().release();
    }

    fn routing(chip: &Aries) -> Routing {
        Routing {
            quiesced: chip.core().is_quiesced(),
            drained: is_drained(chip),
            digest: digest(&chip.core().registers().tables),
        }
    }

    fn tables(chip: &Aries) -> Value {
        json!(chip.core().registers().tables.each_ref().map(|of| &**of))
    }

    fn install(chip: &mut Aries, tables: Value) -> Result<(), DeviceError> {
        let checked = || {
            let new: [RouteTables; 4] = serde_json::from_value(tables)?;
            let own = &chip.core().registers().tables;
            own.iter()
                .zip(&new)
                .try_for_each(|(own, new)| own.check(new))?;
            Ok(new.map(Arc::new))
        };
        let tables = checked().map_err(|why: TablesError| DeviceError::Tables(why.into()))?;
        let registers = chip.core().registers().clone();
        chip.core_mut().install(super::registers::AriesRegisters {
            tables,
            ..registers
        });
        Ok(())
    }
}
