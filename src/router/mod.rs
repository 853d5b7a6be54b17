//! Router chips.

pub mod yarc;
