//! Commands of a program to its NIC.
//!
//! ```text
//! byte  0        kind
//!       1        flags: event or fetch (0), ordered (1), fence (2), 32 bits wide (3)
//!       2        atomic operation, access or member
//!       3        bytes of data in the entry, 0 to 64
//!       4   5    processor
//!       6   7    handle
//!       8 .. 15  name, which the completion repeats
//!      16 .. 23  offset in the domain of the handle
//!      24 .. 31  first byte in the program's data
//!      32 .. 39  bytes of the program's data
//!      40 .. 55  operands, or the word of the event
//!      56 .. 63  zero
//!      64 .. 127 data
//! ```

use super::collective::CollectiveRequest;
use super::{EntryError, need_zeros, store, u16_at, u64_at};

/// Length of a command in bytes.
pub const COMMAND_BYTES: usize = 128;
/// Maximum number of data bytes in a command, which one packet can carry.
pub const MOST_INLINE: usize = 64;
const DATA_AT: usize = 64;

const EVENT: u8 = 1 << 0;
const ORDERED: u8 = 1 << 1;
const FENCE: u8 = 1 << 2;
const NARROW: u8 = 1 << 3;

/// An address in the registered memory of a program of the same job at another NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Processor number of the NIC.
    pub processor: u16,
    /// The handle that [`Request::Register`] returned there.
    pub handle: u16,
    /// Byte offset in the registered part.
    pub offset: u64,
}

/// A part of the program's own data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// Rights of other programs on registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Puts are allowed.
    pub put: bool,
    /// Gets are allowed.
    pub get: bool,
    /// Atomic operations are allowed.
    pub atomic: bool,
}

impl Access {
    /// All rights.
    pub const ALL: Self = Self {
        put: true,
        get: true,
        atomic: true,
    };

    const fn bits(self) -> u8 {
        self.put as u8 | (self.get as u8) << 1 | (self.atomic as u8) << 2
    }

    const fn from_bits(bits: u8) -> Result<Self, EntryError> {
        if bits > Self::ALL.bits() {
            return Err(EntryError::Code);
        }
        Ok(Self {
            put: bits & 1 != 0,
            get: bits & 2 != 0,
            atomic: bits & 4 != 0,
        })
    }
}

/// Effect of an atomic operation on a word; `a` and `b` are the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AtomicOp {
    /// Bitwise and with `a`.
    And = 0,
    /// Bitwise or with `a`.
    Or = 1,
    /// Bitwise exclusive or with `a`.
    Xor = 2,
    /// Sum with `a`, wrapping.
    Add = 3,
    /// And with `a`, then exclusive or with `b`.
    AndXor = 4,
    /// Replaces the word by `a`.
    Swap = 5,
    /// Replaces the word by `b` if it equals `a`.
    CompareSwap = 6,
    /// Smaller of two signed integers.
    SignedMin = 7,
    /// Larger of two signed integers.
    SignedMax = 8,
    /// Floating-point sum.
    FloatAdd = 9,
    /// Smaller of two floating-point numbers.
    FloatMin = 10,
    /// Larger of two floating-point numbers.
    FloatMax = 11,
}

crate::listed!(AtomicOp {
    And = "and",
    Or = "or",
    Xor = "xor",
    Add = "add",
    AndXor = "and-xor",
    Swap = "swap",
    CompareSwap = "compare-swap",
    SignedMin = "signed-min",
    SignedMax = "signed-max",
    FloatAdd = "float-add",
    FloatMin = "float-min",
    FloatMax = "float-max",
});

/// Width of the word that an atomic operation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// Eight bytes.
    Bits64,
    /// Four bytes.
    Bits32,
}

impl Width {
    /// Width in bytes: 8 or 4.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bits64 => 8,
            Self::Bits32 => 4,
        }
    }
}

