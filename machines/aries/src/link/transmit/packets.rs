//! Moves packets from the core into the replay buffer.

use phitwire_framing::aries::flit::{Flit, Head, MAX_PACKET_FLITS};

use super::Transmitter;
use crate::link::counters::SetCounters;
use phitwire::link::LinkCounters;

impl Transmitter {
    /// Whether a packet of `flits` flits on `vc` may begin: there is a session, no packet is open,
    /// and credits and replay buffer have room for all of it (virtual cut-through).
    #[inline]
    pub fn can_begin(&self, vc: usize, flits: usize) -> bool {
        self.open
            && self.buffer.open_left() == 0
            && self.swallow == 0
            && flits <= MAX_PACKET_FLITS
            && self.credits.available(vc) as usize >= flits
            && self.buffer.backlog() <= self.backlog_limit
            && self.buffer.has_room(flits as u32)
    }

    /// Takes a whole packet on an active link. Returns false, without effect, if its flits must be
    /// checked one by one: the caller then calls [`Self::push`] for each.
    ///
    /// # Panics
    /// If [`Self::can_begin`] does not hold.
    #[inline]
    pub fn push_packet(
        &mut self,
        packet: &[Flit],
        counters: &mut LinkCounters,
        sets: &mut SetCounters,
    ) -> bool {
        let Some(head) = packet.first().and_then(|flit| Head::parse(*flit)) else {
            return false;
        };
        if usize::from(head.length()) != packet.len()
            || self.buffer.open_left() > 0
            || self.swallow > 0
            || self.poison_next
        {
            return false;
        }
        let (vc, flits) = (head.vc().into(), head.length());
        assert!(
            self.can_begin(vc, flits.into()),
            "packet pushed without checking for room"
        );
        self.credits.take(vc, flits.into());
        self.buffer.push_packet(packet);
        counters.tx_packets += 1;
        sets.tx_flits += u64::from(flits);
        true
    }

    /// Takes the next flit of a packet. Returns the virtual channel of a packet that was marked as
    /// damaged.
    ///
    /// # Panics
    /// If a packet begins with an invalid head, or, while `active`, without [`Self::can_begin`].
    #[inline]
    pub fn push(
        &mut self,
        flit: Flit,
        active: bool,
        counters: &mut LinkCounters,
        sets: &mut SetCounters,
    ) -> Option<u8> {
        if self.swallow > 0 {
            self.swallow -= 1;
            return None;
        }
        if self.buffer.open_left() == 0 {
            return self.begin(flit, active, counters, sets);
        }
        sets.tx_flits += u64::from(active);
        self.buffer.push(flit);
        counters.tx_packets += u64::from(self.buffer.open_left() == 0);
        None
    }

    /// [`Self::push`] for the head of a packet.
    fn begin(
        &mut self,
        flit: Flit,
        active: bool,
        counters: &mut LinkCounters,
        sets: &mut SetCounters,
    ) -> Option<u8> {
        sets.tx_flits += u64::from(active);
        let mut head = Head::parse(flit).expect("a packet begins with its head");
        let (vc, flits) = (head.vc(), head.length());
        if !active {
            counters.tx_discarded_packets += 1;
            self.swallow = flits - 1;
            return None;
        }
        assert!(
            self.can_begin(vc.into(), flits.into()),
            "packet pushed without checking for room"
        );
        let poisons = core::mem::take(&mut self.poison_next);
        if poisons {
            head = head.with_poison();
            counters.tx_soft_errors += 1;
        }
        self.credits.take(vc.into(), flits.into());
        self.buffer.begin(head.flit(), flits);
        counters.tx_packets += u64::from(flits == 1);
        poisons.then_some(vc)
    }

    /// Command: mark the next packet as damaged.
    pub fn poison_next(&mut self) {
        self.poison_next = true;
    }
}
