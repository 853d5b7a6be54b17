//! Bit errors on the wires of a link, above its carrier, where routers detect and destinations
//! correct them.

use phitwire_framing::t3e::burst::Burst;
use phitwire_framing::t3e::flit::Flit;

use phitwire::link::impair::Probability;
use phitwire::rng::Rng;

/// Noise on the lanes of the sending direction. It changes the words of flits but not their control
/// bits, where an error would lose a credit for ever: see `docs/guide/src/deviations.md`.
#[derive(Clone, Debug)]
pub struct LaneErrors {
    per_bit: [Probability; Burst::LANES as usize],
    rng: Rng,
}

impl LaneErrors {
    /// No noise on any lane; later noise is drawn from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            per_bit: [Probability::ZERO; Burst::LANES as usize],
            rng: Rng::new(seed, 0x73e),
        }
    }

    /// Flips each bit of `lane` with probability `per_bit` from now on. Returns false if the lane
    /// does not exist.
    pub fn set(&mut self, lane: u8, per_bit: Probability) -> bool {
        let noise = self.per_bit.get_mut(usize::from(lane));
        noise.map(|noise| *noise = per_bit).is_some()
    }

    pub fn any(&self) -> bool {
        self.per_bit
            .iter()
            .any(|per_bit| *per_bit != Probability::ZERO)
    }

    /// Applies the noise to a flit. Returns the number of bits flipped.
    pub fn apply(&mut self, flit: &mut Flit) -> u32 {
        let mut flipped = 0_u64;
        for (lane, per_bit) in self.per_bit.iter().enumerate() {
            if *per_bit == Probability::ZERO {
                continue;
            }
            for bit in (lane..64).step_by(Burst::LANES as usize) {
                let hit = (self.rng.next_u64() as u32) < per_bit.parts();
                flipped |= u64::from(hit || *per_bit == Probability::ONE) << bit;
            }
        }
        flit.word ^= flipped;
        flipped.count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noisy_lane_flips_its_own_bits() {
        let mut noise = LaneErrors::new(1);
        assert!(!noise.any() && !noise.set(14, Probability::ONE));
        assert!(noise.set(3, Probability::ONE) && noise.any());
        let mut flit = Flit::default();
        assert_eq!(noise.apply(&mut flit), 5);
        assert_eq!(flit.word, 1 << 3 | 1 << 17 | 1 << 31 | 1 << 45 | 1 << 59);
        noise.set(3, Probability::from_ratio(1, 100));
        let flipped: u32 = (0..10_000).map(|_| noise.apply(&mut flit)).sum();
        assert!((400..600).contains(&flipped), "{flipped} of 50,000");
    }
}
