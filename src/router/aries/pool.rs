//! Where the flits inside a chip lie: one store for all its buffers, so that a machine of twenty thousand idle chips is
//! small.
//!
//! What moves through the stages is an [`Item`]: a flit, or, when nobody asks how long a cycle is, a whole
//! packet as if it were one flit (a *train*: its head with the others behind it).

use phitwire_framing::flit48::{FLIT_MASK, Flit, Head};

/// A flit in a buffer: bits 0..48 the flit; of heads and last flits a mark; of heads where they go: row and
/// virtual channel of the output, and, because it is asked for often, the packet's length and NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(u64);

impl Slot {
    const HEAD: u64 = 1 << 48;
    const LAST: u64 = 1 << 49;
    const ROW_SHIFT: u32 = 50;
    const VC_SHIFT: u32 = 53;
    const LENGTH_SHIFT: u32 = 56;
    const NIC_SHIFT: u32 = 60;

    /// A head that goes to virtual channel `vc` of output row `row`; `last` when nothing follows it as an item of its own.
    #[inline]
    pub(super) const fn head(head: Head, row: usize, vc: usize, last: bool) -> Self {
        let target = (row as u64 & 7) << Self::ROW_SHIFT | (vc as u64 & 7) << Self::VC_SHIFT;
        let last = if last { Self::LAST } else { 0 };
        let packet = (head.length() as u64) << Self::LENGTH_SHIFT
            | (head.destination().nic() as u64) << Self::NIC_SHIFT;
        Self(head.flit().bits() | Self::HEAD | last | target | packet)
    }
    #[inline]
    pub(super) const fn body(flit: Flit, last: bool) -> Self {
        Self(flit.bits() | if last { Self::LAST } else { 0 })
    }
    #[inline]
    pub(super) const fn flit(self) -> Flit {
        Flit::new(self.0 & FLIT_MASK)
    }
    #[inline]
    pub(super) const fn is_head(self) -> bool {
        self.0 & Self::HEAD != 0
    }
    #[inline]
    pub(super) const fn is_last(self) -> bool {
        self.0 & Self::LAST != 0
    }
    /// Output row in bits 0..3, output virtual channel in bits 3..6.
    #[inline]
    pub(super) const fn target(self) -> u8 {
        (self.0 >> Self::ROW_SHIFT & 0x3f) as u8
    }
    /// Flits of the packet whose head this is.
    #[inline]
    pub(super) const fn length(self) -> u8 {
        (self.0 >> Self::LENGTH_SHIFT & 0xf) as u8
    }
    /// Virtual channel on which the packet whose head this is leaves.
    #[inline]
    pub(super) const fn vc(self) -> usize {
        (self.0 >> Self::VC_SHIFT & 7) as usize
    }
    /// NIC of the packet whose head this is.
    #[inline]
    pub(super) const fn nic(self) -> usize {
        (self.0 >> Self::NIC_SHIFT & 3) as usize
    }
}

const NOTHING: u32 = u32::MAX;

/// A flit, or a packet as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) slot: Slot,
    /// Where the flits behind the head of a train lie.
    body: u32,
}

impl Item {
    /// A flit alone.
    #[inline]
    pub(super) const fn flit(slot: Slot) -> Self {
        Self {
            slot,
            body: NOTHING,
        }
    }

    /// Flits of the item.
    #[inline]
    pub(super) const fn flits(self) -> u8 {
        if self.body == NOTHING {
            1
        } else {
            self.slot.length()
        }
    }

    /// The same flits with another head.
    #[inline]
    pub(super) const fn with_slot(self, slot: Slot) -> Self {
        Self { slot, ..self }
    }
}

/// A chain of items in a [`Pool`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Fifo {
    first: u32,
    last: u32,
}

impl Fifo {
    pub(super) const EMPTY: Self = Self {
        first: NOTHING,
        last: NOTHING,
    };
}

#[derive(Clone, Copy, Debug)]
struct Place {
    slot: Slot,
    next: u32,
    body: u32,
}

