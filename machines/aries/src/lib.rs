//! The Cray XC: a dragonfly of Aries routers, and network interfaces (NICs) with remote memory
//! access, block transfers and collective operations.
//!
//! The source is "Cray XC Series Network" (Alverson, Froese, Kaplan, Roweth; white paper, 2012).
//!
//! # The path of a packet
//!
//! ```text
//! frame ─► AriesLcb ──► AriesInput ──► route tables ──► row buffer ─► subswitch ───► column buffer
//!          sets of ten  per VC, in     four kinds of    per VC        64 x 6, whole  per VC
//!          flits, CRC   shared blocks  candidates                     packets
//! ```
//!
//! - A link carries sets of nine flits and a tenth with CRC, numbers, acknowledgements and load
//!   ([`link::AriesLcb`]). A set is handed up once its CRC is good, so that no broken packet enters
//!   a router; lost sets are replayed.
//! - The router ([`router`]) compares two minimal and two non-minimal paths by load, at the
//!   packet's source and at each later router where the order of channels leaves both kinds
//!   ([`route`]); the virtual channel grows along the path, so that no cycle of waiting packets
//!   exists.
//! - The NIC ([`nic`]) rejects what a request may not do, and reports the end of every request in a
//!   completion. Its block transfer and collective engines run autonomously.
//! - A [`topology::Dragonfly`] computes the tables, without failed parts; [`manage`] decides what a
//!   running network must change when parts fail or recover.

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
use phitwire_framing::aries::frame::SetFrame;

/// The machine as the commands know it.
pub static MACHINE: Machine = Machine {
    generators: &[topology::GENERATOR],
    tables: reproduce::TABLES,
    ready: topology::READY,
    glance: link::glance,
    soak: &soak::FAMILIES,
    simulation: Some(Simulation::of::<cycle::Aries>()),
    ..Machine::new(Family::of::<topology::Dragonfly>(), &[SetFrame::LAYOUT])
};
