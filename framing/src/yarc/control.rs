//! The control word in the sideband (BlackWidow sec. 4.3: two bits of every phit carry sequence
//! numbers, status and virtual channel acknowledgements; layout ours).
//!
//! ```text
//!  95            80 79     75 74  72 71            56 55        36 35        16 15          0
//! |      seq       | offset  |status|      ack       |  vc_ack0   |  vc_ack1   |   CRC-16   |
//! ```
//!
//! 48 consecutive phits carry the 96 bits, two per phit, most significant first. The sender repeats
//! the word over the whole frame, so that a receiver has a second chance if noise hits the first.
//! All numbers are cumulative: a lost frame loses no credit and no acknowledgement.
//!
//! `seq` and `ack` are the lower 16 bits of 48-bit numbers. The frame's header has the upper 32
//! bits of both, and the number of the pass (see [`WordRest`]). They are needed to distinguish a
//! new frame from an old one of any age.

use super::phit::{PHIT_BITS, SIDEBAND_SHIFT};
use crate::carrier::crc_tables::tables;
use crate::carrier::names::{bit_field, reasons};
use crate::carrier::number::PacketNumber;

/// Bits of a control word.
pub const WORD_BITS: u32 = 96;
/// Bytes of a control word.
pub const WORD_BYTES: usize = WORD_BITS as usize / 8;
/// Number of consecutive phits that carry one word.
pub const WORD_PHITS: usize = (WORD_BITS / (PHIT_BITS - SIDEBAND_SHIFT)) as usize;
/// Bits of a virtual channel acknowledgement count.
pub const VC_ACK_BITS: u32 = 20;
/// Mask of a virtual channel acknowledgement count, which is modulo 2^20.
pub const VC_ACK_MASK: u32 = (1 << VC_ACK_BITS) - 1;
/// Largest value of [`ControlWord::offset`].
pub const MAX_OFFSET: u8 = (1 << OFFSET.width) - 1;

/// A field of the word: position of its lowest bit and its width.
#[derive(Clone, Copy)]
struct Field {
    shift: u32,
    width: u32,
}

impl Field {
    const fn at(shift: u32, width: u32) -> Self {
        Self { shift, width }
    }
}

const SEQ: Field = Field::at(80, 16);
const OFFSET: Field = Field::at(75, 5);
const STATUS: Field = Field::at(72, 3);
const ACK: Field = Field::at(56, 16);
const VC_ACK: [Field; 2] = [Field::at(36, VC_ACK_BITS), Field::at(16, VC_ACK_BITS)];
const CRC: Field = Field::at(0, 16);

const _: () = assert!(WORD_PHITS == 48);
const _: () =
    assert!(SEQ.shift + SEQ.width == WORD_BITS && OFFSET.shift + OFFSET.width == SEQ.shift);
const _: () = assert!(STATUS.shift + STATUS.width == OFFSET.shift);
const _: () = assert!(ACK.shift + ACK.width == STATUS.shift);
const _: () = assert!(VC_ACK[0].shift + VC_ACK[0].width == ACK.shift);
const _: () = assert!(VC_ACK[1].shift + VC_ACK[1].width == VC_ACK[0].shift);
const _: () = assert!(CRC.shift + CRC.width == VC_ACK[1].shift);
const _: () = assert!(super::packet::MAX_PACKET_PHITS <= MAX_OFFSET as usize);

/// x^16 + x^14 + x^11 + x^5 + x^2 + 1 without its highest term.
///
/// Hamming distance 6 over the 96 bits; distance 7 would need more than 16 check bits (the spheres
/// of three errors around 2^80 words overfill 2^96). x + 1 divides it, so every odd number of
/// flipped bits is detected; among the 211 polynomials with both properties it has the fewest
/// undetected patterns of six bits (28,116).
pub const POLYNOMIAL: u16 = 0x4825;
/// Start value of the word's check. It is not zero, so that a silent sideband of all zeros is not a
/// valid word.
pub const INITIAL: u16 = 0xffff;

/// Bytes that the check covers.
const CHECKED: usize = WORD_BYTES - 2;

