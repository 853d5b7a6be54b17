//! The toy machine: a ring of routers that nobody built, and the least that a machine has to have.
//!
//! A router has four ports: clockwise, counterclockwise and two network interfaces. A link carries
//! packets of one size over one virtual channel; a router stores a packet whole before it sends it
//! on, the shorter way round. `docs/guide/src/adding-a-machine.md` follows it file by file.

pub mod cycle;
pub mod link;
pub mod network;
pub mod nic;
pub mod router;
pub mod soak;
#[cfg(test)]
mod tests;

use phitwire::catalogue::{Machine, Simulation};
use phitwire::net::Family;

/// What the commands know of it.
pub static MACHINE: Machine = Machine {
    soak: &soak::FAMILIES,
    generators: &[network::GENERATOR],
    simulation: Some(Simulation::of::<cycle::RingModel>()),
    ..Machine::new(Family::of::<network::Ring>())
};

/// A packet: eight words. The lowest 16 bits of the first are the number of the NIC that it goes to;
/// the NICs define the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet(pub [u64; 8]);

/// Picoseconds that a packet takes on three lanes of 6.25 Gb/s.
pub const CYCLE_PS: u64 = 27_307;
