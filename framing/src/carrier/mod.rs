//! Common parts of the links of all machines: the link frame, channel initialisation, lanes, packet
//! numbers.
//!
//! A frame carries units, which the machine defines together with their layout in a frame.
//! [`frame`] documents how to define a kind of frame.

pub(crate) mod crc_tables;
#[cfg(all(feature = "processor-crc", target_arch = "x86_64"))]
pub(crate) mod folding;
pub mod frame;
pub mod lane_layout;
pub mod lanes;
pub(crate) mod names;
pub mod number;
pub mod training;
