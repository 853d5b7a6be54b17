//! Patterns: bits that both ends of a link lay over every set, so that what the lanes carry looks
//! random whatever the data.
//!
//! Where the bits come from is the link's business. Here a set is read and written *under* a
//! pattern, flit by flit, so that it never lies in memory without it: a copy of its own would have
//! to be written and waited for. The check of a set is linear: a pattern adds the same to the check
//! of every set.

use super::crc20;
use super::flit::Flit;
use super::set::{SET_BYTES, SET_FLITS, SetBytes, SetView};

/// Bits that are laid over every set, or taken off, which is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    bytes: SetBytes,
    flits: [Flit; SET_FLITS],
    remainder: u32,
}

impl Pattern {
    /// No bits: sets are left as they are.
    pub const NONE: Self = Self {
        bytes: [0; SET_BYTES],
        flits: [Flit::IDLE; SET_FLITS],
        remainder: 0,
    };

    /// A pattern of these bits.
    pub fn new(bytes: SetBytes) -> Self {
        let view = SetView::new(bytes);
        Self {
            bytes,
            flits: core::array::from_fn(|index| view.flit(index)),
            remainder: crc20::remainder(&bytes),
        }
    }

    /// The bits.
    pub const fn bytes(&self) -> &SetBytes {
        &self.bytes
    }

    /// The bits over flit `index`.
    ///
    /// # Panics
    /// If there is no such flit.
    #[inline]
    pub(super) const fn flit(&self, index: usize) -> u64 {
        self.flits[index].bits()
    }

    /// What the pattern adds to the remainder of a set.
    #[inline]
    pub(super) const fn remainder(&self) -> u32 {
        self.remainder
    }

    /// Lays the pattern over a set, or takes it off.
    #[inline]
    pub fn apply(&self, set: &mut SetBytes) {
        for (i, byte) in set.iter_mut().enumerate() {
            *byte ^= self.bytes[i];
        }
    }
}
