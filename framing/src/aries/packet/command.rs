//! Commands of requests: seven bits, three of class and four of argument.

use super::area::{self, MAX_DATA};
use super::{EmitError, PacketError};

/// Length in bytes of a word of a get.
const WORD: usize = 4;
/// Added to the argument of puts and messages that post an event at the target.
const EVENT: u8 = 6;

/// An atomic memory operation. With one operand, it replaces the word by `op(word, operand)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum AmoOp {
    /// Bitwise and.
    And = 0,
    /// Bitwise or.
    Or = 1,
    /// Bitwise exclusive or.
    Xor = 2,
    /// Sum, wrapping.
    Add = 3,
    /// And with the first operand, then exclusive or with the second.
    AndXor = 4,
    /// Replaces the word by the operand.
    Swap = 5,
    /// Replaces the word by the second operand if it equals the first.
    CompareSwap = 6,
    /// Smaller of two signed integers.
    IntMin = 7,
    /// Larger of two signed integers.
    IntMax = 8,
    /// Floating-point sum, in the operation's width.
    FloatAdd = 9,
    /// Smaller of two floating-point numbers.
    FloatMin = 10,
    /// Larger of two floating-point numbers.
    FloatMax = 11,
}

crate::listed!(AmoOp {
    And,
    Or,
    Xor,
    Add,
    AndXor,
    Swap,
    CompareSwap,
    IntMin,
    IntMax,
    FloatAdd,
    FloatMin,
    FloatMax
});

impl AmoOp {
    /// Number of operands: 2 for and-xor and compare-and-swap, else 1.
    #[inline]
    pub const fn operands(self) -> usize {
        match self {
            Self::AndXor | Self::CompareSwap => 2,
            _ => 1,
        }
    }
}

/// Width of the word that an atomic operation works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// Eight bytes.
    Bits64,
    /// Four bytes.
    Bits32,
}

impl Width {
    /// Width in bytes: 8 or 4.
    #[inline]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bits64 => 8,
            Self::Bits32 => 4,
        }
    }
}

/// The operands of an atomic operation as data bytes: each big-endian, in `width` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operands {
    /// First operand; most operations have only this one. With 32 bits, the low half counts.
    pub first: u64,
    /// Second operand; 0 if there is none.
    pub second: u64,
}

impl Operands {
    /// The bytes for `op`, and their number.
    #[inline]
    pub fn to_bytes(self, op: AmoOp, width: Width) -> ([u8; 16], usize) {
        let mut bytes = [0; 16];
        let size = width.bytes();
        let words = [self.first, self.second];
        for (to, word) in bytes.chunks_exact_mut(size).zip(words) {
            to.copy_from_slice(&word.to_be_bytes()[8 - size..]);
        }
        (bytes, size * op.operands())
    }

    /// The operands in the data of a packet; a missing second operand is zero.
    #[inline]
    pub fn from_bytes(data: &[u8], width: Width) -> Self {
        let mut words = data.chunks(width.bytes()).map(|bytes| {
            bytes
                .iter()
                .fold(0, |word, byte| word << 8 | u64::from(*byte))
        });
        Self {
            first: words.next().unwrap_or(0),
            second: words.next().unwrap_or(0),
        }
    }
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Writes the data at the address: 0 to 64 bytes.
    Put {
        /// Posts an event to the target's completion queue when the data are written.
        event: bool,
    },
    /// Reads 4-byte words at the address; the response returns them.
    Get {
        /// Number of words, 1 to 16.
        words: u8,
    },
    /// An atomic operation on the word at the address.
    Amo {
        /// Operation on the word.
        op: AmoOp,
        /// Width of the word.
        width: Width,
        /// Whether the response returns the old word.
        fetch: bool,
    },
    /// A part of a message (block transfer engine, send): 0 to 64 bytes. The NICs define the
    /// meaning of the address.
    Message {
        /// Whether this is the message's last part.
        last: bool,
    },
    /// Collective engine and control between NICs. Data are padded with zero bytes to 4, 10, 16,
    /// ... 64.
    Control {
        /// Type of the packet, 4 bits; defined by the NICs.
        code: u8,
    },
}

