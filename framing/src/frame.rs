//! The link frame: what one Ethernet frame or UDP datagram carries (ours).
//!
//! The real link has a line code (16b20b) whose control characters mark where packets start and end
//! and which lanes are alive. A frame has no control characters, so its header says the same.
//!
//! ```text
//! byte 0    1         2  3    4 ... 7   8 ... 11  12 ... 15  16 17     18 19
//!      0x59 |ver|kind|end| link | fabric | tx epoch | rx epoch | 0 |lanes| phits |
//!      kind map: 2 bits per phit, four phits per byte, first phit in bits 7:6
//!      check: CRC-32C over header and kind map
//!      phit area: 3 bytes per phit, big endian, sideband in bits 23:22
//! ```
//!
//! A data frame has a multiple of four phits and at least [`WORD_PHITS`], so that a whole control
//! word is in every frame; idle phits fill it up. Header and kind map are the line code's and outside the
//! reach of lane noise; the phit area is what the lanes carry.

use crate::control::{ControlWord, SidebandError, WORD_BYTES, WORD_PHITS};
use crate::lanes::{ALL_LANES, Permutation, unswizzle};
use crate::phit24::{CONTENT_MASK, Phit, WIRE_MASK};
use crate::training::{self, Training};
use core::ops::Range;
use crc::{CRC_32_ISCSI, Crc, Table};

/// EtherType of link frames: the first of the two that IEEE 802 sets aside for experiments.
pub const ETHERTYPE: u16 = 0x88b5;
/// UDP port of link frames unless the lab says otherwise.
pub const UDP_PORT: u16 = 5470;
/// First byte of a link frame.
pub const MAGIC: u8 = 0x59;
/// Version of the format.
pub const VERSION: u8 = 1;

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
/// Bytes of the header before the kind map.
pub const HEADER_BYTES: usize = 20;
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

/// CRC-32C: Hamming distance 6 up to 5,243 bits of header and kind map, 4 far beyond.
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

/// Why bytes are not a link frame. Each is a drop counter; see [`Self::name`] and [`Self::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameError {
    /// Fewer bytes than a header and a check.
    TooShort,
    /// The first byte is not [`MAGIC`].
    BadMagic,
    /// Another version of the format.
    BadVersion,
    /// A frame kind that this version does not know.
    BadKind,
    /// The number of bytes does not agree with the header.
    BadLength,
    /// The CRC-32C over header and kind map (or training body) is wrong.
    BadHeaderCheck,
    /// The 13 reserved bits beside the lane mask are not zero.
    ReservedHeader,
    /// A data frame names no lane.
    NoLanes,
    /// The number of phits is less than 48 or no multiple of four, or not zero in a training frame.
    BadPhitCount,
    /// The reserved bits 6:3 of the lane byte of a training frame are not zero.
    ReservedTraining,
    /// A node name of a training frame is empty, not UTF-8 or not padded with zeros.
    BadName,
}

impl FrameError {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 11] = [
        Self::TooShort,
        Self::BadMagic,
        Self::BadVersion,
        Self::BadKind,
        Self::BadLength,
        Self::BadHeaderCheck,
        Self::ReservedHeader,
        Self::NoLanes,
        Self::BadPhitCount,
        Self::ReservedTraining,
        Self::BadName,
    ];

    /// Position in [`Self::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// A name for a counter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooShort => "frame_too_short",
            Self::BadMagic => "frame_bad_magic",
            Self::BadVersion => "frame_bad_version",
            Self::BadKind => "frame_bad_kind",
            Self::BadLength => "frame_bad_length",
            Self::BadHeaderCheck => "frame_bad_header_check",
            Self::ReservedHeader => "frame_reserved_header",
            Self::NoLanes => "frame_no_lanes",
            Self::BadPhitCount => "frame_bad_phit_count",
            Self::ReservedTraining => "frame_reserved_training",
            Self::BadName => "frame_bad_name",
        }
    }
}

