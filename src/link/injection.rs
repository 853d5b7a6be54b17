//! Hardware error injection on a link.

/// Bit errors that the transmitter injects to test the machine.
///
/// In every set (the unit that is checked and resent), each lane of `lane_mask` is hit with
/// probability `probability / 2^16`. A hit inverts the bits of `bit_mask` in one of the lane's
/// 16-bit words, drawn at random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorInjection {
    /// Lanes that may be hit, one bit per lane.
    pub lane_mask: u8,
    /// Bits inverted in the word that is hit.
    pub bit_mask: u16,
    /// Sets hit out of 65,536 per lane; 0 turns injection off.
    pub probability: u16,
    /// Maximum number of hits, over all lanes, in each block of 64 sets.
    pub max_per_64_sets: u8,
    /// Seed of the draw.
    pub seed: u64,
}
