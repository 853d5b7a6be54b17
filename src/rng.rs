//! Seeded random numbers, with integer-ratio probabilities.

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The finaliser of SplitMix64: every bit of the result depends on every bit of `word`.
#[inline]
pub const fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// Like [`mix`], but zero does not stay zero.
#[inline]
pub const fn spread(word: u64) -> u64 {
    mix(word.wrapping_add(0x9e37_79b9_7f4a_7c15))
}

/// A deterministic generator: the same seed gives the same sequence on every machine.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// A generator for `seed`; distinct `stream`s of one seed are independent.
    pub fn new(seed: u64, stream: u64) -> Self {
        // `seed_from_u64` applies SplitMix, which separates neighbouring seeds; the odd constant
        // separates the streams of neighbouring seeds.
        Self(Xoshiro256PlusPlus::seed_from_u64(
            seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17),
        ))
    }

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
        assert!(bound > 0, "the range is empty");
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

/// A geometric distribution: the number of failures before the first success. It uses only
/// integers, so that every machine draws the same numbers.
#[derive(Clone, Debug)]
pub(crate) struct Geometric {
    /// Probability in units of 2^-64 that the first 2^k trials all fail.
    powers: Vec<u64>,
}

const fn high_product(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

impl Geometric {
    /// Trials that succeed with probability `numerator / denominator`, above 0.
    pub(crate) fn new(numerator: u64, denominator: u64) -> Self {
        let fails = u128::from(denominator.saturating_sub(numerator));
        let mut power = ((fails << 64) / u128::from(denominator)).min(u128::from(u64::MAX)) as u64;
        let mut powers = Vec::new();
        while power > 0 && powers.len() < 40 {
            powers.push(power);
            power = high_product(power, power);
        }
        Self { powers }
    }

    /// The largest number of failures whose probability exceeds a random number.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        let random = rng.next_u64();
        let mut chance = u64::MAX;
        let mut count = 0;
        for (k, &power) in self.powers.iter().enumerate().rev() {
            let further = high_product(chance, power);
            if further > random {
                chance = further;
                count += 1 << k;
            }
        }
        count
    }
}
