//! Frames of sets: whole sets of ten flits behind a header, one after the other.

use super::{CHECK_BYTES, EmitError, FrameError, FrameHeader, FrameKind, HEADER_BYTES, checksum};
use crate::lanes::{Permutation, swizzle_area_back};
use crate::set48::{SET_BYTES, SetBytes};

/// Most sets of a frame: as many as a UDP datagram can carry.
pub const MAX_FRAME_SETS: usize = (65_507 - SETS_AT) / SET_BYTES;
/// First byte of the sets.
pub const SETS_AT: usize = HEADER_BYTES + CHECK_BYTES;

const _: () = assert!(SETS_AT + SET_BYTES >= 46, "below that Ethernet pads");

/// Bytes of a frame of `sets` sets.
pub const fn set_frame_len(sets: usize) -> usize {
    SETS_AT + sets * SET_BYTES
}

/// Most sets of a frame of at most `frame_bytes` bytes.
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
/// [`DataSet::emit`](crate::set48::DataSet::emit) or [`ControlSet::emit`](crate::set48::ControlSet::emit), then
/// [`finish`](Self::finish).
#[derive(Debug)]
pub struct SetFrameWriter<'a> {
    head: &'a mut [u8; SETS_AT],
    area: &'a mut [SetBytes],
    header: FrameHeader,
    used: usize,
}

impl<'a> SetFrameWriter<'a> {
    /// A frame in `buf`, which it may fill to its end. `header.kind` and `header.phits` are not
    /// looked at.
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

    /// The bytes of the next set, to be filled whole; `None` when the frame is full.
    #[inline]
    pub fn slot(&mut self) -> Option<&mut SetBytes> {
        let slot = self.area.get_mut(self.used)?;
        self.used += 1;
        Some(slot)
    }

    /// Sets so far.
    #[inline]
    pub const fn sets(&self) -> usize {
        self.used
    }

    /// Sets that still fit.
    #[inline]
    pub const fn room(&self) -> usize {
        self.area.len() - self.used
    }

    /// Writes the header and returns the bytes of the frame; `None`, and nothing is written, for a frame without sets.
    pub fn finish(self) -> Option<usize> {
        if self.used == 0 {
            return None;
        }
        let header = FrameHeader {
            kind: FrameKind::Sets,
            phits: self.used as u16,
            ..self.header
        };
        header
            .emit(self.head)
            .expect("the head has room for a header, as its type says");
        let (checked, check) = self.head.split_at_mut(HEADER_BYTES);
        check.copy_from_slice(&checksum(checked).to_be_bytes());
        Some(set_frame_len(self.used))
    }
}

/// Reads what comes behind the header of a frame of sets.
pub(super) fn parse_sets(header: FrameHeader, bytes: &[u8]) -> Result<SetFrame<'_>, FrameError> {
    let sets = usize::from(header.phits);
    if sets == 0 || sets > MAX_FRAME_SETS {
        return Err(FrameError::BadSetCount);
    }
    if bytes.len() != set_frame_len(sets) {
        return Err(FrameError::BadLength);
    }
    let (checked, rest) = bytes.split_at(HEADER_BYTES);
    let (check, area) = rest.split_at(CHECK_BYTES);
    if checksum(checked).to_be_bytes() != check {
        return Err(FrameError::BadHeaderCheck);
    }
    if header.lanes == 0 {
        return Err(FrameError::NoLanes);
    }
    Ok(SetFrame {
        header,
        area: area.as_chunks().0,
        cable: Permutation::IDENTITY,
    })
}

/// A frame of sets whose header and length are right. The sets are not judged: that is for
/// [`Set::parse`](crate::set48::Set::parse), one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetFrame<'a> {
    header: FrameHeader,
    area: &'a [SetBytes],
    cable: Permutation,
}

impl<'a> SetFrame<'a> {
    /// The header.
    #[inline]
    pub const fn header(&self) -> &FrameHeader {
        &self.header
    }

    /// Number of sets, at least 1.
    #[inline]
    pub const fn sets(&self) -> usize {
        self.area.len()
    }

    /// The same frame seen behind a cable: every set is put right before it is handed out. The identity
    /// costs nothing.
    #[inline]
    #[must_use]
    pub const fn behind(self, cable: Permutation) -> Self {
        Self { cable, ..self }
    }

    /// Set number `index`; `None` past the end.
    #[inline]
    pub fn get(&self, index: usize) -> Option<SetBytes> {
        let mut set = *self.area.get(index)?;
        swizzle_area_back(&mut set, self.header.lanes, &self.cable);
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
            swizzle_area_back(&mut set, header.lanes, &cable);
            set
        })
    }
}
