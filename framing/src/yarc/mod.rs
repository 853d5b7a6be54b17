//! Formats of the BlackWidow network and its router, YARC: phits, packets, the control word of the
//! sideband, frames of phits.

mod bits;
pub mod control;
pub mod crc16;
pub mod frame;
pub mod maintenance;
pub mod memory;
pub mod packet;
pub mod phit;
