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
//!   ([`link::AriesLcb`]). The receiver accepts a set only if its CRC is correct, so that no
//!   damaged packet enters a router. Lost sets are resent.
//! - The router ([`router`]) compares two minimal and two non-minimal paths by load, at the
//!   packet's source and at each later router where the order of channels permits both kinds
//!   ([`route`]). The virtual channel grows along the path, so that waiting packets cannot form a
//!   cycle.
//! - The NIC ([`nic`]) rejects requests that its memory protection does not allow, and reports the
//!   end of every request in a completion. Its block transfer and collective engines run without a
//!   processor.
//! - A [`topology::Dragonfly`] computes the tables, leaving out failed parts. [`manage`] computes
//!   the changes for a running network when parts fail or recover.

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

/// This machine's entry in the list of machines.
pub static MACHINE: Machine = Machine {
    generators: &[topology::GENERATOR],
    tables: reproduce::TABLES,
    ready: topology::READY,
    frame_contents: link::frame_contents,
    soak: &soak::FAMILIES,
    simulation: Some(Simulation::of::<cycle::Aries>()),
    ..Machine::new(Family::of::<topology::Dragonfly>(), &[SetFrame::LAYOUT])
};
