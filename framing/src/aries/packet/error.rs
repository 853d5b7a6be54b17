//! Why flits are not a valid packet, or could not be written.

use crate::carrier::names::reasons;

reasons! {
    /// Why flits are not a valid packet. Each is a counter; see [`Self::name`] and [`Self::ALL`].
    PacketError {
        /// No flit, or one that cannot be a head.
        NoHead = "packet_no_head": "first flit is not the head of a packet",
        Length = "packet_bad_length": "head names another number of flits",
        Direction = "packet_wrong_direction":
            "a request where a response should be, or the reverse",
        Shape = "packet_bad_shape": "number of flits does not go with command or status",
        ReservedCommand = "packet_reserved_command": "command or its argument is reserved",
        ReservedStatus = "packet_reserved_status": "status is reserved",
        /// A router found the packet damaged internally.
        Poisoned = "packet_poisoned": "packet is marked as damaged",
        Crc = "packet_bad_crc": "packet check is wrong",
        Padding = "packet_bad_padding": "bytes between data and check are not zero",
    }
}

reasons! {
    /// Why a packet could not be written.
    EmitError {
        BufferTooSmall: "buffer is shorter than the packet",
        /// Too many for the command or the status, or not as many as its operands need.
        BadDataLength: "number of data bytes does not go with the packet",
        /// A get of no words or of more than [`MAX_DATA`](super::MAX_DATA) bytes, or a control code
        /// above 4 bits.
        BadArgument: "argument of the command has no code",
    }
}
