//! Where packets go: directions and places of a torus, what a packet says of its route, and what a
//! router makes of it (T3E paper, sections 2, 3 and 5).
//!
//! Besides, what one knows of a whole machine: its [shape](Shape), what is [broken](Broken), the
//! [tables](generate()) of its routers and the [proof](dependency) that they make no circle, the
//! [ways](walk()) of packets and what follows from them: [clocks], [loads](load) and how evenly they
//! can be [divided](division), [faults].

pub mod broken;
pub mod clocks;
pub mod decision;
pub mod dependency;
pub mod direction;
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
pub use dependency::{Circle, Dependencies};
pub use direction::{Direction, DirectionSet};
pub use entry::{Entry, Place, Tag};
pub use generate::{TablesError, generate};
pub use registers::RouteRegisters;
pub use shape::{Ring, Shape, ShapeError};
pub use tables::{GROUP, NO_ROUTE, TABLE_ENTRIES, Tables, look_up};
pub use walk::{Channel, Roam, Stray, walk};
