//! Injected bit errors, as programmed in the link control block's registers.

use phitwire_framing::aries::set::{LANES, SET_BYTES, SetBytes};

use phitwire::link::ErrorInjection;
use phitwire::rng::Rng;

/// Sets among which the number of errors is bounded.
const SPAN: u8 = 64;
/// Bits of a word that is hit.
const WORD: u64 = 16;

/// Damages outgoing sets.
#[derive(Debug)]
pub(super) struct Injector {
    registers: ErrorInjection,
    rng: Rng,
    /// Sets of the current 64 seen so far.
    seen: u8,
    /// Damaged sets among `seen`.
    hit: u8,
    /// Whether to damage the CRC of the next set.
    bad_crc: bool,
}

impl Injector {
    pub fn new(registers: ErrorInjection) -> Self {
        Self {
            registers,
            rng: Rng::new(registers.seed, 0),
            seen: 0,
            hit: 0,
            bad_crc: false,
        }
    }

    /// Damages one bit of the CRC of the next set.
    pub fn force_bad_crc(&mut self) {
        self.bad_crc = true;
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.bad_crc || self.registers.probability != 0
    }

    /// Possibly damages a set that leaves on `lanes`. Returns whether it did.
    pub fn apply(&mut self, set: &mut SetBytes, lanes: u8) -> bool {
        let mut hit = core::mem::take(&mut self.bad_crc);
        if hit {
            set[SET_BYTES - 1] ^= 1;
        }
        if self.seen == SPAN {
            (self.seen, self.hit) = (0, 0);
        }
        self.seen += 1;
        for lane in 0..LANES.count() as u8 {
            let ErrorInjection {
                lane_mask,
                bit_mask,
                probability,
                max_per_64_sets,
                ..
            } = self.registers;
            let struck = lane_mask & lanes & (1 << lane) != 0
                && self.hit < max_per_64_sets
                && self.rng.chance(probability.into(), 1 << 16);
            if struck {
                self.strike(set, lanes, lane, bit_mask);
                self.hit += 1;
                hit = true;
            }
        }
        hit
    }

    /// Inverts the bits of `mask` in one of the set's words on `lane`.
    fn strike(&mut self, set: &mut SetBytes, lanes: u8, lane: u8, mask: u16) {
        debug_assert!(lanes >> lane & 1 == 1, "only a lane in use is struck");
        let active = u64::from(lanes.count_ones());
        let index = u64::from((lanes & ((1 << lane) - 1)).count_ones());
        let words = SET_BYTES as u64 * 8 / active / WORD;
        let word = self.rng.below(words);
        for k in (0..WORD).filter(|k| mask >> k & 1 != 0) {
            // Bit i of the set, counted from its last, travels on lane i mod n of those in use.
            let bit = ((word * WORD + k) * active + index) as usize;
            set[SET_BYTES - 1 - bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers() -> ErrorInjection {
        ErrorInjection {
            lane_mask: 0b010,
            bit_mask: 0b101,
            probability: 1 << 13,
            max_per_64_sets: 64,
            seed: 5,
        }
    }

    #[test]
    fn only_the_lane_is_hit_with_the_bits_of_the_mask_as_often_as_asked() {
        let mut injector = Injector::new(registers());
        let mut hits = 0;
        for _ in 0..6_400 {
            let mut set = [0; SET_BYTES];
            let hit = injector.apply(&mut set, 7);
            let ones: u32 = set.iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(ones, if hit { 2 } else { 0 });
            let elsewhere = !LANES.bits_of(7, 1);
            assert!(LANES.words(&set).all(|word| word & elsewhere == 0));
            hits += u32::from(hit);
        }
        assert!((700..900).contains(&hits), "{hits} of about 800");
    }

    #[test]
    fn errors_are_bounded_and_lanes_out_of_use_are_not_hit() {
        let mut injector = Injector::new(ErrorInjection {
            probability: u16::MAX,
            max_per_64_sets: 3,
            ..registers()
        });
        let mut set = [0; SET_BYTES];
        let hits = (0..640).filter(|_| injector.apply(&mut set, 7)).count();
        assert_eq!(hits, 30);
        assert_eq!((0..640).filter(|_| injector.apply(&mut set, 5)).count(), 0);
        assert!((0..64).filter(|_| injector.apply(&mut set, 2)).count() == 3);
    }

    #[test]
    fn a_bad_check_is_made_once() {
        let mut injector = Injector::new(ErrorInjection::default());
        assert!(!injector.is_on());
        injector.force_bad_crc();
        assert!(injector.is_on());
        let mut set = [0; SET_BYTES];
        assert!(injector.apply(&mut set, 7));
        assert_eq!(set[59], 1);
        assert!(!injector.apply(&mut set, 7) && !injector.is_on());
    }
}
