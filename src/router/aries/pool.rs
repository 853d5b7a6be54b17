//! Where the flits inside a chip lie: one store for all its buffers, so that a machine of twenty thousand idle chips is
//! small.

use phitwire_framing::flit48::{FLIT_MASK, Flit, Head};

/// A flit in a buffer: bits 0..48 the flit; of heads and last flits a mark; of heads where they go: row and
/// virtual channel of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(u64);

impl Slot {
    const HEAD: u64 = 1 << 48;
    const LAST: u64 = 1 << 49;
    const ROW_SHIFT: u32 = 50;
    const VC_SHIFT: u32 = 53;

    #[inline]
    pub(super) const fn head(head: Head, row: usize, vc: usize) -> Self {
        let target = (row as u64 & 7) << Self::ROW_SHIFT | (vc as u64 & 7) << Self::VC_SHIFT;
        let last = if head.length() == 1 { Self::LAST } else { 0 };
        Self(head.flit().bits() | Self::HEAD | last | target)
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
    /// Flits of the packet whose head this is, at least 1.
    #[inline]
    pub(super) const fn length(self) -> u8 {
        match Head::parse(self.flit()) {
            Some(head) => head.length(),
            None => 1,
        }
    }
    /// NIC of the packet whose head this is.
    #[inline]
    pub(super) const fn nic(self) -> usize {
        match Head::parse(self.flit()) {
            Some(head) => head.destination().nic() as usize,
            None => 0,
        }
    }
}

const NOTHING: u32 = u32::MAX;

/// A chain of flits in a [`Pool`].
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
    pub(super) fn push(&mut self, fifo: &mut Fifo, slot: Slot) {
        let place = Place {
            slot,
            next: NOTHING,
        };
        let at = self.free;
        let at = if at == NOTHING {
            self.places.push(place);
            self.places.len() as u32 - 1
        } else {
            self.free = self.places[at as usize].next;
            self.places[at as usize] = place;
            at
        };
        if fifo.first == NOTHING {
            fifo.first = at;
        } else {
            self.places[fifo.last as usize].next = at;
        }
        fifo.last = at;
    }

    #[inline]
    pub(super) fn front(&self, fifo: &Fifo) -> Option<Slot> {
        Some(self.places.get(fifo.first as usize)?.slot)
    }

    #[inline]
    pub(super) fn pop(&mut self, fifo: &mut Fifo) -> Option<Slot> {
        let at = fifo.first;
        let place = self.places.get_mut(at as usize)?;
        fifo.first = place.next;
        place.next = self.free;
        self.free = at;
        Some(place.slot)
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
        let mut model: [VecDeque<Slot>; 5] = Default::default();
        let mut rng = Rng::new(1, 1);
        for n in 0..50_000u64 {
            let i = rng.below(5) as usize;
            if rng.chance(1, 2) {
                let slot = Slot::body(Flit::new(n), n % 3 == 0);
                pool.push(&mut fifos[i], slot);
                model[i].push_back(slot);
            } else {
                assert_eq!(pool.front(&fifos[i]), model[i].front().copied());
                assert_eq!(pool.pop(&mut fifos[i]), model[i].pop_front());
            }
        }
        let most = pool.places.len();
        assert!(most < 2_000, "{most} places");
    }
}
