//! Common to the links of all machines: the link frame, channel initialisation, lanes, packet
//! numbers.
//!
//! A frame carries units of whatever a machine sends over its links; the machine defines the units
//! and their layout in a frame. See [`frame`] for what a kind of frame must provide.

pub(crate) mod crc_tables;
#[cfg(all(feature = "processor-crc", target_arch = "x86_64"))]
pub(crate) mod folding;
pub mod frame;
pub mod lane_layout;
pub mod lanes;
pub(crate) mod names;
pub mod number;
pub mod training;
