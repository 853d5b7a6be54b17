//! Sets and frames of sets: golden vectors, rejected ones, lanes, what numbers widen to.

#[path = "common/aries.rs"]
mod golden;

use golden::{CONTROL_SET, DATA_SET, DONE, PUT_8, SET_FRAME, flits};
use phitwire_framing::aries::crc20;
use phitwire_framing::aries::flit::{Flit, VCS};
use phitwire_framing::aries::frame::{
    MAX_FRAME_SETS, SETS_AT, SetFrame, SetFrameWriter, max_sets, set_frame_len,
};
use phitwire_framing::aries::set::{
    ControlSet, DATA_FLITS, DataSet, MAX_LOAD, SET_BYTES, Set, SetBytes, SetError, SetView, Tail,
    number_distance, vc_ack, widen_ack, widen_vc_ack,
};
use phitwire_framing::carrier::frame::{
    EmitError, FrameError, FrameHeader, FrameKind, HEADER_BYTES, HeaderView, LinkEnd,
};
use phitwire_framing::carrier::lanes::{Permutation, bits_of_lane, flip, swizzle_area};
use phitwire_framing::lane_area;

const HEADER: FrameHeader = FrameHeader {
    kind: SetFrame::KIND,
    end: LinkEnd::B,
    link: 0x0102,
    fabric: 0xfab0_0fab,
    tx_epoch: 7,
    rx_epoch: 9,
    lanes: 7,
    units: 2,
};

fn data_set() -> DataSet {
    let mut all = [Flit::IDLE; DATA_FLITS];
    for (to, from) in all
        .iter_mut()
        .zip(flits(&PUT_8).into_iter().chain(flits(&DONE)))
    {
        *to = from;
    }
    let tail = Tail {
        number: 0x5b,
        ack: 0x2a,
        nack: false,
        load: 9,
        clock: true,
        vc_ack: 0xc3,
    };
    DataSet { flits: all, tail }
}

const CONTROL: ControlSet = ControlSet {
    probe: true,
    nack: true,
    next: 0x89ab_cd5b,
    ack: 0x0123_456a,
    missing_from: 0,
    missing: 0,
    vc_acks: [
        0x1111_1111,
        0x2222_2222,
        0x3333_3333,
        0x4444_4444,
        0x5555_5555,
        0x6666_6666,
        0x7777_77f8,
        5,
    ],
    clock: 0xfedc_ba98_7654,
    pulse: false,
    load: 6,
};

fn sets_of(bytes: &[u8]) -> SetFrame<'_> {
    SetFrame::parse(bytes).expect("it is a frame of sets")
}

/// A golden set with one change and the right check.
fn changed(set: &SetBytes, change: impl Fn(&mut SetBytes)) -> SetBytes {
    let mut set = *set;
    change(&mut set);
    let check = crc20::check(&set).to_be_bytes();
    set[57] = set[57] & 0xf0 | check[1];
    set[58..].copy_from_slice(&check[2..]);
    set
}

#[test]
fn deconstruct() {
    let view = SetView::new(&DATA_SET);
    assert!(!view.is_control());
    assert_eq!(
        (view.number(), view.ack(), view.nack()),
        (0x5b, 0x2a, false)
    );
    assert_eq!((view.load(), view.clock(), view.vc_ack()), (9, true, 0xc3));
    assert_eq!(
        (view.flit(0).bits(), view.flit(5).bits()),
        (PUT_8[0], DONE[0])
    );
    assert_eq!(view.crc(), crc20::check(&DATA_SET));
    let view = SetView::new(&CONTROL_SET);
    assert!(view.is_control() && view.nack() && !view.clock());
    assert_eq!((view.number(), view.ack(), view.load()), (0x5b, 0x2a, 6));
    assert_eq!(view.vc_ack(), vc_ack(CONTROL.vc_acks[3]));
    assert_eq!(view.flit(8).bits(), CONTROL.clock);
}

#[test]
fn construct() {
    for (golden, control) in [(DATA_SET, false), (CONTROL_SET, true)] {
        let from = SetView::new(&golden);
        let mut view = SetView::new([0xa5; SET_BYTES]);
        for i in (0..DATA_FLITS).rev() {
            view.set_flit(i, from.flit(i));
        }
        let tail = Tail {
            number: from.number(),
            ack: from.ack(),
            nack: from.nack(),
            load: from.load(),
            clock: from.clock(),
            vc_ack: from.vc_ack(),
        };
        view.set_tail(control, tail);
        assert_eq!(view.into_inner(), golden);
    }
}

#[test]
fn parse_golden() {
    assert_eq!(Set::parse(&DATA_SET), Ok(Set::Data(data_set())));
    assert_eq!(Set::parse(&CONTROL_SET), Ok(Set::Control(CONTROL)));
    assert_eq!(data_set().tail.vc(), 3);
}

