//! The packet of the BlackWidow network (BlackWidow fig. 5 and sec. 4.1).
//!
//! ```text
//!         21   19 18  17  16  15  14                              0
//! head   |payload| r | a | h | v |           destination           |
//!         21              15      14                              0
//! second |     payload   |       |           hash bits             |
//! body   |                       payload                           |
//!         21   18 17 16 15                                        0
//! EOP    | zero  |  ok |                   CRC-16                  |
//! ```
//!
//! The fields are from the paper; their positions within the phit, the width of the check and the
//! code of `ok` are ours. Payload bits form one stream: the head's three, the second phit's seven,
//! then 22 of each later phit, most significant bit first.

use super::crc16::PacketCrc;
use super::phit::{CONTENT_BITS, CONTENT_MASK, Phit, PhitKind};
use crate::carrier::names::reasons;

/// Phits of the shortest packet, with 32 payload bits (BlackWidow sec. 4.1).
pub const MIN_PACKET_PHITS: usize = 4;
/// Phits of the longest packet, a write of 32 bytes (BlackWidow sec. 4.3).
pub const MAX_PACKET_PHITS: usize = 19;

/// Bits of a destination: 32K processors (BlackWidow sec. 2).
pub const DEST_BITS: u32 = 15;
/// Mask of a destination, and of the hash bits, which have the same width and position.
pub const DEST_MASK: u32 = (1 << DEST_BITS) - 1;
/// Mask of the hash bits in the second phit (BlackWidow sec. 7.8.2).
pub const HASH_MASK: u32 = DEST_MASK;
/// Position of `v` in the head.
pub const V_BIT: u32 = 15;
/// Position of `h` in the head.
pub const H_BIT: u32 = 16;
/// Position of `a` in the head.
pub const A_BIT: u32 = 17;
/// Position of `r` in the head.
pub const R_BIT: u32 = 18;
/// Position of the head's payload bits.
pub const HEAD_PAYLOAD_SHIFT: u32 = 19;
/// Payload bits of the head.
pub const HEAD_PAYLOAD_BITS: u32 = CONTENT_BITS - HEAD_PAYLOAD_SHIFT;
/// Position of the second phit's payload bits.
pub const SECOND_PAYLOAD_SHIFT: u32 = 15;
/// Payload bits of the second phit.
pub const SECOND_PAYLOAD_BITS: u32 = CONTENT_BITS - SECOND_PAYLOAD_SHIFT;
/// Mask of the check in the end of packet.
pub const EOP_CRC_MASK: u32 = 0xffff;
/// Position of the `ok` field in the end of packet.
pub const EOP_STATUS_SHIFT: u32 = 16;
/// Position of the four reserved bits of the end of packet.
pub const EOP_RESERVED_SHIFT: u32 = 18;

/// Payload bits of a packet of `phits` phits; zero for anything shorter than [`MIN_PACKET_PHITS`].
pub const fn payload_bits(phits: usize) -> usize {
    if phits < MIN_PACKET_PHITS {
        return 0;
    }
    HEAD_PAYLOAD_BITS as usize + SECOND_PAYLOAD_BITS as usize + (phits - 3) * CONTENT_BITS as usize
}

const _: () = assert!(payload_bits(MIN_PACKET_PHITS) == 32);
const _: () = assert!(HEAD_PAYLOAD_BITS == 3 && SECOND_PAYLOAD_BITS == 7);
const _: () = assert!(EOP_RESERVED_SHIFT < CONTENT_BITS);

/// Virtual channel (BlackWidow sec. 4.2). The discriminant is the `v` bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Vc {
    /// Requests: `v` = 0.
    Request = 0,
    /// Responses: `v` = 1.
    Response = 1,
}

impl Vc {
    /// Both channels, in the order of their indices.
    pub const ALL: [Self; 2] = [Self::Request, Self::Response];

    /// Index of the channel: 0 for requests, 1 for responses.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The channel with this index, of which only the lowest bit counts.
    #[inline]
    pub const fn from_index(index: usize) -> Self {
        if index & 1 == 0 {
            Self::Request
        } else {
            Self::Response
        }
    }
}