impl core::fmt::Display for FrameError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::TooShort => "frame is shorter than its header",
            Self::BadMagic => "first byte is not that of a link frame",
            Self::BadVersion => "frame is of another version",
            Self::BadKind => "frame kind is reserved",
            Self::BadLength => "frame length does not agree with its header",
            Self::BadHeaderCheck => "check over header and kind map is wrong",
            Self::ReservedHeader => "reserved bits beside the lane mask are not zero",
            Self::NoLanes => "lane mask of a data frame is empty",
            Self::BadPhitCount => "number of phits is not allowed for this kind of frame",
            Self::ReservedTraining => "reserved bits of the training lane byte are not zero",
            Self::BadName => "node name is empty, not UTF-8 or not padded with zeros",
        })
    }
}

impl core::error::Error for FrameError {}

/// Why a frame could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EmitError {
    /// The buffer is shorter than the frame.
    BufferTooSmall,
    /// More phits than a frame may have ([`MAX_FRAME_PHITS`]).
    TooManyPhits,
}

impl core::fmt::Display for EmitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::BufferTooSmall => "buffer is shorter than the frame",
            Self::TooManyPhits => "more phits than a frame may have",
        })
    }
}

impl core::error::Error for EmitError {}

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
    HEADER_BYTES + CHECK_BYTES + padded_phits(phits) / GROUP_PHITS * (1 + GROUP_BYTES)
}

/// Most phits of a data frame in `frame_bytes` bytes; 0 when not even the smallest fits.
pub const fn max_phits(frame_bytes: usize) -> usize {
    let groups = frame_bytes.saturating_sub(HEADER_BYTES + CHECK_BYTES) / (1 + GROUP_BYTES);
    let phits = groups * GROUP_PHITS;
    if phits < MIN_FRAME_PHITS {
        0
    } else if phits > MAX_FRAME_PHITS {
        MAX_FRAME_PHITS
    } else {
        phits
    }
}

/// The 20 header bytes as they stand there: getters and setters without judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderView<T>(T);

macro_rules! field {
    ($get:ident, $set:ident, $range:ident, $type:ty, $doc:literal) => {
        #[doc = concat!($doc, ".")]
        pub fn $get(&self) -> $type {
            let mut bytes = [0; size_of::<$type>()];
            bytes.copy_from_slice(&self.0.as_ref()[$range]);
            <$type>::from_be_bytes(bytes)
        }
    };
    ($set:ident, $range:ident, $type:ty, $doc:literal) => {
        #[doc = concat!("Sets ", $doc, ".")]
        pub fn $set(&mut self, value: $type) {
            self.0.as_mut()[$range].copy_from_slice(&value.to_be_bytes());
        }
    };
}

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

    /// The bytes back.
    pub fn into_inner(self) -> T {
        self.0
    }

    /// First byte.
    pub fn magic(&self) -> u8 {
        self.0.as_ref()[MAGIC_AT]
    }

    /// Version, 4 bits.
    pub fn version(&self) -> u8 {
        self.0.as_ref()[KIND_AT] >> 4
    }

    /// Code of the frame kind, 3 bits.
    pub fn kind_code(&self) -> u8 {
        self.0.as_ref()[KIND_AT] >> 1 & 7
    }

    /// The end that sent the frame.
    pub fn end(&self) -> LinkEnd {
        if self.0.as_ref()[KIND_AT] & 1 == 0 {
            LinkEnd::A
        } else {
            LinkEnd::B
        }
    }

    field!(link, set_link, LINK_AT, u16, "Link id");
    field!(fabric, set_fabric, FABRIC_AT, u32, "Fabric id");
    field!(
        tx_epoch,
        set_tx_epoch,
        TX_EPOCH_AT,
        u32,
        "Incarnation of the sender"
    );
    field!(
        rx_epoch,
        set_rx_epoch,
        RX_EPOCH_AT,
        u32,
        "Incarnation of the receiver as the sender knows it"
    );
    field!(
        lane_word,
        set_lane_word,
        LANES_AT,
        u16,
        "13 reserved bits and the lane mask"
    );
    field!(phits, set_phits, PHITS_AT, u16, "Number of phits");
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> HeaderView<T> {
    /// Sets magic, version, kind and end.
    pub fn set_kind(&mut self, kind: FrameKind, end: LinkEnd) {
        let bytes = self.0.as_mut();
        bytes[MAGIC_AT] = MAGIC;
        bytes[KIND_AT] = VERSION << 4 | (kind as u8) << 1 | end as u8;
    }

    field!(set_link, LINK_AT, u16, "the link id");
    field!(set_fabric, FABRIC_AT, u32, "the fabric id");
    field!(
        set_tx_epoch,
        TX_EPOCH_AT,
        u32,
        "the incarnation of the sender"
    );
    field!(
        set_rx_epoch,
        RX_EPOCH_AT,
        u32,
        "the incarnation of the receiver"
    );
    field!(set_lane_word, LANES_AT, u16, "reserved bits and lane mask");
    field!(set_phits, PHITS_AT, u16, "the number of phits");
}

