//! Routing: entries of look-up tables and the routing decision ("The Cray T3E Network", sec. 2, 3
//! and 5). The formats of directions, positions and the route in a packet are in
//! [`phitwire_framing::t3e::tag`].
//!
//! The other modules treat a whole machine: its [shape](Shape), its [failed](Broken) parts, the
//! [tables](generate()) of its routers and the [proof](dependency) that they are free of circular
//! waits, the [paths](walk()) of packets, their [clocks] and [loads](load), the best
//! [division] of those, and [faults].

pub mod broken;
pub mod clocks;
pub mod decision;
pub mod dependency;
pub mod division;
pub mod entry;
pub mod faults;
pub mod generate;
mod lines;
pub mod load;
mod region;
pub mod registers;
pub mod shape;
pub mod tables;
pub mod walk;

pub use broken::Broken;
pub use decision::{Arrival, Decision, decide};
pub use dependency::{Dependencies, DependencyCycle};
pub use entry::Entry;
pub use generate::{TablesError, generate};
pub use registers::RouteRegisters;
pub use shape::{Ring, Shape, ShapeError};
pub use tables::{GROUP, NO_ROUTE, TABLE_ENTRIES, Tables, look_up};
pub use walk::{Channel, MinimalPathSearch, Stray, walk};
