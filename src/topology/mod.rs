//! Topology: passive data that says which nodes, ports, links and registers a network has.
//!
//! Nothing in here moves a packet. A [`Topology`] is made by a generator
//! ([`BlackwidowSpec::generate`]) or read from a TOML description ([`read`]), judged by
//! [`check`], drawn by [`show`], and turned into the configuration of each process by
//! [`Topology::plan`]:
//!
//! ```
//! use phitwire::topology::{BlackwidowSpec, check, read, write};
//!
//! let spec = BlackwidowSpec { processors: 8, subtree: 4, ..BlackwidowSpec::default() };
//! let topology = spec.generate()?;
//! assert!(check(&topology).is_empty());
//! let text = write(&topology);
//! let described = read("lab.toml", &text)?;
//! assert_eq!(described.topology, topology);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The network is the folded Clos with sidelinks of the paper (section 2.2). Its routing is all
//! in registers (section 5): a *root detect* that says when a packet has reached a common ancestor
//! of source and destination, an eight-entry table for the way up or over, and a shift, a mask and
//! a port map for the way down. The description leaves the registers out wherever they follow from
//! the structure, and names those that shall differ, such as the entry that avoids a fault.

mod check;
mod computed;
mod description;
pub mod dragonfly;
mod excerpt;
mod generate;
mod layout;
mod limits;
mod mistake;
mod model;
mod network;
mod parsed;
mod plan;
mod ports;
mod route;
pub mod show;
mod shown;
mod wiring;

pub use check::check;
pub use computed::{NO_PORT, computed_registers};
pub use description::{Described, read, write};
pub use generate::{BlackwidowSpec, Rank, SpecError, Taper};
pub use layout::Layout;
pub use limits::{
    Effort, MAX_CHIPS, MAX_DESCRIPTION_BYTES, MAX_DILATION, MAX_LOOKS, MAX_MISTAKES, MAX_STEPS,
};
pub use mistake::{Mistake, MistakeKind, Place, Problems};
pub use model::{
    Chip, Clock, End, Link, MAX_METRES, NodeRef, Processor, Profile, RouterRegisters, Settings,
    Topology, VirtualRouter, parse_rate, rate_text,
};
pub use network::{Network, Read};
pub use plan::{LinkAddresses, NodePlan, PlanError, Runtime};
pub use ports::{PortSet, PortSetError};
pub use route::{Hop, RouteFailure};
pub use shown::{Shown, harmless};
pub use wiring::{Neighbour, Wiring};

#[cfg(test)]
mod tests;
