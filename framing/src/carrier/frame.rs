//! The link frame: the contents of an Ethernet frame or UDP datagram (ours).
//!
//! A real link has a line code (BlackWidow sec. 6: 16b20b, or scrambled 16-bit words). We assume
//! that its control characters mark where packets start and end and which lanes are alive. A frame
//! has no control characters, so its header carries this information.
//!
//! ```text
//! byte 0    1         2  3    4 ... 7   8 ... 11  12 ... 15  16 17     18 19
//!      0x59 |ver|kind|end| link | fabric | tx epoch | rx epoch | 0 |lanes| units |
//! byte 20 ..  what the line code says in addition to the units, depending on the kind of frame
//!      check: CRC-32C over everything before it
//!      what the lanes carry, to the end of the frame
//! ```
//!
//! Everything up to the check belongs to the line code and is not subject to lane noise.
//!
//! # Kinds of frames
//! The kind is a three-bit code that machines may extend. [`Training`](super::training::Training)
//! frames are common to all machines; each other kind belongs to one machine, which has a type for
//! it:
//!
//! ```
//! use phitwire_framing::carrier::frame::{
//!     Frame, FrameError, FrameHeader, FrameKind, HEADER_BYTES, LinkEnd, PLAIN_AT, parse, seal,
//! };
//!
//! /// Words of eight bytes behind header and check.
//! struct Words<'a>(&'a [[u8; 8]]);
//!
//! impl<'a> Words<'a> {
//!     const KIND: FrameKind = FrameKind::new(3);
//!
//!     fn of(frame: &Frame<'a>) -> Result<Self, FrameError> {
//!         let words = frame.units(Self::KIND)?;
//!         let (_, area) = frame.split(HEADER_BYTES, PLAIN_AT + 8 * words)?;
//!         Ok(Self(area.as_chunks().0))
//!     }
//! }
//!
//! let (kind, end) = (Words::KIND, LinkEnd::A);
//! let header = FrameHeader {
//!     kind, end, link: 1, fabric: 2, tx_epoch: 3, rx_epoch: 4, lanes: 7, units: 2,
//! };
//! let mut bytes = [0x11; PLAIN_AT + 16];
//! header.emit(&mut bytes)?;
//! seal(&mut bytes, HEADER_BYTES);
//! assert_eq!(Words::of(&parse(&bytes)?)?.0, [[0x11; 8]; 2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod header;

pub use error::{EmitError, FrameError};
pub(crate) use header::field;
pub use header::{FrameHeader, HeaderView};

use super::lanes::Lanes;
use core::ops::Range;
#[cfg(any(test, not(feature = "processor-crc")))]
use crc::{CRC_32_ISCSI, Crc, Table};

/// EtherType of link frames: the first of two that IEEE 802 reserves for experiments.
pub const ETHERTYPE: u16 = 0x88b5;
/// UDP port of link ends that have an interface of their own.
pub const UDP_PORT: u16 = 5470;
/// First byte of a link frame.
pub const MAGIC: u8 = 0x59;
/// Version of the format. Version 1 had only 16-bit packet numbers.
pub const VERSION: u8 = 2;

/// Position of the magic byte.
pub const MAGIC_AT: usize = 0;
/// Position of the byte with version (7:4), kind (3:1) and end (0).
pub const KIND_AT: usize = 1;
/// Bytes of the link id.
pub const LINK_AT: Range<usize> = 2..4;
/// Bytes of the fabric id.
pub const FABRIC_AT: Range<usize> = 4..8;
/// Bytes of the sender's epoch.
pub const TX_EPOCH_AT: Range<usize> = 8..12;
/// Bytes of the receiver's epoch.
pub const RX_EPOCH_AT: Range<usize> = 12..16;
/// Bytes of the lane mask (3:0), after 12 reserved bits.
pub const LANES_AT: Range<usize> = 16..18;
/// Bytes of the number of units.
pub const UNITS_AT: Range<usize> = 18..20;
/// Length in bytes of the header common to all kinds of frames.
pub const HEADER_BYTES: usize = 20;
/// Length of the check in bytes.
pub const CHECK_BYTES: usize = 4;
/// Offset of the bytes that the lanes carry in a plain frame, which has nothing between header and
/// check.
pub const PLAIN_AT: usize = HEADER_BYTES + CHECK_BYTES;

/// Shortest frame on Ethernet, in bytes. A shorter payload would arrive with padding, which no kind
/// of frame expects; each kind asserts this.
pub const MIN_BYTES: usize = 46;

const _: () = assert!(UNITS_AT.end == HEADER_BYTES);

