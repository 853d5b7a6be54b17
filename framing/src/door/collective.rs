//! Collective operations of programs at several NICs.
//!
//! One program at each of a list of NICs sets up the same engine, with its rank in that list. The
//! NICs then form a tree, and each program joins one operation after another. In a command, the
//! engine replaces the code of the atomic operation:
//!
//! ```text
//! kind 16  sets up   4   5 rank    6   7 branching  24 .. 39 the list in the data
//!                   40 .. 43 epoch                  48 .. 51 patience in milliseconds
//! kind 17  joins     4   5 operation               40 .. 55 word, location
//! kind 18  leaves
//! ```

use super::command::{Fields, Local, Remote};
use super::{EntryError, u16_at};

/// How the participants' words are combined. Integers are signed, and their sums wrap. Minimum and
/// maximum also return a location, which each participant supplies with its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Reduction {
    /// No words: participants wait until all have joined.
    Barrier = 0,
    AndI32 = 1,
    AndI64 = 2,
    OrI32 = 5,
    OrI64 = 6,
    XorI32 = 9,
    XorI64 = 10,
    SumI32 = 13,
    SumI64 = 14,
    SumF32 = 15,
    SumF64 = 16,
    MinI32 = 17,
    MinI64 = 18,
    MinF32 = 19,
    MinF64 = 20,
    MaxI32 = 21,
    MaxI64 = 22,
    MaxF32 = 23,
    MaxF64 = 24,
}

crate::listed!(Reduction {
    Barrier = "barrier",
    AndI32 = "and-i32",
    AndI64 = "and-i64",
    OrI32 = "or-i32",
    OrI64 = "or-i64",
    XorI32 = "xor-i32",
    XorI64 = "xor-i64",
    SumI32 = "sum-i32",
    SumI64 = "sum-i64",
    SumF32 = "sum-f32",
    SumF64 = "sum-f64",
    MinI32 = "min-i32",
    MinI64 = "min-i64",
    MinF32 = "min-f32",
    MinF64 = "min-f64",
    MaxI32 = "max-i32",
    MaxI64 = "max-i64",
    MaxF32 = "max-f32",
    MaxF64 = "max-f64",
});

impl Reduction {
    /// The reduction with this code.
    pub fn from_code(code: u16) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|&op| u16::from(op as u8) == code)
    }
}

/// A request to an engine, 0 to 3. Each engine belongs to one program at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveRequest {
    /// Makes the NIC a node of a tree over the NICs of other programs of the job.
    SetUp {
        /// Number of the engine, the same at all NICs.
        engine: u8,
        /// The NIC's index in the list.
        rank: u16,
        /// Maximum number of children of a node, 1 to 32, the same at all NICs.
        branching: u8,
        /// Number of the tree, the same at all NICs; must differ from every earlier one of this
        /// engine.
        epoch: u32,
        /// Time to wait for other participants, in milliseconds, at least 1.
        patience_ms: u32,
        /// Processor numbers of the NICs, in the program's data: two bytes each.
        processors: Local,
    },
    /// Joins the next operation. Its completion has the result: the word, and the location in place
    /// of the number of bytes.
    Join {
        /// Number of the engine.
        engine: u8,
        /// The operation, the same at all NICs.
        op: Reduction,
        /// The program's word; with 32 bits, the low half.
        word: u64,
        /// Location of the word; its meaning is up to the program.
        location: u64,
    },
    /// Releases the engine when none of its operations is in flight.
    Leave {
        /// Number of the engine.
        engine: u8,
    },
}

const SET_UP: u8 = 16;
const JOIN: u8 = 17;
const LEAVE: u8 = 18;

impl CollectiveRequest {
    /// Number of the engine that the request addresses.
    pub const fn engine(&self) -> u8 {
        match *self {
            Self::SetUp { engine, .. } | Self::Join { engine, .. } | Self::Leave { engine } => {
                engine
            }
        }
    }

    /// The request in an entry. Values beyond their fields' widths are not detected here, but by
    /// comparing the entry with the encoding of the result.
    pub(super) fn parse(
        entry: &[u8],
        local: Local,
        [first, second]: [u64; 2],
    ) -> Result<Self, EntryError> {
        let engine = entry[2];
        let [upper, lower] = [4, 6].map(|at| u16_at(entry, at));
        Ok(match entry[0] {
            SET_UP => Self::SetUp {
                engine,
                rank: upper,
                branching: lower as u8,
                epoch: first as u32,
                patience_ms: second as u32,
                processors: local,
            },
            JOIN => Self::Join {
                engine,
                op: Reduction::from_code(upper).ok_or(EntryError::Code)?,
                word: first,
                location: second,
            },
            LEAVE => Self::Leave { engine },
            _ => return Err(EntryError::Kind),
        })
    }

    /// The kind and the other fields of the entry.
    pub(super) fn fields<'a>(&self) -> (u8, Fields<'a>) {
        let numbers = |processor, handle| {
            Some(Remote {
                processor,
                handle,
                offset: 0,
            })
        };
        let none = Fields {
            code: self.engine(),
            ..Fields::default()
        };
        match *self {
            Self::SetUp {
                rank,
                branching,
                epoch,
                patience_ms,
                processors,
                ..
            } => {
                let fields = Fields {
                    remote: numbers(rank, branching.into()),
                    local: Some(processors),
                    operands: [epoch.into(), patience_ms.into()],
                    ..none
                };
                (SET_UP, fields)
            }
            Self::Join {
                op, word, location, ..
            } => {
                let fields = Fields {
                    remote: numbers(u16::from(op as u8), 0),
                    operands: [word, location],
                    ..none
                };
                (JOIN, fields)
            }
            Self::Leave { .. } => (LEAVE, none),
        }
    }
}
