//! Errors of requests to a device.

use core::error::Error as StdError;

use thiserror::Error;

use super::Kind;
use crate::nic::{BarrierSpecError, CollectiveSpecError, ProbeError, SpecError};
use crate::node::PortId;

/// Why a device refused a request.
#[derive(Debug, Error)]
pub enum DeviceError {
    #[error("a {kind} has no register {register}")]
    NoRegisters { kind: Kind, register: String },
    /// The device lacks a [`Capability`](super::Capability), whose `LACK` is the message.
    #[error("{}", .1.replace("KIND", .0.name()))]
    Lacks(Kind, &'static str),
    #[error(transparent)]
    Probe(#[from] ProbeError),
    #[error("{register}: no maintenance packet can take this path")]
    Unreachable { register: String },
    #[error("port {0} has no link")]
    NoLink(PortId),
    #[error("port {port}: {link} links do not support this fault")]
    NoSuchFault {
        port: PortId,
        /// Name of the kind of link.
        link: &'static str,
    },
    #[error("unknown register {register}{hint}")]
    UnknownRegister {
        register: String,
        /// Advice appended to the message.
        hint: &'static str,
    },
    #[error("{register}: {why}")]
    RegisterRefused {
        register: String,
        why: Box<dyn StdError + Send + Sync>,
    },
    /// The route tables are not of this machine.
    #[error("{0}")]
    Tables(Box<dyn StdError + Send + Sync>),
    /// The number of a NIC is its position on this machine.
    #[error("NICs of this machine cannot be renumbered")]
    FixedNumber,
    #[error(transparent)]
    Traffic(#[from] SpecError),
    #[error(transparent)]
    Collectives(#[from] CollectiveSpecError),
    #[error(transparent)]
    Barriers(#[from] BarrierSpecError),
}
