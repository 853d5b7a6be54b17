//! The shell of a router chip: what is the same in every family of routers.
//!
//! A [`Chip`] is a [`Node`](crate::node::Node) made of a core, which is what the family is about,
//! and of [`Links`], one [`LinkPort`](crate::link::LinkPort) for each port in use. The shell passes
//! frames to links and tells the core what came of it, knows which links want their timers handled
//! and which have something to send, runs the core by its [clock](RouterClock), and has counters,
//! registers and fault commands by name and port. A family gives it a [`ChipCore`].

mod chip_core;
mod device;
mod grain;
mod links;
mod node;
#[cfg(test)]
pub(crate) mod tests;
mod trace;

pub use chip_core::ChipCore;
pub(crate) use chip_core::calls_of_the_core;
pub use grain::Grain;
pub use links::Links;
pub use node::{Chip, ChipConfig};

pub use crate::device::RegisterError;
pub use crate::time::Clock as RouterClock;
