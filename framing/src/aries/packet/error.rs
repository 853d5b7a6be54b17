//! Errors of reading and writing packets.

use crate::carrier::names::reasons;

reasons! {
    /// Why flits are not a valid packet. Each value is a counter; see [`Self::name`] and
    /// [`Self::ALL`].
    PacketError {
        /// No flit, or one that cannot be a head.
        NoHead = "packet_no_head": "first flit is not the head of a packet",
        Length = "packet_bad_length": "number of flits does not match the head",
        Direction = "packet_wrong_direction":
            "request where a response is expected, or vice versa",
        Shape = "packet_bad_shape": "number of flits does not match the command or status",
        ReservedCommand = "packet_reserved_command": "reserved command or argument",
        ReservedStatus = "packet_reserved_status": "reserved status",
        /// A router found the packet damaged internally.
        Poisoned = "packet_poisoned": "packet is marked as damaged",
        Crc = "packet_bad_crc": "wrong packet CRC",
        Padding = "packet_bad_padding": "nonzero bytes between data and CRC",
    }
}

reasons! {
    /// Why a packet could not be written.
    EmitError {
        BufferTooSmall: "buffer is shorter than the packet",
        /// More than the command or status allows, or not the length of its operands.
        BadDataLength: "number of data bytes does not match the packet",
        /// A get of no words or of more than [`MAX_DATA`](super::MAX_DATA) bytes, or a control code
        /// above 4 bits.
        BadArgument: "argument of the command cannot be encoded",
    }
}
