//! Packets that meet nobody.
//!
//! Behind a free-running clock the stages of a router take no time that anybody could see, but work:
//! a packet goes through three queues and three arbiters. As long as nothing lies in them no arbiter
//! has a choice, so a packet whose link can take it goes there at once: the same decision, the same
//! order, the same counters. As soon as one has to wait, all go through the stages until these are
//! empty again.

use phitwire_framing::aries::flit::{Flit, Head, MAX_PACKET_FLITS};

use super::grain::Items;
use super::netlink::{Netlink, NicInput};
use super::pipeline::{FIRST_PROCESSOR_TILE, NETWORK, PAIR_TILES};
use super::tiles::{Ports, Tiles};
use crate::kit::below;
use crate::machine::aries::route::registers::{FIRST_NIC_PORT, NETWORK_PORTS, NICS, VCS};
use crate::machine::aries::route::{Arrival, Decision};

impl Netlink {
    /// Whether no packet is in it.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// NICs that may have something to send.
    #[inline]
    pub(super) fn ready_nics(&self) -> u8 {
        self.inputs_active & !self.busy[0]
    }

    /// The virtual channel of a NIC whose turn it is, of those that may send something.
    #[inline]
    pub(super) fn next_vc(&self, nic: usize) -> Option<usize> {
        let NicInput { ready, current, .. } = self.nics[nic];
        let turn = u32::from(current) + 1;
        (ready != 0).then(|| ((ready.rotate_right(turn).trailing_zeros() + turn) % 8) as usize)
    }

    /// Flits that have come of a NIC's virtual channel that is to begin a packet.
    #[inline]
    pub(super) fn before_head(&self, nic: usize, vc: usize) -> Option<u32> {
        let state = &self.nics[nic];
        let visible = state.visible[vc];
        (state.left[vc] == 0 && visible > 0).then_some(visible)
    }

    /// A whole packet was taken out of the queue of a NIC.
    #[inline]
    pub(super) fn took(&mut self, nic: usize, vc: usize, flits: u8) {
        let state = &mut self.nics[nic];
        state.current = vc as u8;
        state.visible[vc] -= u32::from(flits);
        if state.visible[vc] == 0 {
            self.sleep(nic, vc);
        }
    }

    /// Nothing can be moved from a NIC's virtual channel until more comes.
    #[inline]
    pub(super) fn sleep(&mut self, nic: usize, vc: usize) {
        let state = &mut self.nics[nic];
        state.ready &= !(1 << vc);
        if state.ready == 0 {
            self.inputs_active &= !(1 << nic);
        }
    }
}

impl<I: Items> Tiles<I> {
    /// Lets packets pass, one of each port in turn, until one has to wait or there are no more.
    pub(super) fn pass_directly<P: Ports>(&mut self, io: &mut P) {
        let discards = self.columns.discarding != [0; VCS];
        if !self.is_empty() || discards {
            return;
        }
        loop {
            let mut tiles = self.inputs.pending() & NETWORK;
            let mut nics = self.netlink.ready_nics();
            if tiles == 0 && nics == 0 {
                return;
            }
            while tiles != 0 {
                let tile = below::<NETWORK_PORTS>(tiles.trailing_zeros() as usize);
                tiles &= tiles - 1;
                if !self.pass_from_tile(tile, io) {
                    return;
                }
            }
            while nics != 0 {
                let nic = below::<NICS>(nics.trailing_zeros() as usize);
                nics &= nics - 1;
                if !self.pass_from_nic(nic, io) {
                    return;
                }
            }
        }
    }

    /// Whether nothing is in the stages.
    #[inline]
    fn is_empty(&self) -> bool {
        self.loads.is_empty() && self.netlink.is_empty()
    }

    /// The next packet of a network port. False if the stages have to do with it.
    #[inline]
    fn pass_from_tile<P: Ports>(&mut self, tile: usize, io: &mut P) -> bool {
        let vc = self.inputs.next_vc(tile);
        let Some(visible) = self.inputs.before_head(tile, vc) else {
            return false;
        };
        let Some(head) = io.front(tile, vc).and_then(Head::parse) else {
            return false;
        };
        if visible < head.length().into() {
            // The rest of the packet wakes the channel.
            self.inputs.sleep(tile, vc);
            return true;
        }
        let passed = self.pass(tile, (tile, vc), head, io);
        if passed {
            self.inputs.took(tile, vc, head.length());
        }
        passed
    }

    /// The next packet of a NIC. False if the stages have to do with it.
    #[inline]
    fn pass_from_nic<P: Ports>(&mut self, nic: usize, io: &mut P) -> bool {
        let Some(vc) = self.netlink.next_vc(nic).filter(|_| !self.netlink.quiesced) else {
            return false;
        };
        let Some(visible) = self.netlink.before_head(nic, vc) else {
            return false;
        };
        let port = FIRST_NIC_PORT + nic;
        let Some(head) = io.front(port, vc).and_then(Head::parse) else {
            return false;
        };
        if visible < head.length().into() {
            self.netlink.sleep(nic, vc);
            return true;
        }
        // The tile by which it would go: the way of an ordered packet depends on it.
        let first = FIRST_PROCESSOR_TILE + nic / 2 * PAIR_TILES;
        let tile = match head.routing().is_deterministic() {
            true => {
                let hash = self.routes.flow_hash(port as u8, head);
                first + (hash % PAIR_TILES as u64) as usize
            }
            false => first,
        };
        let passed = self.pass(tile, (port, vc), head, io);
        if passed {
            self.netlink.took(nic, vc, head.length());
        }
        passed
    }

    /// Hands the packet at the front of the queue `from`, port and virtual channel, to the link that
    /// it leaves by. False, and it stays there, when that cannot be.
    #[inline]
    fn pass<P: Ports>(
        &mut self,
        tile: usize,
        from: (usize, usize),
        head: Head,
        io: &mut P,
    ) -> bool {
        let arrival = Arrival {
            port: tile as u8,
            kind: self.inputs.kind(tile),
            head,
        };
        let loads = &self.loads;
        let decision = self
            .routes
            .choose(arrival, self.live, &mut self.rng, |port| loads.of(port, io));
        let Ok(Decision { way, kind }) = decision else {
            return false;
        };
        let (output, vc) = (usize::from(way.port), head.vc() & 4 | way.class & 3);
        let length = usize::from(head.length());
        if !io.can_begin(output, vc.into(), length) {
            return false;
        }
        let mut packet = [Flit::IDLE; MAX_PACKET_FLITS];
        let packet = &mut packet[..length.min(MAX_PACKET_FLITS)];
        let (port, vc_in) = from;
        let taken = io.pop_into(port, vc_in, packet);
        debug_assert!(taken == length, "as many flits as were announced are there");
        packet[0] = head.with_vc(vc).with_non_minimal(way.non_minimal).flit();
        io.push_packet(output, packet);
        self.count(kind, way.non_minimal);
        self.inputs.popped |= 1 << port;
        self.columns.pushed |= 1 << output;
        self.loads.pass(output);
        self.counters.flits_forwarded += length as u64;
        self.counters.packets_forwarded += 1;
        self.counters.poisoned_packets_forwarded += u64::from(head.poisoned());
        true
    }
}
