//! Formats of the T3E: flits of 70 bits, packets of 1 to 10 of them, their checks, and the bursts
//! that the carrier transports (Scott and Thorson, "The Cray T3E Network", Hot Interconnects 4,
//! 1996, cited as "T3E sec. N").

pub mod barrier;
pub mod burst;
pub mod check;
pub mod direction;
pub mod flit;
pub mod header;
pub mod maintenance;
pub mod packet;
pub mod tag;
