//! Why a frame is dropped, or could not be written.

use crate::carrier::names::reasons;

reasons! {
    /// Why bytes are not a valid link frame. Each is a drop counter; see [`Self::name`] and
    /// [`Self::ALL`].
    FrameError {
        /// Fewer bytes than a header and a check.
        TooShort = "frame_too_short": "frame is shorter than its header",
        /// Must be [`MAGIC`](super::MAGIC).
        BadMagic = "frame_bad_magic": "first byte is not that of a link frame",
        BadVersion = "frame_bad_version": "unsupported frame version",
        /// Unknown to the reader.
        BadKind = "frame_bad_kind": "reserved frame kind",
        BadLength = "frame_bad_length": "frame length does not match the header",
        /// The CRC-32C over everything before it.
        BadHeaderCheck = "frame_bad_header_check": "wrong check of the header and payload",
        /// 13 bits.
        ReservedHeader = "frame_reserved_header":
            "nonzero reserved bits beside the lane mask",
        /// In a frame of whole packets: in the flags word, and after the last word.
        ReservedControl = "frame_reserved_control": "nonzero reserved bits in the control word",
        NoLanes = "frame_no_lanes": "empty lane mask in a data frame",
        /// Must be zero in a training frame.
        BadPhitCount = "frame_bad_phit_count":
            "invalid number of phits for this kind of frame",
        /// Bits 6:3 of the byte.
        ReservedTraining = "frame_reserved_training":
            "nonzero reserved bits in the training lane byte",
        BadName = "frame_bad_name": "node name is empty, not UTF-8 or not padded with zeros",
        /// Zero in a frame of sets, or more than fit.
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
