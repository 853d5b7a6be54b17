//! The routing decision of an Aries router in a dragonfly, based only on the chip's tables.

pub mod decision;
mod draws;
#[cfg(test)]
#[path = "tests/harness.rs"]
pub(crate) mod harness;
mod next_hops;
pub mod registers;

pub use decision::{Arrival, Choice, Decision, Loads, Refusal};
pub use next_hops::NextHop;
