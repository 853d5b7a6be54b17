//! Bit errors that lane noise made in a frame.

use phitwire_framing::carrier::lane_layout::LaneLayout;
use phitwire_framing::carrier::lanes::MAX_LANES;

/// Counts the differing bits on each lane; panics if anything before the lane area differs.
pub fn differences(layout: LaneLayout, clean: &[u8], noisy: &[u8], active: u8) -> [u32; MAX_LANES] {
    let range = layout.area(clean).expect("a complete frame");
    assert_eq!(
        clean[..range.start],
        noisy[..range.start],
        "header and kind map are unchanged"
    );
    let lanes = layout.lanes();
    let mut count = [0; MAX_LANES];
    let words = lanes
        .words(&clean[range.clone()])
        .zip(lanes.words(&noisy[range]));
    for (a, b) in words {
        for (lane, count) in count.iter_mut().enumerate() {
            *count += ((a ^ b) & lanes.bits_of(active, lane as u8)).count_ones();
        }
    }
    count
}
