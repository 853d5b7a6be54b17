//! Errors of requests to a device.

use core::error::Error as StdError;

use thiserror::Error;

use super::Kind;
use crate::nic::{BarrierSpecError, CollectiveSpecError, ProbeError, SpecError};
use crate::node::PortId;

/// Why a device refused a request.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// This kind of device has no registers.
    #[error("a {kind} has no register {register}")]
    NoRegisters {
        /// The kind of device.
        kind: Kind,
        /// The register asked for.
        register: String,
    },
    /// Its route tables cannot be replaced.
    #[error("this {0} has no route tables that could be replaced")]
    NoTables(Kind),
    /// It cannot watch packets.
    #[error("this {0} watches no packets: routers do")]
    NoTracing(Kind),
    /// It routes nothing, or cannot predict routes.
    #[error("this {0} routes nothing, or does not tell how")]
    NoOutlook(Kind),
    /// It sends no probes.
    #[error("this {0} probes nobody: network interfaces do")]
    NoProbes(Kind),
    /// A probe was not sent.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// This kind of device makes no traffic.
    #[error("a {0} makes no traffic")]
    NoTraffic(Kind),
    /// It has no engine for collective operations.
    #[error("this {0} has no collective engine")]
    NoCollectives(Kind),
    /// It makes no puts for local programs.
    #[error("this {0} puts nothing for local programs")]
    NoPuts(Kind),
    /// It has no door for local programs.
    #[error("this {0} has no door for local programs")]
    NoDoor(Kind),
    /// It has no barrier units.
    #[error("this {0} has no barrier units")]
    NoBarriers(Kind),
    /// It sends no maintenance packets.
    #[error("no maintenance packets begin at this {0}")]
    NoRemoteRegisters(Kind),
    /// No maintenance packet can take this path.
    #[error("{register}: no maintenance packet can take such a way")]
    Unreachable {
        /// The register asked for.
        register: String,
    },
    /// The port has no link.
    #[error("port {0} has no link")]
    NoLink(PortId),
    /// Links of this machine do not have this fault.
    #[error("port {port} has a {link} link, which has no such register")]
    NoSuchFault {
        /// The port.
        port: PortId,
        /// The machine's name.
        link: &'static str,
    },
    /// There is no such register.
    #[error("there is no register {register}{hint}")]
    UnknownRegister {
        /// The register asked for.
        register: String,
        /// Text appended to the message.
        hint: &'static str,
    },
    /// A register was not written.
    #[error("{register}: {why}")]
    RegisterRefused {
        /// The register.
        register: String,
        /// The reason.
        why: Box<dyn StdError + Send + Sync>,
    },
    /// The route tables are not of this machine.
    #[error("{0}")]
    Tables(Box<dyn StdError + Send + Sync>),
    /// The number of a NIC is its position on this machine.
    #[error("network interfaces of this machine keep their numbers")]
    FixedNumber,
    /// A traffic run was refused.
    #[error(transparent)]
    Traffic(#[from] SpecError),
    /// A run of collective operations was refused.
    #[error(transparent)]
    Collectives(#[from] CollectiveSpecError),
    /// A run of barriers was refused.
    #[error(transparent)]
    Barriers(#[from] BarrierSpecError),
}
