//! Simulation options specific to T3E networks.

use schemars::JsonSchema;
use serde::Serialize;

use super::T3e;
use super::packet::Operation;
use crate::pe::E_REGISTERS;
use crate::topology::Channels;
use phitwire::catalogue::{ChoiceError, Kind, OptionSpec, OptionValues, Simulated};
use phitwire::chip::Grain;
use phitwire::sim::direct::Chosen;
use phitwire::sim::direct::config::{ConfigError, Traffic};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct T3eOptions {
    pub operation: Operation,
    /// Whether packets may adapt; `None` leaves it to the network's description.
    pub adaptive: Option<bool>,
    /// How channels are assigned; `None` leaves it to the network's description.
    pub channels: Option<Channels>,
    /// The unit that moves through a router as one item. Packets need encoded links.
    pub grain: Grain,
    /// Number of E-registers of a processor, one for each word of a request that waits for its
    /// response. Default: the number in the description.
    pub e_registers: Option<u32>,
    /// Nanoseconds from the arrival of a request until its response is ready.
    pub memory_ns: u32,
}

/// The options in a form for results; those left to the network are absent.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct About {
    /// The operation of messages.
    operation: Operation,
    /// The unit that moves through the routers.
    grain: Grain,
    /// Routing mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "&'static str")]
    routing: Option<&'static str>,
    /// How virtual channels are assigned.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Channels")]
    channels: Option<Channels>,
    /// E-registers of a processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    e_registers: Option<u32>,
    /// Nanoseconds that a request waits for the memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    memory_ns: Option<u32>,
}

/// The given values, as on the command line; `None` if both are left to the network.
const fn name(adaptive: Option<bool>, channels: Option<Channels>) -> Option<&'static str> {
    Some(match (adaptive, channels) {
        (None, None) => return None,
        (Some(false), None) => "deterministic",
        (Some(true), None) => "adaptive",
        (Some(false), Some(Channels::Optimised)) => "deterministic, optimised",
        (Some(true), Some(Channels::Optimised)) => "adaptive, optimised",
        (Some(false), Some(Channels::TimeOfCrossing)) => "deterministic, time-of-crossing",
        (Some(true), Some(Channels::TimeOfCrossing)) => "adaptive, time-of-crossing",
        (None, Some(Channels::Optimised)) => "optimised",
        (None, Some(Channels::TimeOfCrossing)) => "time-of-crossing",
    })
}

const ROUTINGS: &[&str] = &["deterministic", "adaptive"];
const GRAINS: &[&str] = &["flit", "packet"];
const OPERATIONS: &[&str] = &["put", "get"];
/// Longest memory time, which is shorter than the limit of the drain phase.
const MAX_MEMORY_NS: u64 = 20_000;

impl T3eOptions {
    pub(super) fn about(&self) -> About {
        About {
            operation: self.operation,
            grain: self.grain,
            routing: self
                .adaptive
                .map(|adaptive| ROUTINGS[usize::from(adaptive)]),
            channels: self.channels,
            e_registers: self.e_registers,
            memory_ns: (self.memory_ns > 0).then_some(self.memory_ns),
        }
    }

    /// Number of clocks of 40/3 ns from the arrival of a request until its response is ready,
    /// rounded up.
    pub(super) fn memory_cycles(&self) -> u64 {
        (u64::from(self.memory_ns) * 3).div_ceil(40)
    }

    /// Number of requests that a processor's E-registers can hold. Each word that is read or
    /// written takes one register.
    pub(super) fn requests(&self, traffic: &Traffic) -> Result<u32, ConfigError> {
        let unanswered = match (self.e_registers, self.memory_ns) {
            _ if traffic.request_reply => None,
            (Some(_), _) => Some("e-registers"),
            (None, 1..) => Some("memory-ns"),
            (None, 0) => None,
        };
        if let Some(option) = unanswered {
            return Err(ConfigError::Refused(format!(
                "--{option} applies only to requests that wait for responses: add --request-reply"
            )));
        }
        let bytes = traffic.message_bytes;
        let commands = self.operation.commands(bytes);
        let [asked, answered] = commands.map(|command| command.words() as u32);
        let (registers, words) = (self.e_registers.unwrap_or(E_REGISTERS), asked.max(answered));
        match registers / words {
            0 => Err(ConfigError::Refused(format!(
                "--e-registers {registers}: a message of {bytes} bytes needs {words}"
            ))),
            requests => Ok(requests),
        }
    }
}

impl Simulated for T3e {
    const MACHINE: &'static str = "T3E";
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::new(
            "routing",
            "ROUTING",
            Kind::Words(ROUTINGS),
            "Routing of packets; list both to compare them [default: as in the description]",
        )
        .up_to(2),
        OptionSpec::new(
            "channels",
            "CHANNELS",
            Kind::Words(Channels::NAMES),
            "Assignment of virtual channels; list both to compare them [default: as in the \
             description]",
        )
        .up_to(2),
        OptionSpec::new(
            "operation",
            "OPERATION",
            Kind::Words(OPERATIONS),
            "Operation of each message [default: put]",
        ),
        OptionSpec::new(
            "grain",
            "GRAIN",
            Kind::Words(GRAINS),
            "Unit that moves through a router: flits, as on the chip, or (over encoded links) \
             whole packets, the default of processes [default: flit]",
        ),
        OptionSpec::new(
            "e-registers",
            "N",
            Kind::Number(1, E_REGISTERS as u64),
            "E-registers of a processor, one per word of a request that waits for its response \
             (with --request-reply) [default: as in the description, 512 on the machine]",
        ),
        OptionSpec::new(
            "memory-ns",
            "NS",
            Kind::Number(0, MAX_MEMORY_NS),
            "Memory latency of a request in nanoseconds (with --request-reply) [default: 0]",
        ),
    ];

    fn choose(given: &OptionValues) -> Result<Vec<Chosen<Self>>, ChoiceError> {
        let operation = match given.get::<String>("operation")?.as_deref() {
            Some("get") => Operation::Get,
            _ => Operation::Put,
        };
        let grain = match given.all("grain") {
            [grain] if grain == GRAINS[1] => Grain::Packet,
            _ => Grain::Flit,
        };
        let or_one = |words: Vec<String>| match words.is_empty() {
            true => vec![None],
            false => words.into_iter().map(Some).collect(),
        };
        let e_registers = given.get("e-registers")?;
        let memory_ns = given.get("memory-ns")?.unwrap_or(0);
        let routings = or_one(given.read("routing")?);
        let channels = or_one(given.read("channels")?);
        let mut all = Vec::new();
        for routing in &routings {
            for channels in &channels {
                let options = T3eOptions {
                    operation,
                    adaptive: routing.as_ref().map(|word| word == ROUTINGS[1]),
                    channels: channels.as_deref().and_then(Channels::from_name),
                    grain,
                    e_registers,
                    memory_ns,
                };
                all.push(Chosen {
                    name: name(options.adaptive, options.channels),
                    options,
                });
            }
        }
        Ok(all)
    }
}
