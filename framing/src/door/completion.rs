//! Completions: the outcome of commands, and events from other programs.
//!
//! ```text
//! byte  0        kind: end, received, put event, block event
//!       1        status
//!       2   3    processor of the other program
//!       4   5    handle
//!       6   7    zero
//!       8 .. 15  name of the command
//!      16 .. 23  word
//!      24 .. 31  bytes
//!      32 .. 39  offset in the domain of the handle
//!      40 .. 63  zero
//! ```

use super::{EntryError, need_zeros, store, u16_at, u64_at};

/// Length of a completion in bytes.
pub const COMPLETION_BYTES: usize = 64;

/// Result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// The command was executed.
    Done = 0,
    /// The NIC does not support the operation.
    Unsupported,
    /// The entry is not a valid command.
    Malformed,
    /// The processor does not exist.
    NoProcessor,
    /// Part of the range is outside of the program's data.
    NotInSegment,
    /// The operation does not allow the length; at a BlackWidow NIC, the bytes cross a line.
    Length,
    /// The part to register does not begin at a multiple of 64, or the remote offset has more bits
    /// than the NIC's addresses: 40 at an Aries, 28 elsewhere.
    Offset,
    /// The handle or the engine belongs to another program, or to none.
    NotYours,
    /// All handles, or all slots for receives, are in use.
    TooMany,
    /// The handle does not exist at the target.
    NoHandle,
    /// The handle, or the engine, at the target belongs to another job.
    WrongKey,
    /// Part of the remote range is outside of the registered memory.
    OutOfBounds,
    /// The remote address is not aligned as the operation requires.
    Misaligned,
    /// The registration does not grant this access.
    Forbidden,
    /// The request arrived damaged and was not executed; try again.
    Damaged,
    /// The target has no room now; try again.
    Busy,
    /// The target posted no receive during all attempts.
    NoReceive,
    /// The source gave up before the whole message was sent.
    Aborted,
    /// No response arrived in time. The operation may have been executed, may still be, or may not.
    TimedOut,
    /// The response arrived damaged. The operation may have been executed or not.
    DamagedAnswer,
    /// The participants of a collective operation joined different ones; the next one works.
    Mismatch,
    /// A participant left the collective operation; the completion's word is its processor number.
    /// All participants must set up the engine again.
    Left,
    /// A participant of a collective operation was late. The completion's word is the number of the
    /// processor that the first participant to time out was waiting for. All participants must set
    /// up the engine again.
    Absent,
    /// The program's own memory cannot be accessed: it is not mapped, or not for this kind of
    /// access; or the system does not let the NIC access the program (another user, another PID
    /// namespace, no pidfd).
    Unreachable,
}

crate::listed!(Status {
    Done = "done",
    Unsupported = "unsupported",
    Malformed = "malformed",
    NoProcessor = "no_processor",
    NotInSegment = "not_in_segment",
    Length = "length",
    Offset = "offset",
    NotYours = "not_yours",
    TooMany = "too_many",
    NoHandle = "no_handle",
    WrongKey = "wrong_key",
    OutOfBounds = "out_of_bounds",
    Misaligned = "misaligned",
    Forbidden = "forbidden",
    Damaged = "damaged",
    Busy = "busy",
    NoReceive = "no_receive",
    Aborted = "aborted",
    TimedOut = "timed_out",
    DamagedAnswer = "damaged_answer",
    Mismatch = "mismatch",
    Left = "left",
    Absent = "absent",
    Unreachable = "unreachable",
});

impl Status {
    /// Whether the operation may have been executed or not.
    pub const fn is_unknown(self) -> bool {
        matches!(self, Self::TimedOut | Self::DamagedAnswer)
    }
}

impl core::fmt::Display for Status {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// An entry of the completion ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// A command other than a receive has ended.
    End {
        /// Name of the command.
        name: u64,
        /// Result of the command.
        status: Status,
        /// The old word of an atomic operation, the handle of registered memory, whether a receive
        /// was taken back (1), the result of a collective operation or the processor that prevented
        /// one, else 0.
        word: u64,
        /// For block transfers: bytes acknowledged. For collective minima and maxima: the location.
        bytes: u64,
    },
    /// A receive has its message, or will have none.
    Received {
        /// Name of the receive.
        name: u64,
        /// Whether the whole message arrived, or why not.
        status: Status,
        /// Processor number of the sender.
        processor: u16,
        /// Number of bytes received.
        bytes: u64,
    },
    /// A put with an event is in the program's memory.
    PutEvent {
        /// Processor number of the sender.
        processor: u16,
        /// Handle of the registered part.
        handle: u16,
        /// Offset of the first byte in the registered part.
        offset: u64,
        /// Length in bytes.
        bytes: u64,
    },
    /// A block with an event is in the program's memory.
    BlockEvent {
        /// Processor number of the sender.
        processor: u16,
        /// Handle of the registered part.
        handle: u16,
        /// Word of the event.
        word: u64,
    },
}

impl Completion {
    /// Reads a completion.
    ///
    /// # Errors
    /// See [`EntryError`].
    pub fn parse(entry: &[u8; COMPLETION_BYTES]) -> Result<Self, EntryError> {
        let status = Status::ALL.get(usize::from(entry[1])).copied();
        let status = status.ok_or(EntryError::Code)?;
        let (processor, handle) = (u16_at(entry, 2), u16_at(entry, 4));
        let (name, word) = (u64_at(entry, 8), u64_at(entry, 16));
        let (bytes, offset) = (u64_at(entry, 24), u64_at(entry, 32));
        need_zeros(&entry[6..8])?;
        need_zeros(&entry[40..])?;
        let completion = match entry[0] {
            0 => Self::End {
                name,
                status,
                word,
                bytes,
            },
            1 => Self::Received {
                name,
                status,
                processor,
                bytes,
            },
            2 => Self::PutEvent {
                processor,
                handle,
                offset,
                bytes,
            },
            3 => Self::BlockEvent {
                processor,
                handle,
                word,
            },
            _ => return Err(EntryError::Kind),
        };
        let mut again = [0; COMPLETION_BYTES];
        completion.emit(&mut again);
        match again == *entry {
            true => Ok(completion),
            false => Err(EntryError::Reserved),
        }
    }

    /// Encodes the completion as a ring entry.
    pub fn emit(&self, entry: &mut [u8; COMPLETION_BYTES]) {
        entry.fill(0);
        match *self {
            Self::End {
                name,
                status,
                word,
                bytes,
            } => {
                entry[1] = status as u8;
                store(entry, 8, name.to_le_bytes());
                store(entry, 16, word.to_le_bytes());
                store(entry, 24, bytes.to_le_bytes());
            }
            Self::Received {
                name,
                status,
                processor,
                bytes,
            } => {
                entry[..2].copy_from_slice(&[1, status as u8]);
                store(entry, 2, processor.to_le_bytes());
                store(entry, 8, name.to_le_bytes());
                store(entry, 24, bytes.to_le_bytes());
            }
            Self::PutEvent {
                processor,
                handle,
                offset,
                bytes,
            } => {
                entry[0] = 2;
                store(entry, 2, processor.to_le_bytes());
                store(entry, 4, handle.to_le_bytes());
                store(entry, 24, bytes.to_le_bytes());
                store(entry, 32, offset.to_le_bytes());
            }
            Self::BlockEvent {
                processor,
                handle,
                word,
            } => {
                entry[0] = 3;
                store(entry, 2, processor.to_le_bytes());
                store(entry, 4, handle.to_le_bytes());
                store(entry, 16, word.to_le_bytes());
            }
        }
    }
}