#[test]
fn emit_golden() {
    for (set, golden) in [
        (Set::Data(data_set()), DATA_SET),
        (Set::Control(CONTROL), CONTROL_SET),
    ] {
        let mut bytes = [0xa5; SET_BYTES];
        set.emit(&mut bytes);
        assert_eq!(bytes, golden);
    }
    assert_eq!(data_set().buffer_len(), SET_BYTES);
    assert_eq!(CONTROL.buffer_len(), SET_BYTES);
}

#[test]
fn rejected_sets_are_named() {
    for golden in [DATA_SET, CONTROL_SET] {
        for bit in 0..SET_BYTES * 8 {
            let mut set = golden;
            set[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Set::parse(&set), Err(SetError::Crc), "bit {bit}");
        }
    }
    let reserved = [(0, 0x80), (0, 2), (1, 1), (6, 1), (7, 1)];
    for (at, bit) in reserved {
        let set = changed(&CONTROL_SET, |set| set[at] ^= bit);
        assert_eq!(
            Set::parse(&set),
            Err(SetError::ReservedControl),
            "byte {at}"
        );
    }
    // Number, its odd bit, ack and VC ack stand twice; the other fields of the tenth flit only there.
    for (bit, twice) in (20..47).map(|bit| (bit, !matches!(bit, 28..33 | 39))) {
        let (at, mask) = (59 - bit / 8, 1 << (bit % 8));
        let set = changed(&CONTROL_SET, |set| set[at] ^= mask);
        let expected = twice.then_some(SetError::Contradiction);
        assert_eq!(Set::parse(&set).err(), expected, "bit {bit}");
    }
    let next = changed(&CONTROL_SET, |set| set[5] ^= 1);
    assert_eq!(Set::parse(&next), Err(SetError::Contradiction));
    for (index, error) in SetError::ALL.into_iter().enumerate() {
        assert_eq!(error.index(), index);
    }
}

#[test]
fn fields_are_cut_to_their_widths() {
    let mut bytes = [0; SET_BYTES];
    let tail = Tail {
        number: 0xff,
        ack: 0xff,
        nack: true,
        load: 0xff,
        clock: true,
        vc_ack: 0xff,
    };
    DataSet::emit_flits(&[Flit::IDLE; DATA_FLITS], tail, &mut bytes);
    let view = SetView::new(&bytes);
    assert_eq!(
        (view.number(), view.ack(), view.load()),
        (0x7f, 0x3f, MAX_LOAD)
    );
    assert!(!view.is_control());
    let wide = ControlSet {
        load: 0xff,
        clock: u64::MAX,
        ..CONTROL
    };
    wide.emit(&mut bytes);
    let cut = ControlSet {
        load: MAX_LOAD,
        clock: (1 << 48) - 1,
        ..CONTROL
    };
    assert_eq!(Set::parse(&bytes), Ok(Set::Control(cut)));
}

#[test]
fn short_numbers_widen_to_what_they_stand_for() {
    for known in [0, 1, 7, 8, 1000, u32::MAX - 100, u32::MAX] {
        for more in 0..2048 - 8 {
            let freed = known.wrapping_add(more);
            let found = widen_vc_ack(known, vc_ack(freed));
            let told = freed.wrapping_sub(found) as i32;
            assert!(
                (0..8).contains(&told) || found == known,
                "{known} + {more}: {found}"
            );
        }
        for more in 0..64 {
            let ack = known.wrapping_add(more);
            assert_eq!(widen_ack(known, (ack & 0x3f) as u8), ack);
        }
        for distance in -64..64_i32 {
            let number = known.wrapping_add_signed(distance);
            assert_eq!(
                number_distance(known, (number & 0x7f) as u8),
                distance as i8
            );
        }
    }
    assert_eq!(vc_ack(8 * 256 + 15), 1);
}

// Frames.

#[test]
fn deconstruct_frame() {
    let view = HeaderView::new_checked(&SET_FRAME[..]).unwrap();
    assert_eq!(
        (view.magic(), view.version(), view.kind()),
        (0x59, 2, FrameKind::new(2))
    );
    assert_eq!((view.end(), view.link()), (LinkEnd::B, 0x0102));
    assert_eq!((view.lane_word(), view.units()), (7, 2));
    assert_eq!(SET_FRAME[SETS_AT..SETS_AT + SET_BYTES], CONTROL_SET);
    assert_eq!(SET_FRAME[SETS_AT + SET_BYTES..], DATA_SET);
    assert_eq!(lane_area(&SET_FRAME), Some(24..144));
}

