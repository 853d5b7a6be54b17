//! Formats of the Aries network: flits, packets, sets of ten flits, frames of sets.

pub mod crc20;
pub mod flit;
pub mod frame;
pub mod packet;
pub mod pattern;
pub mod set;
