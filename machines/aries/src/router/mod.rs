//! The Aries router (Cray XC white paper, "Aries Router").
//!
//! The path of a packet: the link control block of a port writes it to the port's input queue. The
//! first stage ([`Core`], input) decides the route and sends the packet over the row bus into the
//! row buffer at its output column. The 64 x 6 subswitch there moves it over a column bus into a
//! column buffer at its output tile. The output multiplexer passes it to the link control block of
//! the output port. For NICs, Netlink is between the ports and the processor tiles.
//!
//! [`pipeline`] has depths and delays, [`Core`] the tiles without links, [`Aries`] the chip as a
//! [`Node`](phitwire::node::Node), [`registers`] the tiles' configuration, and [`register_map`] the
//! register names. The routing decision is in [`route::decision`](crate::route::decision).

mod columns;
mod core;
mod counters;
mod delay;
mod device;
mod event;
pub mod grain;
#[cfg(test)]
#[path = "tests/harness.rs"]
mod harness;
mod input;
mod load;
mod netlink;
mod node;
mod outlook;
pub(crate) mod pace;
pub mod pipeline;
mod pool;
pub mod register_map;
mod rows;
mod stages;
mod through;
mod tiles;
mod watched;

pub use self::core::Core;
pub use super::route::registers;
pub use counters::AriesCounters;
pub use device::digest;
pub use event::AriesEvent;
pub use load::LoadSteps;
pub use node::{Aries, AriesConfig, counted, is_drained};
pub use tiles::{MAX_ANNOUNCED_CYCLES, Ports, Tiles};
