//! The 24-bit phit of the BlackWidow network (BlackWidow sec. 4.1 and 4.2).
//!
//! A phit is the unit of flow control. On a wire it has 24 bits: 22 bits of content and 2 bits of
//! link-control-block sideband. BlackWidow sec. 4.4 and 6 do not mention how head, body, end and
//! idle are marked on the real link; we assume that the line code marks them. Here the mark
//! accompanies the phit as its [`PhitKind`].

use crate::carrier::lanes::Lanes;

/// Bits of one phit on the wire.
pub const PHIT_BITS: u32 = 24;
/// Three differential pairs carry a phit (BlackWidow sec. 4.4 and 7.7). Each carries a third, a
/// half or all of it, depending on how many are in use.
pub const LANES: Lanes = Lanes::new(3, PHIT_BITS);
/// Bits of one phit that belong to the packet; the other two are the sideband.
pub const CONTENT_BITS: u32 = 22;
/// Mask of the content bits.
pub const CONTENT_MASK: u32 = (1 << CONTENT_BITS) - 1;
/// Position of the two sideband bits within the 24.
pub const SIDEBAND_SHIFT: u32 = CONTENT_BITS;
/// Mask of all 24 wire bits.
pub const WIRE_MASK: u32 = (1 << PHIT_BITS) - 1;
const KIND_SHIFT: u32 = PHIT_BITS;

const _: () = assert!(CONTENT_BITS + 2 == PHIT_BITS);

/// The kind of a phit according to the line code. The discriminants are the two-bit codes of the
/// frame's kind map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PhitKind {
    /// No packet data: only the sideband counts.
    Idle = 0,
    /// First phit of a packet: destination, virtual channel and routing bits.
    Head = 1,
    /// Any phit between head and end of packet.
    Body = 2,
    /// End of packet: CRC and `ok`, both of the data-link layer.
    Eop = 3,
}

impl PhitKind {
    /// The kind of a two-bit code; higher bits of `code` are ignored.
    #[inline]
    pub const fn from_code(code: u8) -> Self {
        match code & 3 {
            0 => Self::Idle,
            1 => Self::Head,
            2 => Self::Body,
            _ => Self::Eop,
        }
    }
}

/// A phit with its kind: bits 0..22 content, 22..24 sideband, 24..26 kind; higher bits are zero.
///
/// Inside a router and in every buffer the sideband bits are zero: only the frame codec sets and
/// strips them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct Phit(u32);

impl Phit {
    /// An idle phit with empty sideband.
    pub const IDLE: Self = Self(0);

    /// A phit of `kind` carrying the low 22 bits of `content`.
    #[inline]
    pub const fn new(kind: PhitKind, content: u32) -> Self {
        Self((content & CONTENT_MASK) | ((kind as u32) << KIND_SHIFT))
    }

    /// A phit as received: 24 wire bits and the kind.
    #[inline]
    pub const fn from_wire(kind: PhitKind, wire: u32) -> Self {
        Self((wire & WIRE_MASK) | ((kind as u32) << KIND_SHIFT))
    }

    /// The representation as one word; see the type's docs.
    #[inline]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// The inverse of [`Self::to_bits`]; bits above 26 are ignored.
    #[inline]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & ((1 << (KIND_SHIFT + 2)) - 1))
    }

    /// The kind according to the line code.
    #[inline]
    pub const fn kind(self) -> PhitKind {
        PhitKind::from_code((self.0 >> KIND_SHIFT) as u8)
    }

    /// The 22 content bits.
    #[inline]
    pub const fn content(self) -> u32 {
        self.0 & CONTENT_MASK
    }

    /// The 2 sideband bits.
    #[inline]
    pub const fn sideband(self) -> u8 {
        ((self.0 >> SIDEBAND_SHIFT) & 3) as u8
    }

    /// All 24 wire bits, sideband included.
    #[inline]
    pub const fn wire(self) -> u32 {
        self.0 & WIRE_MASK
    }

    /// Whether this is an end-of-packet phit.
    #[inline]
    pub const fn is_eop(self) -> bool {
        matches!(self.kind(), PhitKind::Eop)
    }

    /// Whether this is a head phit.
    #[inline]
    pub const fn is_head(self) -> bool {
        matches!(self.kind(), PhitKind::Head)
    }
}

impl core::fmt::Debug for Phit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "{:?}({:#08x}/{})",
            self.kind(),
            self.content(),
            self.sideband()
        )
    }
}
