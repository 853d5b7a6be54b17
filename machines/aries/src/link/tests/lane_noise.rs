//! Noise on one lane under frames of sets.

use phitwire_framing::aries::frame::{SetFrame, SetFrameWriter};
use phitwire_framing::aries::set::{DataSet, SET_BYTES, Set, SetBytes};
use phitwire_framing::carrier::frame::{FrameHeader, LinkEnd};

use phitwire::link::impair::{LaneNoise, Probability};
use phitwire::link::testing::lane_noise::differences;
use phitwire::rng::Rng;

#[test]
fn sets_are_hit_in_the_bits_of_the_lane_alone() {
    for lanes in 1..8 {
        let header = FrameHeader {
            kind: SetFrame::KIND,
            end: LinkEnd::A,
            link: 3,
            fabric: 7,
            tx_epoch: 1,
            rx_epoch: 2,
            lanes,
            units: 0,
        };
        let mut clean = vec![0; 24 + 20 * SET_BYTES];
        let mut writer = SetFrameWriter::new(&header, &mut clean).expect("room for 20 sets");
        while let Some(slot) = writer.slot() {
            DataSet::emit_flits(&Default::default(), Default::default(), slot);
        }
        writer.finish().expect("the frame has sets");
        let mut noisy = clean.clone();
        let mut noise = LaneNoise::new(
            SetFrame::LAYOUT,
            1,
            Probability::from_ratio(1, 50),
            Rng::new(3, 0),
        );
        noise.apply(&mut noisy);
        let [zero, one, two, _] = differences(SetFrame::LAYOUT, &clean, &noisy, lanes);
        assert_eq!((zero, two), (0, 0));
        assert_eq!(u64::from(one), noise.flipped_bits());
        assert_eq!(one > 50, lanes & 2 != 0, "{one}");
        let Ok(frame) = SetFrame::parse(&noisy) else {
            panic!("noise must not touch the header")
        };
        let differ = |(set, clean): &(SetBytes, &[u8])| set != clean;
        let pairs = frame.iter().zip(clean[24..].chunks(SET_BYTES));
        for (set, _) in pairs.filter(differ) {
            assert!(Set::parse(&set).is_err(), "the check detects it");
        }
    }
}