/// The meaning of a frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameHeader {
    /// What the frame is for.
    pub kind: FrameKind,
    /// The end that sends it.
    pub end: LinkEnd,
    /// Number of the link within the fabric.
    pub link: u16,
    /// Hash of the lab's name: keeps labs that share a wire apart.
    pub fabric: u32,
    /// Incarnation of the sender; a restarted process has another.
    pub tx_epoch: u32,
    /// Incarnation of the receiver as the sender knows it; 0 = unknown.
    pub rx_epoch: u32,
    /// Lanes in use, 3 bits.
    pub lanes: u8,
    /// Number of phits in the frame. [`emit_data`] and [`Training::emit`] write their own.
    pub phits: u16,
}

impl FrameHeader {
    /// Bytes of an encoded header, without kind map and check.
    pub const fn buffer_len(&self) -> usize {
        HEADER_BYTES
    }

    /// The meaning of the first 20 bytes of a frame; neither length nor check is judged.
    ///
    /// # Errors
    /// [`FrameError::TooShort`], `BadMagic`, `BadVersion`, `BadKind`, `ReservedHeader`, in this order.
    pub fn parse(bytes: &[u8]) -> Result<Self, FrameError> {
        let view = HeaderView::new_checked(bytes)?;
        if view.magic() != MAGIC {
            return Err(FrameError::BadMagic);
        }
        if view.version() != VERSION {
            return Err(FrameError::BadVersion);
        }
        let kind = match view.kind_code() {
            0 => FrameKind::Data,
            1 => FrameKind::Training,
            _ => return Err(FrameError::BadKind),
        };
        if view.lane_word() & !u16::from(ALL_LANES) != 0 {
            return Err(FrameError::ReservedHeader);
        }
        Ok(Self {
            kind,
            end: view.end(),
            link: view.link(),
            fabric: view.fabric(),
            tx_epoch: view.tx_epoch(),
            rx_epoch: view.rx_epoch(),
            lanes: view.lane_word() as u8,
            phits: view.phits(),
        })
    }

    /// Writes the first 20 bytes of a frame; the lane mask is cut to 3 bits.
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
        view.set_lane_word(u16::from(self.lanes & ALL_LANES));
        view.set_phits(self.phits);
        Ok(())
    }
}

