//! Errors made on purpose by the hardware of a link.

/// Bit errors that the transmitter makes on purpose, for tests of the machine.
///
/// Of every set (what is checked and sent again as a whole), each lane of `lane_mask` is hit with
/// probability `probability / 2^16`; what is hit has the bits of `bit_mask` inverted in one of its
/// 16-bit words, drawn at random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorInjection {
    /// Lanes that may be hit, one bit per lane.
    pub lane_mask: u8,
    /// Bits inverted in the word that is hit.
    pub bit_mask: u16,
    /// Sets hit out of 65,536 per lane; 0 turns injection off.
    pub probability: u16,
    /// Most sets hit among 64 in a row.
    pub max_per_64_sets: u8,
    /// Seed of the draw.
    pub seed: u64,
}
