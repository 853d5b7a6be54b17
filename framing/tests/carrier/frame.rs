//! Frames of any kind: the checks that do not depend on the kind.

use crate::common::{TRAINING_FRAME, changed, header, header_is_golden, reasons_are_distinct};
use phitwire_framing::carrier::frame::{
    FrameError, FrameKind, HEADER_BYTES, PLAIN_AT, parse, seal,
};
use phitwire_framing::carrier::lane_layout::LaneLayout;
use phitwire_framing::carrier::lanes::Lanes;
use phitwire_framing::carrier::training::Training;

/// A kind that this crate does not use.
const KIND: FrameKind = FrameKind::new(5);
const LENGTH: usize = PLAIN_AT + 12;
const LANES: Lanes = Lanes::new(3, 24);

/// A plain frame of one unit of twelve bytes.
fn frame() -> Vec<u8> {
    let mut bytes = vec![0xa5; LENGTH];
    header(KIND, 1).emit(&mut bytes).unwrap();
    seal(&mut bytes, HEADER_BYTES);
    bytes
}

#[test]
fn a_frame_of_any_kind_has_a_header_and_what_the_lanes_carry() {
    let bytes = frame();
    header_is_golden(&header(KIND, 1), &bytes);
    let frame = parse(&bytes).unwrap();
    assert_eq!((frame.kind(), frame.units(KIND)), (KIND, Ok(1)));
    let parts = frame.split(HEADER_BYTES, LENGTH);
    assert_eq!(parts, Ok((&bytes[..HEADER_BYTES], &bytes[PLAIN_AT..])));
    let plain = LaneLayout::plain(KIND, LANES);
    assert_eq!(plain.area(&bytes), Some(PLAIN_AT..LENGTH));
    assert_eq!(plain.area(&bytes[..PLAIN_AT]), Some(PLAIN_AT..PLAIN_AT));
    assert_eq!(plain.area(&bytes[..PLAIN_AT - 1]), None);
}

#[test]
fn a_machine_lays_its_frames_out_without_this_crate() {
    let bytes = frame();
    let behind = LaneLayout::new(KIND, LANES, |units| PLAIN_AT + 4..PLAIN_AT + 12 * units);
    assert_eq!(behind.area(&bytes), Some(PLAIN_AT + 4..LENGTH));
    assert_eq!(
        behind.area(&bytes[..LENGTH - 1]),
        None,
        "one unit is longer"
    );
    assert_eq!(behind.area(&TRAINING_FRAME), Some(104..152));
    let other = LaneLayout::new(FrameKind::new(6), LANES, |_| 0..0);
    assert_eq!(
        other.area(&bytes),
        Some(PLAIN_AT..LENGTH),
        "of another kind"
    );
    // A layout that contradicts itself.
    let reversed = LaneLayout::new(KIND, LANES, |units| LENGTH + units..LENGTH);
    assert_eq!(reversed.area(&bytes), None);
}

#[test]
fn unknown_frame_kinds_are_rejected() {
    let bytes = frame();
    let frame = parse(&bytes).unwrap();
    let other = FrameKind::new(6);
    assert_eq!(frame.units(other), Err(FrameError::BadKind));
    assert_eq!(Training::of(&frame), Err(FrameError::BadKind));
}

#[test]
fn frames_wrong_in_a_field_are_rejected_by_its_name() {
    let read = |bytes: &[u8]| parse(bytes)?.split(HEADER_BYTES, LENGTH).map(drop);
    let changed = |change: &dyn Fn(&mut Vec<u8>)| changed(&frame(), HEADER_BYTES, change);
    assert_eq!(read(&changed(&|_| ())), Ok(()));
    let cases = [
        (changed(&|b| b.truncate(23)), FrameError::TooShort),
        (changed(&|b| b[0] = 0x58), FrameError::BadMagic),
        (changed(&|b| b[1] ^= 0x10), FrameError::BadVersion),
        (changed(&|b| b[16] = 1), FrameError::ReservedHeader),
        (changed(&|b| b[17] |= 16), FrameError::ReservedHeader),
        (changed(&|b| b.push(0)), FrameError::BadLength),
        (changed(&|b| b[17] = 0), FrameError::NoLanes),
    ];
    for (bytes, error) in cases {
        assert_eq!(read(&bytes), Err(error), "{bytes:x?}");
    }
    let fourth = changed(&|b| b[17] |= 8);
    let on = |lanes| {
        parse(&fourth)
            .and_then(|frame| frame.of_lanes(lanes))
            .map(drop)
    };
    assert_eq!(on(LANES), Err(FrameError::ReservedHeader));
    assert_eq!(on(Lanes::new(4, 24)), Ok(()));
    let mut bytes = frame();
    bytes[20] ^= 1;
    assert_eq!(read(&bytes), Err(FrameError::BadHeaderCheck));
    // Reject a check that would extend beyond the end.
    for checked in [LENGTH - 3, LENGTH, LENGTH + 1] {
        let parts = parse(&bytes).unwrap().split(checked, LENGTH);
        assert_eq!(parts, Err(FrameError::BadLength));
    }
}

#[test]
fn reasons_are_counted_by_distinct_names() {
    reasons_are_distinct(&FrameError::ALL, FrameError::index, FrameError::name);
}
