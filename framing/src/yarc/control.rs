//! The control word in the sideband (paper, section 4.3: two bits of every phit carry sequence
//! numbers, status and virtual channel acknowledgements; layout ours).
//!
//! ```text
//!  95            80 79     75 74  72 71            56 55        36 35        16 15          0
//! |      seq       | offset  |status|      ack       |  vc_ack0   |  vc_ack1   |   CRC-16   |
//! ```
//!
//! 96 bits lie over 48 consecutive phits, two per phit, most significant first. The sender repeats
//! the word over the whole frame, so that a receiver has a second chance where noise hits the
//! first. All numbers are cumulative: a lost frame loses no credit and no acknowledgement.
//!
//! `seq` and `ack` are the lower 16 bits of 48-bit numbers. The upper 32 bits of both stand in the
//! frame's header with the number of the pass (see [`WordRest`]): only with them is a frame of any
//! age told from a new one.

use super::phit::{PHIT_BITS, SIDEBAND_SHIFT};
use crate::carrier::names::reasons;
use crate::carrier::number::PacketNumber;

/// Bits of a control word.
pub const WORD_BITS: u32 = 96;
/// Bytes of a control word.
pub const WORD_BYTES: usize = WORD_BITS as usize / 8;
/// Consecutive phits that carry one word.
pub const WORD_PHITS: usize = (WORD_BITS / (PHIT_BITS - SIDEBAND_SHIFT)) as usize;
/// Bits of a virtual channel acknowledgement count.
pub const VC_ACK_BITS: u32 = 20;
/// Mask of a virtual channel acknowledgement count: it is modulo 2^20.
pub const VC_ACK_MASK: u32 = (1 << VC_ACK_BITS) - 1;
/// Largest value of [`ControlWord::offset`].
pub const MAX_OFFSET: u8 = (1 << OFFSET.width) - 1;

/// A field of the word: position of its lowest bit and its width.
#[derive(Clone, Copy)]
struct Field {
    shift: u32,
    width: u32,
}

const SEQ: Field = Field {
    shift: 80,
    width: 16,
};
const OFFSET: Field = Field {
    shift: 75,
    width: 5,
};
const STATUS: Field = Field {
    shift: 72,
    width: 3,
};
const ACK: Field = Field {
    shift: 56,
    width: 16,
};
const VC_ACK: [Field; 2] = [
    Field {
        shift: 36,
        width: VC_ACK_BITS,
    },
    Field {
        shift: 16,
        width: VC_ACK_BITS,
    },
];
const CRC: Field = Field {
    shift: 0,
    width: 16,
};

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
/// of three errors around 2^80 words overfill 2^96). x + 1 divides it, so that every odd number of
/// flipped bits is detected; among the 211 polynomials with both properties it has the fewest
/// undetected patterns of six bits (28,116).
pub const POLYNOMIAL: u16 = 0x4825;
/// Start value of the word's check, so that a silent sideband of all zeros is not a valid word.
pub const INITIAL: u16 = 0xffff;

/// Bytes that the check covers.
const CHECKED: usize = WORD_BYTES - 2;

/// `tables[i][b]` is what byte `b` at place `i` of the word adds to the check. The CRC is linear,
/// so the ten look-ups do not wait for each other.
const fn tables() -> [[u16; 256]; CHECKED] {
    let mut tables = [[0; 256]; CHECKED];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u16;
        let mut place = CHECKED + 1;
        // Two bytes of the check itself follow the last place.
        while place > 0 {
            place -= 1;
            crc = shift_byte(crc);
            if place < CHECKED {
                tables[place][byte] = crc;
            }
        }
        byte += 1;
    }
    tables
}

const fn shift_byte(mut crc: u16) -> u16 {
    let mut bit = 0;
    while bit < 8 {
        crc = if crc & 0x8000 != 0 {
            (crc << 1) ^ POLYNOMIAL
        } else {
            crc << 1
        };
        bit += 1;
    }
    crc
}

static TABLES: [[u16; 256]; CHECKED] = tables();

/// The check over the first ten bytes of a word.
fn check(word: &[u8; WORD_BYTES]) -> u16 {
    // The start value is as good as two bytes added to the first two.
    let start = INITIAL.to_be_bytes();
    let first = TABLES[0][usize::from(word[0] ^ start[0])];
    let second = TABLES[1][usize::from(word[1] ^ start[1])];
    let rest = word[2..CHECKED].iter().zip(&TABLES[2..]);
    rest.fold(first ^ second, |crc, (byte, table)| {
        crc ^ table[usize::from(*byte)]
    })
}

/// What the sending end asks of the other (ours; the paper only says "status information").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LinkStatus {
    /// Nothing special.
    #[default]
    Normal = 0,
    /// Go back to packet `ack`: something after it was lost or damaged.
    RetryRequest = 1,
    /// Acknowledge at once, please.
    Probe = 2,
}