/// The flits of all buffers of a chip. It grows to the most that were ever inside; the buffers bound that.
#[derive(Debug)]
pub(super) struct Pool {
    places: Vec<Place>,
    free: u32,
}

impl Pool {
    pub(super) const fn new() -> Self {
        Self {
            places: Vec::new(),
            free: NOTHING,
        }
    }

    #[inline]
    fn take_place(&mut self, place: Place) -> u32 {
        let at = self.free;
        if let Some(free) = self.places.get_mut(at as usize) {
            self.free = free.next;
            *free = place;
            at
        } else {
            self.places.push(place);
            self.places.len() as u32 - 1
        }
    }

    #[inline]
    pub(super) fn push(&mut self, fifo: &mut Fifo, item: Item) {
        let at = self.take_place(Place {
            slot: item.slot,
            next: NOTHING,
            body: item.body,
        });
        if fifo.first == NOTHING {
            fifo.first = at;
        } else if let Some(last) = self.places.get_mut(fifo.last as usize) {
            last.next = at;
        }
        fifo.last = at;
    }

    /// The flit at the front, or the head of the train there.
    #[inline]
    pub(super) fn front(&self, fifo: &Fifo) -> Option<Slot> {
        Some(self.places.get(fifo.first as usize)?.slot)
    }

    #[inline]
    pub(super) fn pop(&mut self, fifo: &mut Fifo) -> Option<Item> {
        let at = fifo.first;
        let place = self.places.get_mut(at as usize)?;
        fifo.first = place.next;
        place.next = self.free;
        self.free = at;
        Some(Item {
            slot: place.slot,
            body: place.body,
        })
    }

    /// A train of `head` and the `more` flits that `next` gives.
    #[inline]
    pub(super) fn train(
        &mut self,
        head: Slot,
        more: u8,
        mut next: impl FnMut() -> Option<Flit>,
    ) -> Item {
        let mut body = Fifo::EMPTY;
        for _ in 0..more {
            // Who promised a flit and has none gives a packet that is damaged but whole.
            let flit = next().unwrap_or(Flit::new(FLIT_MASK));
            self.push(&mut body, Item::flit(Slot::body(flit, false)));
        }
        Item {
            slot: head,
            body: body.first,
        }
    }

    /// Takes the flits behind the head of a train out of the pool, in their order.
    #[inline]
    pub(super) fn unload(&mut self, item: Item, mut each: impl FnMut(Flit)) {
        let mut body = Fifo {
            first: item.body,
            last: NOTHING,
        };
        while let Some(item) = self.pop(&mut body) {
            each(item.slot.flit());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::VecDeque;

    #[test]
    fn chains_of_one_pool_are_queues() {
        let mut pool = Pool::new();
        let mut fifos = [Fifo::EMPTY; 5];
        let mut model: [VecDeque<u64>; 5] = Default::default();
        let mut rng = Rng::new(1, 1);
        for n in 0..50_000u64 {
            let i = rng.below(5) as usize;
            if rng.chance(1, 2) {
                let head = Slot::body(Flit::new(n), n % 3 == 0);
                let mut more = 0;
                let train = pool.train(head, (n % 5) as u8, || {
                    more += 1;
                    Some(Flit::new(n + more))
                });
                pool.push(&mut fifos[i], train);
                model[i].push_back(n);
            } else {
                let first = model[i].pop_front();
                let front = pool.front(&fifos[i]).map(|slot| slot.flit().bits());
                assert_eq!(front, first);
                if let Some(item) = pool.pop(&mut fifos[i]) {
                    let n = item.slot.flit().bits();
                    let mut flits = Vec::new();
                    pool.unload(item, |flit| flits.push(flit.bits()));
                    assert_eq!(flits, (n + 1..=n + n % 5).collect::<Vec<_>>());
                }
            }
        }
        let most = pool.places.len();
        assert!(most < 6_000, "{most} places");
    }
}
