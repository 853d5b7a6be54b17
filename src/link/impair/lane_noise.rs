//! Noise on one lane: bit errors only in the bits that this lane carries.

use phitwire_framing::carrier::frame::FrameHeader;
use phitwire_framing::carrier::lane_layout::LaneLayout;

use super::netem::Probability;
use crate::rng::Rng;

/// Flips bits of one lane in the phits of data frames and in the lane pattern of training frames,
/// at the transmitting side of a link.
///
/// The frame header, the kind map and the body of training frames are protected by the line code
/// and stay untouched. An unused lane carries no data, so its noise is harmless: decommissioning a
/// noisy lane (BlackWidow sec. 7.7) cures the link. The pattern always travels on all lanes, which
/// exposes a lane too noisy for any packet.
#[derive(Clone, Debug)]
pub struct LaneNoise {
    layout: LaneLayout,
    lane: u8,
    per_bit: Probability,
    rng: Rng,
    flipped_bits: u64,
}

impl LaneNoise {
    /// Noise on `lane` of a link with frames of this layout; it flips each bit of the lane with
    /// probability `per_bit`.
    ///
    /// # Panics
    /// If the link has no such lane.
    pub fn new(layout: LaneLayout, lane: u8, per_bit: Probability, rng: Rng) -> Self {
        assert!(
            usize::from(lane) < layout.lanes().count(),
            "a link has no more lanes"
        );
        Self {
            layout,
            lane,
            per_bit,
            rng,
            flipped_bits: 0,
        }
    }

    /// Bits flipped so far.
    pub const fn flipped_bits(&self) -> u64 {
        self.flipped_bits
    }

    /// Applies the noise to one frame. Bytes that are not a frame stay as they are.
    pub fn apply(&mut self, frame: &mut [u8]) {
        if self.per_bit == Probability::ZERO {
            return;
        }
        let Ok(header) = FrameHeader::parse(frame) else {
            return;
        };
        let lanes = self.layout.lanes();
        let lane_bits = lanes.bits_of(header.lanes, self.lane);
        if lane_bits == 0 {
            return;
        }
        let Some(range) = self.layout.area(frame) else {
            return;
        };
        let area = &mut frame[range];
        for word in 0..area.len() / lanes.word_bytes() {
            let mask = self.errors(lane_bits);
            if mask != 0 {
                self.flipped_bits += u64::from(mask.count_ones());
                lanes.flip(area, word, mask);
            }
        }
    }

    /// The bits of `lane_bits` that noise hits in one wire word. Two 32-bit draws per generator
    /// step.
    fn errors(&mut self, lane_bits: u32) -> u32 {
        let mut mask = 0;
        let mut left = lane_bits;
        while left != 0 {
            let word = self.rng.next_u64();
            for point in [word as u32, (word >> 32) as u32] {
                let bit = left & left.wrapping_neg();
                left ^= bit;
                let hit = point < self.per_bit.parts() || self.per_bit == Probability::ONE;
                mask |= if hit { bit } else { 0 };
            }
        }
        mask
    }
}