/// Writes the kinds and wire words of four phits. `word` is the byte of the control word that
/// these four carry.
#[inline(always)]
fn emit_group(phits: &[Phit; GROUP_PHITS], word: u8, map: &mut u8, area: &mut [u8; GROUP_BYTES]) {
    let [p0, p1, p2, p3] = phits.map(Phit::to_bits);
    *map = (p0 >> 18 & 0xc0 | p1 >> 20 & 0x30 | p2 >> 22 & 0x0c | p3 >> 24 & 0x03) as u8;
    let s = u32::from(word);
    let w0 = p0 & CONTENT_MASK | (s & 0xc0) << 16;
    let w1 = p1 & CONTENT_MASK | (s & 0x30) << 18;
    let w2 = p2 & CONTENT_MASK | (s & 0x0c) << 20;
    let w3 = p3 & CONTENT_MASK | (s & 0x03) << 22;
    area[0..4].copy_from_slice(&(w0 << 8 | w1 >> 16).to_be_bytes());
    area[4..8].copy_from_slice(&(w1 << 16 | w2 >> 8).to_be_bytes());
    area[8..12].copy_from_slice(&(w2 << 24 | w3).to_be_bytes());
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

/// The kinds of a group, each in the place where [`Phit`] has it.
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

/// Groups of a frame as they are written: kind map, phit area and position within the word.
struct Groups<'a> {
    map: core::slice::IterMut<'a, u8>,
    area: core::slice::IterMut<'a, [u8; GROUP_BYTES]>,
    word: &'a [u8; WORD_BYTES],
    at: usize,
}

impl Groups<'_> {
    #[inline(always)]
    fn emit(&mut self, groups: &[[Phit; GROUP_PHITS]]) {
        let mut at = self.at;
        // `groups` leads the zip: it must not swallow a place in `map` when it ends.
        for ((group, map), area) in groups.iter().zip(&mut self.map).zip(&mut self.area) {
            emit_group(group, self.word[at], map, area);
            at = if at + 1 == WORD_BYTES { 0 } else { at + 1 };
        }
        self.at = at;
    }
}

/// Writes a data frame: header, kind map, check, and `phits[0]` followed by `phits[1]` with `word`
/// repeated in the sideband. Pads with idle phits. Returns the bytes written.
///
/// `header.kind` and `header.phits` are not looked at; sideband bits of the phits are ignored.
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
        return Err(EmitError::TooManyPhits);
    }
    let (count, len) = (padded_phits(given), frame_len(given));
    let buf = buf.get_mut(..len).ok_or(EmitError::BufferTooSmall)?;
    FrameHeader {
        kind: FrameKind::Data,
        phits: count as u16,
        ..*header
    }
    .emit(buf)?;
    let (checked, rest) = buf.split_at_mut(HEADER_BYTES + count / GROUP_PHITS);
    let (check, area) = rest.split_at_mut(CHECK_BYTES);
    let word = word.emit();
    let mut groups = Groups {
        map: checked[HEADER_BYTES..].iter_mut(),
        area: area.as_chunks_mut().0.iter_mut(),
        word: &word,
        at: 0,
    };
    let (whole, rest) = phits[0].as_chunks();
    groups.emit(whole);
    let mut second = phits[1];
    if !rest.is_empty() {
        let (joint, behind) = second.split_at(second.len().min(GROUP_PHITS - rest.len()));
        let mut bridge = [Phit::IDLE; GROUP_PHITS];
        bridge[..rest.len()].copy_from_slice(rest);
        bridge[rest.len()..rest.len() + joint.len()].copy_from_slice(joint);
        groups.emit(&[bridge]);
        second = behind;
    }
    let (whole, rest) = second.as_chunks();
    groups.emit(whole);
    if !rest.is_empty() {
        let mut last = [Phit::IDLE; GROUP_PHITS];
        last[..rest.len()].copy_from_slice(rest);
        groups.emit(&[last]);
    }
    while groups.map.len() > 0 {
        groups.emit(&[[Phit::IDLE; GROUP_PHITS]]);
    }
    check.copy_from_slice(&checksum(checked).to_be_bytes());
    Ok(len)
}

/// A frame that has passed every check of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A burst of phits.
    Data(DataFrame<'a>),
    /// Channel initialisation.
    Training(Training),
}

