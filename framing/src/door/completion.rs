//! Completions: what became of commands, and what others have left.
//!
//! ```text
//! byte  0        kind: end, received, landed, told
//!       1        status
//!       2   3    processor that it comes from
//!       4   5    handle
//!       6   7    zero
//!       8 .. 15  name of the command
//!      16 .. 23  word
//!      24 .. 31  bytes
//!      32 .. 39  offset in the domain of the handle
//!      40 .. 63  zero
//! ```

use super::{EntryError, need_zeros, store, u16_at, u64_at};

/// Bytes of a completion.
pub const COMPLETION_BYTES: usize = 64;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// It was carried out.
    Done = 0,
    /// The network interface has no such operation.
    Unsupported,
    /// The entry is no command.
    Malformed,
    /// There is no such processor.
    NoProcessor,
    /// Some of the bytes are not in the program's data.
    NotInSegment,
    /// No such operation has that length, or begins there.
    Length,
    /// Offsets have 40 bits.
    Offset,
    /// The handle is none of the program's.
    NotYours,
    /// All handles, or all places for receives, are in use.
    TooMany,
    /// The target has no such handle.
    NoHandle,
    /// The handle at the target is another job's.
    WrongKey,
    /// The address there, or its end, is outside of what was registered.
    OutOfBounds,
    /// The address there is not a multiple of what the operation needs.
    Misaligned,
    /// The memory there was not registered for such access.
    Forbidden,
    /// It came to the target damaged, and was not carried out: again it may be.
    Damaged,
    /// The target has no room for it now: again it may have.
    Busy,
    /// The target posted no receive in all the time that it was tried.
    NoReceive,
    /// The source of a message gave up before all of it was sent.
    Aborted,
    /// No answer came in time. It may have been carried out, may yet be, or not.
    TimedOut,
    /// The answer came damaged. It may have been carried out, or not.
    DamagedAnswer,
    /// Participants of a collective operation have joined different ones; the next works.
    Mismatch,
    /// A participant of a collective operation has left it: the word of the completion tells where.
    /// The engine has to be set up again, by all.
    Left,
    /// A participant of a collective operation did not come in time: the word of the completion
    /// tells for which processor whoever noticed first had waited. The engine has to be set up
    /// again, by all.
    Absent,
    /// Memory of the program's own cannot be reached: it is not mapped, or not for that; or the
    /// system does not let the network interface see the program (another user, another namespace of
    /// processes, no pidfd).
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
    /// Whether nobody knows if it was carried out.
    pub const fn is_unknown(self) -> bool {
        matches!(self, Self::TimedOut | Self::DamagedAnswer)
    }
}

impl core::fmt::Display for Status {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// An entry of the ring to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// A command has ended, one that is no receive, or a receive that was not posted.
    End {
        /// The command's.
        name: u64,
        /// How.
        status: Status,
        /// The word that an atomic operation found, the handle of registered memory, whether a
        /// receive was taken back (1), the result of a collective operation or the processor for
        /// whose sake there is none, else 0.
        word: u64,
        /// Of block transfers: bytes whose arrival has been acknowledged. Of collective minima and
        /// maxima: the location.
        bytes: u64,
    },
    /// A receive has its message, or will have none.
    Received {
        /// The receive's.
        name: u64,
        /// Whether all of it is there.
        status: Status,
        /// Who sent it.
        processor: u16,
        /// Bytes that are there.
        bytes: u64,
    },
    /// A put that asked for an event is in the program's memory.
    Landed {
        /// Who put it.
        processor: u16,
        /// Where.
        handle: u16,
        /// First byte of what was registered.
        offset: u64,
        /// Bytes.
        bytes: u64,
    },
    /// A block that asked for an event is in the program's memory.
    Told {
        /// Who put it.
        processor: u16,
        /// Where.
        handle: u16,
        /// What the event says.
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
            2 => Self::Landed {
                processor,
                handle,
                offset,
                bytes,
            },
            3 => Self::Told {
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

    /// Writes the completion.
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
            Self::Landed {
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
            Self::Told {
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