reasons! {
    /// Why a sideband carries no word.
    SidebandError {
        Check: "no control word with a right check",
        /// Codes 3 to 7 are reserved.
        StatusReserved: "status field of the control word has a reserved code",
    }
}

/// The bits of a control word as they lie in the sideband: getters and setters without judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordView([u8; WORD_BYTES]);

impl WordView {
    /// A view of 12 bytes.
    pub const fn new(bytes: [u8; WORD_BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes back.
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

    /// Number of the packet of the frame's first packet phit, its lower 16 bits.
    pub fn seq(&self) -> u16 {
        self.get(SEQ) as u16
    }

    /// Phits of that packet sent before this frame.
    pub fn offset(&self) -> u8 {
        self.get(OFFSET) as u8
    }

    /// The three status bits.
    pub fn status_code(&self) -> u8 {
        self.get(STATUS) as u8
    }

    /// Next packet expected by the sending end, the lower 16 bits of its number.
    pub fn ack(&self) -> u16 {
        self.get(ACK) as u16
    }

    /// Phits freed on a virtual channel, modulo 2^20.
    pub fn vc_ack(&self, vc: super::packet::Vc) -> u32 {
        self.get(VC_ACK[vc.index()])
    }

    /// The check as it stands there.
    pub fn crc(&self) -> u16 {
        self.get(CRC) as u16
    }

    /// Whether the check is right.
    pub fn check_is_right(&self) -> bool {
        self.crc() == check(&self.0)
    }

    fn set(&mut self, field: Field, value: u32) {
        let mask = ((1u128 << field.width) - 1) << field.shift;
        let word = self.word() & !mask | (u128::from(value) << field.shift) & mask;
        self.0.copy_from_slice(&word.to_be_bytes()[4..]);
    }

    /// Sets the lower 16 bits of the sequence number.
    pub fn set_seq(&mut self, seq: u16) {
        self.set(SEQ, u32::from(seq));
    }

    /// Sets the offset; 5 bits.
    pub fn set_offset(&mut self, offset: u8) {
        self.set(OFFSET, u32::from(offset));
    }

    /// Sets the status bits; 3 bits.
    pub fn set_status_code(&mut self, code: u8) {
        self.set(STATUS, u32::from(code));
    }

    /// Sets the lower 16 bits of the acknowledgement.
    pub fn set_ack(&mut self, ack: u16) {
        self.set(ACK, u32::from(ack));
    }

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

/// What belongs to a control word and has no place in the sideband: a data frame carries it in its
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
    /// [`ControlWord::pass`].
    pub pass: u16,
}

/// Bytes of the rest of a control word.
pub const REST_BYTES: usize = 10;

impl WordRest {
    /// The meaning of 10 bytes: any are right.
    #[inline]
    pub const fn parse(bytes: &[u8; REST_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j] = *bytes;
        Self {
            seq: u32::from_be_bytes([a, b, c, d]),
            ack: u32::from_be_bytes([e, f, g, h]),
            pass: u16::from_be_bytes([i, j]),
        }
    }

    /// The 10 bytes.
    #[inline]
    pub const fn emit(self) -> [u8; REST_BYTES] {
        let ([a, b, c, d], [e, f, g, h]) = (self.seq.to_be_bytes(), self.ack.to_be_bytes());
        let [i, j] = self.pass.to_be_bytes();
        [a, b, c, d, e, f, g, h, i, j]
    }
}

/// The meaning of a control word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ControlWord {
    /// Number of the packet that the frame's first packet phit belongs to; in a frame of idle phits
    /// that of the next packet to be sent.
    pub seq: PacketNumber,
    /// Phits of that packet sent before this frame; 0 when the frame starts with its head. At most
    /// [`MAX_OFFSET`].
    pub offset: u8,
    /// What the sending end asks.
    pub status: LinkStatus,
    /// Next packet expected by the sending end: all before it have arrived (cumulative).
    pub ack: PacketNumber,
    /// Phits freed per virtual channel since the link came up, modulo 2^20.
    pub vc_ack: [u32; 2],
    /// How often the sending end has gone back in its stream, modulo 2^16: a frame sent before a
    /// retransmission, and only late, is told by it from the retransmission.
    pub pass: u16,
}

impl ControlWord {
    /// Bytes of an encoded word.
    pub const fn buffer_len(&self) -> usize {
        WORD_BYTES
    }

    /// The meaning of 12 bytes taken out of the sideband of a frame whose header has `rest`.
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

    /// What the frame's header has of the word.
    #[inline]
    pub const fn rest(&self) -> WordRest {
        WordRest {
            seq: self.seq.high(),
            ack: self.ack.high(),
            pass: self.pass,
        }
    }

    /// The 12 bytes of the word that are in the sideband; `offset` is cut to 5 bits, the
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