/// The destination in the content of a head phit.
#[inline]
pub const fn head_dest(content: u32) -> u16 {
    (content & DEST_MASK) as u16
}

/// The virtual channel in the content of a head phit.
#[inline]
pub const fn head_vc(content: u32) -> Vc {
    Vc::from_index((content >> V_BIT) as usize)
}

/// The `h` bit in the content of a head phit: the deterministic hash includes the hash bits.
#[inline]
pub const fn head_hashed(content: u32) -> bool {
    content >> H_BIT & 1 != 0
}

/// The `a` bit in the content of a head phit: the packet routes adaptively on its way up.
#[inline]
pub const fn head_adaptive(content: u32) -> bool {
    content >> A_BIT & 1 != 0
}

/// The `r` bit in the content of a head phit: the packet is source-routed.
#[inline]
pub const fn head_source_routed(content: u32) -> bool {
    content >> R_BIT & 1 != 0
}

/// The three payload bits in the content of a head phit; the hop index when source-routed.
#[inline]
pub const fn head_payload(content: u32) -> u8 {
    (content >> HEAD_PAYLOAD_SHIFT & 7) as u8
}

/// The hash bits in the content of a second phit, 15 bits.
#[inline]
pub const fn hash_bits(content: u32) -> u16 {
    (content & HASH_MASK) as u16
}

/// The 7 payload bits in the content of a second phit.
#[inline]
pub const fn second_payload(content: u32) -> u8 {
    (content >> SECOND_PAYLOAD_SHIFT & 0x7f) as u8
}

/// The content of a second phit.
#[inline]
pub const fn second_phit(hash: u16, payload: u8) -> u32 {
    (hash as u32 & HASH_MASK) | (payload as u32 & 0x7f) << SECOND_PAYLOAD_SHIFT
}

/// The fields of a head phit. Every 22-bit content is a valid head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Head {
    /// Destination processor, 15 bits.
    pub dest: u16,
    /// Virtual channel, `v`.
    pub vc: Vc,
    /// `h`: the deterministic hash includes the hash bits of the second phit.
    pub hashed: bool,
    /// `a`: the packet routes adaptively on its way up.
    pub adaptive: bool,
    /// `r`: the packet carries its route.
    pub source_routed: bool,
    /// 3 payload bits; the hop index when source-routed.
    pub payload: u8,
}

impl Head {
    /// Reads the content of a head phit.
    #[inline]
    pub const fn parse(content: u32) -> Self {
        Self {
            dest: head_dest(content),
            vc: head_vc(content),
            hashed: head_hashed(content),
            adaptive: head_adaptive(content),
            source_routed: head_source_routed(content),
            payload: head_payload(content),
        }
    }

    /// The 22 content bits; `dest` is truncated to 15 bits, `payload` to 3.
    #[inline]
    pub const fn emit(self) -> u32 {
        (self.dest as u32 & DEST_MASK)
            | (self.vc as u32) << V_BIT
            | (self.hashed as u32) << H_BIT
            | (self.adaptive as u32) << A_BIT
            | (self.source_routed as u32) << R_BIT
            | (self.payload as u32 & 7) << HEAD_PAYLOAD_SHIFT
    }
}

/// The `ok` field of an end of packet (BlackWidow sec. 4.3; codes ours).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EopStatus {
    /// No known damage.
    Healthy = 0,
    /// The packet was damaged on the incoming link, and will be resent.
    TransmitError = 1,
    /// The packet was damaged inside a router before it was transmitted; it will not be resent.
    SoftError = 2,
}

reasons! {
    /// Why an end of packet is invalid.
    EopError {
        StatusReserved: "reserved code 3 in the ok field of the end of packet",
        ReservedNonZero: "nonzero reserved bits 21:18 in the end of packet",
        Crc: "wrong packet check",
    }
}

/// The `ok` field in the content of an end-of-packet phit; `None` for the reserved code.
#[inline]
pub const fn eop_status(content: u32) -> Option<EopStatus> {
    match content >> EOP_STATUS_SHIFT & 3 {
        0 => Some(EopStatus::Healthy),
        1 => Some(EopStatus::TransmitError),
        2 => Some(EopStatus::SoftError),
        _ => None,
    }
}

