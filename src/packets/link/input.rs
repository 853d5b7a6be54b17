//! The input buffer: one queue of whole packets per virtual channel.

use std::collections::VecDeque;

use crate::link::MAX_VCS;
use crate::link::ReceiveBuffer;
use crate::packets::packet::Packet;

#[derive(Debug)]
pub struct PacketInput<P> {
    queues: [VecDeque<P>; MAX_VCS],
    freed: [u32; MAX_VCS],
}

impl<P> Default for PacketInput<P> {
    fn default() -> Self {
        Self {
            queues: [const { VecDeque::new() }; MAX_VCS],
            freed: [0; MAX_VCS],
        }
    }
}

impl<P: Packet> PacketInput<P> {
    /// The oldest packet of `vc`.
    #[inline]
    pub fn front(&self, vc: usize) -> Option<&P> {
        self.queues[vc].front()
    }

    /// Takes the oldest packet of `vc`.
    #[inline]
    pub fn pop(&mut self, vc: usize) -> Option<P> {
        debug_assert!(vc < P::VCS, "a link has no channel {vc}");
        let packet = self.queues[vc].pop_front();
        self.freed[vc] += u32::from(packet.is_some());
        packet
    }

    /// Packets queued on `vc`.
    pub(crate) fn len(&self, vc: usize) -> u32 {
        self.queues[vc].len() as u32
    }

    /// Packets taken from `vc` since the last call.
    pub fn take_freed_of(&mut self, vc: usize) -> u32 {
        core::mem::take(&mut self.freed[vc])
    }

    pub(super) fn push(&mut self, packet: P) {
        debug_assert!(packet.vc() < P::VCS, "the receiver checked the channel");
        self.queues[packet.vc()].push_back(packet);
    }

    /// Starts a session: forgets buffers freed earlier. Packets left from an earlier session still
    /// take up room.
    pub(super) fn restart(&mut self) {
        self.freed = [0; MAX_VCS];
    }
}

impl<P: Packet> ReceiveBuffer for PacketInput<P> {
    fn take_freed(&mut self, mut report: impl FnMut(usize, u32)) {
        for vc in 0..P::VCS {
            report(vc, self.take_freed_of(vc));
        }
    }

    fn queued(&self) -> u64 {
        (0..P::VCS).map(|vc| u64::from(self.len(vc))).sum()
    }

    fn queued_of(&self, vc: usize) -> u64 {
        self.len(vc).into()
    }
}
