//! The Cray T3E: a 3-D torus of one router per processor.
//!
//! Source: Scott and Thorson, "The Cray T3E Network: Adaptive Routing in a High Performance 3D
//! Torus", Hot Interconnects 4, 1996, cited as "T3E sec. N".

pub mod barrier;
pub mod cycle;
pub mod link;
pub mod pe;
pub mod reproduce;
pub mod route;
pub mod router;
pub mod soak;
pub mod topology;
pub mod vc;

use phitwire::catalogue::{Machine, Simulation};
use phitwire::net::Family;
use phitwire::packets::PacketEnd;

/// Picoseconds per clock at 75 MHz. A link moves one flit per clock (T3E sec. 1).
pub const CYCLE_PS: u64 = 13_333;

/// The machine's entry for the list of machines.
pub static MACHINE: Machine = Machine {
    generators: &[topology::GENERATOR],
    simulation: Some(Simulation::of::<cycle::T3e>()),
    tables: reproduce::TABLES,
    ready: topology::READY,
    frame_contents: phitwire::packets::link::frame_contents::<link::BurstPacket>,
    soak: &soak::FAMILIES,
    ..Machine::new(
        Family::of::<topology::Torus>(),
        &[PacketEnd::<link::BurstPacket>::LAYOUT],
    )
};

#[cfg(test)]
mod tests;
