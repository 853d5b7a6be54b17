//! Optional capabilities of devices.

use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DeviceError, RegisterError};
use crate::nic::{
    Abilities, BarrierReport, BarrierSpec, CollectiveReport, CollectiveSpec, TrafficReport,
    TrafficSpec,
};
use crate::time::Time;

/// The address or the name of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterName<'a> {
    Address(u16),
    Name(&'a str),
}

impl fmt::Display for RegisterName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "0x{address:04x}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// A register, or several similar ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterInfo {
    /// Name; `{0..3}` stands for each of these numbers, `{a,b}` for each of these words.
    pub name: String,
    /// Address, or that of the first register, where registers have addresses.
    pub address: Option<u16>,
    pub writable: bool,
    /// Width in bits.
    pub bits: u8,
    /// One-line description.
    pub about: String,
}

impl RegisterInfo {
    /// A register without an address.
    pub fn new(
        name: impl Into<String>,
        writable: bool,
        bits: u8,
        about: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            address: None,
            writable,
            bits,
            about: about.into(),
        }
    }

    #[must_use]
    pub fn at(self, address: u16) -> Self {
        Self {
            address: Some(address),
            ..self
        }
    }

    /// All names that the pattern stands for.
    pub fn names(&self) -> Vec<String> {
        let mut names = vec![String::new()];
        let mut rest = &*self.name;
        while let Some((before, (among, after))) = rest
            .split_once('{')
            .and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
        {
            let words: Vec<String> = match among.split_once("..") {
                Some((first, last)) => {
                    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
                    (number(first)..=number(last))
                        .map(|n| n.to_string())
                        .collect()
                }
                None => among.split(',').map(str::to_owned).collect(),
            };
            let with = |name: &String| {
                let name = format!("{name}{before}");
                words
                    .iter()
                    .map(move |word| format!("{name}{word}"))
                    .collect::<Vec<_>>()
            };
            names = names.iter().flat_map(with).collect();
            rest = after;
        }
        names.iter_mut().for_each(|name| name.push_str(rest));
        names
    }
}

/// Registers that can be read and written from outside.
pub trait Registers {
    /// Reads a register.
    ///
    /// # Errors
    /// [`DeviceError::UnknownRegister`].
    fn read(&self, register: RegisterName<'_>) -> Result<u64, DeviceError>;

    /// Writes a register.
    ///
    /// # Errors
    /// [`DeviceError::RegisterRefused`]: unknown register, or invalid value.
    fn write(&mut self, register: RegisterName<'_>, value: u64) -> Result<(), DeviceError>;

    /// All registers; every name of the list can be read.
    fn list(&self) -> Vec<RegisterInfo> {
        Vec::new()
    }
}

/// Access to registers of other routers by packets that jammed or unconfigured routers still pass.
/// Lost packets are not resent: callers repeat the request.
pub trait RemoteRegisters {
    /// Reads the register of the router at the end of `way` (in the machine's notation), or writes
    /// it. Returns the number of the request.
    ///
    /// # Errors
    /// [`DeviceError::UnknownRegister`] and [`DeviceError::Unreachable`].
    fn ask(
        &mut self,
        way: &[i8],
        register: RegisterName<'_>,
        write: Option<u64>,
    ) -> Result<u32, DeviceError>;

    /// Takes the reply to a request: the value read or written, or the error. `None` until it
    /// arrives.
    fn answer(&mut self, question: u32) -> Option<Result<u64, RegisterError>>;
}

/// Routing state of a router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Routing {
    /// The router takes no packets from its NICs.
    pub quiesced: bool,
    /// No packet is inside the router.
    pub drained: bool,
    /// Digest of the router's route tables, in hexadecimal; equal for equal tables.
    pub digest: String,
}

/// Route tables that can be replaced while a router runs.
pub trait Rerouting {
    /// Stops taking packets from NICs.
    fn quiesce(&mut self);

    /// Takes packets from NICs again.
    fn release(&mut self);

    /// Whether the router is quiesced and drained, and the digest of its tables.
    fn routing(&self) -> Routing;

    /// The route tables, in the machine's notation.
    fn tables(&self) -> Value;

    /// Replaces the route tables.
    ///
    /// # Errors
    /// [`DeviceError::Tables`] if they are not of this machine; the old tables then stay.
    fn install(&mut self, tables: Value) -> Result<(), DeviceError>;
}

/// Verified traffic that a NIC (network interface) sends and receives.
pub trait TrafficRuns {
    /// Number that identifies the NIC in traffic runs, if it has one.
    fn number(&self) -> Option<u16>;

    /// Changes the number from now on.
    ///
    /// # Errors
    /// [`DeviceError::FixedNumber`] where numbers never change.
    fn renumber(&mut self, number: u16) -> Result<(), DeviceError> {
        let _ = number;
        Err(DeviceError::FixedNumber)
    }

    /// Kinds of messages that the NIC supports.
    fn abilities(&self) -> Abilities;

    /// Starts a run.
    ///
    /// # Errors
    /// [`DeviceError::Traffic`].
    fn start(&mut self, now: Time, spec: TrafficSpec) -> Result<(), DeviceError>;

    /// This NIC's report on a run, or on the latest if `run` is `None`.
    fn report(&self, run: Option<u64>) -> Option<TrafficReport>;

    /// Stops issuing messages.
    fn stop(&mut self);
}

/// Collective operations that a NIC takes part in.
pub trait CollectiveRuns {
    /// Starts a run.
    ///
    /// # Errors
    /// [`DeviceError::Collectives`].
    fn start(&mut self, now: Time, spec: CollectiveSpec) -> Result<(), DeviceError>;

    /// This NIC's report on the latest run.
    fn report(&self) -> Option<CollectiveReport>;

    /// Ends the run; a second call ends it at once.
    fn stop(&mut self, now: Time);
}

/// Barriers and eurekas that a NIC takes part in with its hardware units, several at once. Routers
/// must be configured for them first.
pub trait BarrierRuns {
    /// Number of units; the first is unit 0.
    fn units(&self) -> u8;

    /// Resets a unit and makes it take part from now on.
    ///
    /// # Errors
    /// [`DeviceError::Barriers`].
    fn prepare(&mut self, unit: u8) -> Result<(), DeviceError>;

    /// Starts a run on a prepared unit.
    ///
    /// # Errors
    /// [`DeviceError::Barriers`].
    fn start(&mut self, now: Time, spec: BarrierSpec) -> Result<(), DeviceError>;

    /// This NIC's report on the latest run of a unit.
    fn report(&self, unit: u8) -> Option<BarrierReport>;

    /// Ends a unit's run at all participants, after the same barrier. A second call ends it at
    /// once, but only here.
    fn stop(&mut self, unit: u8);
}