/// The operation that a command requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Writes 1 to [`MOST_INLINE`] bytes to remote memory.
    Put {
        /// Target address.
        to: Remote,
        /// The bytes to write.
        data: &'a [u8],
        /// Whether the target program gets a [`Completion::PutEvent`](super::Completion::PutEvent).
        event: bool,
        /// Whether the put executes after earlier ordered commands to the same processor.
        ordered: bool,
    },
    /// Reads up to [`MOST_INLINE`] bytes; length and offset are multiples of four.
    Get {
        /// Source address.
        from: Remote,
        /// Destination in the program's data.
        into: Local,
        /// Whether the get executes after earlier ordered commands to the same processor.
        ordered: bool,
    },
    /// Changes a word in remote memory.
    Atomic {
        /// Address of the word, a multiple of the width.
        at: Remote,
        /// Operation on the word.
        op: AtomicOp,
        /// Width of the word.
        width: Width,
        /// Operands of the operation.
        operands: [u64; 2],
        /// Whether the completion returns the old word.
        fetch: bool,
        /// Whether the operation executes after earlier ordered commands to the same processor.
        ordered: bool,
    },
    /// Block transfer: writes data of the program to remote memory.
    BlockPut {
        /// Target address.
        to: Remote,
        /// Source in the program's data.
        from: Local,
        /// Word of an event for the target program, sent when all bytes are in its memory.
        event: Option<u64>,
        /// Whether the transfer waits for all earlier block transfers.
        fence: bool,
    },
    /// Block transfer: reads remote memory into the program's data.
    BlockGet {
        /// Source address.
        from: Remote,
        /// Destination in the program's data.
        into: Local,
        /// Whether the transfer waits for all earlier block transfers.
        fence: bool,
    },
    /// Block transfer: sends data of the program to a receive of another program of the job.
    Send {
        /// Processor number of the target program's NIC.
        processor: u16,
        /// Member number of the target program at that NIC.
        member: u8,
        /// Source in the program's data.
        from: Local,
    },
    /// Receives a message; ends with a [`Completion::Received`](super::Completion::Received).
    Receive {
        /// Destination in the program's data.
        into: Local,
    },
    /// Cancels the receive with the same name if no message has arrived. On success the receive
    /// ends without a completion of its own.
    CancelReceive,
    /// Lets programs of the job access a part of the program's data; the completion returns the
    /// handle.
    Register {
        /// The part: starts at a multiple of 64; its length is a multiple of four bytes.
        part: Local,
        /// Rights of other programs.
        access: Access,
    },
    /// Ends a registration.
    Deregister {
        /// Handle that the registration returned.
        handle: u16,
    },
    /// Takes part in a collective operation.
    Collective(CollectiveRequest),
}

/// A request and the name of its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// Name, which the completion repeats. Only the lower 48 bits count.
    pub name: u64,
    /// Operation of the command.
    pub request: Request<'a>,
}

/// The fields of an entry that only some kinds have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fields<'a> {
    pub(super) flags: u8,
    pub(super) code: u8,
    pub(super) remote: Option<Remote>,
    pub(super) local: Option<Local>,
    pub(super) operands: [u64; 2],
    pub(super) data: &'a [u8],
}

impl<'a> Command<'a> {
    /// Significant low bits of a name.
    pub const NAME_BITS: u32 = 48;

    /// Reads a command.
    ///
    /// # Errors
    /// See [`EntryError`].
    pub fn parse(entry: &'a [u8; COMMAND_BYTES]) -> Result<Self, EntryError> {
        let inline = usize::from(entry[3]);
        if inline > MOST_INLINE {
            return Err(EntryError::Length);
        }
        let (data, unused) = entry[DATA_AT..].split_at(inline);
        need_zeros(unused)?;
        need_zeros(&entry[56..DATA_AT])?;
        let request = Self::request(entry, data)?;
        let command = Self {
            name: u64_at(entry, 8),
            request,
        };
        command.is_written_so(entry)?;
        Ok(command)
    }

