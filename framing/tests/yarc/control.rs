//! The control word: golden vector, rejected words.

use crate::golden::{REST, WORD};
use phitwire_framing::carrier::number::PacketNumber;
use phitwire_framing::yarc::control::{
    ControlWord, LinkStatus, SidebandError, WORD_BYTES, WordRest, WordView,
};
use phitwire_framing::yarc::packet::Vc;

const MEANING: ControlWord = ControlWord {
    seq: PacketNumber::new(0x0123_4567_beef),
    offset: 18,
    status: LinkStatus::RetryRequest,
    ack: PacketNumber::new(0x89ab_cdef_bee0),
    vc_ack: [0xf_ffff, 0x1_2345],
    pass: 0xc0de,
};

#[test]
fn deconstruct() {
    let view = WordView::new(WORD);
    assert_eq!((view.seq(), view.offset()), (0xbeef, 18));
    assert_eq!(view.status_code(), 1);
    assert_eq!((view.ack(), view.crc()), (0xbee0, 0x3e83));
    let vc_acks = [Vc::Request, Vc::Response].map(|vc| view.vc_ack(vc));
    assert_eq!(vc_acks, [0xf_ffff, 0x1_2345]);
    assert!(view.check_is_right());
}

#[test]
fn construct() {
    let mut view = WordView::new([0xa5; WORD_BYTES]);
    view.set_vc_ack(Vc::Response, 0x1_2345);
    view.set_vc_ack(Vc::Request, 0xf_ffff);
    view.set_ack(0xbee0);
    view.set_status_code(1);
    view.set_offset(18);
    view.set_seq(0xbeef);
    view.fill_check();
    assert_eq!(view.into_inner(), WORD);
}

#[test]
fn parse() {
    let word = ControlWord::parse(&WORD, WordRest::parse(&REST));
    assert_eq!(word, Ok(MEANING));
}

#[test]
fn emit() {
    assert_eq!(MEANING.emit(), WORD);
    assert_eq!(MEANING.rest().emit(), REST);
    assert_eq!(MEANING.buffer_len(), WORD.len());
}

#[test]
fn too_wide_fields_do_not_touch_their_neighbours() {
    let wide = ControlWord {
        offset: 0xf2,
        vc_ack: [u32::MAX, 0xfff1_2345],
        ..MEANING
    };
    assert_eq!(wide.emit(), WORD);
}

#[test]
fn reserved_status_codes_are_rejected() {
    for code in 0..8 {
        let mut view = WordView::new(WORD);
        view.set_status_code(code);
        let rest = MEANING.rest();
        let parsed = ControlWord::parse(&view.into_inner(), rest);
        assert_eq!(parsed.is_ok(), code == 1);
        view.fill_check();
        let parsed = ControlWord::parse(&view.into_inner(), rest);
        match code {
            0..=2 => assert!(parsed.is_ok()),
            _ => assert_eq!(parsed, Err(SidebandError::StatusReserved)),
        }
    }
}

#[test]
fn up_to_two_flipped_bits_are_found_one_by_one() {
    for first in 0..96 {
        for second in 0..=first {
            let mut word = WORD;
            word[first / 8] ^= 1 << (first % 8);
            word[second / 8] ^= u8::from(first != second) << (second % 8);
            let parsed = ControlWord::parse(&word, MEANING.rest());
            assert_eq!(parsed, Err(SidebandError::Check));
        }
    }
}

#[test]
fn a_silent_sideband_is_no_word() {
    for bits in [0, 0xff] {
        let parsed = ControlWord::parse(&[bits; WORD_BYTES], WordRest::default());
        assert_eq!(parsed, Err(SidebandError::Check), "{bits:#x}");
    }
}
