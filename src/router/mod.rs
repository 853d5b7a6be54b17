//! Router chips: tiles wired together.

pub mod aries;
pub mod yarc;
