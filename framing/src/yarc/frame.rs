//! Data frames: phits encoded in bytes, four at a time (ours).
//!
//! ```text
//! byte 0 .. 17  as every frame, kind 0
//!     18 19     phits
//!     20 .. 29  rest of the control word: upper 32 bits of seq and of ack, pass
//!      kind map: 2 bits per phit, four phits per byte, first phit in bits 7:6
//!      check: CRC-32C over header, rest of the word and kind map
//!      phit area: 3 bytes per phit, big endian, sideband in bits 23:22
//! ```
//!
//! A data frame has a multiple of four phits and at least [`WORD_PHITS`], so that a whole control
//! word is in every frame; idle phits fill the rest.

use super::control::{ControlWord, REST_BYTES, SidebandError, WORD_BYTES, WORD_PHITS, WordRest};
use super::phit::{CONTENT_MASK, LANES, PHIT_BITS, Phit, WIRE_MASK};
use crate::carrier::frame::{
    CHECK_BYTES, EmitError, Frame, FrameError, FrameHeader, FrameKind, HEADER_BYTES, MIN_BYTES,
    checksum, parse,
};
use crate::carrier::lane_layout::LaneLayout;
use crate::carrier::lanes::Permutation;
use core::ops::Range;

/// Bytes of the rest of the control word.
pub const REST_AT: Range<usize> = HEADER_BYTES..HEADER_BYTES + REST_BYTES;
/// First byte of the kind map of a data frame.
pub const MAP_AT: usize = REST_AT.end;
/// Phits encoded together: their kinds share a byte.
pub const GROUP_PHITS: usize = 4;
/// Length of a group in the phit area, in bytes.
pub const GROUP_BYTES: usize = 3 * GROUP_PHITS;
/// Fewest phits of a data frame.
pub const MIN_FRAME_PHITS: usize = WORD_PHITS;
/// Maximum number of phits of a data frame.
pub const MAX_FRAME_PHITS: usize = u16::MAX as usize / GROUP_PHITS * GROUP_PHITS;

const _: () = assert!(GROUP_BYTES * 8 == GROUP_PHITS * PHIT_BITS as usize);
const _: () = assert!(MIN_FRAME_PHITS.is_multiple_of(GROUP_PHITS));
const _: () = assert!(
    WORD_PHITS / GROUP_PHITS == WORD_BYTES,
    "a group carries a byte of the word"
);
const _: () = assert!(frame_len(0) >= MIN_BYTES);

/// Number of phits in a data frame for `phits` packet phits: idle phits fill the rest.
pub const fn padded_phits(phits: usize) -> usize {
    let padded = phits.next_multiple_of(GROUP_PHITS);
    if padded < MIN_FRAME_PHITS {
        MIN_FRAME_PHITS
    } else {
        padded
    }
}

/// Length in bytes of a data frame with `phits` packet phits.
pub const fn frame_len(phits: usize) -> usize {
    MAP_AT + CHECK_BYTES + padded_phits(phits) / GROUP_PHITS * (1 + GROUP_BYTES)
}

/// Maximum number of phits of a data frame in `frame_bytes` bytes; 0 if not even the smallest fits.
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

/// Range of the phit area in a data frame of `phits` phits, a multiple of the group.
pub const fn data_area(phits: usize) -> Range<usize> {
    let groups = phits / GROUP_PHITS;
    let start = MAP_AT + groups + CHECK_BYTES;
    start..start + groups * GROUP_BYTES
}

/// A byte of the control word, spread over a group: bits 95:32 and 31:0 of the group's twelve
/// bytes.
type Sideband = (u64, u32);

/// The sidebands of consecutive groups, which repeat `word`.
fn sidebands(word: [u8; WORD_BYTES]) -> [Sideband; WORD_BYTES] {
    word.map(|byte| {
        let (high, low) = (u64::from(byte), u32::from(byte));
        let first_three = (high & 0xc0) << 56 | (high & 0x30) << 34 | (high & 0x0c) << 12;
        (first_three, (low & 0x03) << 22)
    })
}

/// Writes the kinds and wire words of four phits, two phits per 64-bit word.
#[inline(always)]
fn emit_group(
    phits: &[Phit; GROUP_PHITS],
    sideband: Sideband,
    map: &mut u8,
    area: &mut [u8; GROUP_BYTES],
) {
    const CONTENTS: u64 = (CONTENT_MASK as u64) << 32 | CONTENT_MASK as u64;
    const KINDS: u64 = 3 << 56 | 3 << 24;
    let [p0, p1, p2, p3] = phits.map(|phit| u64::from(phit.to_bits()));
    let (first, second) = (p1 << 32 | p0, p3 << 32 | p2);
    let (kinds, more_kinds) = (first & KINDS, second & KINDS);
    *map = (kinds >> 18 | kinds >> 52 | more_kinds >> 22 | more_kinds >> 56) as u8;
    let (first, second) = (first & CONTENTS, second & CONTENTS);
    let high = first << 40 | first >> 32 << 16 | u64::from(second as u32 >> 8);
    let low = (second << 24 | second >> 32) as u32;
    area[..8].copy_from_slice(&(high | sideband.0).to_be_bytes());
    area[8..].copy_from_slice(&(low | sideband.1).to_be_bytes());
}

