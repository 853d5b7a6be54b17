//! What the tiles of a switch are made of: arbiters, pipes and the calendar of what happens when.
//!
//! They are small values without any knowledge of packets, so that every router family can use them.

pub mod arbiter;
pub mod calendar;
pub mod pipe;

pub use arbiter::{MatrixArbiter, RoundRobin};
pub use calendar::Calendar;
pub use pipe::{Next, Pipe, Room};