/// CRC tables, by the number of following bytes of the word, without those of the check.
static TABLES: [[u16; 256]; CHECKED] = tables(POLYNOMIAL, 2);

/// The check over the first ten bytes of a word.
fn check(word: &[u8; WORD_BYTES]) -> u16 {
    // An initial value is equivalent to XORing it into the first two bytes.
    let start = INITIAL.to_be_bytes();
    let first = TABLES[CHECKED - 1][usize::from(word[0] ^ start[0])];
    let second = TABLES[CHECKED - 2][usize::from(word[1] ^ start[1])];
    let rest = word[2..CHECKED]
        .iter()
        .zip(TABLES[..CHECKED - 2].iter().rev());
    rest.fold(first ^ second, |crc, (byte, table)| {
        crc ^ table[usize::from(*byte)]
    })
}

/// A request of the sending end (ours; BlackWidow only says "status information").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LinkStatus {
    /// No request.
    #[default]
    Normal = 0,
    /// Request to resend from packet `ack` on: it or a later one was lost or damaged.
    RetryRequest = 1,
    /// Request to acknowledge at once.
    Probe = 2,
}

reasons! {
    /// Why a sideband contains no valid control word.
    SidebandError {
        Check: "no control word with a correct check",
        /// Codes 3 to 7 are reserved.
        StatusReserved: "reserved code in the status field of the control word",
    }
}

/// The raw bits of a control word: getters and setters without validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordView([u8; WORD_BYTES]);

impl WordView {
    /// A view of 12 bytes.
    pub const fn new(bytes: [u8; WORD_BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub const fn into_inner(self) -> [u8; WORD_BYTES] {
        self.0
    }

    fn word(&self) -> u128 {
        let mut word = [0; 16];
        word[4..].copy_from_slice(&self.0);
        u128::from_be_bytes(word)
    }

    fn get(&self, field: Field) -> u32 {
        (self.word() >> field.shift) as u32 & ((1 << field.width) - 1)
    }

    bit_field!(get seq, SEQ, u16, "Number of the frame's first packet, its lower 16 bits");
    bit_field!(get offset, OFFSET, u8, "Phits of that packet sent before this frame");
    bit_field!(get status_code, STATUS, u8, "The three status bits");
    bit_field!(get ack, ACK, u16, "Next packet expected by the sending end, lower 16 bits");
    bit_field!(get crc, CRC, u16, "The check as received");

    /// Phits freed on a virtual channel, modulo 2^20.
    pub fn vc_ack(&self, vc: super::packet::Vc) -> u32 {
        self.get(VC_ACK[vc.index()])
    }

    /// Whether the word's check is valid.
    pub fn check_is_right(&self) -> bool {
        self.crc() == check(&self.0)
    }

    fn set(&mut self, field: Field, value: u32) {
        let mask = ((1u128 << field.width) - 1) << field.shift;
        let word = self.word() & !mask | (u128::from(value) << field.shift) & mask;
        self.0.copy_from_slice(&word.to_be_bytes()[4..]);
    }

    bit_field!(set set_seq, SEQ, u16, "the lower 16 bits of the sequence number");
    bit_field!(set set_offset, OFFSET, u8, "the offset; 5 bits");
    bit_field!(set set_status_code, STATUS, u8, "the status bits; 3 bits");
    bit_field!(set set_ack, ACK, u16, "the lower 16 bits of the acknowledgement");

    /// Sets a virtual channel acknowledgement; 20 bits.
    pub fn set_vc_ack(&mut self, vc: super::packet::Vc, phits: u32) {
        self.set(VC_ACK[vc.index()], phits);
    }

    /// Computes and sets the check.
    pub fn fill_check(&mut self) {
        let crc = check(&self.0);
        self.set(CRC, u32::from(crc));
    }
}

/// The part of a control word that does not fit into the sideband. A data frame carries it in its
/// header.
///
/// ```text
/// byte 0 .. 3   upper 32 bits of seq
///      4 .. 7   upper 32 bits of ack
///      8, 9     pass
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WordRest {
    /// Upper 32 bits of [`ControlWord::seq`].
    pub seq: u32,
    /// Upper 32 bits of [`ControlWord::ack`].
    pub ack: u32,
    /// Same as [`ControlWord::pass`].
    pub pass: u16,
}

/// Bytes of the rest of a control word.
pub const REST_BYTES: usize = 10;

impl WordRest {
    /// Reads the rest from 10 bytes; every value is valid.
    #[inline]
    pub const fn parse(bytes: &[u8; REST_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j] = *bytes;
        Self {
            seq: u32::from_be_bytes([a, b, c, d]),
            ack: u32::from_be_bytes([e, f, g, h]),
            pass: u16::from_be_bytes([i, j]),
        }
    }

    /// Encodes the rest as bytes of the frame header.
    #[inline]
    pub const fn emit(self) -> [u8; REST_BYTES] {
        let ([a, b, c, d], [e, f, g, h]) = (self.seq.to_be_bytes(), self.ack.to_be_bytes());
        let [i, j] = self.pass.to_be_bytes();
        [a, b, c, d, e, f, g, h, i, j]
    }
}

/// The decoded control word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ControlWord {
    /// Number of the packet to which the frame's first packet phit belongs; in a frame of idle
    /// phits, of the next packet to be sent.
    pub seq: PacketNumber,
    /// Phits of that packet sent before this frame; 0 when the frame starts with its head. At most
    /// [`MAX_OFFSET`].
    pub offset: u8,
    /// The sending end's request.
    pub status: LinkStatus,
    /// Next packet expected by the sending end: all before it have arrived (cumulative).
    pub ack: PacketNumber,
    /// Phits freed per virtual channel since the link came up, modulo 2^20.
    pub vc_ack: [u32; 2],
    /// How often the sending end has rewound its stream, modulo 2^16: distinguishes a late frame
    /// from its resend.
    pub pass: u16,
}

impl ControlWord {
    /// Bytes of an encoded word.
    pub const fn buffer_len(&self) -> usize {
        WORD_BYTES
    }

