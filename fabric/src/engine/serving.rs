//! Atomic operations: the NIC's equivalents of libfabric's, and how to carry out those that it
//! lacks.
//!
//! Words of opened memory are changed only by the NIC at which they were registered. What it cannot
//! do becomes a request to the program there, which computes the new value and has its own NIC swap
//! it for the old one, and retries if the word changed in between. So both kinds may be mixed.

use std::collections::VecDeque;

use phitwire_client::door::{AtomicOp, Remote, Width};

use super::direct::{Act, Amo, Target, Whose, behind};
use super::elements::{self, Form};
use super::endpoint::Endpoint;
use super::peers::{End, Parcel};
use super::reach::Reach;
use super::requests::Change;
use super::shared::{Op, Shared};
use super::wire::{Head, Kind, Purpose};
use crate::memory::{Bytes, Pieces};

/// A peer's request that is being carried out.
#[derive(Debug)]
pub struct Service {
    peer: usize,
    head: Head,
    size: usize,
    operands: Vec<u8>,
    compare: Vec<u8>,
    /// The old elements.
    old: Vec<u8>,
}

fn word_at(bytes: &[u8], element: usize, size: usize) -> u64 {
    let mut word = [0; 8];
    if let Some(found) = bytes.get(element * size..(element + 1) * size) {
        word[..size].copy_from_slice(found);
    }
    u64::from_le_bytes(word)
}

const fn width_of(size: usize) -> Width {
    match size {
        4 => Width::Bits32,
        _ => Width::Bits64,
    }
}

impl Service {
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
        if word != amo.operands[0] {
            return Some(self.swap(amo.element, word));
        }
        let at = amo.element * self.size;
        self.old[at..at + self.size].copy_from_slice(&word.to_le_bytes()[..self.size]);
        None
    }
}

/// The NIC's equivalent of a libfabric operation, with its operands.
pub(super) fn amo_of(
    datatype: u8,
    op: u8,
    operand: u64,
    compare: u64,
) -> Option<(AtomicOp, [u64; 2])> {
    let is_float = matches!(datatype, 8 | 9);
    let is_signed = matches!(datatype, 4 | 6);
    let op = match (op, is_float) {
        (0, true) => AtomicOp::FloatMin,
        (1, true) => AtomicOp::FloatMax,
        (2, true) => AtomicOp::FloatAdd,
        (0, false) if is_signed => AtomicOp::SignedMin,
        (1, false) if is_signed => AtomicOp::SignedMax,
        (2, false) => AtomicOp::Add,
        (6, false) => AtomicOp::Or,
        (7, false) => AtomicOp::And,
        (9, false) => AtomicOp::Xor,
        (elements::READ, _) => return Some((AtomicOp::Or, [0, 0])),
        (elements::WRITE, _) => AtomicOp::Swap,
        (elements::CSWAP, false) => return Some((AtomicOp::CompareSwap, [compare, operand])),
        // Replaces the bits of the mask.
        (elements::MSWAP, false) => {
            return Some((AtomicOp::AndXor, [!compare, operand & compare]));
        }
        _ => return None,
    };
    Some((op, [operand, 0]))
}

/// Whether the NIC has an equivalent of a libfabric operation.
pub(super) fn is_amo(datatype: u8, op: u8) -> bool {
    amo_of(datatype, op, 0, 0).is_some()
}

impl Endpoint {
    /// Has the remote NIC change elements.
    pub(super) fn change_directly(
        &mut self,
        shared: &mut Shared,
        to: Target,
        change: &Change,
        [operands, compare, into]: [&Option<Pieces>; 3],
        op: Op,
    ) {
        let size = elements::size_of_type(change.datatype).unwrap_or(8);
        let bytes = change.count * size;
        let read = |from: &Option<Pieces>| from.as_ref().map(|from| from.to_vec(0, bytes));
        let (operands, compare) = (read(operands), read(compare));
        let word = |from: &Option<Vec<u8>>, element| {
            from.as_ref().map_or(0, |from| word_at(from, element, size))
        };
        let mut acts = Vec::with_capacity(change.count);
        for element in 0..change.count {
            let with = (word(&operands, element), word(&compare, element));
            let found = amo_of(change.datatype, change.op, with.0, with.1);
            let Some((op, operands)) = found else {
                debug_assert!(false, "it is one: asked before");
                continue;
            };
            let amo = Amo {
                op,
                width: width_of(size),
                operands,
                fetch: change.form != Form::Write,
                element,
            };
            acts.push((behind(to.at, element * size), Act::Atomic(amo)));
        }
        let into = into.clone().map(|into| (into, size));
        self.begin_direct(shared, (to, Whose::Program(op)), bytes, into, acts);
    }

    /// Carries out a request on memory that NICs reach too.
    pub(super) fn serve(
        &mut self,
        shared: &mut Shared,
        (peer, head): (usize, &Head),
        (memory, reach): (&Bytes, Reach),
        operands: &[u8],
        compare: &[u8],
    ) {
        let count = head.count as usize;
        let size = elements::size_of_type(head.datatype).unwrap_or(4);
        let service = Service {
            peer,
            head: *head,
            size,
            operands: operands.to_vec(),
            compare: compare.to_vec(),
            old: vec![0; count * size],
        };
        let at = Remote {
            processor: self.core.address.processor,
            handle: reach.handle,
            offset: memory.address() - reach.base,
        };
        // Start from the current value: a swap rarely finds another one.
        let now = memory.with(<[u8]>::to_vec);
        let acts = (0..count).map(|element| {
            let amo = service.swap(element, word_at(&now, element, size));
            (behind(at, element * size), Act::Atomic(amo))
        });
        let acts = acts.collect();
        self.serving.insert(peer, VecDeque::new());
        let own = self.core.peers.own();
        let target = Target {
            peer: own,
            key: head.key,
            at,
        };
        self.begin_direct(shared, (target, Whose::Served(service)), 0, None, acts);
    }

    /// A request was carried out, or failed.
    pub(super) fn served(&mut self, shared: &mut Shared, service: Service, failed: bool) {
        let Service {
            peer, head, old, ..
        } = service;
        let waiting = self.serving.remove(&peer).unwrap_or_default();
        if failed || !head.fetch {
            self.answer(shared, peer, head.id, failed);
        } else {
            self.answer_with(shared, peer, head.id, old);
        }
        for (head, payload) in waiting {
            self.change(shared, peer, &head, &payload);
        }
    }

    fn answer_with(&mut self, shared: &mut Shared, peer: usize, id: u64, old: Vec<u8>) {
        let reply = Head {
            kind: Kind::Whole,
            purpose: Purpose::Reply,
            key: id,
            len: old.len() as u64,
            ..Head::default()
        };
        let parcel = Parcel {
            head: reply,
            payload: old,
            end: End::Nothing,
        };
        self.post(shared, peer, parcel);
    }
}
