//! Data frames: golden vector, rejected frames, packets cut at any phit.

use crate::common::{self, TRAINING_FRAME, flipped_bits_are_found, header_is_golden};
use crate::decode::decode;
use crate::golden::{DATA_FRAME, REST, WORD, WRITE_32, WRITE_DONE, phits};
use phitwire_framing::carrier::frame::{EmitError, FrameError, FrameHeader};
use phitwire_framing::carrier::lanes::Permutation;
use phitwire_framing::yarc::control::{ControlWord, SidebandError, WordRest};
use phitwire_framing::yarc::frame::{
    DataFrame, MAP_AT, MAX_FRAME_PHITS, MIN_FRAME_PHITS, REST_AT, emit_data, frame_len, max_phits,
    padded_phits,
};
use phitwire_framing::yarc::phit::{LANES, Phit, PhitKind};

const HEADER: FrameHeader = common::header(DataFrame::KIND, 48);

fn burst() -> Vec<Phit> {
    [&phits(&WRITE_32)[16..], &phits(&WRITE_DONE)].concat()
}

fn word() -> ControlWord {
    ControlWord::parse(&WORD, WordRest::parse(&REST)).expect("the golden word is right")
}

fn data(bytes: &[u8]) -> DataFrame<'_> {
    DataFrame::parse(bytes).expect("it is a data frame")
}

/// The golden frame with a changed header and a corrected check.
fn changed(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    common::changed(&DATA_FRAME, 42, change)
}

#[test]
fn deconstruct() {
    assert_eq!(DataFrame::KIND.code(), 0);
    header_is_golden(&HEADER, &DATA_FRAME);
    // Kinds: body body EOP head, body body EOP idle, idle ...
    assert_eq!(DATA_FRAME[REST_AT], REST);
    assert_eq!(DATA_FRAME[MAP_AT..33], [0b10_10_11_01, 0b10_10_11_00, 0]);
}

#[test]
fn parse_golden() {
    let frame = data(&DATA_FRAME);
    assert_eq!(*frame.header(), HEADER);
    assert_eq!(frame.phits(), 48);
    assert_eq!(frame.control_word(), Ok(word()));
    let mut out = [Phit::from_bits(0xa5a5_a5a5); 64];
    assert_eq!(frame.decode(&mut out), 48);
    assert_eq!(out[..7], burst());
    assert_eq!(out[7..48], [Phit::IDLE; 41]);
    let untouched = [Phit::from_bits(0xa5a5_a5a5); 16];
    assert_eq!(out[48..], untouched, "nothing written behind the frame");
    let first = Phit::from_wire(PhitKind::Body, 0xaff3f7);
    let last = Phit::from_wire(PhitKind::Idle, 0xc00000);
    let raw = [0, 47, 48].map(|index| frame.raw(index));
    assert_eq!(raw, [Some(first), Some(last), None]);
    assert_eq!(DataFrame::LAYOUT.area(&DATA_FRAME), Some(46..190));
}

#[test]
fn emit_golden() {
    let burst = burst();
    for cut in 0..=burst.len() {
        let mut buf = [0xa5; 200];
        let (a, b) = burst.split_at(cut);
        assert_eq!(emit_data(&HEADER, &word(), &[a, b], &mut buf), Ok(190));
        assert_eq!(buf[..190], DATA_FRAME, "cut at {cut}");
        assert_eq!(buf[190..], [0xa5; 10]);
    }
}

#[test]
fn frames_too_large_for_the_buffer_are_not_emitted() {
    let mut buf = [0xa5; 189];
    let burst = burst();
    let result = emit_data(&HEADER, &word(), &[&burst, &[]], &mut buf);
    assert_eq!(result, Err(EmitError::BufferTooSmall));
    assert_eq!(buf, [0xa5; 189]);
    let many = vec![Phit::IDLE; MAX_FRAME_PHITS + 1];
    let mut buf = vec![0; 300_000];
    let result = emit_data(&HEADER, &word(), &[&many, &[]], &mut buf);
    assert_eq!(result, Err(EmitError::TooManyUnits));
    let most = &many[1..];
    let len = emit_data(&HEADER, &word(), &[most, &[]], &mut buf).unwrap();
    assert_eq!(len, frame_len(MAX_FRAME_PHITS));
    assert_eq!(data(&buf[..len]).phits(), MAX_FRAME_PHITS);
}

#[test]
fn frames_wrong_in_a_field_are_rejected_by_its_name() {
    let cases = [
        (DATA_FRAME[..23].to_vec(), FrameError::TooShort),
        (vec![], FrameError::TooShort),
        (changed(|b| b[0] = 0x58), FrameError::BadMagic),
        (changed(|b| b[1] = 0x11), FrameError::BadVersion),
        (changed(|b| b[1] = 0x31), FrameError::BadVersion),
        (changed(|b| b[1] = 0x26), FrameError::BadKind),
        (changed(|b| b[1] = 0x2f), FrameError::BadKind),
        (changed(|b| b[1] |= 2), FrameError::BadLength),
        (changed(|b| b[16] = 1), FrameError::ReservedHeader),
        (changed(|b| b[17] |= 8), FrameError::ReservedHeader),
        (changed(|b| b[17] = 0), FrameError::NoLanes),
        (changed(|b| b[19] = 44), FrameError::BadPhitCount),
        (changed(|b| b[19] = 50), FrameError::BadPhitCount),
        (changed(|b| b[19] = 0), FrameError::BadPhitCount),
        (changed(|b| b[19] = 52), FrameError::BadLength),
        (DATA_FRAME[..189].to_vec(), FrameError::BadLength),
        ([&DATA_FRAME[..], &[0]].concat(), FrameError::BadLength),
    ];
    for (bytes, error) in cases {
        assert_eq!(decode(&bytes).rejected, Some(error), "{bytes:x?}");
    }
    let another_link = changed(|b| b[2] = 9);
    assert!(DataFrame::parse(&another_link).is_ok());
}