/// The fields of an end of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Eop {
    /// Check over the preceding phits and `status`; see [`crc16`](super::crc16).
    pub crc: u16,
    /// Health of the packet: the `ok` field.
    pub status: EopStatus,
}

impl Eop {
    /// Reads the content of an end-of-packet phit; does not verify the check.
    ///
    /// # Errors
    /// [`EopError::StatusReserved`] and [`EopError::ReservedNonZero`].
    #[inline]
    pub const fn parse(content: u32) -> Result<Self, EopError> {
        if content & CONTENT_MASK & !((1 << EOP_RESERVED_SHIFT) - 1) != 0 {
            return Err(EopError::ReservedNonZero);
        }
        match eop_status(content) {
            Some(status) => Ok(Self {
                crc: (content & EOP_CRC_MASK) as u16,
                status,
            }),
            None => Err(EopError::StatusReserved),
        }
    }

    /// The 22 content bits.
    #[inline]
    pub const fn emit(self) -> u32 {
        self.crc as u32 | (self.status as u32) << EOP_STATUS_SHIFT
    }
}

/// A buffer for a whole packet: up to [`MAX_PACKET_PHITS`] phits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketBuf {
    phits: [Phit; MAX_PACKET_PHITS],
    len: u8,
}

impl Default for PacketBuf {
    fn default() -> Self {
        Self::new()
    }
}

impl PacketBuf {
    /// An empty packet.
    pub const fn new() -> Self {
        Self {
            phits: [Phit::IDLE; MAX_PACKET_PHITS],
            len: 0,
        }
    }

    /// Makes the packet empty.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds a phit. Returns `false`, without a change, when the packet already has
    /// [`MAX_PACKET_PHITS`].
    #[inline]
    #[must_use]
    pub fn push(&mut self, phit: Phit) -> bool {
        match self.phits.get_mut(usize::from(self.len)) {
            Some(slot) => {
                *slot = phit;
                self.len += 1;
                true
            }
            None => false,
        }
    }

    /// The phits so far.
    #[inline]
    pub fn as_slice(&self) -> &[Phit] {
        &self.phits[..usize::from(self.len)]
    }

    /// The phits so far, mutable.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [Phit] {
        &mut self.phits[..usize::from(self.len)]
    }

    /// Number of phits so far.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the packet has no phits yet.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Why phits are not one healthy packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketError {
    /// Fewer phits than [`MIN_PACKET_PHITS`] or more than [`MAX_PACKET_PHITS`].
    Length,
    /// The kinds are not head, body, ..., body, end of packet.
    Kinds,
    /// The end of packet is invalid.
    Eop(EopError),
}

impl core::fmt::Display for PacketError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Length => f.write_str("packet is not 4 to 19 phits long"),
            Self::Kinds => f.write_str("phits are not head, body, end of packet in this order"),
            Self::Eop(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for PacketError {}

/// Checks that `phits` is one whole packet with a valid check. Returns its `ok` field.
///
/// # Errors
/// See [`PacketError`].
pub fn check_packet(phits: &[Phit]) -> Result<EopStatus, PacketError> {
    check_shape(phits)?;
    let (eop, rest) = phits.split_last().ok_or(PacketError::Length)?;
    let mut crc = PacketCrc::new();
    crc.update_all(rest);
    crc.verify(eop.content()).map_err(PacketError::Eop)
}

/// Checks length and kinds of a packet, but not the fields of its end of packet.
///
/// # Errors
/// [`PacketError::Length`] and [`PacketError::Kinds`].
pub fn check_shape(phits: &[Phit]) -> Result<(), PacketError> {
    if phits.len() < MIN_PACKET_PHITS || phits.len() > MAX_PACKET_PHITS {
        return Err(PacketError::Length);
    }
    let last = phits.len() - 1;
    let body = phits[1..last]
        .iter()
        .all(|phit| phit.kind() == PhitKind::Body);
    if phits[0].is_head() && body && phits[last].is_eop() {
        Ok(())
    } else {
        Err(PacketError::Kinds)
    }
}
