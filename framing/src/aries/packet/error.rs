//! Why flits are not a packet, or could not be written.

/// Why flits are not a packet. Each is a counter; see [`Self::name`] and [`Self::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PacketError {
    /// No flit, or one that cannot be a head.
    NoHead,
    /// The head names another number of flits.
    Length,
    /// A response where a request should be, or the reverse.
    Direction,
    /// The number of flits does not go with the command or the status.
    Shape,
    /// A command, or an argument of one, that is reserved.
    ReservedCommand,
    /// A status that is reserved.
    ReservedStatus,
    /// A router found the packet damaged inside itself.
    Poisoned,
    /// The packet check is wrong.
    Crc,
    /// Bytes between data and check are not zero.
    Padding,
}

impl PacketError {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 9] = [
        Self::NoHead,
        Self::Length,
        Self::Direction,
        Self::Shape,
        Self::ReservedCommand,
        Self::ReservedStatus,
        Self::Poisoned,
        Self::Crc,
        Self::Padding,
    ];

    /// Position in [`Self::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// A name for a counter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoHead => "packet_no_head",
            Self::Length => "packet_bad_length",
            Self::Direction => "packet_wrong_direction",
            Self::Shape => "packet_bad_shape",
            Self::ReservedCommand => "packet_reserved_command",
            Self::ReservedStatus => "packet_reserved_status",
            Self::Poisoned => "packet_poisoned",
            Self::Crc => "packet_bad_crc",
            Self::Padding => "packet_bad_padding",
        }
    }
}

impl core::fmt::Display for PacketError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NoHead => "first flit is not the head of a packet",
            Self::Length => "head names another number of flits",
            Self::Direction => "a request where a response should be, or the reverse",
            Self::Shape => "number of flits does not go with command or status",
            Self::ReservedCommand => "command or its argument is reserved",
            Self::ReservedStatus => "status is reserved",
            Self::Poisoned => "packet is marked as damaged",
            Self::Crc => "packet check is wrong",
            Self::Padding => "bytes between data and check are not zero",
        })
    }
}

impl core::error::Error for PacketError {}

/// Why a packet could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EmitError {
    /// The buffer is shorter than the packet.
    BufferTooSmall,
    /// The data do not go with the command or the status: too many, or not as many as its operands
    /// have.
    BadDataLength,
    /// A get of no words or of more than [`MAX_DATA`](super::MAX_DATA) bytes, or a control code
    /// above 4 bits.
    BadArgument,
}

impl core::fmt::Display for EmitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::BufferTooSmall => "buffer is shorter than the packet",
            Self::BadDataLength => "number of data bytes does not go with the packet",
            Self::BadArgument => "argument of the command has no code",
        })
    }
}

impl core::error::Error for EmitError {}
