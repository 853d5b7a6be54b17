//! Errors of reading and writing frames.

use crate::carrier::names::reasons;

reasons! {
    /// Why bytes are not a valid link frame. Each value is a drop counter; see [`Self::name`] and
    /// [`Self::ALL`].
    FrameError {
        /// There are fewer bytes than in a header and a check.
        TooShort = "frame_too_short": "frame is shorter than its header",
        /// The first byte must be [`MAGIC`](super::MAGIC).
        BadMagic = "frame_bad_magic": "first byte is not that of a link frame",
        BadVersion = "frame_bad_version": "unsupported frame version",
        /// The reader does not know the kind.
        BadKind = "frame_bad_kind": "reserved frame kind",
        BadLength = "frame_bad_length": "frame length does not match the header",
        /// The check is a CRC-32C over everything before it.
        BadHeaderCheck = "frame_bad_header_check": "wrong check of the header",
        /// The header has 13 reserved bits.
        ReservedHeader = "frame_reserved_header":
            "nonzero reserved bits beside the lane mask",
        /// Frames of whole packets have reserved bits in the flags word and after the last word.
        ReservedControl = "frame_reserved_control": "nonzero reserved bits in the control word",
        NoLanes = "frame_no_lanes": "empty lane mask in a data frame",
        /// The number of units must be zero in a training frame.
        BadPhitCount = "frame_bad_phit_count":
            "invalid number of units for this kind of frame",
        /// Bits 6:3 of the byte are reserved.
        ReservedTraining = "frame_reserved_training":
            "nonzero reserved bits in the training lane byte",
        BadName = "frame_bad_name": "node name is empty, not UTF-8 or not padded with zeros",
        /// The number is zero, or exceeds the capacity of a frame.
        BadSetCount = "frame_bad_set_count": "invalid number of sets",
    }
}

reasons! {
    /// Why a frame could not be written.
    EmitError {
        BufferTooSmall: "buffer is shorter than the frame",
        TooManyUnits: "more units than a frame can hold",
    }
}
