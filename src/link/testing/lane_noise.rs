//! Bit errors that lane noise made in a frame.

use phitwire_framing::carrier::lane_layout::LaneLayout;
use phitwire_framing::carrier::lanes::bits_of_lane;

/// Differing bits on each lane; panics if anything before what the lanes carry differs.
pub fn differences(layout: LaneLayout, clean: &[u8], noisy: &[u8], lanes: u8) -> [u32; 3] {
    let range = layout.area(clean).expect("a complete frame");
    assert_eq!(
        clean[..range.start],
        noisy[..range.start],
        "header and kind map are unchanged"
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
