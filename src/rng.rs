//! The seeded generator handed to whatever needs randomness, with integer-ratio probabilities.

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The finaliser of SplitMix64: every bit of the result depends on every bit of `word`.
#[inline]
pub(crate) const fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// The same of numbers that may be small: also zero becomes something else.
#[inline]
pub(crate) const fn spread(word: u64) -> u64 {
    mix(word.wrapping_add(0x9e37_79b9_7f4a_7c15))
}

/// A deterministic generator: the same seed gives the same sequence on every machine.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// A generator for `seed`; distinct `stream`s of one seed are independent.
    pub fn new(seed: u64, stream: u64) -> Self {
        // SplitMix inside seed_from_u64 spreads neighbouring seeds; the odd constant keeps streams
        // of neighbouring seeds from meeting.
        Self(Xoshiro256PlusPlus::seed_from_u64(
            seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17),
        ))
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..bound`.
    ///
    /// # Panics
    /// If `bound` is zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "an empty range has no member");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with probability `numerator / denominator`.
    ///
    /// # Panics
    /// If `denominator` is zero.
    #[inline]
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }
}