impl Frame<'_> {
    /// The header of either kind.
    pub const fn header(&self) -> &FrameHeader {
        match self {
            Self::Data(frame) => &frame.header,
            Self::Training(training) => &training.header,
        }
    }
}

/// Reads a frame. The phit area is not judged: what the lanes did to it is for control word and
/// packet check to find.
///
/// # Errors
/// See [`FrameError`].
pub fn parse(bytes: &[u8]) -> Result<Frame<'_>, FrameError> {
    if bytes.len() < HEADER_BYTES + CHECK_BYTES {
        return Err(FrameError::TooShort);
    }
    let header = FrameHeader::parse(bytes)?;
    match header.kind {
        FrameKind::Data => parse_data(header, bytes).map(Frame::Data),
        FrameKind::Training => training::parse_body(header, bytes).map(Frame::Training),
    }
}

fn parse_data(header: FrameHeader, bytes: &[u8]) -> Result<DataFrame<'_>, FrameError> {
    let phits = usize::from(header.phits);
    if phits < MIN_FRAME_PHITS || !phits.is_multiple_of(GROUP_PHITS) {
        return Err(FrameError::BadPhitCount);
    }
    if bytes.len() != frame_len(phits) {
        return Err(FrameError::BadLength);
    }
    let (checked, rest) = bytes.split_at(HEADER_BYTES + phits / GROUP_PHITS);
    let (check, area) = rest.split_at(CHECK_BYTES);
    if checksum(checked).to_be_bytes() != check {
        return Err(FrameError::BadHeaderCheck);
    }
    if header.lanes == 0 {
        return Err(FrameError::NoLanes);
    }
    let (map, area) = (&checked[HEADER_BYTES..], area.as_chunks().0);
    Ok(DataFrame {
        header,
        map,
        area,
        cable: Permutation::IDENTITY,
    })
}

/// Where the phit area of a frame lies, for whoever changes what the lanes carry (noise, a cable's
/// swaps): data phits or the training pattern. Judges nothing but lengths; `None` when `bytes`
/// cannot be a frame.
pub fn phit_area(bytes: &[u8]) -> Option<Range<usize>> {
    let header = FrameHeader::parse(bytes).ok()?;
    let range = match header.kind {
        FrameKind::Data => {
            let groups = usize::from(header.phits) / GROUP_PHITS;
            let start = HEADER_BYTES + groups + CHECK_BYTES;
            start..start + groups * GROUP_BYTES
        }
        FrameKind::Training => training::PATTERN_AT,
    };
    (range.end == bytes.len()).then_some(range)
}

/// A data frame whose header, kind map and length are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataFrame<'a> {
    header: FrameHeader,
    map: &'a [u8],
    area: &'a [[u8; GROUP_BYTES]],
    cable: Permutation,
}

impl<'a> DataFrame<'a> {
    /// The header.
    #[inline]
    pub const fn header(&self) -> &FrameHeader {
        &self.header
    }

    /// Number of phits, idle ones included.
    #[inline]
    pub const fn phits(&self) -> usize {
        self.header.phits as usize
    }

    /// The same frame seen behind a cable: every wire word is put right before it is used. The
    /// identity costs nothing.
    #[inline]
    #[must_use]
    pub const fn behind(self, cable: Permutation) -> Self {
        Self { cable, ..self }
    }

    #[inline(always)]
    fn put_right(&self, words: [u32; GROUP_PHITS]) -> [u32; GROUP_PHITS] {
        words.map(|wire| unswizzle(wire, self.header.lanes, &self.cable))
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

    /// The first whole control word of the frame whose check is right.
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
            match ControlWord::parse(&word) {
                Err(SidebandError::Check) => {}
                found => return found,
            }
        }
        Err(SidebandError::Check)
    }

    /// Writes the phits into `out` with their sideband stripped and returns their number: that of
    /// the frame, or as many groups of four as `out` has room for.
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

    /// Phit number `index` as the lanes brought it, sideband included; `None` past the end.
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
