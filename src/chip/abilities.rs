//! Optional capabilities of chips. A machine implements them for its core; commands reach them
//! through the [`Chip`].

use serde_json::Value;

use super::chip_core::ChipCore;
use super::node::Chip;
use crate::device::{
    DeviceError, RegisterError, RegisterInfo, RegisterName, Registers, RemoteRegisters, Rerouting,
    Routing,
};
use crate::trace::{Outlook, Outlooks, Question};

/// [`Registers`] of a core's chips.
pub trait CoreRegisters: ChipCore {
    /// See [`Registers::read`].
    ///
    /// # Errors
    /// The register does not exist or cannot be read.
    fn read(chip: &Chip<Self>, register: RegisterName<'_>) -> Result<u64, DeviceError>;
    /// See [`Registers::write`].
    ///
    /// # Errors
    /// The register does not exist or does not accept the value.
    fn write(
        chip: &mut Chip<Self>,
        register: RegisterName<'_>,
        value: u64,
    ) -> Result<(), DeviceError>;
    fn list(chip: &Chip<Self>) -> Vec<RegisterInfo>;
}

impl<C: CoreRegisters> Registers for Chip<C> {
    fn read(&self, register: RegisterName<'_>) -> Result<u64, DeviceError> {
        C::read(self, register)
    }

    fn write(&mut self, register: RegisterName<'_>, value: u64) -> Result<(), DeviceError> {
        C::write(self, register, value)
    }

    fn list(&self) -> Vec<RegisterInfo> {
        C::list(self)
    }
}

/// [`RemoteRegisters`] of a core's chips.
pub trait CoreRemoteRegisters: ChipCore {
    /// See [`RemoteRegisters::ask`].
    ///
    /// # Errors
    /// The path leads nowhere, or the register does not exist.
    fn ask(
        chip: &mut Chip<Self>,
        path: &[i8],
        register: RegisterName<'_>,
        write: Option<u64>,
    ) -> Result<u32, DeviceError>;
    fn answer(chip: &mut Chip<Self>, question: u32) -> Option<Result<u64, RegisterError>>;
}

impl<C: CoreRemoteRegisters> RemoteRegisters for Chip<C> {
    fn ask(
        &mut self,
        path: &[i8],
        register: RegisterName<'_>,
        write: Option<u64>,
    ) -> Result<u32, DeviceError> {
        C::ask(self, path, register, write)
    }

    fn answer(&mut self, question: u32) -> Option<Result<u64, RegisterError>> {
        C::answer(self, question)
    }
}

/// [`Rerouting`] of a core's chips.
pub trait CoreRerouting: ChipCore {
    fn quiesce(chip: &mut Chip<Self>);
    fn release(chip: &mut Chip<Self>);
    fn routing(chip: &Chip<Self>) -> Routing;
    fn tables(chip: &Chip<Self>) -> Value;
    /// See [`Rerouting::install`].
    ///
    /// # Errors
    /// The tables do not fit this router; it keeps its own.
    fn install(chip: &mut Chip<Self>, tables: Value) -> Result<(), DeviceError>;
}

impl<C: CoreRerouting> Rerouting for Chip<C> {
    fn quiesce(&mut self) {
        C::quiesce(self);
    }

    fn release(&mut self) {
        C::release(self);
    }

    fn routing(&self) -> Routing {
        C::routing(self)
    }

    fn tables(&self) -> Value {
        C::tables(self)
    }

    fn install(&mut self, tables: Value) -> Result<(), DeviceError> {
        C::install(self, tables)
    }
}

/// [`Outlooks`] of a core's chips.
pub trait CoreOutlooks: ChipCore {
    fn outlook(chip: &Chip<Self>, question: &Question) -> Outlook;
}

impl<C: CoreOutlooks> Outlooks for Chip<C> {
    fn outlook(&self, question: &Question) -> Outlook {
        <C as CoreOutlooks>::outlook(self, question)
    }
}
