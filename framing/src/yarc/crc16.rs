//! The check of a packet: a 16-bit CRC over its phits (BlackWidow sec. 4.3; polynomial ours).
//!
//! BlackWidow gives neither width nor polynomial. Sixteen bits leave room for `ok` in the end of
//! packet. [`POLYNOMIAL`] comes from an exhaustive search over all 32,768 polynomials of degree 16
//! with a constant term: Hamming distance 4 for every length up to the 19 phits of the longest
//! packet (none reaches 5 there), distance 5 for the 4 phits of the shortest, and 15,195 undetected
//! patterns of four flipped bits at 19 phits, within 3 % of the best polynomial. All bursts up to
//! 16 bits are detected. `tests/yarc/crc_distance.rs` proves these numbers.
//!
//! It covers head to last payload phit, each as three bytes (two zero bits, then the 22 content
//! bits, most significant first), then one byte with the two `ok` bits of the end of packet. Start
//! value 0xffff, no reflection, no final inversion.

use super::packet::{Eop, EopError, EopStatus};
use super::phit::Phit;
use crate::carrier::crc_tables::tables;

/// x^16 + x^13 + x^12 + x^8 + x^7 + x^5 + 1, without its highest term.
pub const POLYNOMIAL: u16 = 0x31a1;
/// State before the first phit.
pub const INITIAL: u16 = 0xffff;

/// CRC tables, by the number of following bytes in the same pair of phits.
static TABLES: [[u16; 256]; 6] = tables(POLYNOMIAL, 2);

/// The contribution of the three bytes of a phit when `after` bytes follow.
#[inline(always)]
fn effect(content: u32, after: usize) -> u16 {
    TABLES[after + 2][usize::from((content >> 16) as u8)]
        ^ TABLES[after + 1][usize::from((content >> 8) as u8)]
        ^ TABLES[after][usize::from(content as u8)]
}

#[inline(always)]
fn step(crc: u16, content: u32) -> u16 {
    // XORing the state into the first two of the three bytes has the same effect. With a separate
    // look-up, those of the content need not wait for the previous phit.
    TABLES[2][usize::from((crc >> 8) as u8)]
        ^ TABLES[1][usize::from(crc as u8)]
        ^ effect(content, 0)
}

#[inline(always)]
fn step_pair(crc: u16, first: u32, second: u32) -> u16 {
    TABLES[5][usize::from((crc >> 8) as u8)]
        ^ TABLES[4][usize::from(crc as u8)]
        ^ effect(first, 3)
        ^ effect(second, 0)
}

/// The running check of one packet.
///
/// Call order: [`new`](Self::new), [`update`](Self::update) for the head and every phit up to the
/// last payload phit, then [`finish_with`](Self::finish_with) to write an end of packet or
/// [`verify`](Self::verify) to check one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketCrc(u16);

impl Default for PacketCrc {
    fn default() -> Self {
        Self::new()
    }
}

impl PacketCrc {
    /// The state before the head phit.
    #[inline]
    pub const fn new() -> Self {
        Self(INITIAL)
    }

    /// Adds the 22 content bits of the next phit; higher bits must be zero (as from
    /// [`super::phit::Phit::content`]).
    #[inline]
    pub fn update(&mut self, content: u32) {
        debug_assert!(content <= super::phit::CONTENT_MASK);
        self.0 = step(self.0, content);
    }

    /// Adds the contents of several phits: like [`Self::update`] for each, but faster.
    #[inline]
    pub fn update_all(&mut self, phits: &[Phit]) {
        let (pairs, rest) = phits.as_chunks::<2>();
        for [first, second] in pairs {
            self.0 = step_pair(self.0, first.content(), second.content());
        }
        for phit in rest {
            self.0 = step(self.0, phit.content());
        }
    }

    /// The check value of a packet that ends here with `status`.
    #[inline]
    pub fn finish_with(self, status: EopStatus) -> u16 {
        let v = (self.0 >> 8) as u8 ^ status as u8;
        (self.0 << 8) ^ TABLES[0][usize::from(v)]
    }

    /// The content of the end-of-packet phit that closes the packet with `status` and a good check.
    #[inline]
    pub fn eop(self, status: EopStatus) -> u32 {
        Eop {
            crc: self.finish_with(status),
            status,
        }
        .emit()
    }

    /// Checks the content of an end-of-packet phit against the phits before it.
    ///
    /// # Errors
    /// [`EopError::Crc`] when the check is invalid; the others as for [`Eop::parse`].
    #[inline]
    pub fn verify(self, eop_content: u32) -> Result<EopStatus, EopError> {
        let eop = Eop::parse(eop_content)?;
        if eop.crc == self.finish_with(eop.status) {
            Ok(eop.status)
        } else {
            Err(EopError::Crc)
        }
    }
}

/// Updates the check of a packet when a router changes one of its phits.
///
/// A router that increments the hop index of a source-routed packet must not compute a fresh check:
/// that would hide any damage to the packet. The CRC is linear, so the change of one phit adds a
/// known pattern to the check, and damage stays visible. Call order: [`new`](Self::new) with the
/// XOR of old and new content, [`advance`](Self::advance) for every later phit up to the last
/// payload phit, [`apply`](Self::apply) to the content of the end-of-packet phit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrcPatch(u16);

impl CrcPatch {
    /// A change of `difference` (old content XOR new content) in the current phit.
    #[inline]
    pub fn new(difference: u32) -> Self {
        debug_assert!(difference <= super::phit::CONTENT_MASK);
        Self(step(0, difference))
    }

    /// Advances over one more phit of the packet, not the end of packet.
    #[inline]
    pub fn advance(&mut self) {
        self.0 = step(self.0, 0);
    }

    /// The end-of-packet content with the check updated.
    #[inline]
    pub fn apply(self, eop_content: u32) -> u32 {
        let through_status = (self.0 << 8) ^ TABLES[0][usize::from((self.0 >> 8) as u8)];
        eop_content ^ u32::from(through_status)
    }
}
