//! Frames of sets: golden vector, rejected frames, cables.

use crate::common::{self, flipped_bits_are_found, header_is_golden};
use crate::golden::{CONTROL_SET, DATA_SET, SET_FRAME};
use crate::set::{CONTROL, data_set};
use phitwire_framing::aries::frame::{
    MAX_FRAME_SETS, SETS_AT, SetFrame, SetFrameWriter, max_sets, set_frame_len,
};
use phitwire_framing::aries::set::{LANES, SET_BYTES, Set};
use phitwire_framing::carrier::frame::{EmitError, FrameError, FrameHeader, FrameKind};
use phitwire_framing::carrier::lanes::Permutation;

const HEADER: FrameHeader = common::header(SetFrame::KIND, 2);

fn sets_of(bytes: &[u8]) -> SetFrame<'_> {
    SetFrame::parse(bytes).expect("it is a frame of sets")
}

#[test]
fn deconstruct() {
    assert_eq!(SetFrame::KIND.code(), 2);
    header_is_golden(&HEADER, &SET_FRAME);
    assert_eq!(SET_FRAME[SETS_AT..SETS_AT + SET_BYTES], CONTROL_SET);
    assert_eq!(SET_FRAME[SETS_AT + SET_BYTES..], DATA_SET);
    assert_eq!(SetFrame::LAYOUT.area(&SET_FRAME), Some(24..144));
}

#[test]
fn parse_golden() {
    let frame = sets_of(&SET_FRAME);
    assert_eq!(*frame.header(), HEADER);
    assert_eq!(frame.sets(), 2);
    assert!(frame.iter().eq([CONTROL_SET, DATA_SET]));
    assert_eq!(frame.iter().len(), 2);
    assert_eq!((frame.get(1), frame.get(2)), (Some(DATA_SET), None));
}

#[test]
fn emit_golden() {
    let mut buf = [0xa5; 200];
    let header = FrameHeader {
        kind: FrameKind::new(0),
        units: 99,
        ..HEADER
    };
    let mut writer = SetFrameWriter::new(&header, &mut buf).unwrap();
    assert_eq!((writer.sets(), writer.room()), (0, 2));
    CONTROL.emit(writer.slot().unwrap());
    data_set().emit(writer.slot().unwrap());
    assert_eq!((writer.sets(), writer.room()), (2, 0));
    assert!(writer.slot().is_none());
    assert_eq!(writer.finish(), Some(144));
    assert_eq!(buf[..144], SET_FRAME);
    assert_eq!(buf[144..], [0xa5; 56]);
}

#[test]
fn a_frame_of_nothing_is_not_written() {
    let mut buf = [0xa5; 84];
    let writer = SetFrameWriter::new(&HEADER, &mut buf).unwrap();
    assert_eq!(writer.finish(), None);
    assert_eq!(buf, [0xa5; 84]);
    for len in 0..84 {
        let none = SetFrameWriter::new(&HEADER, &mut buf[..len]);
        assert_eq!(none.err(), Some(EmitError::BufferTooSmall));
    }
}

#[test]
fn lengths_and_sets_go_together() {
    for bytes in 0..3000 {
        let sets = max_sets(bytes);
        assert!(sets == 0 || set_frame_len(sets) <= bytes);
        assert!(set_frame_len(sets + 1) > bytes);
    }
    assert_eq!((max_sets(1472), max_sets(1500)), (24, 24));
    assert_eq!(max_sets(usize::MAX), MAX_FRAME_SETS);
    assert!(set_frame_len(MAX_FRAME_SETS) <= 65_507);
    let mut buf = vec![0; 70_000];
    let mut writer = SetFrameWriter::new(&HEADER, &mut buf).unwrap();
    while let Some(slot) = writer.slot() {
        *slot = DATA_SET;
    }
    let len = writer.finish().unwrap();
    assert_eq!(len, set_frame_len(MAX_FRAME_SETS));
    assert_eq!(sets_of(&buf[..len]).sets(), MAX_FRAME_SETS);
}

/// The golden frame with a changed header and a corrected check.
fn changed(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    common::changed(&SET_FRAME, 20, change)
}

#[test]
fn rejected_frames_are_named() {
    let reject = |bytes: &[u8], why| assert_eq!(SetFrame::parse(bytes), Err(why));
    reject(&SET_FRAME[..23], FrameError::TooShort);
    reject(&SET_FRAME[..143], FrameError::BadLength);
    reject(&changed(|b| b.push(0)), FrameError::BadLength);
    reject(&changed(|b| b[19] = 1), FrameError::BadLength);
    reject(&changed(|b| b[19] = 0), FrameError::BadSetCount);
    reject(&changed(|b| b[18] = 0xff), FrameError::BadSetCount);
    reject(&changed(|b| b[17] = 0), FrameError::NoLanes);
    reject(&changed(|b| b[17] = 8), FrameError::ReservedHeader);
    reject(&changed(|b| b[1] |= 2), FrameError::BadKind);
    flipped_bits_are_found(&SET_FRAME, SETS_AT, |bytes| SetFrame::parse(bytes).is_ok());
    for at in 24..144 {
        let mut bytes = SET_FRAME;
        bytes[at] ^= 4;
        let frame = sets_of(&bytes);
        let bad = frame.iter().filter(|set| Set::parse(set).is_err()).count();
        assert_eq!(bad, 1, "the frame is good, its set is not");
    }
}

#[test]
fn sets_come_right_behind_any_cable() {
    let cable = Permutation::new([2, 0, 1], [false, true, true]).unwrap();
    for lanes in 1..8 {
        let mut buf = [0; 144];
        let header = FrameHeader { lanes, ..HEADER };
        let mut writer = SetFrameWriter::new(&header, &mut buf).unwrap();
        *writer.slot().unwrap() = CONTROL_SET;
        *writer.slot().unwrap() = DATA_SET;
        assert_eq!(writer.finish(), Some(144));
        let area = SetFrame::LAYOUT.area(&buf).unwrap();
        LANES.swizzle_area(&mut buf[area], lanes, &cable);
        let swapped = sets_of(&buf);
        // The sender's lane 2 arrives unchanged, so alone it needs no correction.
        let as_is = swapped.iter().all(|set| Set::parse(&set).is_ok());
        assert_eq!(as_is, lanes == 4);
        let right = swapped.behind(cable);
        assert!(right.iter().eq([CONTROL_SET, DATA_SET]));
        assert_eq!(right.get(0), Some(CONTROL_SET));
    }
}
