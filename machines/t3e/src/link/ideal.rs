//! An ideal end: flits and credits are handed over as they are.

use super::config::Depths;
use super::credits::{Credits, Owed};
use super::queues::{Queues, Slots};
use crate::format::{Flit, VCS};

/// One end of a link in virtual time without bytes: the queues and credits of
/// [`FlitEnd`](super::FlitEnd), without a carrier, sessions and noise. When what travels arrives is
/// its owner's business.
///
/// All but the flits is in one cache line, and those of each channel begin another, where they lie
/// while it runs empty: a machine has thousands of ends, and each is looked at in every window.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct IdealEnd {
    queues: Queues,
    credits: Credits,
    owed: Owed,
    words: Slots,
}

const _: () = assert!(core::mem::offset_of!(IdealEnd, words) == 64);

impl IdealEnd {
    /// An end with the same depths at both sides, which are not those of processes.
    pub fn new(depths: Depths) -> Self {
        Self {
            queues: Queues::new(depths),
            credits: Credits::new(depths.all()),
            owed: Owed::NONE,
            words: Slots::new(depths),
        }
    }

    /// The oldest flit of a channel that has one.
    #[inline]
    pub fn front(&self, vc: usize) -> u64 {
        self.queues.get(&self.words, vc, 0)
    }

    /// Flits of a channel.
    #[inline]
    pub fn len(&self, vc: usize) -> u32 {
        self.queues.len(vc).into()
    }

    /// Flits of all channels.
    pub fn flits(&self) -> u64 {
        self.queues.flits()
    }

    /// A flit arrives. Whether it found its place.
    #[inline]
    pub fn receive(&mut self, vc: usize, flit: Flit) -> bool {
        let has_place = self.queues.has_place(vc, 0);
        if has_place {
            self.queues.push(&mut self.words, vc, flit.word);
        }
        has_place
    }

    /// Takes the oldest flit of `vc`; its credit is owed.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn pop(&mut self, vc: usize) -> u64 {
        self.owed.add(vc, 1);
        let word = self.queues.pop(&self.words, vc);
        self.queues.rewind(vc);
        word
    }

    /// The credit that the flit of this cycle returns.
    #[inline]
    pub fn next_credit(&mut self) -> Option<usize> {
        self.owed.tell()
    }

    /// Credits that are owed to the other end.
    pub fn owed(&self) -> [u32; VCS] {
        core::array::from_fn(|vc| self.owed.of(vc))
    }

    /// Whether any is.
    #[inline]
    pub fn owes(&self) -> bool {
        self.owed.any()
    }

    /// Flits of `vc` that may be sent.
    #[inline]
    pub fn credits(&self, vc: usize) -> u32 {
        self.credits.left(vc)
    }

    /// A flit of `vc` is sent.
    ///
    /// # Panics
    /// If there is no credit for it.
    #[inline]
    pub fn send(&mut self, vc: usize) {
        self.credits.take(vc);
    }

    /// A credit of `vc` has come back.
    #[inline]
    pub fn give(&mut self, vc: usize) {
        self.credits.give(vc);
    }
}