/// CRC-32C: Hamming distance 6 for up to 5,243 covered bits, and 4 for far longer frames.
#[cfg(any(test, not(feature = "processor-crc")))]
static CHECK: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// The check over `bytes`.
#[inline]
pub fn checksum(bytes: &[u8]) -> u32 {
    #[cfg(feature = "processor-crc")]
    return crc32c::crc32c(bytes);
    #[cfg(not(feature = "processor-crc"))]
    CHECK.checksum(bytes)
}

/// Writes the check of the first `checked` bytes of `frame` after them.
///
/// # Panics
/// If `frame` has no room for the check.
#[inline]
pub fn seal(frame: &mut [u8], checked: usize) {
    let (checked, rest) = frame.split_at_mut(checked);
    rest[..CHECK_BYTES].copy_from_slice(&checksum(checked).to_be_bytes());
}

/// The purpose of a frame: a code of three bits.
///
/// The type that reads a kind of frame has the code as its `KIND`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameKind(u8);

impl FrameKind {
    /// The kind with this code.
    ///
    /// # Panics
    /// If the code has more than three bits.
    #[inline]
    pub const fn new(code: u8) -> Self {
        assert!(code < 8, "the code of a kind has 3 bits");
        Self(code)
    }

    /// The code, less than 8.
    #[inline]
    pub const fn code(self) -> u8 {
        self.0
    }
}

/// One of the two ends of a link, as named by the topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LinkEnd {
    /// The end named first.
    A = 0,
    /// The end named second.
    B = 1,
}

impl LinkEnd {
    /// The opposite end of the link.
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// A frame of any kind with a valid header; [`split`](Self::split) checks the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    header: FrameHeader,
    bytes: &'a [u8],
}

/// Reads the header of a frame.
///
/// # Errors
/// [`FrameError::TooShort`], `BadMagic`, `BadVersion`, `ReservedHeader`, in this order.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<Frame<'_>, FrameError> {
    if bytes.len() < PLAIN_AT {
        return Err(FrameError::TooShort);
    }
    let header = FrameHeader::parse(bytes)?;
    Ok(Frame { header, bytes })
}

impl<'a> Frame<'a> {
    /// The header, which has been validated.
    #[inline]
    pub const fn header(&self) -> &FrameHeader {
        &self.header
    }

    /// The kind of the frame.
    #[inline]
    pub const fn kind(&self) -> FrameKind {
        self.header.kind
    }

    /// The whole frame, header included.
    #[inline]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The same frame, unless its mask names lanes that the link does not have.
    ///
    /// # Errors
    /// [`FrameError::ReservedHeader`].
    #[inline]
    pub const fn of_lanes(self, lanes: Lanes) -> Result<Self, FrameError> {
        if self.header.lanes & !lanes.all() == 0 {
            Ok(self)
        } else {
            Err(FrameError::ReservedHeader)
        }
    }

    /// Number of units of a frame of `kind`.
    ///
    /// # Errors
    /// [`FrameError::BadKind`] if the frame has another kind.
    #[inline]
    pub fn units(&self, kind: FrameKind) -> Result<usize, FrameError> {
        if self.kind() == kind {
            Ok(self.header.units.into())
        } else {
            Err(FrameError::BadKind)
        }
    }

    /// Splits a frame of `len` bytes into the first `checked` bytes, which the check covers, and
    /// the bytes that the lanes carry. The latter may be damaged.
    ///
    /// # Errors
    /// [`FrameError::BadLength`], `BadHeaderCheck`, `NoLanes`, in this order.
    #[inline]
    pub fn split(&self, checked: usize, len: usize) -> Result<(&'a [u8], &'a [u8]), FrameError> {
        if self.bytes.len() != len {
            return Err(FrameError::BadLength);
        }
        let parts = self.bytes.split_at_checked(checked);
        let (checked, rest) = parts.ok_or(FrameError::BadLength)?;
        let (check, carried) = rest.split_first_chunk().ok_or(FrameError::BadLength)?;
        if checksum(checked).to_be_bytes() != *check {
            return Err(FrameError::BadHeaderCheck);
        }
        if self.header.lanes == 0 {
            return Err(FrameError::NoLanes);
        }
        Ok((checked, carried))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_is_crc_32c_wherever_the_bytes_lie_and_whoever_computes_it() {
        assert_eq!(
            checksum(b"123456789"),
            0xe306_9283,
            "the value of the CRC catalogue"
        );
        let bytes: [u8; 300] = core::array::from_fn(|at| (at * at + 7 * at) as u8);
        for from in 0..16 {
            for to in from..bytes.len() {
                let part = &bytes[from..to];
                assert_eq!(checksum(part), CHECK.checksum(part), "{from}..{to}");
            }
        }
    }
}
