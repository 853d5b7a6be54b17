//! Noise on one lane under frames of phits.

use phitwire_framing::carrier::frame::{FrameHeader, LinkEnd};
use phitwire_framing::carrier::lanes::MAX_LANES;
use phitwire_framing::yarc::control::ControlWord;
use phitwire_framing::yarc::frame::{DataFrame, emit_data, frame_len};
use phitwire_framing::yarc::phit::Phit;

use phitwire::link::impair::{LaneNoise, Probability};
use phitwire::link::testing::lane_noise::differences;
use phitwire::rng::Rng;

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

#[test]
fn only_the_bits_of_the_lane_are_hit_and_as_often_as_asked() {
    let clean = frame(0b111);
    let mut noise = LaneNoise::new(
        DataFrame::LAYOUT,
        1,
        Probability::from_ratio(1, 100),
        Rng::new(5, 0),
    );
    let mut total = [0; MAX_LANES];
    for _ in 0..500 {
        let mut noisy = clean.clone();
        noise.apply(&mut noisy);
        assert!(
            DataFrame::parse(&noisy).is_ok(),
            "the line code is untouched"
        );
        for (sum, count) in
            total
                .iter_mut()
                .zip(differences(DataFrame::LAYOUT, &clean, &noisy, 0b111))
        {
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
    let mut noise = LaneNoise::new(DataFrame::LAYOUT, 1, Probability::ONE, Rng::new(5, 0));
    let clean = frame(0b101);
    let mut noisy = clean.clone();
    noise.apply(&mut noisy);
    assert_eq!(noisy, clean);

    let clean = frame(0b110);
    let mut noisy = clean.clone();
    noise.apply(&mut noisy);
    assert_eq!(
        differences(DataFrame::LAYOUT, &clean, &noisy, 0b110),
        [0, 12 * PHITS as u32, 0, 0]
    );
}

#[test]
fn bytes_that_are_no_frame_stay_as_they_are() {
    let mut noise = LaneNoise::new(DataFrame::LAYOUT, 0, Probability::ONE, Rng::new(5, 0));
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
