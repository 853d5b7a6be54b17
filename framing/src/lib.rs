//! Bit layouts of the BlackWidow and Aries networks: phits and flits, packets, checks and link frames.
//!
//! The crate is `no_std`, allocates nothing and has no state of its own: every function turns bits
//! into values or values into bits. Bytes from outside never make it panic; what is wrong with them
//! is named by an error. `docs/wire-format.md` draws every layout and says which parts are the
//! papers' ("The BlackWidow High-Radix Clos Network", ISCA 2006; the Cray XC white paper, 2012) and which are
//! this project's.
//!
//! From the inside out:
//!
//! - [`phit24`]: the 24-bit phit, unit of flow control.
//! - [`packet24`]: head, hash and end-of-packet phits; [`packet24::PacketBuf`].
//! - [`crc16`]: the check of a packet, one phit at a time.
//! - [`memory24`]: memory requests and responses as packets.
//! - [`control`]: the 96-bit control word in the two sideband bits of every phit.
//! - [`number`]: the 48-bit number of a packet on a link.
//! - [`maintenance24`]: source-routed packets that read and write configuration registers.
//! - [`frame`]: the link frame on Ethernet or UDP that stands for the line code.
//! - [`training`]: the frames of channel initialisation.
//! - [`lanes`]: which bits travel on which lane; swapped lanes and polarity.
//!
//! And for Aries:
//!
//! - [`flit48`]: the 48-bit flit and the head of a packet: what a router looks at.
//! - [`packet48`]: requests and responses of the network interfaces, with their check from end to end.
//! - [`set48`]: sets of ten flits, data and link control; [`crc20`]: their check.
//! - [`frame`]: the same link frame, with whole sets in place of phits.
#![no_std]
#![forbid(unsafe_code)]

/// The example of the README, kept true by the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

mod bits;
pub mod control;
pub mod crc16;
pub mod crc20;
pub mod flit48;
pub mod frame;
pub mod lanes;
pub mod maintenance24;
pub mod memory24;
pub mod number;
pub mod packet24;
pub mod packet48;
pub mod phit24;
pub mod set48;
pub mod training;
