//! The link frame: what one Ethernet frame or UDP datagram carries (ours).
//!
//! The real link has a line code (16b20b) whose control characters mark where packets start and end
//! and which lanes are alive. A frame has no control characters, so its header says the same.
//!
//! ```text
//! byte 0    1         2  3    4 ... 7   8 ... 11  12 ... 15  16 17     18 19
//!      0x59 |ver|kind|end| link | fabric | tx epoch | rx epoch | 0 |lanes| phits |
//! byte 20 .. 29  rest of the control word: upper 32 bits of seq and of ack, pass
//!      kind map: 2 bits per phit, four phits per byte, first phit in bits 7:6
//!      check: CRC-32C over header, rest of the word and kind map
//!      phit area: 3 bytes per phit, big endian, sideband in bits 23:22
//! ```
//!
//! A data frame has a multiple of four phits and at least [`WORD_PHITS`], so that a whole control
//! word is in every frame; idle phits fill it up. Header and kind map are the line code's and outside the
//! reach of lane noise; the phit area is what the lanes carry.
//!
//! A frame of sets (Aries) has no kind map: its header counts sets of 60 bytes where that of a data frame counts phits.
//!
//! ```text
//! byte 0 .. 17  as above, kind 2
//!     18 19     sets
//!     20 .. 23  check: CRC-32C over the header
//!     24 ..     sets of 60 bytes: what the lanes carry
//! ```

mod data;
mod error;
mod header;
mod sets;

pub use data::{DataFrame, emit_data};
pub use error::{EmitError, FrameError};
pub use header::{FrameHeader, HeaderView};
pub use sets::{MAX_FRAME_SETS, SETS_AT, SetFrame, SetFrameWriter, max_sets, set_frame_len};

use crate::control::{REST_BYTES, WORD_BYTES, WORD_PHITS};
use crate::training::{self, Training};
use core::ops::Range;
use crc::{CRC_32_ISCSI, Crc, Table};

/// EtherType of link frames: the first of the two that IEEE 802 sets aside for experiments.
pub const ETHERTYPE: u16 = 0x88b5;
/// UDP port of every link end that has an interface of its own.
pub const UDP_PORT: u16 = 5470;
/// First byte of a link frame.
pub const MAGIC: u8 = 0x59;
/// Version of the format. Version 1 had packet numbers of 16 bits and no others.
pub const VERSION: u8 = 2;

/// Byte of the magic.
pub const MAGIC_AT: usize = 0;
/// Byte of version (7:4), kind (3:1) and end (0).
pub const KIND_AT: usize = 1;
/// Bytes of the link id.
pub const LINK_AT: Range<usize> = 2..4;
/// Bytes of the fabric id.
pub const FABRIC_AT: Range<usize> = 4..8;
/// Bytes of the sender's epoch.
pub const TX_EPOCH_AT: Range<usize> = 8..12;
/// Bytes of the receiver's epoch.
pub const RX_EPOCH_AT: Range<usize> = 12..16;
/// Bytes of 13 reserved bits and the lane mask (2:0).
pub const LANES_AT: Range<usize> = 16..18;
/// Bytes of the number of phits.
pub const PHITS_AT: Range<usize> = 18..20;
/// Bytes of the header that all kinds of frames have.
pub const HEADER_BYTES: usize = 20;
/// Bytes of a data frame with the rest of its control word.
pub const REST_AT: Range<usize> = HEADER_BYTES..HEADER_BYTES + REST_BYTES;
/// First byte of the kind map of a data frame.
pub const MAP_AT: usize = REST_AT.end;
/// Bytes of the check.
pub const CHECK_BYTES: usize = 4;
/// Phits whose kinds share a byte and which are encoded together.
pub const GROUP_PHITS: usize = 4;
/// Bytes of such a group in the phit area.
pub const GROUP_BYTES: usize = 3 * GROUP_PHITS;
/// Fewest phits of a data frame.
pub const MIN_FRAME_PHITS: usize = WORD_PHITS;
/// Most phits of a data frame.
pub const MAX_FRAME_PHITS: usize = u16::MAX as usize / GROUP_PHITS * GROUP_PHITS;

