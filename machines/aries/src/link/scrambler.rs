//! Scrambling: a lane's bits look random regardless of the data (publicly known of Aries: a seed
//! per lane).

use phitwire_framing::aries::pattern::Pattern;
use phitwire_framing::aries::set::{LANES, SET_BYTES, SetBytes};

/// A pattern for each combination of lanes in use, applied to every set.
///
/// Every lane has a 15-bit generator x^15 + x^14 + 1 with its own seed, restarted with every set: a
/// frame can be lost, and a running generator would lose synchronisation (ours).
#[derive(Clone, Debug)]
pub(crate) struct Scrambler {
    seeds: [u16; LANES.count()],
    lanes: u8,
    pattern: Pattern,
}

impl Scrambler {
    /// Patterns for the lanes in `lanes`; a lane with seed 0 is not scrambled.
    pub fn new(seeds: [u16; LANES.count()], lanes: u8) -> Self {
        let mut scrambler = Self {
            seeds,
            lanes: 0,
            pattern: Pattern::NONE,
        };
        scrambler.set_lanes(lanes);
        scrambler
    }

    #[inline]
    pub fn set_lanes(&mut self, lanes: u8) {
        if self.lanes != lanes {
            self.compute(lanes);
        }
    }

    fn compute(&mut self, lanes: u8) {
        debug_assert!(lanes & !LANES.all() == 0, "the link has these lanes");
        self.lanes = lanes & LANES.all();
        let mut pattern = [0; SET_BYTES];
        let mut states = self.seeds.map(|seed| seed & 0x7fff);
        LANES.map_area(&mut pattern, |_| {
            let mut bits = 0;
            for (lane, state) in states.iter_mut().enumerate() {
                let mut mask = LANES.bits_of(self.lanes, lane as u8);
                while mask != 0 {
                    let bit = 31 - mask.leading_zeros();
                    mask ^= 1 << bit;
                    let next = (*state >> 14 ^ *state >> 13) & 1;
                    *state = (*state << 1 | next) & 0x7fff;
                    bits |= u32::from(next) << bit;
                }
            }
            bits
        });
        self.pattern = Pattern::new(pattern);
    }

    #[inline]
    pub const fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Scrambles or descrambles a set.
    #[inline]
    pub fn apply(&self, set: &mut SetBytes) {
        self.pattern.apply(set);
    }

    /// Descrambles a copy of a set.
    pub fn descrambled(&self, mut set: SetBytes) -> SetBytes {
        self.apply(&mut set);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_is_never_and_every_lane_has_its_own() {
        for lanes in 1..8 {
            let scrambler = Scrambler::new([0x1d5f, 0x2b37, 0x7c19], lanes);
            let mut set = [0x5a; SET_BYTES];
            scrambler.apply(&mut set);
            assert_ne!(set, [0x5a; SET_BYTES]);
            assert_eq!(scrambler.descrambled(set), [0x5a; SET_BYTES]);
            scrambler.apply(&mut set);
            assert_eq!(set, [0x5a; SET_BYTES]);
        }
        let one = Scrambler::new([0x1d5f, 0, 0], 7);
        let mut other = Scrambler::new([0x1d5f, 0x2b37, 0], 1);
        assert_ne!(one.pattern, other.pattern);
        other.set_lanes(7);
        let [a, b] = [&one, &other].map(|scrambler| LANES.words(scrambler.pattern.bytes()));
        for (a, b) in a.zip(b) {
            assert_eq!((a ^ b) & !LANES.bits_of(7, 1), 0, "only lane 1 differs");
            assert_eq!(a & !LANES.bits_of(7, 0), 0);
        }
    }

    #[test]
    fn no_seed_no_change() {
        let scrambler = Scrambler::new([0; LANES.count()], 7);
        let mut set = [0x33; SET_BYTES];
        scrambler.apply(&mut set);
        assert_eq!(set, [0x33; SET_BYTES]);
    }

    #[test]
    fn ones_and_zeros_balance_on_every_lane() {
        for lanes in [1, 3, 7] {
            let scrambler = Scrambler::new([0x1d5f, 0x2b37, 0x7c19], lanes);
            for lane in 0..lanes.count_ones() as u8 {
                let mask = LANES.bits_of(lanes, lane);
                let words = LANES.words(scrambler.pattern.bytes());
                let ones: u32 = words.map(|word| (word & mask).count_ones()).sum();
                let of = 20 * mask.count_ones();
                assert!((of * 2 / 5..of * 3 / 5).contains(&ones), "{ones} of {of}");
            }
        }
    }
}
