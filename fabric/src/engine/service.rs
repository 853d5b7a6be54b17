//! A peer's atomic request that this endpoint's NIC carries out, by swaps.

use phitwire_client::door::AtomicOp;

use super::amo::{Amo, width_of, word_at};
use super::elements;
use super::wire::Head;
use crate::memory::Bytes;

/// A peer's request that is being carried out.
#[derive(Debug)]
pub struct Service {
    peer: usize,
    head: Head,
    size: usize,
    operands: Vec<u8>,
    compare: Vec<u8>,
    /// The old elements; before a swap finds one, the value that it expects.
    old: Vec<u8>,
}

impl Service {
    /// Begins a request on `memory`. Swaps expect the current values: they rarely find others.
    pub(super) fn new(
        peer: usize,
        head: &Head,
        memory: &Bytes,
        operands: &[u8],
        compare: &[u8],
    ) -> Self {
        Self {
            peer,
            head: *head,
            size: elements::size_of_type(head.datatype).unwrap_or(4),
            operands: operands.to_vec(),
            compare: compare.to_vec(),
            old: memory.with(<[u8]>::to_vec),
        }
    }

    pub(super) const fn peer(&self) -> usize {
        self.peer
    }

    pub(super) const fn head(&self) -> &Head {
        &self.head
    }

    /// The old elements, once all swaps have ended.
    pub(super) fn into_old(self) -> Vec<u8> {
        self.old
    }

    /// The first try for each element, and the element's offset.
    pub(super) fn swaps(&self) -> impl Iterator<Item = (usize, Amo)> {
        debug_assert_eq!(self.old.len(), self.head.count as usize * self.size);
        (0..self.head.count as usize).map(|element| {
            let old = word_at(&self.old, element, self.size);
            (element * self.size, self.swap(element, old))
        })
    }

    fn swap(&self, element: usize, old: u64) -> Amo {
        let operand = word_at(&self.operands, element, self.size);
        let compare = word_at(&self.compare, element, self.size);
        let new = elements::one(self.head.datatype, self.head.op, [old, operand, compare]);
        Amo {
            op: AtomicOp::CompareSwap,
            width: width_of(self.size),
            operands: [old, new],
            fetch: true,
            element,
        }
    }

    /// Handles the word that was found; returns the next try if it was not the expected one.
    pub(super) fn found(&mut self, amo: Amo, word: u64) -> Option<Amo> {
        debug_assert_eq!(amo.op, AtomicOp::CompareSwap);
        if word != amo.operands[0] {
            return Some(self.swap(amo.element, word));
        }
        let at = amo.element * self.size;
        self.old[at..at + self.size].copy_from_slice(&word.to_le_bytes()[..self.size]);
        None
    }
}