    /// Reads a control word from the 12 bytes of a sideband and the `rest` in the frame's header.
    ///
    /// # Errors
    /// [`SidebandError::Check`] before [`SidebandError::StatusReserved`].
    pub fn parse(bytes: &[u8; WORD_BYTES], rest: WordRest) -> Result<Self, SidebandError> {
        if check(bytes) != u16::from_be_bytes([bytes[10], bytes[11]]) {
            return Err(SidebandError::Check);
        }
        let view = WordView::new(*bytes);
        let status = match view.status_code() {
            0 => LinkStatus::Normal,
            1 => LinkStatus::RetryRequest,
            2 => LinkStatus::Probe,
            _ => return Err(SidebandError::StatusReserved),
        };
        Ok(Self {
            seq: PacketNumber::from_parts(rest.seq, view.seq()),
            offset: view.offset(),
            status,
            ack: PacketNumber::from_parts(rest.ack, view.ack()),
            vc_ack: [view.get(VC_ACK[0]), view.get(VC_ACK[1])],
            pass: rest.pass,
        })
    }

    /// The part of the word in the frame's header.
    #[inline]
    pub const fn rest(&self) -> WordRest {
        WordRest {
            seq: self.seq.high(),
            ack: self.ack.high(),
            pass: self.pass,
        }
    }

    /// The 12 bytes of the word that are in the sideband; `offset` is truncated to 5 bits, the
    /// counts to 20.
    pub fn emit(&self) -> [u8; WORD_BYTES] {
        let put =
            |field: Field, value: u32| u128::from(value & ((1 << field.width) - 1)) << field.shift;
        let word = put(SEQ, u32::from(self.seq.low()))
            | put(OFFSET, u32::from(self.offset))
            | put(STATUS, self.status as u32)
            | put(ACK, u32::from(self.ack.low()))
            | put(VC_ACK[0], self.vc_ack[0])
            | put(VC_ACK[1], self.vc_ack[1]);
        let mut bytes = [0; WORD_BYTES];
        bytes.copy_from_slice(&word.to_be_bytes()[4..]);
        let crc = check(&bytes);
        bytes[10..].copy_from_slice(&crc.to_be_bytes());
        bytes
    }
}
