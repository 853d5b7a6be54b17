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
    #[error("this {0} has no replaceable route tables")]
    NoTables(Kind),
    #[error("this {0} cannot watch packets; only routers can")]
    NoTracing(Kind),
    #[error("this {0} cannot report routes")]
    NoOutlook(Kind),
    #[error("this {0} cannot send probes; only NICs can")]
    NoProbes(Kind),
    #[error(transparent)]
    Probe(#[from] ProbeError),
    #[error("a {0} cannot generate traffic")]
    NoTraffic(Kind),
    #[error("this {0} has no collective engine")]
    NoCollectives(Kind),
    #[error("this {0} cannot send puts for local programs")]
    NoPuts(Kind),
    #[error("this {0} has no door for local programs")]
    NoDoor(Kind),
    #[error("this {0} has no barrier units")]
    NoBarriers(Kind),
    #[error("this {0} cannot send maintenance packets")]
    NoRemoteRegisters(Kind),
    #[error("{register}: no maintenance packet can take this path")]
    Unreachable { register: String },
    #[error("port {0} has no link")]
    NoLink(PortId),
    #[error("port {port}: {link} links have no such register")]
    NoSuchFault {
        port: PortId,
        /// The machine's name.
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
