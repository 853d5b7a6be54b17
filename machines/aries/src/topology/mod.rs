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
mod host;
mod inventory;
mod model;
mod network;
mod options;
mod plan;
mod read;
mod ready;
pub mod show;
mod tables;
mod wiring;
mod write;

pub use arrangement::Arrangement;
pub use check::{Flaw, MAX_LOOKS, Walk, check, check_routes, endangered, is_deadlock_free, walk};
pub use generate::{DragonflySpec, DragonflySpecError, Generator};
pub use inventory::{Bisection, Inventory};
pub use model::{Classes, Dragonfly, DragonflyLanes, DragonflyLink, DragonflySettings, Shape};
pub use options::GENERATOR;
pub use plan::{LAB_DOMAIN, lab_key};
pub use read::read;
pub use ready::READY;
pub use tables::{Faults, RouteReport, Routed};
pub use wiring::{DragonflyWiring, Far};
pub use write::write;

#[cfg(test)]
mod tests;
