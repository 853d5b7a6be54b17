//! Noise on one lane: bit errors that hit only the bits which that lane carries.

use phitwire_framing::frame::FrameHeader;
use phitwire_framing::lane_area;
use phitwire_framing::lanes::{bits_of_lane, flip};

use super::netem::Probability;
use crate::rng::Rng;

/// Flips bits of one lane in the phits of data frames and in the lane pattern of training frames, at
/// the transmitting side of a link.
///
/// Frame header, kind map and the body of training frames stand for what the line code protects and
/// stay untouched. A lane that is not in use carries no data, so its noise does no harm: that is what
/// makes decommissioning a lane (paper, section 7.7) a cure. The pattern always travels on all lanes:
/// it is how a lane too noisy for any packet is found out.
#[derive(Clone, Debug)]
pub struct LaneNoise {
    lane: u8,
    per_bit: Probability,
    rng: Rng,
    flipped_bits: u64,
}

impl LaneNoise {
    /// Noise on `lane` (0 to 2) that flips each of its bits with probability `per_bit`.
    ///
    /// # Panics
    /// If there is no such lane.
    pub fn new(lane: u8, per_bit: Probability, rng: Rng) -> Self {
        assert!(
            usize::from(lane) < phitwire_framing::lanes::LANES,
            "a port has three lanes"
        );
        Self {
            lane,
            per_bit,
            rng,
            flipped_bits: 0,
        }
    }

    /// The noisy lane.
    pub const fn lane(&self) -> u8 {
        self.lane
    }

    /// Bits flipped so far.
    pub const fn flipped_bits(&self) -> u64 {
        self.flipped_bits
    }

    /// Lets the noise act on one frame. Bytes that are no frame stay as they are.
    pub fn apply(&mut self, frame: &mut [u8]) {
        if self.per_bit == Probability::ZERO {
            return;
        }
        let Ok(header) = FrameHeader::parse(frame) else {
            return;
        };
        let lane_bits = bits_of_lane(header.lanes, self.lane);
        if lane_bits == 0 {
            return;
        }
        let Some(range) = lane_area(frame) else {
            return;
        };
        let area = &mut frame[range];
        for phit in 0..area.len() / 3 {
            let mask = self.errors(lane_bits);
            if mask != 0 {
                self.flipped_bits += u64::from(mask.count_ones());
                flip(area, phit, mask);
            }
        }
    }

    /// The bits of `lane_bits` that noise hits in one phit. Two 32-bit draws per generator step.
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

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire_framing::control::ControlWord;
    use phitwire_framing::frame::{DataFrame, LinkEnd, SetFrame, emit_data, frame_len};
    use phitwire_framing::phit24::Phit;

    const PHITS: usize = 400;

    fn frame(lanes: u8) -> Vec<u8> {
        let header = FrameHeader {
            kind: DataFrame::KIND,
            end: LinkEnd::A,
            link: 3,
            fabric: 7,
            tx_epoch: 1,
            rx_epoch: 2,
            lanes,
            units: 0,
        };
        let mut bytes = vec![0xa5; frame_len(PHITS)];
        let phits = [Phit::IDLE; PHITS];
        let length = emit_data(&header, &ControlWord::default(), &[&phits, &[]], &mut bytes)
            .expect("the buffer is as long as the frame");
        bytes.truncate(length);
        bytes
    }

    /// Number of differing bits on each lane; panics if anything outside the phit area differs.
    fn differences(clean: &[u8], noisy: &[u8], lanes: u8) -> [u32; 3] {
        let range = lane_area(clean).expect("a whole frame");
        assert_eq!(
            clean[..range.start],
            noisy[..range.start],
            "header and kind map are untouched"
        );
        let word = |bytes: &[u8]| u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        let mut count = [0; 3];
        for (a, b) in clean[range.clone()].chunks(3).zip(noisy[range].chunks(3)) {
            for (lane, count) in count.iter_mut().enumerate() {
                let mask = bits_of_lane(lanes, lane as u8);
                *count += ((word(a) ^ word(b)) & mask).count_ones();
            }
        }
        count
    }