#[test]
fn every_flipped_bit_of_header_map_and_check_is_found() {
    flipped_bits_are_found(&DATA_FRAME, 46, |bytes| DataFrame::parse(bytes).is_ok());
}

#[test]
fn lengths() {
    assert_eq!([0, 49, 52].map(padded_phits), [48, 52, 52]);
    assert_eq!([0, 48, 49].map(frame_len), [190, 190, 203]);
    assert_eq!([0, 189, 190].map(max_phits), [0, 0, MIN_FRAME_PHITS]);
    assert_eq!([1472, 1500, 9000].map(max_phits), [440, 448, 2756]);
    assert_eq!(max_phits(usize::MAX), MAX_FRAME_PHITS);
    for bytes in 190..2000 {
        let phits = max_phits(bytes);
        assert!(frame_len(phits) <= bytes && frame_len(phits + 1) > bytes);
    }
}

#[test]
fn packets_straddle_frames() {
    let three = [phits(&WRITE_32), phits(&WRITE_DONE), phits(&WRITE_DONE)];
    let stream: Vec<Phit> = three.into_iter().cycle().take(40).flatten().collect();
    for cut in [1, 48, 50, 61, 97, 113] {
        let mut back: Vec<Phit> = Vec::new();
        for burst in stream.chunks(cut) {
            let mut buf = [0xa5; 2000];
            let len = emit_data(&HEADER, &word(), &[burst, &[]], &mut buf).unwrap();
            let mut out = [Phit::IDLE; 128];
            let count = data(&buf[..len]).decode(&mut out);
            assert_eq!(count, padded_phits(burst.len()));
            back.extend(out.iter().filter(|phit| phit.kind() != PhitKind::Idle));
        }
        assert_eq!(back, stream, "cut every {cut}");
    }
}

#[test]
fn decode_writes_whole_groups_only() {
    let frame = data(&DATA_FRAME);
    for room in 0..60 {
        let mut out = vec![Phit::from_bits(0xa5a5_a5a5); room];
        assert_eq!(frame.decode(&mut out), (room / 4 * 4).min(48));
    }
}

#[test]
fn the_second_word_serves_when_noise_hits_the_first() {
    let mut buf = [0; 400];
    let len = emit_data(&HEADER, &word(), &[&[Phit::IDLE; 96], &[]], &mut buf).unwrap();
    let area = DataFrame::LAYOUT.area(&buf[..len]).unwrap();
    LANES.flip(&mut buf[area.clone()], 3, 0x80_0000);
    assert_eq!(data(&buf[..len]).control_word(), Ok(word()));
    LANES.flip(&mut buf[area.clone()], 48 + 47, 0x40_0000);
    assert_eq!(data(&buf[..len]).control_word(), Err(SidebandError::Check));
    LANES.flip(&mut buf[area], 1000, 1);
}

#[test]
fn a_frame_is_read_behind_a_cable() {
    let cable = Permutation::new([2, 0, 1], [false, true, true]).unwrap();
    for lanes in 1..8_u8 {
        let header = FrameHeader { lanes, ..HEADER };
        let mut buf = [0; 190];
        emit_data(&header, &word(), &[&burst(), &[]], &mut buf).unwrap();
        let straight = buf;
        let area = DataFrame::LAYOUT.area(&buf).unwrap();
        LANES.swizzle_area(&mut buf[area], lanes, &cable);
        // Lane 2 alone arrives unchanged.
        assert_eq!(buf == straight, lanes == 0b100);
        let frame = data(&buf).behind(cable);
        assert_eq!(frame.control_word(), Ok(word()));
        let (mut out, mut expected) = ([Phit::IDLE; 48], [Phit::IDLE; 48]);
        let decoded = data(&straight).decode(&mut expected);
        assert_eq!(frame.decode(&mut out), decoded);
        assert_eq!(out, expected);
        assert_eq!(frame.raw(5), data(&straight).raw(5));
    }
}

#[test]
fn lane_area_of_anything_else_is_none() {
    assert_eq!(DataFrame::LAYOUT.area(&TRAINING_FRAME), Some(104..152));
    assert_eq!(DataFrame::LAYOUT.area(&DATA_FRAME[1..]), None);
    assert_eq!(DataFrame::LAYOUT.area(&DATA_FRAME[..100]), None);
    assert_eq!(DataFrame::LAYOUT.area(&[]), None);
}
