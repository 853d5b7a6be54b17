//! What the links of every machine use: the link frame, channel initialisation, lanes, numbers of
//! packets.
//!
//! A frame carries units of whatever a machine sends over its links; what they are, and how a frame
//! holds them, is the machine's. See [`frame`] for what a kind of frame has to bring along.

pub(crate) mod crc_tables;
#[cfg(all(feature = "processor-crc", target_arch = "x86_64"))]
pub(crate) mod folding;
pub mod frame;
pub mod lanes;
pub(crate) mod names;
pub mod number;
pub mod training;
