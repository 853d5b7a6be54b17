//! Random numbers.

use std::time::Duration;

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end.max(1)
    }

    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// True in `per_mille` of 1,000 cases.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let span = most.saturating_sub(least).as_micros() as u64;
        least + Duration::from_micros(self.below(span + 1))
    }
}