    /// The request in the fields of an entry.
    fn request(entry: &[u8; COMMAND_BYTES], data: &'a [u8]) -> Result<Request<'a>, EntryError> {
        let (kind, flags, code) = (entry[0], entry[1], entry[2]);
        let remote = Remote {
            processor: u16_at(entry, 4),
            handle: u16_at(entry, 6),
            offset: u64_at(entry, 16),
        };
        let local = Local {
            offset: u64_at(entry, 24),
            bytes: u64_at(entry, 32),
        };
        let operands = [u64_at(entry, 40), u64_at(entry, 48)];
        let is = |flag| flags & flag != 0;
        let (event, ordered, fence) = (is(EVENT), is(ORDERED), is(FENCE));
        Ok(match kind {
            0 => Request::Put {
                to: remote,
                data,
                event,
                ordered,
            },
            1 => Request::Get {
                from: remote,
                into: local,
                ordered,
            },
            2 => Request::Atomic {
                at: remote,
                op: *AtomicOp::ALL
                    .get(usize::from(code))
                    .ok_or(EntryError::Code)?,
                width: match is(NARROW) {
                    true => Width::Bits32,
                    false => Width::Bits64,
                },
                operands,
                fetch: event,
                ordered,
            },
            3 => Request::BlockPut {
                to: remote,
                from: local,
                event: event.then_some(operands[0]),
                fence,
            },
            4 => Request::BlockGet {
                from: remote,
                into: local,
                fence,
            },
            5 => Request::Send {
                processor: remote.processor,
                member: code,
                from: local,
            },
            6 => Request::Receive { into: local },
            7 => Request::CancelReceive,
            8 => Request::Register {
                part: local,
                access: Access::from_bits(code)?,
            },
            9 => Request::Deregister {
                handle: remote.handle,
            },
            _ => Request::Collective(CollectiveRequest::parse(entry, local, operands)?),
        })
    }

    /// Checks that the entry is the exact encoding of this command.
    fn is_written_so(&self, entry: &[u8; COMMAND_BYTES]) -> Result<(), EntryError> {
        let mut again = [0; COMMAND_BYTES];
        self.emit(&mut again)?;
        if again[1] != entry[1] {
            return Err(EntryError::Flags);
        }
        if again[3] != entry[3] {
            return Err(EntryError::Length);
        }
        match again[..DATA_AT] == entry[..DATA_AT] {
            true => Ok(()),
            false => Err(EntryError::Reserved),
        }
    }

    /// Writes the command.
    ///
    /// # Errors
    /// [`EntryError::Length`] if a put has no data, or more than [`MOST_INLINE`] bytes.
    pub fn emit(&self, entry: &mut [u8; COMMAND_BYTES]) -> Result<(), EntryError> {
        let (kind, fields) = self.request.fields();
        let is_put = matches!(self.request, Request::Put { .. });
        if fields.data.len() > MOST_INLINE || (is_put && fields.data.is_empty()) {
            return Err(EntryError::Length);
        }
        entry.fill(0);
        entry[..4].copy_from_slice(&[kind, fields.flags, fields.code, fields.data.len() as u8]);
        if let Some(remote) = fields.remote {
            store(entry, 4, remote.processor.to_le_bytes());
            store(entry, 6, remote.handle.to_le_bytes());
            store(entry, 16, remote.offset.to_le_bytes());
        }
        store(entry, 8, self.name.to_le_bytes());
        if let Some(local) = fields.local {
            store(entry, 24, local.offset.to_le_bytes());
            store(entry, 32, local.bytes.to_le_bytes());
        }
        store(entry, 40, fields.operands[0].to_le_bytes());
        store(entry, 48, fields.operands[1].to_le_bytes());
        entry[DATA_AT..DATA_AT + fields.data.len()].copy_from_slice(fields.data);
        Ok(())
    }
}

/// `flag` if `wanted`, else 0.
const fn flag(wanted: bool, flag: u8) -> u8 {
    if wanted { flag } else { 0 }
}

impl<'a> Request<'a> {
    /// The kind and the other fields of the entry.
    fn fields(&self) -> (u8, Fields<'a>) {
        let none = Fields::default();
        match *self {
            Self::Put {
                to,
                data,
                event,
                ordered,
            } => {
                let fields = Fields {
                    flags: flag(event, EVENT) | flag(ordered, ORDERED),
                    remote: Some(to),
                    data,
                    ..none
                };
                (0, fields)
            }
            Self::Get {
                from,
                into,
                ordered,
            } => {
                let fields = Fields {
                    flags: flag(ordered, ORDERED),
                    remote: Some(from),
                    local: Some(into),
                    ..none
                };
                (1, fields)
            }
            Self::Atomic {
                at,
                op,
                width,
                operands,
                fetch,
                ordered,
            } => {
                let narrow = flag(width == Width::Bits32, NARROW);
                let fields = Fields {
                    flags: flag(fetch, EVENT) | flag(ordered, ORDERED) | narrow,
                    code: op as u8,
                    remote: Some(at),
                    operands,
                    ..none
                };
                (2, fields)
            }
            Self::BlockPut {
                to,
                from,
                event,
                fence,
            } => {
                let fields = Fields {
                    flags: flag(event.is_some(), EVENT) | flag(fence, FENCE),
                    remote: Some(to),
                    local: Some(from),
                    operands: [event.unwrap_or(0), 0],
                    ..none
                };
                (3, fields)
            }
            Self::BlockGet { from, into, fence } => {
                let fields = Fields {
                    flags: flag(fence, FENCE),
                    remote: Some(from),
                    local: Some(into),
                    ..none
                };
                (4, fields)
            }
            Self::Collective(ref request) => request.fields(),
            _ => self.fields_of_messages(),
        }
    }

    /// Code and fields of requests that do not access remote memory.
    fn fields_of_messages(&self) -> (u8, Fields<'a>) {
        let none = Fields::default();
        match *self {
            Self::Send {
                processor,
                member,
                from,
            } => {
                let at = Remote {
                    processor,
                    handle: 0,
                    offset: 0,
                };
                let fields = Fields {
                    code: member,
                    remote: Some(at),
                    local: Some(from),
                    ..none
                };
                (5, fields)
            }
            Self::Receive { into } => {
                let fields = Fields {
                    local: Some(into),
                    ..none
                };
                (6, fields)
            }
            Self::Register { part, access } => {
                let fields = Fields {
                    code: access.bits(),
                    local: Some(part),
                    ..none
                };
                (8, fields)
            }
            Self::Deregister { handle } => {
                let at = Remote {
                    processor: 0,
                    handle,
                    offset: 0,
                };
                let fields = Fields {
                    remote: Some(at),
                    ..none
                };
                (9, fields)
            }
            _ => (7, none),
        }
    }
}
