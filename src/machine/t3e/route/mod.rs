//! Where packets go: directions and places of a torus, what a packet says of its route, and what a
//! router makes of it (T3E paper, sections 2, 3 and 5).

pub mod broken;
pub mod decision;
pub mod direction;
pub mod entry;
mod lines;
pub mod registers;
pub mod shape;
pub mod walk;

pub use broken::Broken;
pub use decision::{Arrival, Decision, decide};
pub use direction::{Direction, DirectionSet};
pub use entry::{Entry, Place, Tag};
pub use registers::RouteRegisters;
pub use shape::{Ring, Shape, ShapeError};
pub use walk::{Channel, Roam, Stray, walk};
