//! Collective operations: what programs at several network interfaces do together.
//!
//! One program at each of a list of network interfaces sets up the same engine, with its rank in
//! that list; the network interfaces are a tree then, and each program joins one operation after
//! the other. In an entry, the engine stands where atomic operations have their code:
//!
//! ```text
//! kind 16  sets up   4   5 rank    6   7 branching  24 .. 39 the list in the data
//!                   40 .. 43 epoch                  48 .. 51 patience in milliseconds
//! kind 17  joins     4   5 operation               40 .. 55 word, location
//! kind 18  leaves
//! ```

use super::command::{Fields, Local, Remote};
use super::{EntryError, u16_at};

/// How the words of all become one. Integers are signed, and sums of them wrap; minimum and maximum
/// bring along a location that each participant gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "they say it themselves")]
pub enum Reduction {
    /// No words: nobody goes on before all have come.
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
    /// The one with this code.
    pub fn from_code(code: u16) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|&op| u16::from(op as u8) == code)
    }
}

/// What is asked of an engine: 0 to 3, of which each belongs to one program at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveRequest {
    /// Makes the network interface a node of a tree over those of other programs of the job.
    SetUp {
        /// The engine, the same for all.
        engine: u8,
        /// Which of the list this network interface is.
        rank: u16,
        /// Most children of a node, 1 to 32, the same for all.
        branching: u8,
        /// Which tree of this engine it is, the same for all, and never that of an earlier one.
        epoch: u32,
        /// How long others are waited for, in milliseconds, at least one.
        patience_ms: u32,
        /// The numbers of the network interfaces, in the program's data: two bytes each.
        processors: Local,
    },
    /// Joins the next operation. The completion tells the result: the word, and where others tell
    /// bytes, the location.
    Join {
        /// The engine.
        engine: u8,
        /// The operation, the same for all.
        op: Reduction,
        /// The program's word; of 32 bits the low ones.
        word: u64,
        /// Where it is, in whatever sense.
        location: u64,
    },
    /// Gives the engine back, when nothing is under way there.
    Leave {
        /// The engine.
        engine: u8,
    },
}

const SET_UP: u8 = 16;
const JOIN: u8 = 17;
const LEAVE: u8 = 18;

impl CollectiveRequest {
    /// Which engine.
    pub const fn engine(&self) -> u8 {
        match *self {
            Self::SetUp { engine, .. } | Self::Join { engine, .. } | Self::Leave { engine } => {
                engine
            }
        }
    }

    /// What the fields of an entry ask for. Numbers that are too long for their fields are not
    /// written so.
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

    /// The kind, and what else stands in the entry.
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
