//! Scrambling patterns. Both ends of a link XOR them over every set, so that the lanes carry
//! random-looking bits for any data.
//!
//! The link chooses the bits. Sets are read and written *under* a pattern, flit by flit, so that an
//! unscrambled set is never in memory: a separate copy would cost a write and a stall. The check of
//! a set is linear, so a pattern adds the same value to the check of every set.

use super::crc20;
use super::flit::Flit;
use super::set::{SET_BYTES, SET_FLITS, SetBytes, SetView};

/// A scrambling pattern. Applying it twice restores the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    bytes: SetBytes,
    flits: [Flit; SET_FLITS],
    remainder: u32,
}

impl Pattern {
    /// The empty pattern: leaves sets unchanged.
    pub const NONE: Self = Self {
        bytes: [0; SET_BYTES],
        flits: [Flit::IDLE; SET_FLITS],
        remainder: 0,
    };

    /// The pattern with these bits.
    pub fn new(bytes: SetBytes) -> Self {
        let view = SetView::new(bytes);
        Self {
            bytes,
            flits: core::array::from_fn(|index| view.flit(index)),
            remainder: crc20::remainder(&bytes),
        }
    }

    /// The pattern as bytes, to XOR with those of a set.
    pub const fn bytes(&self) -> &SetBytes {
        &self.bytes
    }

    /// The bits for flit `index`.
    ///
    /// # Panics
    /// If there is no such flit.
    #[inline]
    pub(super) const fn flit(&self, index: usize) -> u64 {
        self.flits[index].bits()
    }

    /// The pattern's contribution to the remainder of a set.
    #[inline]
    pub(super) const fn remainder(&self) -> u32 {
        self.remainder
    }

    /// Applies the pattern to a set, or removes it.
    #[inline]
    pub fn apply(&self, set: &mut SetBytes) {
        for (i, byte) in set.iter_mut().enumerate() {
            *byte ^= self.bytes[i];
        }
    }
}
