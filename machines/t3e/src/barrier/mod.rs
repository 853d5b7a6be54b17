//! Barriers and eurekas: "virtual barrier/eureka networks that utilize small, high-priority
//! synchronization packets over the existing data network" (T3E paper, section 6).
//!
//! A set of processors shares one of 32 units. Their routers, and others on the way, are a spanning
//! tree of that unit. Arrivals and eurekas go up, completions down, a flit each:
//!
//! - [`message`]: what a flit says;
//! - [`mod@unit`] and [`shell`]: a unit of a processor, and all 32;
//! - [`tree`] and [`router`]: a router's register of a unit, and what it makes of messages;
//! - `pending`: what waits for a port, a few bits per unit;
//! - [`spanning`]: trees for sets of processors.
//!
//! Nothing here knows time, links or buffers. Whoever drives it delivers messages per link in
//! order, and loses none.

pub mod message;
mod pending;
pub mod router;
pub mod shell;
pub mod spanning;
pub mod tree;
pub mod unit;

pub use message::{Kind, Message, MessageError, UNITS, UnitNumber};
pub use router::{BarrierCounters, BarrierRouter, Ignored};
pub use shell::{BarrierShell, ShellCounters};
pub use spanning::{SpanningError, SpanningTree, TreeFault};
pub use tree::{Port, PortSet, TreeRegister, TreeRegisterError};
pub use unit::{BarrierUnit, Notified, Operation, OperationError, State};

#[cfg(test)]
mod tests;
