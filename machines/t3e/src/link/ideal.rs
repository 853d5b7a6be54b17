//! An ideal end: flits and credits are passed on unencoded.

use phitwire_framing::t3e::flit::{Flit, VCS};

use super::config::Depths;
use super::credits::{Credits, Owed};
use super::queues::{Queues, Slots};

/// One end of a link in virtual time without bytes: the queues and credits of
/// [`FlitEnd`](super::FlitEnd), without a carrier, sessions or noise. The owner decides when flits
/// and credits arrive.
///
/// All state but the flits shares one cache line, and the flits of each channel start at another. A
/// channel that keeps running empty reuses its first cache line. This matters because a machine has
/// thousands of ends, and every window visits them all.
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
    /// An end with the same depths on both sides, which must not be those of live links.
    pub fn new(depths: Depths) -> Self {
        Self {
            queues: Queues::new(depths),
            credits: Credits::new(depths.all()),
            owed: Owed::NONE,
            words: Slots::new(depths),
        }
    }

    /// The oldest flit of a non-empty channel.
    #[inline]
    pub fn front(&self, vc: usize) -> u64 {
        self.queues.get(&self.words, vc, 0)
    }

    #[inline]
    pub fn len(&self, vc: usize) -> u32 {
        self.queues.len(vc).into()
    }

    /// Total number of flits.
    pub fn flits(&self) -> u64 {
        self.queues.flits()
    }

    /// Takes in a flit. Returns whether a slot was free.
    #[inline]
    pub fn receive(&mut self, vc: usize, flit: Flit) -> bool {
        let has_place = self.queues.has_slot(vc, 0);
        if has_place {
            self.queues.push(&mut self.words, vc, flit.word);
        }
        has_place
    }

    /// Takes the oldest flit of `vc`, and owes the peer its credit.
    ///
    /// # Panics
    /// If the channel is empty.
    #[inline]
    pub fn pop(&mut self, vc: usize) -> u64 {
        self.owed.add(vc, 1);
        let word = self.queues.pop(&self.words, vc);
        self.queues.rewind(vc);
        word
    }

    /// The credit returned by the flit of this cycle.
    #[inline]
    pub fn next_credit(&mut self) -> Option<usize> {
        self.owed.next_credit()
    }

    pub fn owed(&self) -> [u32; VCS] {
        core::array::from_fn(|vc| self.owed.of(vc))
    }

    #[inline]
    pub fn owes(&self) -> bool {
        self.owed.any()
    }

    /// Flits of `vc` that may be sent.
    #[inline]
    pub fn credits(&self, vc: usize) -> u32 {
        self.credits.left(vc)
    }

    /// Sends a flit of `vc`.
    ///
    /// # Panics
    /// If the channel has no credit.
    #[inline]
    pub fn send(&mut self, vc: usize) {
        self.credits.take(vc);
    }

    /// Adds a returned credit of `vc`.
    #[inline]
    pub fn give(&mut self, vc: usize) {
        self.credits.give(vc);
    }
}
