//! What a user asks of the network interface, and is told.

use std::collections::VecDeque;

use super::transfer::{Kind, MAX_DATA, MESSAGE_BYTES, Transfer, WORD_BYTES};
use crate::nic::{Abilities, PutEnd};
use crate::time::Time;

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// It is none that a network interface of this machine can send: its kind, what it carries, or
    /// whom it goes to.
    #[error("there are no such requests here")]
    NotHere,
    /// As many requests as may be are outstanding, or as many completions wait to be fetched, or
    /// the names of this period are used up, or belong to a predecessor.
    #[error("too many requests are outstanding")]
    TooMany,
    /// The link takes nothing now.
    #[error("the link has no room")]
    NoRoom,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out. A get brings the first `len` bytes, and an atomic operation the word as
    /// it was before, its lowest bits first.
    Done {
        /// The bytes, zeros behind them.
        data: [u8; MAX_DATA],
        /// How many.
        len: u8,
    },
    /// The target did not carry it out.
    Refused,
    /// It came damaged, and was not carried out.
    Damaged,
    /// No answer came that could be read. It may or may not have been carried out.
    Unknown,
}

/// The end of a request that was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What [`post`](super::TransferNic::post) answered.
    pub name: u64,
    /// What was asked.
    pub(crate) kind: Kind,
    /// Where.
    pub(crate) address: u64,
    /// When it was posted.
    pub(crate) posted: Time,
    /// When its answer was seen, or its time-out.
    pub(crate) completed: Time,
    /// How it ended.
    pub outcome: Outcome,
}

impl Completion {
    /// The put that has ended, and how.
    pub fn end_of_put(self) -> (u64, PutEnd) {
        let end = match self.outcome {
            Outcome::Done { .. } => PutEnd::Done,
            Outcome::Damaged => PutEnd::Damaged,
            Outcome::Refused | Outcome::Unknown => PutEnd::Lost,
        };
        (self.name, end)
    }
}

/// Whether network interfaces that can do this send such a request.
pub(super) fn is_possible(asked: &Transfer, abilities: Abilities, has_messages: bool) -> bool {
    let len = usize::from(asked.len);
    let fits = match asked.kind {
        Kind::Put => len > 0,
        Kind::Get => len > 0 && u32::from(asked.len).is_multiple_of(abilities.get_unit),
        Kind::Message => has_messages && len == MESSAGE_BYTES,
        _ => {
            let words = asked.kind.operands();
            words.is_some_and(|words| abilities.atomics && len == words * WORD_BYTES)
        }
    };
    fits && u32::from(asked.len) <= abilities.max_size
}

/// The requests of the user that wait, or whose completion does: bounded by those that may be
/// outstanding.
#[derive(Debug)]
pub(super) struct Completions {
    ended: VecDeque<Completion>,
    open: u32,
    most: u32,
}

impl Completions {
    pub(super) fn new(most: u32) -> Self {
        Self {
            ended: VecDeque::new(),
            open: 0,
            most,
        }
    }

    /// Whether the user may have another one.
    pub(super) fn has_room(&self) -> bool {
        self.open < self.most
    }

    /// A request was posted.
    pub(super) fn posted(&mut self) {
        debug_assert!(self.has_room(), "that was asked");
        self.open += 1;
    }

    /// One has ended.
    pub(super) fn push(&mut self, completion: Completion) {
        self.ended.push_back(completion);
        debug_assert!(self.ended.len() <= self.open as usize, "each was posted");
    }

    /// The next one, oldest first.
    pub(super) fn pop(&mut self) -> Option<Completion> {
        let completion = self.ended.pop_front()?;
        self.open -= 1;
        Some(completion)
    }
}
