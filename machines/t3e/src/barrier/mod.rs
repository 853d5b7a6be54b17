//! Barriers and eurekas: "virtual barrier/eureka networks that utilize small, high-priority
//! synchronization packets over the existing data network" ("The Cray T3E Network", sec. 6).
//!
//! A set of processors shares one of 32 units. Their routers, and other routers on the paths, form
//! a spanning tree of that unit. Arrivals and eurekas go up and completions go down, as one flit
//! each:
//!
//! - [`phitwire_framing::t3e::barrier`]: the contents of a flit;
//! - [`mod@unit`] and [`shell`]: a unit of a processor, and all 32;
//! - [`tree`] and [`router`]: a router's register of a unit, and the handling of messages;
//! - `pending`: messages that wait for a port, with a few bits per unit;
//! - [`spanning`]: trees for sets of processors.
//!
//! This code has no notion of time, links or buffers. The caller delivers messages without loss and
//! in order per link.

mod pending;
pub mod router;
pub mod shell;
pub mod spanning;
pub mod tree;
pub mod unit;

pub use router::{BarrierCounters, BarrierRouter, Ignored};
pub use shell::{BarrierShell, ShellCounters};
pub use spanning::{SpanningError, SpanningTree, TreeFault};
pub use tree::{Port, PortSet, TreeRegister, TreeRegisterError};
pub use unit::{BarrierUnit, Notified, Operation, OperationError, State};

#[cfg(test)]
mod tests;