#[test]
fn construct_frame() {
    let mut view = HeaderView::new_checked([0xa5; HEADER_BYTES]).unwrap();
    view.set_units(2);
    view.set_lane_word(7);
    view.set_rx_epoch(9);
    view.set_tx_epoch(7);
    view.set_fabric(0xfab0_0fab);
    view.set_link(0x0102);
    view.set_kind(SetFrame::KIND, LinkEnd::B);
    assert_eq!(view.into_inner(), SET_FRAME[..HEADER_BYTES]);
}

#[test]
fn parse_golden_frame() {
    let frame = sets_of(&SET_FRAME);
    assert_eq!(*frame.header(), HEADER);
    assert_eq!(frame.sets(), 2);
    assert!(frame.iter().eq([CONTROL_SET, DATA_SET]));
    assert_eq!(frame.iter().len(), 2);
    assert_eq!((frame.get(1), frame.get(2)), (Some(DATA_SET), None));
}

#[test]
fn emit_golden_frame() {
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
    assert_eq!(
        SetFrameWriter::new(&HEADER, &mut buf).unwrap().finish(),
        None
    );
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

/// The golden frame with a changed header and a check that is right again.
fn changed_frame(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = SET_FRAME.to_vec();
    change(&mut bytes);
    let check = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI).checksum(&bytes[..20]);
    bytes[20..24].copy_from_slice(&check.to_be_bytes());
    bytes
}

#[test]
fn rejected_frames_are_named() {
    let reject = |bytes: &[u8], why| assert_eq!(SetFrame::parse(bytes), Err(why));
    reject(&SET_FRAME[..23], FrameError::TooShort);
    reject(&SET_FRAME[..143], FrameError::BadLength);
    reject(&changed_frame(|b| b.push(0)), FrameError::BadLength);
    reject(&changed_frame(|b| b[19] = 1), FrameError::BadLength);
    reject(&changed_frame(|b| b[19] = 0), FrameError::BadSetCount);
    reject(&changed_frame(|b| b[18] = 0xff), FrameError::BadSetCount);
    reject(&changed_frame(|b| b[17] = 0), FrameError::NoLanes);
    reject(&changed_frame(|b| b[17] = 8), FrameError::ReservedHeader);
    reject(&changed_frame(|b| b[1] |= 2), FrameError::BadKind);
    for at in 2..24 {
        let mut bytes = SET_FRAME;
        bytes[at] ^= 4;
        assert!(SetFrame::parse(&bytes).is_err(), "byte {at}");
    }
    for at in 24..144 {
        let mut bytes = SET_FRAME;
        bytes[at] ^= 4;
        let frame = sets_of(&bytes);
        let bad = frame.iter().filter(|set| Set::parse(set).is_err()).count();
        assert_eq!(bad, 1, "the frame is good, its set is not");
    }
}

#[test]
fn each_lane_has_its_bits_of_a_set() {
    for (lanes, each) in [(7, 160), (3, 240), (5, 240), (6, 240), (1, 480), (4, 480)] {
        let mut seen = [0; SET_BYTES];
        for lane in (0..3).filter(|lane| lanes >> lane & 1 != 0) {
            let mut area = [0; SET_BYTES];
            for word in 0..SET_BYTES / 3 {
                flip(&mut area, word, bits_of_lane(lanes, lane));
            }
            let bits: u32 = area.iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(bits, each);
            seen.iter_mut()
                .zip(area)
                .for_each(|(seen, byte)| *seen ^= byte);
        }
        assert_eq!(seen, [0xff; SET_BYTES], "every bit has one lane");
    }
    // Bit i, counted from the last of the set, goes the way of i mod 3 however far it is.
    let mut area = [0; SET_BYTES];
    (0..SET_BYTES / 3).for_each(|word| flip(&mut area, word, bits_of_lane(7, 1)));
    for i in 0..SET_BYTES * 8 {
        let bit = area[SET_BYTES - 1 - i / 8] >> (i % 8) & 1;
        assert_eq!(bit == 1, i % 3 == 1);
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
        let area = lane_area(&buf).unwrap();
        swizzle_area(&mut buf[area], lanes, &cable);
        let swapped = sets_of(&buf);
        // The sender's lane 2 arrives as it is, so alone it needs no cable to be put right.
        let as_is = swapped.iter().all(|set| Set::parse(&set).is_ok());
        assert_eq!(as_is, lanes == 4);
        let right = swapped.behind(cable);
        assert!(right.iter().eq([CONTROL_SET, DATA_SET]));
        assert_eq!(right.get(0), Some(CONTROL_SET));
    }
}

#[test]
fn a_control_set_can_acknowledge_every_channel() {
    for next in 0..VCS as u32 {
        let set = ControlSet { next, ..CONTROL };
        assert_eq!(set.tail().vc(), next as usize);
        assert_eq!(set.tail().vc_ack, vc_ack(CONTROL.vc_acks[next as usize]));
    }
}
