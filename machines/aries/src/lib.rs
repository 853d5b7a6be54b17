//! The Cray XC: a dragonfly of Aries routers, and network interfaces with remote memory access,
//! block transfers and collective operations.
//!
//! The source is "Cray XC Series Network" (Alverson, Froese, Kaplan, Roweth; white paper, 2012).
//!
//! # The way of a packet
//!
//! ```text
//!   frame ──► AriesLcb ──► AriesInput ──► route tables ──► row buffer ──► 64x6 subswitch ──► column buffer
//!             sets of ten  per VC, in     four kinds of    per VC         whole packets      per VC
//!             flits, CRC   shared blocks  candidates
//! ```
//!
//! - A link carries sets of nine flits and a tenth with CRC, numbers, acknowledgements and load
//!   ([`link::AriesLcb`]). A set goes up when its CRC is good, so that no broken packet enters a
//!   router; what was lost is replayed set by set.
//! - The router ([`router`]) compares two minimal and two non-minimal paths by load, at the
//!   packet's source and at each later router where the order of channels leaves both kinds
//!   ([`route`]); the virtual channel grows along the path, so that no cycle of waiting packets
//!   exists.
//! - The network interface ([`nic`]) refuses what a request may not do, and reports the end of
//!   every request in a completion. Its block transfer and collective engines go on by themselves.
//! - A [`topology::Dragonfly`] has the tables computed, with what has failed left out; [`manage`]
//!   decides what a running network has to be told when that changes.

pub mod cycle;
pub mod link;
pub mod manage;
pub mod nic;
pub mod reproduce;
pub mod route;
pub mod router;
pub mod soak;
pub mod topology;

use phitwire::catalogue::{Machine, Simulation};
use phitwire::net::Family;

/// What the commands know of it.
pub static MACHINE: Machine = Machine {
    generators: &[topology::GENERATOR],
    tables: reproduce::TABLES,
    ready: topology::READY,
    glance: link::glance,
    soak: &soak::FAMILIES,
    simulation: Some(Simulation::of::<cycle::Aries>()),
    ..Machine::new(Family::of::<topology::Dragonfly>())
};
