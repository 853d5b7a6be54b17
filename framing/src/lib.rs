//! Bit layouts of phitwire's networks: link frames, and phits, flits, packets and checks of each
//! machine.
//!
//! The crate is `no_std` (but for the feature `processor-crc`, by which the processor's own instructions
//! compute the checks of frames, sets and flits' packets), allocates nothing and has no state of its own: every function turns
//! bits into values or values into bits. Bytes from outside never make it panic; what is wrong with them
//! is named by an error. `docs/guide/src/wire-format.md` draws every layout and says which parts are the
//! papers' ("The BlackWidow High-Radix Clos Network", ISCA 2006; the Cray XC white paper, 2012) and
//! which are this project's.
//!
//! [`carrier`] is what the links of every machine use, and imports no machine:
//!
//! - [`carrier::frame`]: the link frame on Ethernet or UDP that stands for the line code.
//! - [`carrier::training`]: the frames of channel initialisation.
//! - [`carrier::lanes`]: which bits travel on which lane; swapped lanes and polarity.
//! - [`carrier::number`]: the 48-bit number of a packet on a link.
//!
//! [`door`] is what local programs and a network interface share, whatever the machine.
//! [`attendance`] is the clock of their time-outs.
//!
//! The machines import the carrier and not each other. From the inside out, [`yarc`] (BlackWidow):
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
//! - [`aries::flit`]: the 48-bit flit and the head of a packet: what a router looks at.
//! - [`aries::packet`]: requests and responses of the network interfaces, with their check from end
//!   to end.
//! - [`aries::set`]: sets of ten flits, data and link control; [`aries::crc20`]: their check;
//!   [`aries::pattern`]: what a link lays over them.
//! - [`aries::frame`]: frames of whole sets.
#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "processor-crc")]
extern crate std;

/// The example of the README, kept true by the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

pub mod aries;
pub mod attendance;
pub mod carrier;
pub mod door;
pub mod yarc;

use carrier::frame::{FrameHeader, PLAIN_AT};
use carrier::training::{self as channel, Training};
use core::ops::Range;

/// Where what the lanes carry lies in a frame, for those that change it (noise, a cable's swaps):
/// phits, sets, the training pattern; in a frame of a kind that is not of this crate, everything
/// behind header and check. Judges nothing but lengths; `None` when `bytes` cannot be a frame.
pub fn lane_area(bytes: &[u8]) -> Option<Range<usize>> {
    let header = FrameHeader::parse(bytes).ok()?;
    let units = usize::from(header.units);
    let area = match header.kind {
        Training::KIND => channel::PATTERN_AT,
        yarc::frame::DataFrame::KIND => yarc::frame::data_area(units),
        aries::frame::SetFrame::KIND => aries::frame::set_area(units),
        _ => PLAIN_AT..bytes.len().max(PLAIN_AT),
    };
    (area.end == bytes.len()).then_some(area)
}
