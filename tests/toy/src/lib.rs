//! The toy machine: a fictional ring of routers, with the minimum that a machine must provide.
//!
//! A router has four ports: clockwise, counterclockwise and two NICs. A link carries packets of one
//! size over one virtual channel; a router stores a whole packet before it forwards it in the
//! shorter direction. `docs/guide/src/adding-a-machine.md` explains it file by file.

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

/// The machine as the commands know it.
pub static MACHINE: Machine = Machine {
    soak: &soak::FAMILIES,
    generators: &[network::GENERATOR],
    simulation: Some(Simulation::of::<cycle::RingModel>()),
    ..Machine::new(Family::of::<network::Ring>(), &[link::RingEnd::LAYOUT])
};

/// A packet: eight words. The lowest 16 bits of the first are the destination NIC's number; the
/// NICs define the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet(pub [u64; 8]);

/// Picoseconds that a packet takes on three lanes of 6.25 Gb/s.
pub const CYCLE_PS: u64 = 27_307;
