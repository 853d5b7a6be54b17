//! The routing decision of Aries in a dragonfly, based on the chip's tables alone.

pub mod decision;
mod draws;
#[cfg(test)]
#[path = "tests/harness.rs"]
pub(crate) mod harness;
pub mod registers;
mod ways;

pub use decision::{Arrival, Choice, Decision, Loads, Refusal};
pub use ways::Way;
