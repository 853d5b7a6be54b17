//! The torus of a T3E as a network: routers, processors, links, spares and defects, and the tables
//! derived from them.
//!
//! Router r is at node r of the [`Shape`](super::route::Shape), and NIC r belongs to the processor
//! there. A link between routers uses the port of its direction at each end, so a ring of two nodes
//! has two links. Processors are on port [`PROCESSOR`](super::router::PROCESSOR).
//!
//! ```
//! use phitwire_t3e::topology::TorusSpec;
//!
//! let torus = TorusSpec::new("4x2x2+4x1x1".parse()?).torus();
//! assert_eq!(torus.shape().nodes(), 20);
//! assert!(torus.routes()?.tables.unreachable().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod channels;
mod check;
mod defects;
mod given;
mod model;
mod network;
mod options;
mod read;
mod ready;
mod reroute;
mod routes;
pub mod show;
mod side_networks;
mod tune;
mod write;

pub use channels::{ChannelTables, Channels};
pub use defects::{Defect, DefectError, Defects};
pub use given::{GivenTables, RingKind};
pub use model::{MAX_NODES, Torus, TorusSettings, TorusSpec};
pub use options::GENERATOR;
pub use ready::READY;
pub use routes::Routes;

#[cfg(test)]
mod tests;