    #[test]
    fn only_the_bits_of_the_lane_are_hit_and_as_often_as_asked() {
        let clean = frame(0b111);
        let mut noise = LaneNoise::new(1, Probability::from_ratio(1, 100), Rng::new(5, 0));
        let mut total = [0; 3];
        for _ in 0..500 {
            let mut noisy = clean.clone();
            noise.apply(&mut noisy);
            assert!(
                DataFrame::parse(&noisy).is_ok(),
                "the line code is untouched"
            );
            for (sum, count) in total.iter_mut().zip(differences(&clean, &noisy, 0b111)) {
                *sum += count;
            }
        }
        assert_eq!((total[0], total[2]), (0, 0));
        // 500 frames x 400 phits x 8 bits / 100 = 16,000 +- 126 (one sigma).
        assert!((15_300..16_700).contains(&total[1]), "{} bits", total[1]);
        assert_eq!(u64::from(total[1]), noise.flipped_bits());
    }

    #[test]
    fn a_lane_out_of_use_is_harmless_and_a_lane_in_use_carries_more() {
        let mut noise = LaneNoise::new(1, Probability::ONE, Rng::new(5, 0));
        let clean = frame(0b101);
        let mut noisy = clean.clone();
        noise.apply(&mut noisy);
        assert_eq!(noisy, clean);

        let clean = frame(0b110);
        let mut noisy = clean.clone();
        noise.apply(&mut noisy);
        assert_eq!(
            differences(&clean, &noisy, 0b110),
            [0, 12 * PHITS as u32, 0]
        );
    }

    #[test]
    fn bytes_that_are_no_frame_stay_as_they_are() {
        let mut noise = LaneNoise::new(0, Probability::ONE, Rng::new(5, 0));
        let whole = frame(0b111);
        for length in 0..whole.len() {
            let mut cut = whole[..length].to_vec();
            noise.apply(&mut cut);
            assert_eq!(cut, whole[..length]);
        }
        let mut other = whole.clone();
        other[0] ^= 1;
        let copy = other.clone();
        noise.apply(&mut other);
        assert_eq!(other, copy);
        assert_eq!(noise.flipped_bits(), 0);
    }

    #[test]
    fn sets_are_hit_in_the_bits_of_the_lane_alone() {
        use phitwire_framing::frame::SetFrameWriter;
        use phitwire_framing::set48::{DataSet, SET_BYTES, Set, SetBytes};

        for lanes in 1..8 {
            let header = FrameHeader::parse(&frame(lanes)).expect("it is a frame");
            let mut clean = vec![0; 24 + 20 * SET_BYTES];
            let mut writer = SetFrameWriter::new(&header, &mut clean).expect("room for 20 sets");
            while let Some(slot) = writer.slot() {
                DataSet::emit_flits(&Default::default(), Default::default(), slot);
            }
            writer.finish().expect("there are sets");
            let mut noisy = clean.clone();
            let mut noise = LaneNoise::new(1, Probability::from_ratio(1, 50), Rng::new(3, 0));
            noise.apply(&mut noisy);
            let [zero, one, two] = differences(&clean, &noisy, lanes);
            assert_eq!((zero, two), (0, 0));
            assert_eq!(u64::from(one), noise.flipped_bits());
            assert_eq!(one > 50, lanes & 2 != 0, "{one}");
            let Ok(frame) = SetFrame::parse(&noisy) else {
                panic!("noise must not touch the header")
            };
            let differ = |(set, clean): &(SetBytes, &[u8])| set != clean;
            let pairs = frame.iter().zip(clean[24..].chunks(SET_BYTES));
            for (set, _) in pairs.filter(differ) {
                assert!(Set::parse(&set).is_err(), "its check tells");
            }
        }
    }
}
