//! The bytes of a frame that the lanes carry.
//!
//! A machine's kind of frame may have further fields between the header and the check, which belong
//! to the line code. Code that changes only the bytes on the lanes (noise, a cable's swaps) works
//! on the links of any machine, so it needs the [`LaneLayout`] of the link's frames.

use super::frame::{FrameHeader, FrameKind, PLAIN_AT};
use super::lanes::Lanes;
use super::training::{PATTERN_AT, Training};
use core::ops::Range;

/// A machine's lanes, and the position of the bytes that they carry (phits, sets, packets) in one
/// kind of frame.
///
/// ```
/// use phitwire_framing::carrier::frame::{FrameHeader, FrameKind, LinkEnd, PLAIN_AT, seal};
/// use phitwire_framing::carrier::lane_layout::LaneLayout;
/// use phitwire_framing::carrier::lanes::Lanes;
///
/// /// Units of eight bytes, behind a map of one byte for each and the check.
/// const LAYOUT: LaneLayout = LaneLayout::new(FrameKind::new(3), Lanes::new(3, 24), |units| {
///     PLAIN_AT + units..PLAIN_AT + 9 * units
/// });
///
/// let header = FrameHeader {
///     kind: LAYOUT.kind(), end: LinkEnd::A, link: 1, fabric: 2, tx_epoch: 3, rx_epoch: 4, lanes: 7,
///     units: 5,
/// };
/// let mut bytes = [0; PLAIN_AT + 45];
/// header.emit(&mut bytes)?;
/// seal(&mut bytes, 25);
/// assert_eq!(LAYOUT.area(&bytes), Some(29..69));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LaneLayout {
    kind: FrameKind,
    lanes: Lanes,
    /// The range for a number of units; `None` for plain frames.
    area: Option<fn(usize) -> Range<usize>>,
}

impl LaneLayout {
    /// Frames of `kind`. `area` returns the byte range for a number of units, up to 65,535; it must
    /// reach to the end of the frame.
    ///
    /// # Panics
    /// If `kind` is that of training frames, which all machines have.
    pub const fn new(kind: FrameKind, lanes: Lanes, area: fn(usize) -> Range<usize>) -> Self {
        let area = Some(area);
        Self {
            area,
            ..Self::plain(kind, lanes)
        }
    }

    /// Plain frames of `kind`: the lanes carry everything after header and check.
    ///
    /// # Panics
    /// If `kind` is that of training frames.
    pub const fn plain(kind: FrameKind, lanes: Lanes) -> Self {
        assert!(
            kind.code() != Training::KIND.code(),
            "a machine's frames have another kind than training frames"
        );
        Self {
            kind,
            lanes,
            area: None,
        }
    }

    /// The kind of frames that have the layout.
    #[inline]
    pub const fn kind(&self) -> FrameKind {
        self.kind
    }

    /// The machine's lanes.
    #[inline]
    pub const fn lanes(&self) -> Lanes {
        self.lanes
    }

    /// The bytes of a frame that the lanes carry, on a link with frames of this kind. In a training
    /// frame that is the pattern; a frame of any other kind counts as plain. Checks only lengths;
    /// `None` when `bytes` cannot be a frame.
    pub fn area(&self, bytes: &[u8]) -> Option<Range<usize>> {
        let header = FrameHeader::parse(bytes).ok()?;
        let area = match self.area {
            _ if header.kind == Training::KIND => PATTERN_AT,
            Some(area) if header.kind == self.kind => area(header.units.into()),
            _ => PLAIN_AT..bytes.len(),
        };
        (area.start <= area.end && area.end == bytes.len()).then_some(area)
    }
}
