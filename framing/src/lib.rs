//! Bit layouts of phitwire's networks: link frames, and each machine's phits, flits, packets and
//! checks.
//!
//! The crate is `no_std` (except with the feature `processor-crc`, which computes the checks of
//! frames, sets and flit packets with processor instructions), allocates nothing and has no state:
//! every function turns bits into values or values into bits. Bytes from outside never make it
//! panic; an error names the invalid field. `docs/guide/src/wire-format.md` shows every layout and
//! says which parts are from the papers ("The BlackWidow High-Radix Clos Network", ISCA 2006; the
//! Cray XC white paper, 2012; "The Cray T3E Network", Hot Interconnects 1996) and which are ours.
//!
//! [`carrier`] is common to the links of all machines, and imports none of them:
//!
//! - [`carrier::frame`]: the link frame on Ethernet or UDP, which replaces the line code.
//! - [`carrier::training`]: the frames of channel initialisation.
//! - [`carrier::lanes`]: the assignment of bits to lanes; swapped lanes and polarity.
//! - [`carrier::lane_layout`]: the bytes of a frame that the lanes carry.
//! - [`carrier::number`]: the 48-bit number of a packet on a link.
//!
//! [`door`] is the interface between local programs and a network interface (NIC) of any machine.
//! [`attendance`] is the clock of their timeouts.
//!
//! The machines import the carrier, but not each other. From the inside out, [`yarc`] (BlackWidow):
//!
//! - [`yarc::phit`]: the 24-bit phit, unit of flow control.
//! - [`yarc::packet`]: head, hash and end-of-packet phits; [`yarc::packet::PacketBuf`].
//! - [`yarc::crc16`]: the check of a packet, one phit at a time.
//! - [`yarc::memory`]: memory requests and responses as packets.
//! - [`yarc::maintenance`]: source-routed packets that read and write configuration registers.
//! - [`yarc::control`]: the 96-bit control word in the two sideband bits of every phit.
//! - [`yarc::frame`]: frames of phits.
//!
//! And [`aries`]:
//!
//! - [`aries::flit`]: the 48-bit flit and the head of a packet, which routers read.
//! - [`aries::packet`]: requests and responses of the NICs, with their end-to-end check.
//! - [`aries::set`]: sets of ten flits, data and link control; [`aries::crc20`]: their check;
//!   [`aries::pattern`]: their scrambling.
//! - [`aries::frame`]: frames of whole sets.
//!
//! And [`t3e`]:
//!
//! - [`t3e::flit`]: the flit of 70 bits and its control bits.
//! - [`t3e::header`]: the header flit, which routers read; [`t3e::tag`]: the route in it, and the
//!   addresses of nodes; [`t3e::direction`]: the directions of a torus.
//! - [`t3e::packet`]: requests and responses of processors.
//! - [`t3e::check`]: the checks of a header and of the words after it, which correct one wrong bit.
//! - [`t3e::barrier`]: barrier and eureka messages, one flit each.
//! - [`t3e::maintenance`]: packets that read and write configuration registers.
//! - [`t3e::burst`]: eight flits, the unit of the frames.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(any(test, feature = "processor-crc"))]
extern crate std;

/// The example of the README, tested as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

pub mod aries;
pub mod attendance;
pub mod carrier;
pub mod door;
pub mod t3e;
pub mod yarc;
