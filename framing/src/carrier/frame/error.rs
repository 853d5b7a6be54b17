//! Why a frame is dropped, or could not be written.

/// Why bytes are not a link frame. Each is a drop counter; see [`Self::name`] and [`Self::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameError {
    /// Fewer bytes than a header and a check.
    TooShort,
    /// The first byte is not [`MAGIC`](super::MAGIC).
    BadMagic,
    /// Another version of the format.
    BadVersion,
    /// A frame kind that the reader does not know.
    BadKind,
    /// The number of bytes does not agree with the header.
    BadLength,
    /// The CRC-32C over everything before it is wrong.
    BadHeaderCheck,
    /// The 13 reserved bits beside the lane mask are not zero.
    ReservedHeader,
    /// A frame whose units the lanes carry names no lane.
    NoLanes,
    /// A number of units that this kind of frame cannot have, or not zero in a training frame.
    BadPhitCount,
    /// The reserved bits 6:3 of the lane byte of a training frame are not zero.
    ReservedTraining,
    /// A node name of a training frame is empty, not UTF-8 or not padded with zeros.
    BadName,
    /// A frame of sets of units has none, or more than fit.
    BadSetCount,
}

impl FrameError {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 12] = [
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
        Self::BadSetCount,
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
            Self::BadSetCount => "frame_bad_set_count",
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
            Self::BadSetCount => "number of sets is not allowed",
        })
    }
}

impl core::error::Error for FrameError {}

/// Why a frame could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EmitError {
    /// The buffer is shorter than the frame.
    BufferTooSmall,
    /// More units than a frame may have.
    TooManyUnits,
}

impl core::fmt::Display for EmitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::BufferTooSmall => "buffer is shorter than the frame",
            Self::TooManyUnits => "more units than a frame may have",
        })
    }
}

impl core::error::Error for EmitError {}
