//! An ideal end: flits and credits are handed over as they are.

use super::buffer::FlitBuffer;
use super::config::Depths;
use super::credits::{Credits, Owed};
use crate::machine::t3e::format::{Flit, VCS};

/// One end of a link in virtual time without bytes: the buffers and credits of
/// [`FlitEnd`](super::FlitEnd), without a carrier, sessions and noise. When what travels arrives is
/// its owner's business.
#[derive(Clone, Debug)]
pub struct IdealEnd {
    buffer: FlitBuffer,
    credits: Credits,
    owed: Owed,
}

impl IdealEnd {
    /// An end with the same depths at both sides.
    pub fn new(depths: Depths) -> Self {
        Self {
            buffer: FlitBuffer::ideal(depths),
            credits: Credits::new(depths.all()),
            owed: Owed::NONE,
        }
    }

    /// The buffers.
    #[inline]
    pub fn buffer(&self) -> &FlitBuffer {
        &self.buffer
    }

    /// A flit arrives. Whether it found its place.
    #[inline]
    pub fn receive(&mut self, vc: usize, flit: Flit) -> bool {
        self.buffer.receive_ideal(vc, flit.word)
    }

    /// Takes the oldest flit of `vc`; its credit is owed.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn pop(&mut self, vc: usize) -> u64 {
        self.owed.add(vc, 1);
        self.buffer.pop_ideal(vc)
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