const _: () = assert!(PHITS_AT.end == HEADER_BYTES);
const _: () = assert!(GROUP_BYTES * 8 == GROUP_PHITS * crate::phit24::PHIT_BITS as usize);
const _: () = assert!(MIN_FRAME_PHITS.is_multiple_of(GROUP_PHITS));
const _: () = assert!(
    WORD_PHITS / GROUP_PHITS == WORD_BYTES,
    "a group carries a byte of the word"
);
// An Ethernet payload of less than 46 bytes would arrive with padding that no frame expects.
const _: () = assert!(frame_len(0) >= 46);

/// CRC-32C: Hamming distance 6 up to 5,243 bits of header, rest of the word and kind map, 4 far beyond.
static CHECK: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    CHECK.checksum(bytes)
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// A burst of consecutive phits.
    Data = 0,
    /// Channel initialisation; see [`crate::training`].
    Training = 1,
    /// Whole sets of ten flits; see [`crate::set48`].
    Sets = 2,
}

/// The two ends of a link, as the topology names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LinkEnd {
    /// The end named first.
    A = 0,
    /// The end named second.
    B = 1,
}

impl LinkEnd {
    /// The other end.
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// Phits that a data frame of `phits` packet phits really has: idle phits fill it up.
pub const fn padded_phits(phits: usize) -> usize {
    let padded = phits.next_multiple_of(GROUP_PHITS);
    if padded < MIN_FRAME_PHITS {
        MIN_FRAME_PHITS
    } else {
        padded
    }
}

/// Bytes of a data frame with `phits` packet phits.
pub const fn frame_len(phits: usize) -> usize {
    MAP_AT + CHECK_BYTES + padded_phits(phits) / GROUP_PHITS * (1 + GROUP_BYTES)
}

/// Most phits of a data frame in `frame_bytes` bytes; 0 when not even the smallest fits.
pub const fn max_phits(frame_bytes: usize) -> usize {
    let groups = frame_bytes.saturating_sub(MAP_AT + CHECK_BYTES) / (1 + GROUP_BYTES);
    let phits = groups * GROUP_PHITS;
    if phits < MIN_FRAME_PHITS {
        0
    } else if phits > MAX_FRAME_PHITS {
        MAX_FRAME_PHITS
    } else {
        phits
    }
}

/// A frame that has passed every check of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A burst of phits.
    Data(DataFrame<'a>),
    /// Channel initialisation.
    Training(Training),
    /// Whole sets of ten flits.
    Sets(SetFrame<'a>),
}

impl Frame<'_> {
    /// The header of any kind.
    pub const fn header(&self) -> &FrameHeader {
        match self {
            Self::Data(frame) => frame.header(),
            Self::Training(training) => &training.header,
            Self::Sets(frame) => frame.header(),
        }
    }
}

/// Reads a frame. The phit area, or the sets, are not judged: what the lanes did to them is for
/// control word, packet check and the check of a set to find.
///
/// # Errors
/// See [`FrameError`].
pub fn parse(bytes: &[u8]) -> Result<Frame<'_>, FrameError> {
    if bytes.len() < HEADER_BYTES + CHECK_BYTES {
        return Err(FrameError::TooShort);
    }
    let header = FrameHeader::parse(bytes)?;
    match header.kind {
        FrameKind::Data => data::parse_data(header, bytes).map(Frame::Data),
        FrameKind::Training => training::parse_body(header, bytes).map(Frame::Training),
        FrameKind::Sets => sets::parse_sets(header, bytes).map(Frame::Sets),
    }
}

/// Where the phit area of a frame lies, for whoever changes what the lanes carry (noise, a cable's
/// swaps): data phits, sets or the training pattern. Judges nothing but lengths; `None` when `bytes`
/// cannot be a frame.
pub fn phit_area(bytes: &[u8]) -> Option<Range<usize>> {
    let header = FrameHeader::parse(bytes).ok()?;
    let range = match header.kind {
        FrameKind::Data => {
            let groups = usize::from(header.phits) / GROUP_PHITS;
            let start = MAP_AT + groups + CHECK_BYTES;
            start..start + groups * GROUP_BYTES
        }
        FrameKind::Training => training::PATTERN_AT,
        FrameKind::Sets => SETS_AT..set_frame_len(usize::from(header.phits)),
    };
    (range.end == bytes.len()).then_some(range)
}
