//! The dragonfly of the Cray XC: groups of Aries routers, connected by global links.
//!
//! A group is a two-dimensional array of routers: `chassis` rows of `blades` slots (XC white paper,
//! "Dragonfly Implementation"). *Green* links connect each pair of routers of a chassis, *black*
//! links the routers of the same slot in each pair of chassis, and *blue* links the groups.
//!
//! ```
//! use phitwire_aries::topology::{DragonflySpec, Faults, Shape};
//!
//! let spec = DragonflySpec {
//!     shape: Shape { groups: 3, chassis: 2, blades: 2, nics: 1 },
//!     global_links: Some(2),
//!     ..DragonflySpec::default()
//! };
//! let network = spec.generate()?;
//! assert_eq!(network.shape.routers(), 12);
//! let routed = network.route(&Faults::default());
//! assert!(routed.report.lost.is_empty());
//! # Ok::<(), phitwire_aries::topology::DragonflySpecError>(())
//! ```

mod arrangement;
mod check;
mod generate;
mod inventory;
mod model;
mod network;
mod options;
mod plan;
mod read;
mod ready;
pub(crate) mod show;
mod tables;
mod wiring;
mod write;

pub(crate) use arrangement::Arrangement;
pub use check::check;
pub(crate) use check::{check_routes, endangered};
pub use generate::DragonflySpec;
pub(crate) use generate::{DragonflySpecError, Generator};
pub(crate) use inventory::Inventory;
pub(crate) use model::DragonflySettings;
pub use model::{Dragonfly, DragonflyLink, Shape};
pub(crate) use options::GENERATOR;
pub use plan::LAB_DOMAIN;
pub use read::read;
pub(crate) use ready::READY;
pub(crate) use tables::{Faults, Routed};
pub(crate) use wiring::DragonflyWiring;
pub use write::write;

#[cfg(test)]
mod tests;
