//! The folded Clos as passive data: nodes, ports, links and registers.
//!
//! Nothing here moves a packet. A [`FoldedClos`] is generated ([`BlackWidowSpec::generate`]) or
//! read from a TOML description ([`read`]), checked by [`check()`], drawn by [`show`], and turned
//! into the node of each process by [`Network::device`](phitwire::net::Network::device):
//!
//! ```
//! use phitwire_blackwidow::topology::{BlackWidowSpec, check, read, write};
//!
//! let spec = BlackWidowSpec { processors: 8, subtree: 4, ..BlackWidowSpec::default() };
//! let topology = spec.generate()?;
//! assert!(check(&topology).is_empty());
//! let text = write(&topology);
//! let described = read("lab.toml", &text)?;
//! assert_eq!(described.topology, topology);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The network is the folded Clos with sidelinks of BlackWidow sec. 2.2. Registers define all
//! routing (sec. 5): a *root detect* that matches when a packet has reached a common ancestor of
//! source and destination, an eight-entry table for upward and sideways hops, and a shift, a mask
//! and a port map for downward hops. A description contains only the registers that do not follow
//! from the structure, such as the entry that avoids a fault.

mod check;
mod computed;
mod description;
mod generate;
mod model;
mod network;
mod options;
mod plan;
mod ready;
mod route;
pub mod show;
mod wiring;

pub use check::check;
pub use computed::{NO_PORT, computed_registers};
pub use description::{read, write};
pub use generate::{BlackWidowSpec, Rank, SpecError, Taper};
pub use model::{
    Chip, ClosLinks, ClosSettings, FoldedClos, Processor, RouterRegisters, VirtualRouter,
    parse_rate, rate_text,
};
pub use options::GENERATOR;
pub use ready::READY;
pub use route::{Hop, RouteFailure};
pub use wiring::{ClosWiring, Neighbour};

#[cfg(test)]
mod tests;
