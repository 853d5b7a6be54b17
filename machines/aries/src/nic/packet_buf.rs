//! A packet inside the NIC, and a queue of packets.

use phitwire_framing::aries::flit::{Flit, Head, MAX_PACKET_FLITS};

use crate::link::AriesInput;

#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketBuf {
    flits: [Flit; MAX_PACKET_FLITS],
    len: u8,
}

/// Result of taking from the front of a virtual channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The channel is empty or its packet is incomplete.
    Nothing,
    /// A complete packet was taken.
    Packet,
    /// A flit that begins no packet was discarded.
    Stray,
}

impl PacketBuf {
    pub(crate) const fn new() -> Self {
        Self {
            flits: [Flit::IDLE; MAX_PACKET_FLITS],
            len: 0,
        }
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[Flit] {
        &self.flits[..usize::from(self.len)]
    }

    /// Lets `encode` write a packet and return its number of flits.
    #[inline]
    pub(crate) fn fill<E>(
        &mut self,
        encode: impl FnOnce(&mut [Flit]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let flits = encode(self.room())?;
        self.set_len(flits);
        Ok(())
    }

    /// The buffer for a packet; [`set_len`](Self::set_len) then sets the length written.
    // For encoders on the fast path: in a closure, their fields would go through memory and stall.
    #[inline]
    pub(crate) fn room(&mut self) -> &mut [Flit; MAX_PACKET_FLITS] {
        &mut self.flits
    }

    /// Records that a packet of `flits` flits was written.
    #[inline]
    pub(crate) fn set_len(&mut self, flits: usize) {
        self.len = flits.min(MAX_PACKET_FLITS) as u8;
    }

    /// Takes the packet at the front of `vc`, if complete.
    #[inline]
    pub(crate) fn take(&mut self, input: &mut AriesInput, vc: usize) -> Arrival {
        let Some(flit) = input.front(vc) else {
            return Arrival::Nothing;
        };
        let Some(head) = Head::parse(flit) else {
            input.pop(vc);
            return Arrival::Stray;
        };
        let flits = usize::from(head.length());
        if (input.len(vc) as usize) < flits {
            return Arrival::Nothing;
        }
        input.pop_into(vc, &mut self.flits[..flits]);
        self.len = head.length();
        Arrival::Packet
    }
}

/// Packets queued for the link, oldest first. Each is written in place, since moving it costs more
/// than most packets need. The caller bounds their number.
#[derive(Debug, Default)]
pub(crate) struct PacketQueue {
    /// A ring that grows to the longest backlog so far. Its length is zero or a power of two.
    slots: Vec<PacketBuf>,
    front: usize,
    len: usize,
}

impl PacketQueue {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn index(&self, nth: usize) -> usize {
        (self.front + nth) & self.slots.len().wrapping_sub(1)
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&PacketBuf> {
        if self.len == 0 {
            return None;
        }
        self.slots.get(self.index(0))
    }

    /// The last packet, if it is still queued.
    #[inline]
    pub(crate) fn back_mut(&mut self) -> Option<&mut PacketBuf> {
        let last = self.index(self.len.checked_sub(1)?);
        self.slots.get_mut(last)
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) {
        if self.len != 0 {
            self.front = self.index(1);
            self.len -= 1;
        }
    }

    /// The free slot after the last packet; [`push_vacant`](Self::push_vacant) appends it.
    #[inline]
    pub(crate) fn vacant(&mut self) -> &mut PacketBuf {
        if self.len == 0 {
            // Reuse the most recent slots, which are the most likely to be in the cache.
            self.front = 0;
        }
        if self.len == self.slots.len() {
            self.grow();
        }
        let index = self.index(self.len);
        &mut self.slots[index]
    }

    /// Appends the packet written to [`vacant`](Self::vacant).
    #[inline]
    pub(crate) fn push_vacant(&mut self) {
        assert!(
            self.len < self.slots.len(),
            "the caller checked for a free slot"
        );
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        self.slots.rotate_left(self.front);
        self.front = 0;
        let slots = (2 * self.slots.len()).max(8);
        self.slots.resize(slots, PacketBuf::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn packets_leave_in_their_order_however_many_wait() {
        let (mut queue, mut model) = (PacketQueue::default(), VecDeque::new());
        let mut rng = phitwire::rng::Rng::new(11, 0);
        for number in 1..20_000 {
            let slot = queue.vacant();
            slot.fill(|flits| -> Result<usize, ()> {
                flits[0] = Flit::new(number);
                Ok(1)
            })
            .unwrap();
            // A packet that was written but not appended does not count.
            if rng.chance(3, 4) {
                queue.push_vacant();
                model.push_back(number);
            }
            let most = if model.len() > 100 { 100 } else { 2 };
            for _ in 0..rng.below(most) {
                queue.pop_front();
                model.pop_front();
            }
            let front = queue.front().map(|packet| packet.as_slice()[0].bits());
            assert_eq!((front, queue.len()), (model.front().copied(), model.len()));
        }
        assert!(queue.slots.len() <= 256);
    }
}
