//! Golden vectors of the Aries formats. All are self-made: the Cray XC white paper gives no bits.
//! `reference.py` beside this file computes them from `docs/guide/src/wire-format.md` alone,
//! without this crate; the sizes (14 and 1, 3 and 12 flits, sets of ten) are the white paper's.

use phitwire_framing::aries::flit::Flit;
use phitwire_framing::aries::packet::packet_check;

pub fn flits(bits: &[u64]) -> Vec<Flit> {
    bits.iter().map(|bits| Flit::new(*bits)).collect()
}

/// A change that flips `bits` of flit number `at`.
pub fn xor(at: usize, bits: u64) -> impl Fn(&mut Vec<Flit>) {
    move |packet| packet[at] = Flit::new(packet[at].bits() ^ bits)
}

/// A golden packet with one change, and with a corrected check if it has a data `area`.
pub fn changed(golden: &[u64], area: bool, change: impl Fn(&mut Vec<Flit>)) -> Vec<Flit> {
    let mut packet = flits(golden);
    change(&mut packet);
    if area {
        let check = packet_check(&packet).computed;
        let last = packet.last_mut().expect("a packet has flits");
        *last = Flit::new(last.bits() & !0xffff | u64::from(check));
    }
    packet
}

/// Writes a request or response into a dirty buffer, reads it back, and returns its flits.
macro_rules! comes_back {
    ($type:ident, $packet:expr, $data:expr) => {{
        let (packet, data) = (&$packet, &$data[..]);
        let mut out = [Flit::new(0xa5a5_a5a5_a5a5); 16];
        let flits = packet.emit(data, &mut out).expect("it has a form");
        let behind = &out[flits..];
        assert!(behind.iter().all(|flit| flit.bits() == 0xa5a5_a5a5_a5a5));
        assert_eq!(packet.buffer_len(data.len()), flits);
        let packet_flits = out[..flits].to_vec();
        let small = packet.emit(data, &mut out[1..flits]);
        assert_eq!(
            small,
            Err(phitwire_framing::aries::packet::EmitError::BufferTooSmall)
        );
        let mut read = [0xa5; MAX_DATA];
        let found = Ok((*packet, data.len()));
        assert_eq!($type::parse(&packet_flits, &mut read), found);
        assert_eq!(read[..data.len()], *data);
        assert_eq!(
            read[data.len()..],
            [0xa5; MAX_DATA][data.len()..],
            "{packet:?}"
        );
        assert_eq!($type::parse_header(&packet_flits), found);
        packet_flits
    }};
}
pub(crate) use comes_back;

/// 64 bytes c0..ff at 0xfe_dcba_9876 of node (240, 95, 3) from (1, 2, 1), with an event; adaptive
/// mode 1.
pub const PUT_64: [u64; 14] = [
    0x0e78_5fcd_5e06,
    0x0041_2247_55fe,
    0xdcba_9876_beef,
    0xc0c1_c2c3_c4c5,
    0xc6c7_c8c9_cacb,
    0xcccd_cecf_d0d1,
    0xd2d3_d4d5_d6d7,
    0xd8d9_dadb_dcdd,
    0xdedf_e0e1_e2e3,
    0xe4e5_e6e7_e8e9,
    0xeaeb_eced_eeef,
    0xf0f1_f2f3_f4f5,
    0xf6f7_f8f9_fafb,
    0xfcfd_feff_3ed4,
];

/// Bytes 1 to 8 at 8 of (1, 2, 1) from (240, 95, 3).
pub const PUT_8: [u64; 5] = [
    0x0500_8240_0082,
    0x3c2f_ffff_ff00,
    0x0000_0008_0001,
    0x0102_0304_0506,
    0x0708_0000_b9be,
];

/// 16 words at 0xff_ffff_ffc0, Valiant.
pub const GET_64: [u64; 3] = [0x0378_5fff_ff9f, 0x0041_3000_00ff, 0xffff_ffc0_ffff];

/// 0x0123_4567_89ab_cdef to 0xfedc_ba98_7654_3210, fetching, ordered.
pub const COMPARE_SWAP: [u64; 6] = [
    0x0678_5fe0_0136,
    0x0041_2002_0200,
    0x0000_1000_8001,
    0x0123_4567_89ab,
    0xcdef_fedc_ba98,
    0x7654_3210_7249,
];

/// -2 on 32 bits, not fetching.
pub const ADD_32: [u64; 4] = [
    0x0400_8260_0183,
    0xbc2f_e002_0200,
    0x0000_1004_8001,
    0xffff_fffe_4f2d,
];

/// Last part of a message: one byte 0x5a.
pub const MESSAGE: [u64; 4] = [
    0x0400_8250_0229,
    0xbc2f_e00e_0800,
    0x0000_0040_0009,
    0x5a00_0000_50a8,
];

/// Control code 12 with 16 bytes c0..cf.
pub const CONTROL: [u64; 6] = [
    0x0600_8260_02bc,
    0xbc2f_e014_0b00,
    0x0000_000c_000d,
    0xc0c1_c2c3_c4c5,
    0xc6c7_c8c9_cacb,
    0xcccd_cecf_2586,
];

