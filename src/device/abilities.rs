//! What can be done to devices, and what only some of them are able to do.

use core::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DeviceError, RegisterError};
use crate::link::ErrorInjection;
use crate::link::impair::Probability;
use crate::nic::{
    Abilities, BarrierReport, BarrierSpec, CollectiveReport, CollectiveSpec, TrafficReport,
    TrafficSpec,
};
use crate::time::{Duration, Time};

/// What can be broken or mended at a link. No machine's links can suffer all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkFault {
    /// Damages the next packet before its check.
    SoftError,
    /// Takes the link down until told otherwise.
    Down,
    /// Brings it back.
    Up,
    /// Sends everything unacknowledged again.
    ForceRetry,
    /// Sends the next unit that has a CRC with a bad one.
    BadCrc,
    /// Initialises the lanes again.
    Reinit,
    /// Loses the receive clock for that long.
    LoseClock(Duration),
    /// Makes bit errors from now on.
    Inject(ErrorInjection),
    /// Flips each bit of a lane of the sending direction with this probability from now on, above
    /// what the link repeats.
    LaneNoise {
        /// The lane.
        lane: u8,
        /// Of each of its bits.
        per_bit: Probability,
    },
}

/// What a register goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterName<'a> {
    /// Its address in the chip.
    Address(u16),
    /// Its name.
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

/// A register, or several that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterInfo {
    /// Its name. `{0..3}` stands for each of these numbers, `{a,b}` for each of these words.
    pub name: String,
    /// Its address, or that of the first, where registers have addresses.
    pub address: Option<u16>,
    /// Whether it can be written.
    pub writable: bool,
    /// Bits that it holds.
    pub bits: u8,
    /// What it is, in a line.
    pub about: String,
}

impl RegisterInfo {
    /// One without an address.
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

    /// The same at an address.
    #[must_use]
    pub fn at(self, address: u16) -> Self {
        Self {
            address: Some(address),
            ..self
        }
    }

    /// All names that it stands for.
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
    /// [`DeviceError::RegisterRefused`]: there is no such register, or it does not take the value.
    fn write(&mut self, register: RegisterName<'_>, value: u64) -> Result<(), DeviceError>;

    /// All of them; every name of the list can be read.
    fn list(&self) -> Vec<RegisterInfo> {
        Vec::new()
    }
}

/// Registers of other routers, by packets that need nothing of what may be jammed or not configured
/// there. Nobody repeats such a packet: who asks waits for a while and asks again.
pub trait RemoteRegisters {
    /// Reads a register of the router at the end of `way`, as the machine writes it, or writes it.
    /// Answers the number of the question.
    ///
    /// # Errors
    /// [`DeviceError::UnknownRegister`] and [`DeviceError::Unreachable`].
    fn ask(
        &mut self,
        way: &[i8],
        register: RegisterName<'_>,
        write: Option<u64>,
    ) -> Result<u32, DeviceError>;

    /// The answer to a question, once: the value that was read or written, or why not. `None` while
    /// it has not come.
    fn answer(&mut self, question: u32) -> Option<Result<u64, RegisterError>>;
}

/// How the routing of a router stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routing {
    /// It takes no packets from its network interfaces.
    pub quiesced: bool,
    /// No packet is on its way through it.
    pub drained: bool,
    /// A digest of its route tables, in hexadecimal: equal tables have equal ones.
    pub digest: String,
}

/// Route tables that can be replaced while a router runs.
pub trait Rerouting {
    /// Takes no more packets from network interfaces.
    fn quiesce(&mut self);

    /// Takes packets from network interfaces again.
    fn release(&mut self);

    /// Whether it is quiesced and drained, and the digest of its tables.
    fn routing(&self) -> Routing;

    /// The route tables, as the machine writes them.
    fn tables(&self) -> Value;

    /// Replaces the route tables.
    ///
    /// # Errors
    /// [`DeviceError::Tables`] when they are not of its machine; then it keeps its own.
    fn install(&mut self, tables: Value) -> Result<(), DeviceError>;
}

/// Verified traffic that a network interface makes and takes in.
pub trait TrafficRuns {
    /// By which number it takes part, if it has one.
    fn number(&self) -> Option<u16>;

    /// Takes part by another number from now on.
    ///
    /// # Errors
    /// [`DeviceError::FixedNumber`] where numbers never change.
    fn renumber(&mut self, number: u16) -> Result<(), DeviceError> {
        let _ = number;
        Err(DeviceError::FixedNumber)
    }

    /// What its messages can be.
    fn abilities(&self) -> Abilities;

    /// Starts a run.
    ///
    /// # Errors
    /// [`DeviceError::Traffic`].
    fn start(&mut self, now: Time, spec: TrafficSpec) -> Result<(), DeviceError>;

    /// What is known here of a run (the latest if none is given).
    fn report(&self, run: Option<u64>) -> Option<TrafficReport>;

    /// Ends the issuing of messages.
    fn stop(&mut self);
}

/// Collective operations that a network interface takes part in.
pub trait CollectiveRuns {
    /// Starts a run.
    ///
    /// # Errors
    /// [`DeviceError::Collectives`].
    fn start(&mut self, now: Time, spec: CollectiveSpec) -> Result<(), DeviceError>;

    /// What is known here of the latest run.
    fn report(&self) -> Option<CollectiveReport>;

    /// Ends the run; asked again, at once.
    fn stop(&mut self, now: Time);
}

/// Barriers and eurekas that a network interface takes part in by units of its hardware, several at
/// once. Routers have to be configured for it before.
pub trait BarrierRuns {
    /// Units, numbered from 0.
    fn units(&self) -> u8;

    /// Makes a unit ready: it takes part from now on, with nothing of what was before.
    ///
    /// # Errors
    /// [`DeviceError::Barriers`].
    fn prepare(&mut self, unit: u8) -> Result<(), DeviceError>;

    /// Starts a run at a unit that is ready.
    ///
    /// # Errors
    /// [`DeviceError::Barriers`].
    fn start(&mut self, now: Time, spec: BarrierSpec) -> Result<(), DeviceError>;

    /// What is known here of the latest run of a unit.
    fn report(&self, unit: u8) -> Option<BarrierReport>;

    /// Ends the run of a unit at all participants, after the same barrier; asked again, at once and
    /// here alone.
    fn stop(&mut self, unit: u8);
}
