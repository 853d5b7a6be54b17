//! The YARC router (BlackWidow sec. 3 to 7).
//!
//! The path of a packet: the link control block of a port writes it to the port's input queue. The
//! first stage ([`Core`], input) decides the route and sends the packet over the row bus into the
//! row buffer at its output column. The 8x8 subswitch there moves it over a column channel into a
//! column buffer at its output tile. The output multiplexer passes it to the link control block of
//! the output port.
//!
//! [`pipeline`] has depths and delays, [`Core`] the tiles without links, [`Yarc`] the chip as a
//! [`Node`](phitwire::node::Node), and [`register_map`] the registers' addresses and names.

mod columns;
mod core;
mod counters;
mod device;
mod event;
#[cfg(test)]
mod harness;
mod input;
mod maintenance;
mod node;
mod outlook;
pub mod pipeline;
pub mod register_map;
mod rows;
mod watched;

pub use self::core::{Core, MAX_ANNOUNCED_CYCLES, Ports};
pub use super::route::registers;
pub use counters::RouterCounters;
pub use event::RouterEvent;
pub use node::{Yarc, YarcConfig, counted};
pub(crate) use watched::identity_of;
