//! The shell of a router chip, which all router families share.
//!
//! A [`Chip`] is a [`Node`](crate::node::Node) made of a family's core ([`ChipCore`]) and of
//! [`Links`], one link end for each port in use. The shell passes frames to links and notifies the
//! core of changes, tracks which links have timers due and which have frames to send, runs the core
//! by its [clock](RouterClock), and offers counters, registers and fault commands by name and port.

mod abilities;
mod chip_core;
mod device;
mod grain;
mod links;
mod node;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod trace;

pub use abilities::{CoreOutlooks, CoreRegisters, CoreRemoteRegisters, CoreRerouting};
pub use chip_core::{ChipCore, calls_of_the_core};
pub use grain::Grain;
pub use links::Links;
pub use node::{Chip, ChipConfig};

pub use crate::device::RegisterError;
pub use crate::time::Clock as RouterClock;