/// The four 24-bit wire words of a group.
#[inline(always)]
fn wire_words(area: &[u8; GROUP_BYTES]) -> [u32; GROUP_PHITS] {
    let a = u32::from_be_bytes([area[0], area[1], area[2], area[3]]);
    let b = u32::from_be_bytes([area[4], area[5], area[6], area[7]]);
    let c = u32::from_be_bytes([area[8], area[9], area[10], area[11]]);
    [
        a >> 8,
        (a << 16 | b >> 16) & WIRE_MASK,
        (b << 8 | c >> 24) & WIRE_MASK,
        c & WIRE_MASK,
    ]
}

/// The kinds of a group, each at its position in a [`Phit`].
#[inline(always)]
fn kinds(map: u8) -> [u32; GROUP_PHITS] {
    let map = u32::from(map);
    [
        (map & 0xc0) << 18,
        (map & 0x30) << 20,
        (map & 0x0c) << 22,
        (map & 0x03) << 24,
    ]
}

/// Writes `groups` with the bytes of `word` repeated. Not inlined, so that the compiler knows that
/// the four slices do not overlap.
fn emit_run(
    groups: &[[Phit; GROUP_PHITS]],
    map: &mut [u8],
    area: &mut [[u8; GROUP_BYTES]],
    word: &[Sideband; WORD_BYTES],
) {
    let rounds = groups.chunks(WORD_BYTES).zip(map.chunks_mut(WORD_BYTES));
    for ((groups, map), area) in rounds.zip(area.chunks_mut(WORD_BYTES)) {
        for (((group, map), area), word) in groups.iter().zip(map).zip(area).zip(word) {
            emit_group(group, *word, map, area);
        }
    }
}

/// The unwritten part of a frame: kind map, phit area, and the control word rotated so that its
/// next byte comes first.
struct Groups<'a> {
    map: &'a mut [u8],
    area: &'a mut [[u8; GROUP_BYTES]],
    word: [Sideband; WORD_BYTES],
}

impl Groups<'_> {
    /// Writes `groups`. The frame must have room for them.
    fn emit(&mut self, groups: &[[Phit; GROUP_PHITS]]) {
        let (map, map_rest) = core::mem::take(&mut self.map).split_at_mut(groups.len());
        let (area, area_rest) = core::mem::take(&mut self.area).split_at_mut(groups.len());
        (self.map, self.area) = (map_rest, area_rest);
        emit_run(groups, map, area, &self.word);
        self.word.rotate_left(groups.len() % WORD_BYTES);
    }

    /// Writes up to four phits and completes the group with idle ones.
    fn emit_part(&mut self, first: &[Phit], second: &[Phit]) {
        let mut group = [Phit::IDLE; GROUP_PHITS];
        for (slot, phit) in group.iter_mut().zip(first.iter().chain(second)) {
            *slot = *phit;
        }
        self.emit(&[group]);
    }

    /// Fills the rest with idle phits.
    fn pad(&mut self) {
        while !self.map.is_empty() {
            self.emit(&[[Phit::IDLE; GROUP_PHITS]]);
        }
    }
}

/// Writes a data frame: header, rest of the word, kind map, check, and `phits[0]` followed by
/// `phits[1]` with `word` repeated in the sideband. Pads with idle phits. Returns the bytes
/// written.
///
/// `header.kind` and `header.units` are ignored, and so are sideband bits of the phits.
///
/// # Errors
/// See [`EmitError`]; the buffer is then unchanged.
pub fn emit_data(
    header: &FrameHeader,
    word: &ControlWord,
    phits: &[&[Phit]; 2],
    buf: &mut [u8],
) -> Result<usize, EmitError> {
    let given = phits[0].len() + phits[1].len();
    if given > MAX_FRAME_PHITS {
        return Err(EmitError::TooManyUnits);
    }
    let (count, len) = (padded_phits(given), frame_len(given));
    let buf = buf.get_mut(..len).ok_or(EmitError::BufferTooSmall)?;
    FrameHeader {
        kind: DataFrame::KIND,
        units: count as u16,
        ..*header
    }
    .emit(buf)?;
    buf[REST_AT].copy_from_slice(&word.rest().emit());
    let (checked, rest) = buf.split_at_mut(MAP_AT + count / GROUP_PHITS);
    let (check, area) = rest.split_at_mut(CHECK_BYTES);
    let mut groups = Groups {
        map: &mut checked[MAP_AT..],
        area: area.as_chunks_mut().0,
        word: sidebands(word.emit()),
    };
    let (whole, rest) = phits[0].as_chunks();
    groups.emit(whole);
    let mut second = phits[1];
    if !rest.is_empty() {
        let (joint, behind) = second.split_at(second.len().min(GROUP_PHITS - rest.len()));
        groups.emit_part(rest, joint);
        second = behind;
    }
    let (whole, rest) = second.as_chunks();
    groups.emit(whole);
    if !rest.is_empty() {
        groups.emit_part(rest, &[]);
    }
    groups.pad();
    check.copy_from_slice(&checksum(checked).to_be_bytes());
    Ok(len)
}

