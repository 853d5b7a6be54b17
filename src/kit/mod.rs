//! What chips, links and network interfaces are made of. Nothing here knows a machine.

pub mod arbiter;
mod below;
pub mod calendar;
pub(crate) mod counters;
pub mod deadlines;
pub mod events;
pub mod pipe;
pub(crate) mod ring;

pub use arbiter::{MatrixArbiter, RoundRobin};
pub use below::below;
pub use calendar::Calendar;
pub use deadlines::Deadlines;
pub use events::Events;
pub use pipe::{Next, Pipe, Room};
