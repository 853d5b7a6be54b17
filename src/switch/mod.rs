//! What the tiles of a switch are made of: arbiters and delay lines.
//!
//! Both are small values without any knowledge of packets, so that every router family can use them.

pub mod arbiter;
pub mod delay_line;

pub use arbiter::{MatrixArbiter, RoundRobin};
pub use delay_line::DelayLine;
