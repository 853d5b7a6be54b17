//! Storage of the flits in a chip. All buffers of the chip share one store, so that a machine of
//! twenty thousand idle chips is small.
//!
//! An [`Item`] moves through the stages: a flit or, if the [grain](super::grain) is the packet, a
//! whole packet that is handled like a flit.

use core::num::NonZeroU64;

use phitwire_framing::aries::flit::{FLIT_MASK, Flit, Head, MAX_PACKET_FLITS};

/// A flit in a buffer. Bits 0..48 are the flit; further bits mark heads and last flits. A head also
/// has the row and virtual channel of its output and, because they are read often, the packet's
/// length and NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(u64);

impl Slot {
    const HEAD: u64 = 1 << 48;
    const LAST: u64 = 1 << 49;
    const ROW_SHIFT: u32 = 50;
    const VC_SHIFT: u32 = 53;
    const LENGTH_SHIFT: u32 = 56;
    const NIC_SHIFT: u32 = 60;

    /// A head for virtual channel `vc` of output row `row`; `last` if no separate item follows it.
    #[inline]
    pub(super) const fn head(head: Head, row: usize, vc: usize, last: bool) -> Self {
        debug_assert!(row < 8 && vc < 8, "row and channel have 3 bits each");
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
    /// Number of flits of the packet. Only valid for a head.
    #[inline]
    pub(super) const fn length(self) -> u8 {
        (self.0 >> Self::LENGTH_SHIFT & 0xf) as u8
    }
    /// Virtual channel on which the packet leaves. Only valid for a head.
    #[inline]
    pub(super) const fn vc(self) -> usize {
        (self.0 >> Self::VC_SHIFT & 7) as usize
    }
    /// NIC of the packet. Only valid for a head.
    #[inline]
    pub(super) const fn nic(self) -> usize {
        (self.0 >> Self::NIC_SHIFT & 3) as usize
    }
}

const NOTHING: u32 = u32::MAX;

/// A flit, or a packet that moves as one item. Its two words are passed between stages in
/// registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) slot: Slot,
    /// Bit 0 is set, so that `Option<Item>` is two words too. Bits 1..8 are the number of flits,
    /// the bits above the position of a packet's flits.
    rest: NonZeroU64,
}

impl Item {
    #[inline]
    pub(super) fn flit(slot: Slot) -> Self {
        Self::new(slot, NOTHING, 1)
    }

    #[inline]
    fn new(slot: Slot, body: u32, flits: u8) -> Self {
        let rest = NonZeroU64::MIN | (u64::from(body) << 8 | u64::from(flits) << 1);
        Self { slot, rest }
    }

    #[inline]
    pub(super) const fn flits(self) -> u8 {
        (self.rest.get() >> 1 & 0x7f) as u8
    }

