//! The 20 bytes that every link frame starts with.

use super::{
    EmitError, FABRIC_AT, FrameError, FrameKind, HEADER_BYTES, KIND_AT, LANES_AT, LINK_AT, LinkEnd,
    MAGIC, MAGIC_AT, RX_EPOCH_AT, TX_EPOCH_AT, UNITS_AT, VERSION,
};
use crate::carrier::lanes::MAX_LANES;

/// Bits of the lane mask; the others of its word are reserved.
const LANE_MASK: u16 = (1 << MAX_LANES) - 1;

/// The 20 raw header bytes: getters and setters without validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderView<T>(T);

/// Defines the getter or the setter of a big-endian number in a byte range of a view.
macro_rules! field {
    (get $get:ident, $range:ident, $type:ty, $doc:literal) => {
        #[doc = concat!($doc, ".")]
        pub fn $get(&self) -> $type {
            let mut bytes = [0; size_of::<$type>()];
            bytes.copy_from_slice(&self.0.as_ref()[$range]);
            <$type>::from_be_bytes(bytes)
        }
    };
    (set $set:ident, $range:ident, $type:ty, $doc:literal) => {
        #[doc = concat!("Sets ", $doc, ".")]
        pub fn $set(&mut self, value: $type) {
            self.0.as_mut()[$range].copy_from_slice(&value.to_be_bytes());
        }
    };
}

pub(crate) use field;

impl<T: AsRef<[u8]>> HeaderView<T> {
    /// A view of bytes that hold at least a header.
    ///
    /// # Errors
    /// [`FrameError::TooShort`].
    pub fn new_checked(bytes: T) -> Result<Self, FrameError> {
        if bytes.as_ref().len() < HEADER_BYTES {
            Err(FrameError::TooShort)
        } else {
            Ok(Self(bytes))
        }
    }

    /// Consumes the view and returns the bytes.
    pub fn into_inner(self) -> T {
        self.0
    }

    /// First byte; must be [`MAGIC`](super::MAGIC).
    pub fn magic(&self) -> u8 {
        self.0.as_ref()[MAGIC_AT]
    }

    /// Version, 4 bits.
    pub fn version(&self) -> u8 {
        self.0.as_ref()[KIND_AT] >> 4
    }

    /// The kind of the frame.
    pub fn kind(&self) -> FrameKind {
        FrameKind::new(self.0.as_ref()[KIND_AT] >> 1 & 7)
    }

    /// The end that sent the frame.
    pub fn end(&self) -> LinkEnd {
        if self.0.as_ref()[KIND_AT] & 1 == 0 {
            LinkEnd::A
        } else {
            LinkEnd::B
        }
    }

    field!(get link, LINK_AT, u16, "Link id");
    field!(get fabric, FABRIC_AT, u32, "Fabric id");
    field!(get tx_epoch, TX_EPOCH_AT, u32, "Incarnation of the sender");
    field!(get rx_epoch, RX_EPOCH_AT, u32, "Incarnation of the receiver as the sender knows it");
    field!(get lane_word, LANES_AT, u16, "12 reserved bits and the lane mask");
    field!(get units, UNITS_AT, u16, "Number of units");
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> HeaderView<T> {
    /// Sets magic, version, kind and end.
    pub fn set_kind(&mut self, kind: FrameKind, end: LinkEnd) {
        let bytes = self.0.as_mut();
        bytes[MAGIC_AT] = MAGIC;
        bytes[KIND_AT] = VERSION << 4 | kind.code() << 1 | end as u8;
    }

    field!(set set_link, LINK_AT, u16, "the link id");
    field!(set set_fabric, FABRIC_AT, u32, "the fabric id");
    field!(set set_tx_epoch, TX_EPOCH_AT, u32, "the incarnation of the sender");
    field!(set set_rx_epoch, RX_EPOCH_AT, u32, "the incarnation of the receiver");
    field!(set set_lane_word, LANES_AT, u16, "reserved bits and lane mask");
    field!(set set_units, UNITS_AT, u16, "the number of units");
}

/// The decoded frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameHeader {
    /// The kind of the frame.
    pub kind: FrameKind,
    /// The end that sends the frame.
    pub end: LinkEnd,
    /// Number of the link within the fabric.
    pub link: u16,
    /// Hash of the lab's name: separates labs that share a wire.
    pub fabric: u32,
    /// Incarnation of the sender; changes when its process restarts.
    pub tx_epoch: u32,
    /// Incarnation of the receiver as the sender knows it; 0 if unknown.
    pub rx_epoch: u32,
    /// Lanes in use, one bit each.
    pub lanes: u8,
    /// Number of units in the frame. The writer of a kind of frame sets kind and number.
    pub units: u16,
}

impl FrameHeader {
    /// Length of the encoded header in bytes, without the check.
    pub const fn buffer_len(&self) -> usize {
        HEADER_BYTES
    }

    /// Reads the first 20 bytes of a frame; does not verify length or check.
    ///
    /// # Errors
    /// [`FrameError::TooShort`], `BadMagic`, `BadVersion`, `ReservedHeader`, in this order.
    pub fn parse(bytes: &[u8]) -> Result<Self, FrameError> {
        let view = HeaderView::new_checked(bytes)?;
        if view.magic() != MAGIC {
            return Err(FrameError::BadMagic);
        }
        if view.version() != VERSION {
            return Err(FrameError::BadVersion);
        }
        if view.lane_word() & !LANE_MASK != 0 {
            return Err(FrameError::ReservedHeader);
        }
        Ok(Self {
            kind: view.kind(),
            end: view.end(),
            link: view.link(),
            fabric: view.fabric(),
            tx_epoch: view.tx_epoch(),
            rx_epoch: view.rx_epoch(),
            lanes: view.lane_word() as u8,
            units: view.units(),
        })
    }

    /// Writes the first 20 bytes of a frame; the lane mask is truncated to 4 bits.
    ///
    /// # Errors
    /// [`EmitError::BufferTooSmall`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<(), EmitError> {
        let mut view = HeaderView::new_checked(buf).map_err(|_| EmitError::BufferTooSmall)?;
        view.set_kind(self.kind, self.end);
        view.set_link(self.link);
        view.set_fabric(self.fabric);
        view.set_tx_epoch(self.tx_epoch);
        view.set_rx_epoch(self.rx_epoch);
        view.set_lane_word(u16::from(self.lanes) & LANE_MASK);
        view.set_units(self.units);
        Ok(())
    }
}
