//! The router: six network ports and a processor port around a crossbar with one arbiter (T3E sec.
//! 7).

mod arrivals;
pub(crate) mod barriers;
mod core;
mod crossbar;
mod input;
mod lookup;
mod maintenance;
mod memory;
mod names;
mod outlook;
mod output;
mod ports;
mod registers;
mod reroute;

/// Number of cycles from the crossbar, or the bypass, to the pins of the next port (T3E table 2:
/// three straight through, six for a turn).
pub const LINK_CYCLES: u64 = 3;
/// Number of cycles from the crossbar to the processor, so that it takes ten from the pins (T3E
/// table 2).
pub const PROCESSOR_CYCLES: u64 = 7;

pub use core::{RouterCore, RouterRegisters, T3eRouter};
pub use crossbar::{Crossbar, CrossbarCounters};
pub use lookup::{ENTRIES, LookUpTable, MAX_PROCESSORS};
pub use maintenance::MaintenanceCounters;
pub use memory::MEMORY_FLITS;
pub use names::Names;
pub use ports::{FlitPorts, PORTS, PROCESSOR};
pub use reroute::RouterTables;
