//! Common parts of the tests of the carrier and of the machines.
#![allow(dead_code, reason = "no test program uses all of it")]

pub mod corpus;
pub mod distance;

use phitwire_framing::carrier::frame::{
    EmitError, FrameHeader, FrameKind, HEADER_BYTES, HeaderView, LinkEnd,
};
use std::collections::BTreeSet;
use std::fmt::Display;

/// Header of the golden data frames: end B of link 0x0102.
pub const fn header(kind: FrameKind, units: u16) -> FrameHeader {
    FrameHeader {
        kind,
        end: LinkEnd::B,
        link: 0x0102,
        fabric: 0xfab0_0fab,
        tx_epoch: 7,
        rx_epoch: 9,
        lanes: 7,
        units,
    }
}

/// CRC-32C computed bit by bit, independently of the codec.
pub fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    })
}

/// A golden frame with one change and a corrected check over its first `checked` bytes.
pub fn changed(frame: &[u8], checked: usize, change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = frame.to_vec();
    change(&mut bytes);
    if bytes.len() >= checked + 4 {
        let check = crc32c(&bytes[..checked]).to_be_bytes();
        bytes[checked..checked + 4].copy_from_slice(&check);
    }
    bytes
}

/// The golden tests of a header, at the start of the frame `golden`.
pub fn header_is_golden(header: &FrameHeader, golden: &[u8]) {
    let view = HeaderView::new_checked(golden).unwrap();
    assert_eq!((view.magic(), view.version()), (0x59, 2));
    assert_eq!((view.kind(), view.end()), (header.kind, header.end));
    assert_eq!((view.link(), view.fabric()), (header.link, header.fabric));
    assert_eq!(view.tx_epoch(), header.tx_epoch);
    assert_eq!(view.rx_epoch(), header.rx_epoch);
    assert_eq!(view.lane_word(), header.lanes.into());
    assert_eq!(view.units(), header.units);

    let mut view = HeaderView::new_checked([0xa5; HEADER_BYTES]).unwrap();
    view.set_units(header.units);
    view.set_lane_word(header.lanes.into());
    view.set_rx_epoch(header.rx_epoch);
    view.set_tx_epoch(header.tx_epoch);
    view.set_fabric(header.fabric);
    view.set_link(header.link);
    view.set_kind(header.kind, header.end);
    assert_eq!(view.into_inner(), golden[..HEADER_BYTES]);

    assert_eq!(FrameHeader::parse(golden), Ok(*header));
    let mut buf = [0xa5; HEADER_BYTES];
    assert_eq!(header.emit(&mut buf), Ok(()));
    assert_eq!(buf, golden[..header.buffer_len()]);
    assert_eq!(header.emit(&mut buf[..19]), Err(EmitError::BufferTooSmall));
}

/// Asserts that every flipped bit in the first `protected` bytes is detected; the later bytes
/// belong to the lanes.
pub fn flipped_bits_are_found(frame: &[u8], protected: usize, is_read: impl Fn(&[u8]) -> bool) {
    for bit in 0..frame.len() * 8 {
        let mut bytes = frame.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(is_read(&bytes), bit >= protected * 8, "bit {bit}");
    }
}

/// Asserts that every reason has a distinct index and name, and a text.
pub fn reasons_are_distinct<E: Copy + Display>(
    all: &[E],
    index: impl Fn(E) -> usize,
    name: impl Fn(E) -> &'static str,
) {
    let names: BTreeSet<_> = all.iter().map(|reason| name(*reason)).collect();
    assert_eq!(names.len(), all.len());
    for (i, reason) in all.iter().enumerate() {
        assert_eq!(index(*reason), i);
        assert!(!reason.to_string().is_empty());
    }
}

/// Golden vector of `yarc/reference.py`. End A: yarc-0 port 63 expects nœud port 17.
#[rustfmt::skip]
pub const TRAINING_FRAME: [u8; 152] = [
    0x59, 0x22, 0x01, 0x02, 0xfa, 0xb0, 0x0f, 0xab, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x07, 0x00, 0x00, 0x02, 0x85, 0x3f, 0x11, 0x13, 0x04, 0x02, 0x00, 0x00, 0x00, 0x10, 0x00,
    0x00, 0x00, 0x20, 0x00, 0x79, 0x61, 0x72, 0x63, 0x2d, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x6e, 0xc5, 0x93, 0x75, 0x64, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x0e, 0x0f, 0xb7, 0x3d, 0xc1, 0xaa, 0x25, 0x26, 0x42, 0x26, 0x32, 0xe1,
    0xfe, 0xa8, 0xb7, 0xc7, 0x5a, 0xd5, 0xe9, 0x1b, 0x00, 0x76, 0xaf, 0x43, 0x35, 0xf6, 0xa0, 0xf7,
    0xe0, 0x16, 0xc5, 0x2e, 0xab, 0xf4, 0x54, 0xfd, 0x53, 0x2d, 0x57, 0xc6, 0x64, 0x28, 0xae, 0x4d,
    0xb8, 0x02, 0xf1, 0xe8, 0xc2, 0xdd, 0xf8, 0x06,
];