/// A data frame with valid header, kind map and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataFrame<'a> {
    header: FrameHeader,
    word_rest: WordRest,
    map: &'a [u8],
    area: &'a [[u8; GROUP_BYTES]],
    cable: Permutation,
}

impl<'a> DataFrame<'a> {
    /// The kind of data frames.
    pub const KIND: FrameKind = FrameKind::new(0);
    /// Layout of the frame: the lanes carry the phit area.
    pub const LAYOUT: LaneLayout = LaneLayout::new(Self::KIND, LANES, data_area);

    /// Interprets a frame as a data frame. The phit area is not validated: the checks of control
    /// word and packets detect lane errors.
    ///
    /// # Errors
    /// [`FrameError::BadKind`], `BadPhitCount`, `BadLength`, `BadHeaderCheck`, `NoLanes`, in this
    /// order.
    #[inline]
    pub fn of(frame: &Frame<'a>) -> Result<Self, FrameError> {
        let phits = frame.units(Self::KIND)?;
        if phits < MIN_FRAME_PHITS || !phits.is_multiple_of(GROUP_PHITS) {
            return Err(FrameError::BadPhitCount);
        }
        let (checked, area) = frame.split(MAP_AT + phits / GROUP_PHITS, frame_len(phits))?;
        let mut word_rest = [0; REST_BYTES];
        word_rest.copy_from_slice(&checked[REST_AT]);
        Ok(Self {
            header: *frame.header(),
            word_rest: WordRest::parse(&word_rest),
            map: &checked[MAP_AT..],
            area: area.as_chunks().0,
            cable: Permutation::IDENTITY,
        })
    }

    /// Parses the bytes of a data frame.
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

    /// Number of phits, idle ones included.
    #[inline]
    pub const fn phits(&self) -> usize {
        self.header.units as usize
    }

    /// The same frame received through `cable`: every wire word is corrected before use. The
    /// identity costs nothing.
    #[inline]
    #[must_use]
    pub const fn behind(self, cable: Permutation) -> Self {
        Self { cable, ..self }
    }

    #[inline(always)]
    fn put_right(&self, words: [u32; GROUP_PHITS]) -> [u32; GROUP_PHITS] {
        words.map(|wire| LANES.unswizzle(wire, self.header.lanes, &self.cable))
    }

    fn groups_of_words(&self) -> impl Iterator<Item = [u32; GROUP_PHITS]> + use<'a> {
        let this = *self;
        let straight = self.cable.is_identity();
        self.area.iter().map(move |area| {
            let words = wire_words(area);
            if straight {
                words
            } else {
                this.put_right(words)
            }
        })
    }

    /// The first control word in the frame with a valid check, completed from the header.
    ///
    /// # Errors
    /// See [`SidebandError`].
    pub fn control_word(&self) -> Result<ControlWord, SidebandError> {
        let mut groups = self.groups_of_words();
        for _ in 0..self.area.len() / WORD_BYTES {
            let mut word = [0; WORD_BYTES];
            for (byte, w) in word.iter_mut().zip(&mut groups) {
                *byte =
                    ((w[0] >> 22) << 6 | (w[1] >> 22) << 4 | (w[2] >> 22) << 2 | w[3] >> 22) as u8;
            }
            match ControlWord::parse(&word, self.word_rest) {
                Err(SidebandError::Check) => {}
                found => return found,
            }
        }
        Err(SidebandError::Check)
    }

    /// Writes the phits into `out` with their sideband cleared, in groups of four, up to the
    /// frame's end or the last whole group in `out`. Returns their number.
    #[inline]
    pub fn decode(&self, out: &mut [Phit]) -> usize {
        let groups = out.as_chunks_mut::<GROUP_PHITS>().0;
        let count = groups.len().min(self.area.len());
        let pairs = self.map.iter().zip(self.area);
        if self.cable.is_identity() {
            for (out, (map, area)) in groups.iter_mut().zip(pairs) {
                let (kinds, words) = (kinds(*map), wire_words(area));
                for i in 0..GROUP_PHITS {
                    out[i] = Phit::from_bits(kinds[i] | words[i] & CONTENT_MASK);
                }
            }
        } else {
            for (out, (map, area)) in groups.iter_mut().zip(pairs) {
                let (kinds, words) = (kinds(*map), self.put_right(wire_words(area)));
                for i in 0..GROUP_PHITS {
                    out[i] = Phit::from_bits(kinds[i] | words[i] & CONTENT_MASK);
                }
            }
        }
        count * GROUP_PHITS
    }

    /// Phit number `index` as received, sideband included, with the cable's effect undone; `None`
    /// past the end.
    pub fn raw(&self, index: usize) -> Option<Phit> {
        let (group, within) = (index / GROUP_PHITS, index % GROUP_PHITS);
        let words = wire_words(self.area.get(group)?);
        let words = if self.cable.is_identity() {
            words
        } else {
            self.put_right(words)
        };
        Some(Phit::from_bits(
            kinds(*self.map.get(group)?)[within] | words[within],
        ))
    }
}