const PUT: u8 = 0;
const GET: u8 = 1;
const MESSAGE: u8 = 6;
const CONTROL: u8 = 7;

const fn amo_class(width: Width, fetch: bool) -> u8 {
    let width = match width {
        Width::Bits64 => 2,
        Width::Bits32 => 4,
    };
    width + fetch as u8
}

impl Command {
    /// Bytes of data in the request, if the command determines them.
    #[inline]
    pub const fn operand_bytes(self) -> Option<usize> {
        match self {
            Self::Amo { op, width, .. } => Some(op.operands() * width.bytes()),
            Self::Get { .. } => Some(0),
            _ => None,
        }
    }

    /// Bytes of data in a response without error.
    #[inline]
    pub const fn response_bytes(self) -> usize {
        match self {
            Self::Get { words } => words as usize * WORD,
            Self::Amo {
                width, fetch: true, ..
            } => width.bytes(),
            _ => 0,
        }
    }

    /// Whether a request with `bytes` bytes of data has a data area. Puts and messages always have
    /// one, so that empty ones are checked too.
    #[inline]
    pub(super) const fn has_area(self, bytes: usize) -> bool {
        match self {
            Self::Get { .. } => false,
            Self::Control { .. } => bytes > 0,
            _ => true,
        }
    }

    /// The seven-bit code of the command with `bytes` bytes of data.
    ///
    /// # Errors
    /// [`EmitError::BadDataLength`], [`EmitError::BadArgument`].
    #[inline]
    pub(super) fn code(self, bytes: usize) -> Result<u8, EmitError> {
        let fits = match self.operand_bytes() {
            Some(needed) => bytes == needed,
            None => bytes <= MAX_DATA,
        };
        if !fits {
            return Err(EmitError::BadDataLength);
        }
        let (class, argument) = match self {
            Self::Put { event } => (PUT, area::unused(bytes) + u8::from(event) * EVENT),
            Self::Get { words } => (GET, words.wrapping_sub(1)),
            Self::Amo { op, width, fetch } => (amo_class(width, fetch), op as u8),
            Self::Message { last } => (MESSAGE, area::unused(bytes) + u8::from(last) * EVENT),
            Self::Control { code } => (CONTROL, code),
        };
        if argument > 0xf {
            return Err(EmitError::BadArgument);
        }
        Ok(class << 4 | argument)
    }

    /// The command for a seven-bit code in a request with `flits` flits of data area, and its bytes
    /// of data.
    ///
    /// # Errors
    /// [`PacketError::ReservedCommand`], [`PacketError::Shape`].
    #[inline]
    pub(super) fn parse(code: u8, flits: usize) -> Result<(Self, usize), PacketError> {
        let argument = code & 0xf;
        let capacity = area::capacity(flits);
        // The event flag, and the number of data bytes before the padding.
        let counted = || {
            if argument >= 2 * EVENT {
                return Err(PacketError::ReservedCommand);
            }
            let unused = usize::from(argument % EVENT);
            match capacity.checked_sub(unused) {
                Some(bytes) if flits > 0 => Ok((argument >= EVENT, bytes)),
                _ => Err(PacketError::Shape),
            }
        };
        match code >> 4 {
            PUT => counted().map(|(event, bytes)| (Self::Put { event }, bytes)),
            GET if flits == 0 => Ok((
                Self::Get {
                    words: argument + 1,
                },
                0,
            )),
            GET => Err(PacketError::Shape),
            MESSAGE => counted().map(|(last, bytes)| (Self::Message { last }, bytes)),
            CONTROL => Ok((Self::Control { code: argument }, capacity)),
            class => {
                let op = *AmoOp::ALL
                    .get(usize::from(argument))
                    .ok_or(PacketError::ReservedCommand)?;
                let width = if class < 4 {
                    Width::Bits64
                } else {
                    Width::Bits32
                };
                let bytes = op.operands() * width.bytes();
                if flits != area::area_flits(bytes) {
                    return Err(PacketError::Shape);
                }
                let fetch = class & 1 != 0;
                Ok((Self::Amo { op, width, fetch }, bytes))
            }
        }
    }
}