/// Response to `PUT_64`.
pub const DONE: [u64; 1] = [0x8100_824d_5e00];

/// Response to `GET_64`: bytes c0..ff.
pub const READ_64: [u64; 12] = [
    0x8c00_827f_ff80,
    0xc0c1_c2c3_c4c5,
    0xc6c7_c8c9_cacb,
    0xcccd_cecf_d0d1,
    0xd2d3_d4d5_d6d7,
    0xd8d9_dadb_dcdd,
    0xdedf_e0e1_e2e3,
    0xe4e5_e6e7_e8e9,
    0xeaeb_eced_eeef,
    0xf0f1_f2f3_f4f5,
    0xf6f7_f8f9_fafb,
    0xfcfd_feff_85bf,
];

/// Four bytes: data and check fill one flit. Echo 31.
pub const READ_4: [u64; 2] = [0x8200_8258_031f, 0xc0c1_c2c3_4174];

/// 15 words: as many flits as 16 words. Echo 10.
pub const READ_60: [u64; 12] = [
    0x8c00_8270_03aa,
    0xc0c1_c2c3_c4c5,
    0xc6c7_c8c9_cacb,
    0xcccd_cecf_d0d1,
    0xd2d3_d4d5_d6d7,
    0xd8d9_dadb_dcdd,
    0xdedf_e0e1_e2e3,
    0xe4e5_e6e7_e8e9,
    0xeaeb_eced_eeef,
    0xf0f1_f2f3_f4f5,
    0xf6f7_f8f9_fafb,
    0x0000_0000_f63f,
];

/// Response to `COMPARE_SWAP`: the word was equal.
pub const OLD_64: [u64; 3] = [0x8300_8260_0101, 0x0123_4567_89ab, 0xcdef_0000_549f];

/// Response to `PUT_8`: out of bounds. Echo 26.
pub const REFUSED: [u64; 2] = [0x8278_5fc0_00ba, 0x0000_000a_fadd];

/// Done, as are requests 0xfff, 0 and 8. Echo 21.
pub const JOINED: [u64; 3] = [0x8378_5fef_ff35, 0x0fff_0000_0008, 0x0ffe_0ffe_e639];

/// `PUT_8`, `DONE`, idle flits; number 0x5b, ack 0x2a, load 9, a clock pulse, VC ack 0xc3.
#[rustfmt::skip]
pub const DATA_SET: [u8; 60] = [
    0x05, 0x00, 0x82, 0x40, 0x00, 0x82, 0x3c, 0x2f, 0xff, 0xff, 0xff, 0x00,
    0x00, 0x00, 0x00, 0x08, 0x00, 0x01, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
    0x07, 0x08, 0x00, 0x00, 0xb9, 0xbe, 0x81, 0x00, 0x82, 0x4d, 0x5e, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x37, 0x55, 0x3c, 0x3d, 0x81, 0x1c,
];

/// Probe and nack; next 0x89ab_cd5b, ack 0x0123_456a.
#[rustfmt::skip]
pub const CONTROL_SET: [u8; 60] = [
    0x01, 0x00, 0x89, 0xab, 0xcd, 0x5b, 0x00, 0x00, 0x01, 0x23, 0x45, 0x6a,
    0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x22, 0x22, 0x33, 0x33, 0x33, 0x33,
    0x44, 0x44, 0x44, 0x44, 0x55, 0x55, 0x55, 0x55, 0x66, 0x66, 0x66, 0x66,
    0x77, 0x77, 0x77, 0xf8, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00,
    0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0xb7, 0xd4, 0xc8, 0x89, 0x41, 0x29,
];

/// End B of link 0x0102: `CONTROL_SET`, `DATA_SET`.
#[rustfmt::skip]
pub const SET_FRAME: [u8; 144] = [
    0x59, 0x25, 0x01, 0x02, 0xfa, 0xb0, 0x0f, 0xab, 0x00, 0x00, 0x00, 0x07,
    0x00, 0x00, 0x00, 0x09, 0x00, 0x07, 0x00, 0x02, 0x78, 0x38, 0xb0, 0x39,
    0x01, 0x00, 0x89, 0xab, 0xcd, 0x5b, 0x00, 0x00, 0x01, 0x23, 0x45, 0x6a,
    0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x22, 0x22, 0x33, 0x33, 0x33, 0x33,
    0x44, 0x44, 0x44, 0x44, 0x55, 0x55, 0x55, 0x55, 0x66, 0x66, 0x66, 0x66,
    0x77, 0x77, 0x77, 0xf8, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00,
    0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0xb7, 0xd4, 0xc8, 0x89, 0x41, 0x29,
    0x05, 0x00, 0x82, 0x40, 0x00, 0x82, 0x3c, 0x2f, 0xff, 0xff, 0xff, 0x00,
    0x00, 0x00, 0x00, 0x08, 0x00, 0x01, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
    0x07, 0x08, 0x00, 0x00, 0xb9, 0xbe, 0x81, 0x00, 0x82, 0x4d, 0x5e, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x37, 0x55, 0x3c, 0x3d, 0x81, 0x1c,
];