    #[inline]
    const fn body(self) -> u32 {
        (self.rest.get() >> 8) as u32
    }

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
struct PoolSlot {
    item: Item,
    next: u32,
}

/// The flits of all buffers of a chip. Grows to the largest number of flits held so far, which the
/// buffers bound.
#[derive(Debug)]
pub(super) struct Pool {
    slots: Vec<PoolSlot>,
    free: u32,
    /// The flits of packets with more than one flit. The stored head is replaced when the packet is
    /// unloaded.
    packets: Vec<[Flit; MAX_PACKET_FLITS]>,
    free_packets: Vec<u32>,
}

impl Pool {
    pub(super) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: NOTHING,
            packets: Vec::new(),
            free_packets: Vec::new(),
        }
    }

    #[inline]
    fn allocate(&mut self, slot: PoolSlot) -> u32 {
        let at = self.free;
        if let Some(free) = self.slots.get_mut(at as usize) {
            self.free = free.next;
            *free = slot;
            at
        } else {
            self.slots.push(slot);
            self.slots.len() as u32 - 1
        }
    }

    #[inline]
    pub(super) fn push(&mut self, fifo: &mut Fifo, item: Item) {
        let at = self.allocate(PoolSlot {
            item,
            next: NOTHING,
        });
        if fifo.first == NOTHING {
            fifo.first = at;
        } else if let Some(last) = self.slots.get_mut(fifo.last as usize) {
            last.next = at;
        }
        fifo.last = at;
    }

    /// The flit at the front, or the head of the packet there.
    #[inline]
    pub(super) fn front(&self, fifo: &Fifo) -> Option<Slot> {
        Some(self.slots.get(fifo.first as usize)?.item.slot)
    }

    #[inline]
    pub(super) fn pop(&mut self, fifo: &mut Fifo) -> Option<Item> {
        let at = fifo.first;
        let slot = self.slots.get_mut(at as usize)?;
        fifo.first = slot.next;
        slot.next = self.free;
        self.free = at;
        Some(slot.item)
    }

    /// Stores the packet with `head` as one item. `fill` writes its flits and returns their number.
    /// If flits are missing, the packet is padded with ones, which makes it damaged but complete.
    #[inline]
    pub(super) fn packet(&mut self, head: Slot, fill: impl FnOnce(&mut [Flit]) -> usize) -> Item {
        let flits = usize::from(head.length());
        if flits <= 1 {
            fill(&mut [head.flit()]);
            return Item::flit(head);
        }
        let body = self.free_packets.pop().unwrap_or_else(|| {
            self.packets.push([Flit::IDLE; MAX_PACKET_FLITS]);
            self.packets.len() as u32 - 1
        });
        let packet = &mut self.packets[body as usize][..flits];
        let filled = fill(packet);
        if filled < flits {
            packet[filled..].fill(Flit::new(FLIT_MASK));
        }
        Item::new(head, body, flits as u8)
    }

    /// Removes an item from the pool and passes its flits to `take`.
    #[inline]
    pub(super) fn unload(&mut self, item: Item, take: impl FnOnce(&[Flit])) {
        let head = item.slot.flit();
        if item.body() == NOTHING {
            return take(&[head]);
        }
        let packet = &mut self.packets[item.body() as usize][..usize::from(item.slot.length())];
        packet[0] = head;
        take(packet);
        self.free_packets.push(item.body());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire::rng::Rng;
    use phitwire_framing::aries::flit::{NodeId, Routing};
    use std::collections::VecDeque;

    #[test]
    fn chains_of_one_pool_are_queues() {
        let mut pool = Pool::new();
        let mut fifos = [Fifo::EMPTY; 5];
        let mut model: [VecDeque<(u64, Head)>; 5] = Default::default();
        let mut rng = Rng::new(1, 1);
        for n in 0..50_000u64 {
            let i = rng.below(5) as usize;
            if rng.chance(1, 2) {
                let length = (n % 14) as u8 + 1;
                let head = Head::new(
                    false,
                    length,
                    NodeId::new(1, 2, 3),
                    Routing::Adaptive0,
                    n as u16,
                    0,
                );
                let packet = pool.packet(Slot::head(head, 0, 0, true), |flits| {
                    assert_eq!(flits.len(), usize::from(length));
                    for (i, flit) in flits.iter_mut().enumerate() {
                        *flit = Flit::new(n + i as u64);
                    }
                    // Every seventh source lacks its last flits.
                    flits.len() - usize::from(n % 7 == 0)
                });
                assert_eq!(packet.flits(), length);
                pool.push(&mut fifos[i], packet);
                model[i].push_back((n, head));
            } else {
                let first = model[i].pop_front();
                let front = pool.front(&fifos[i]).map(|slot| slot.flit());
                assert_eq!(front, first.map(|(_, head)| head.flit()));
                if let (Some(item), Some((n, head))) = (pool.pop(&mut fifos[i]), first) {
                    let mut flits = Vec::new();
                    pool.unload(item, |packet| flits.extend_from_slice(packet));
                    let length = u64::from(head.length());
                    let mut expected: Vec<_> = (n..n + length).map(Flit::new).collect();
                    if n % 7 == 0 {
                        expected[length as usize - 1] = Flit::new(FLIT_MASK);
                    }
                    expected[0] = head.flit();
                    assert_eq!(flits, expected);
                }
            }
        }
        let most = pool.slots.len();
        assert!(most < 6_000, "{most} slots");
        assert!(pool.packets.len() < 6_000, "{} packets", pool.packets.len());
    }
}
