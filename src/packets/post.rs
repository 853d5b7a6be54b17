//! Requests of a NIC's user, and their completions.

use std::collections::VecDeque;

use super::transfer::{Kind, MAX_DATA, MESSAGE_BYTES, Refusal, Transfer, WORD_BYTES};
use crate::nic::{Abilities, PutEnd};
use crate::time::Time;

/// Why a request was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// NICs of this machine cannot send it: its kind, data or destination is not supported.
    #[error("this machine does not support such requests")]
    NotHere,
    /// Too many requests are outstanding, or too many completions unfetched; or the names of this
    /// period are used up, or belong to a predecessor.
    #[error("too many requests are outstanding")]
    TooMany,
    #[error("the link has no room for the request")]
    NoRoom,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done. A get returns the first `len` bytes; an atomic operation returns the old word, lowest
    /// bits first.
    Done {
        /// The data, padded with zeros.
        data: [u8; MAX_DATA],
        len: u8,
    },
    /// The target rejected it, for this reason if its packets carry one.
    Refused(Option<Refusal>),
    /// The request arrived damaged, and was not served.
    Damaged,
    /// No readable reply arrived. The request may or may not have been served.
    Unknown,
}

/// The completion of a posted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The name that [`post`](super::TransferNic::post) returned.
    pub name: u64,
    pub(crate) kind: Kind,
    pub(crate) address: u64,
    pub(crate) posted: Time,
    /// When the reply arrived, or the request timed out.
    pub completed: Time,
    pub outcome: Outcome,
}

impl Completion {
    /// The put's name, and how it ended.
    pub fn end_of_put(self) -> (u64, PutEnd) {
        let end = match self.outcome {
            Outcome::Done { .. } => PutEnd::Done,
            Outcome::Damaged => PutEnd::Damaged,
            Outcome::Refused(_) | Outcome::Unknown => PutEnd::Lost,
        };
        (self.name, end)
    }
}

/// Whether NICs with these abilities can send the request `asked`.
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

/// Completions of the user's requests. At most `most` requests are open, that is outstanding or
/// with a completion not yet fetched.
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

    /// Whether the user may post another request.
    pub(super) fn has_room(&self) -> bool {
        self.open < self.most
    }

    pub(super) fn posted(&mut self) {
        debug_assert!(self.has_room(), "the caller checked for room");
        self.open += 1;
    }

    pub(super) fn push(&mut self, completion: Completion) {
        self.ended.push_back(completion);
        debug_assert!(
            self.ended.len() <= self.open as usize,
            "more completions than posted requests"
        );
    }

    /// The next completion, oldest first.
    pub(super) fn pop(&mut self) -> Option<Completion> {
        let completion = self.ended.pop_front()?;
        debug_assert!(self.open > 0, "each request completes once");
        self.open -= 1;
        Some(completion)
    }
}
