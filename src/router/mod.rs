//! Router chips: tiles wired together.

pub mod yarc;
