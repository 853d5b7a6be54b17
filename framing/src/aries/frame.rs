//! Frames of sets: whole sets of ten flits after header and check (ours).
//!
//! ```text
//! byte 0 .. 17  as every frame, kind 2
//!     18 19     sets
//!     20 .. 23  check: CRC-32C over the header
//!     24 ..     sets of 60 bytes: what the lanes carry
//! ```

use super::set::{LANES, SET_BYTES, SetBytes};
use crate::carrier::frame::{
    EmitError, Frame, FrameError, FrameHeader, FrameKind, HEADER_BYTES, MIN_BYTES, PLAIN_AT, parse,
    seal,
};
use crate::carrier::lane_layout::LaneLayout;
use crate::carrier::lanes::Permutation;
use core::ops::Range;

/// Maximum number of sets of a frame: as many as a UDP datagram can carry.
pub const MAX_FRAME_SETS: usize = (65_507 - SETS_AT) / SET_BYTES;
/// Offset of the first set in a frame.
pub const SETS_AT: usize = PLAIN_AT;

const _: () = assert!(SETS_AT + SET_BYTES >= MIN_BYTES);

/// Length in bytes of a frame of `sets` sets.
pub const fn set_frame_len(sets: usize) -> usize {
    SETS_AT + sets * SET_BYTES
}

/// Range of the sets in a frame of `sets` sets.
pub const fn set_area(sets: usize) -> Range<usize> {
    SETS_AT..set_frame_len(sets)
}

/// Maximum number of sets of a frame of at most `frame_bytes` bytes.
pub const fn max_sets(frame_bytes: usize) -> usize {
    let sets = frame_bytes.saturating_sub(SETS_AT) / SET_BYTES;
    if sets > MAX_FRAME_SETS {
        MAX_FRAME_SETS
    } else {
        sets
    }
}

/// Writes a frame of sets in place, set by set.
///
/// Call order: [`new`](Self::new), [`slot`](Self::slot) for each set, which the caller fills with
/// [`DataSet::emit`](super::set::DataSet::emit) or
/// [`ControlSet::emit`](super::set::ControlSet::emit), then [`finish`](Self::finish).
#[derive(Debug)]
pub struct SetFrameWriter<'a> {
    head: &'a mut [u8; SETS_AT],
    area: &'a mut [SetBytes],
    header: FrameHeader,
    used: usize,
}

impl<'a> SetFrameWriter<'a> {
    /// Starts a frame of at most the length of `buf`. `header.kind` and `header.units` are ignored.
    ///
    /// # Errors
    /// [`EmitError::BufferTooSmall`] if not even one set fits.
    pub fn new(header: &FrameHeader, buf: &'a mut [u8]) -> Result<Self, EmitError> {
        let most = max_sets(buf.len());
        let (head, area) = buf
            .split_first_chunk_mut()
            .ok_or(EmitError::BufferTooSmall)?;
        let area = area.as_chunks_mut().0;
        if most == 0 {
            return Err(EmitError::BufferTooSmall);
        }
        Ok(Self {
            head,
            area: &mut area[..most],
            header: *header,
            used: 0,
        })
    }

    /// The next set, all of whose bytes the caller must write; `None` when the frame is full.
    #[inline]
    pub fn slot(&mut self) -> Option<&mut SetBytes> {
        let slot = self.area.get_mut(self.used)?;
        self.used += 1;
        Some(slot)
    }

    /// Number of sets written so far.
    #[inline]
    pub const fn sets(&self) -> usize {
        self.used
    }

    /// Sets that still fit.
    #[inline]
    pub const fn room(&self) -> usize {
        self.area.len() - self.used
    }

    /// Writes the header. Returns the frame's length in bytes; `None`, with nothing written, for a
    /// frame without sets.
    pub fn finish(self) -> Option<usize> {
        if self.used == 0 {
            return None;
        }
        let header = FrameHeader {
            kind: SetFrame::KIND,
            units: self.used as u16,
            ..self.header
        };
        header
            .emit(self.head)
            .expect("the type of the head leaves room for a header");
        seal(self.head, HEADER_BYTES);
        Some(set_frame_len(self.used))
    }
}

/// A frame of sets with valid header and length. The sets are not validated:
/// [`Set::parse`](super::set::Set::parse) does that for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetFrame<'a> {
    header: FrameHeader,
    area: &'a [SetBytes],
    cable: Permutation,
}

impl<'a> SetFrame<'a> {
    /// The kind of frames of sets.
    pub const KIND: FrameKind = FrameKind::new(2);
    /// Layout of the frame: the lanes carry the sets.
    pub const LAYOUT: LaneLayout = LaneLayout::new(Self::KIND, LANES, set_area);

    /// Interprets a frame as a frame of sets.
    ///
    /// # Errors
    /// [`FrameError::BadKind`], `BadSetCount`, `BadLength`, `BadHeaderCheck`, `NoLanes`, in this
    /// order.
    #[inline]
    pub fn of(frame: &Frame<'a>) -> Result<Self, FrameError> {
        let sets = frame.units(Self::KIND)?;
        if sets == 0 || sets > MAX_FRAME_SETS {
            return Err(FrameError::BadSetCount);
        }
        let (_, area) = frame.split(HEADER_BYTES, set_frame_len(sets))?;
        Ok(Self {
            header: *frame.header(),
            area: area.as_chunks().0,
            cable: Permutation::IDENTITY,
        })
    }

    /// Parses the bytes of a frame of sets.
    ///
    /// # Errors
    /// As for [`parse`] and [`Self::of`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        Self::of(&parse(bytes)?.of_lanes(LANES)?)
    }

    /// The frame header, which has been validated.
    #[inline]
    pub const fn header(&self) -> &FrameHeader {
        &self.header
    }

    /// Number of sets, at least 1.
    #[inline]
    pub const fn sets(&self) -> usize {
        self.area.len()
    }

    /// The same frame received through `cable`: every set is corrected before it is returned. The
    /// identity costs nothing.
    #[inline]
    #[must_use]
    pub const fn behind(self, cable: Permutation) -> Self {
        Self { cable, ..self }
    }

    /// All sets in order, not corrected for the cable.
    #[inline]
    pub const fn as_they_came(&self) -> &'a [SetBytes] {
        self.area
    }

    /// Set number `index`; `None` past the end.
    #[inline]
    pub fn get(&self, index: usize) -> Option<SetBytes> {
        let mut set = *self.area.get(index)?;
        LANES.swizzle_area_back(&mut set, self.header.lanes, &self.cable);
        Some(set)
    }

    /// All sets in order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = SetBytes> + use<'a> {
        let Self {
            header,
            area,
            cable,
        } = *self;
        area.iter().map(move |set| {
            let mut set = *set;
            LANES.swizzle_area_back(&mut set, header.lanes, &cable);
            set
        })
    }
}
