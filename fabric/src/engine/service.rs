//! A peer's atomic request that this endpoint's NIC carries out, by swaps.
//!
//! NICs swap words of four and eight bytes. Elements of one and two bytes are changed together with
//! the others of their word: a swap succeeds only if no byte of the word has changed in between, so
//! that changes of the neighbours are not lost.

use phitwire_client::door::AtomicOp;

use super::amo::{Amo, width_of, word_at};
use super::elements;
use super::wire::Head;
use crate::memory::Bytes;

/// Bytes of the shortest word that NICs swap.
const LEAST_WORD: usize = 4;

/// A peer's request that is being carried out.
#[derive(Debug)]
pub struct Service {
    peer: usize,
    head: Head,
    size: usize,
    /// Bytes of a word.
    word: usize,
    /// Bytes of the first word before the first element.
    shift: usize,
    operands: Vec<u8>,
    compare: Vec<u8>,
    /// The old elements; before a swap finds one, the value that it expects.
    old: Vec<u8>,
}

impl Service {
    /// Begins a request on `memory`. Swaps expect the current values: they rarely find others.
    /// `None` if short elements are not aligned.
    pub(super) fn new(
        peer: usize,
        head: &Head,
        memory: &Bytes,
        operands: &[u8],
        compare: &[u8],
    ) -> Option<Self> {
        let size = elements::size_of_type(head.datatype).unwrap_or(LEAST_WORD);
        let address = memory.address() as usize;
        // The NIC rejects longer elements that are not aligned.
        let shift = match size < LEAST_WORD {
            true => address % LEAST_WORD,
            false => 0,
        };
        shift.is_multiple_of(size).then(|| Self {
            peer,
            head: *head,
            size,
            word: size.max(LEAST_WORD),
            shift,
            operands: operands.to_vec(),
            compare: compare.to_vec(),
            old: memory.with(<[u8]>::to_vec),
        })
    }

    pub(super) const fn peer(&self) -> usize {
        self.peer
    }

    pub(super) const fn head(&self) -> &Head {
        &self.head
    }

    /// Bytes between the beginning of the first word and the first element.
    pub(super) const fn shift(&self) -> usize {
        self.shift
    }

    /// The old elements, once all swaps have ended.
    pub(super) fn into_old(self) -> Vec<u8> {
        self.old
    }

    /// The first try for each word, and the word's offset from the first one. Bytes around the
    /// elements are assumed to be zero; if they are not, the second try uses those that the first
    /// one found.
    pub(super) fn swaps(&self) -> impl Iterator<Item = (usize, Amo)> {
        debug_assert_eq!(self.old.len(), self.head.count as usize * self.size);
        let words = (self.shift + self.old.len()).div_ceil(self.word);
        (0..words).map(|number| {
            let mut word = [0; 8];
            for element in self.elements(number) {
                let at = self.offset(element, number);
                let from = element * self.size;
                word[at..at + self.size].copy_from_slice(&self.old[from..from + self.size]);
            }
            (
                number * self.word,
                self.swap(number, u64::from_le_bytes(word)),
            )
        })
    }

    /// The elements of a word.
    fn elements(&self, number: usize) -> std::ops::Range<usize> {
        let begin = (number * self.word).saturating_sub(self.shift);
        let end = ((number + 1) * self.word - self.shift).min(self.old.len());
        begin / self.size..end / self.size
    }

    /// Offset of an element within its word.
    const fn offset(&self, element: usize, number: usize) -> usize {
        self.shift + element * self.size - number * self.word
    }

    fn swap(&self, number: usize, old: u64) -> Amo {
        let mut word = old.to_le_bytes();
        for element in self.elements(number) {
            let at = self.offset(element, number);
            let operand = word_at(&self.operands, element, self.size);
            let compare = word_at(&self.compare, element, self.size);
            let before = word_at(&word[at..at + self.size], 0, self.size);
            let with = [before, operand, compare];
            let new = elements::one(self.head.datatype, self.head.op, with);
            word[at..at + self.size].copy_from_slice(&new.to_le_bytes()[..self.size]);
        }
        Amo {
            op: AtomicOp::CompareSwap,
            width: width_of(self.word),
            operands: [old, u64::from_le_bytes(word)],
            fetch: true,
            element: number,
        }
    }

    /// Handles the word that a swap found; returns the next try if it was not the expected one.
    pub(super) fn found(&mut self, amo: Amo, word: u64) -> Option<Amo> {
        debug_assert_eq!(amo.op, AtomicOp::CompareSwap);
        if word != amo.operands[0] {
            return Some(self.swap(amo.element, word));
        }
        let bytes = word.to_le_bytes();
        for element in self.elements(amo.element) {
            let from = self.offset(element, amo.element);
            let at = element * self.size;
            self.old[at..at + self.size].copy_from_slice(&bytes[from..from + self.size]);
        }
        None
    }
}
