//! Routing: entries of look-up tables and the routing decision ("The Cray T3E Network", sec. 2, 3
//! and 5). The formats of directions, positions and the route in a packet are in
//! [`phitwire_framing::t3e::tag`].
//!
//! The other modules treat a whole machine: its [shape](Shape), its [failed](Broken) parts, the
//! [tables](generate()) of its routers and the [proof](dependency) that they are free of circular
//! waits, the [paths](walk()) of packets, their [clocks] and [loads](load), the best
//! [division] of those, and [faults].

pub(crate) mod broken;
pub(crate) mod clocks;
pub(crate) mod decision;
pub(crate) mod dependency;
pub(crate) mod division;
pub mod entry;
pub mod faults;
pub mod generate;
mod lines;
pub mod load;
mod region;
pub(crate) mod registers;
pub mod shape;
pub mod tables;
pub(crate) mod walk;

pub(crate) use broken::Broken;
pub(crate) use decision::{Arrival, Decision, decide};
pub(crate) use dependency::{Circle, Dependencies};
pub use entry::Entry;
pub(crate) use generate::TablesError;
pub use generate::generate;
pub(crate) use registers::RouteRegisters;
pub use shape::Shape;
pub(crate) use shape::{Ring, ShapeError};
pub(crate) use tables::{GROUP, NO_ROUTE, TABLE_ENTRIES, Tables, look_up};
pub(crate) use walk::{Channel, Roam, Stray, walk};
