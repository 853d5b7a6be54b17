//! What a device refuses, and why.

use core::error::Error as StdError;

use thiserror::Error;

use super::Kind;
use crate::nic::{BarrierSpecError, CollectiveSpecError, ProbeError, SpecError};
use crate::node::PortId;

/// Why a device did not do what it was asked for.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// Such a device has no registers.
    #[error("a {kind} has no register {register}")]
    NoRegisters {
        /// What it is.
        kind: Kind,
        /// What was asked for.
        register: String,
    },
    /// Its route tables cannot be replaced.
    #[error("this {0} has no route tables that could be replaced")]
    NoTables(Kind),
    /// It watches no packets.
    #[error("this {0} watches no packets: routers do")]
    NoTracing(Kind),
    /// It routes nothing.
    #[error("this {0} routes nothing, or does not tell how")]
    NoOutlook(Kind),
    /// It probes nobody.
    #[error("this {0} probes nobody: network interfaces do")]
    NoProbes(Kind),
    /// A probe was not sent.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// Such a device makes no traffic.
    #[error("a {0} makes no traffic")]
    NoTraffic(Kind),
    /// It has no engine for collective operations.
    #[error("this {0} has no collective engine")]
    NoCollectives(Kind),
    /// It makes no puts for local programs.
    #[error("this {0} puts nothing for local programs")]
    NoPuts(Kind),
    /// It does nothing for programs on its node.
    #[error("this {0} has no door for local programs")]
    NoDoor(Kind),
    /// It has no barrier units.
    #[error("this {0} has no barrier units")]
    NoBarriers(Kind),
    /// It has no network for the registers of others.
    #[error("no maintenance packets begin at this {0}")]
    NoRemoteRegisters(Kind),
    /// There is no such way for a maintenance packet.
    #[error("{register}: no maintenance packet can take such a way")]
    Unreachable {
        /// What was asked for.
        register: String,
    },
    /// The port has no link.
    #[error("port {0} has no link")]
    NoLink(PortId),
    /// Links of this machine cannot suffer that.
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
        /// What was asked for.
        register: String,
        /// What else there is to know.
        hint: &'static str,
    },
    /// A register was not written.
    #[error("{register}: {why}")]
    RegisterRefused {
        /// Which.
        register: String,
        /// Why not.
        why: Box<dyn StdError + Send + Sync>,
    },
    /// Route tables are not of this machine.
    #[error("{0}")]
    Tables(Box<dyn StdError + Send + Sync>),
    /// The number of a network interface is its place on this machine.
    #[error("network interfaces of this machine keep their numbers")]
    FixedNumber,
    /// A traffic run is refused.
    #[error(transparent)]
    Traffic(#[from] SpecError),
    /// A run of collective operations is refused.
    #[error(transparent)]
    Collectives(#[from] CollectiveSpecError),
    /// A run of barriers is refused.
    #[error(transparent)]
    Barriers(#[from] BarrierSpecError),
}
