//! Input of a link end between processes.

use std::collections::VecDeque;

use phitwire_framing::t3e::flit::{Flit, FlitKind, VCS};
use phitwire_framing::t3e::maintenance::MAINTENANCE_FLITS;

use super::buffer::FlitBuffer;
use super::end::URGENT;
#[cfg(test)]
use super::sabotage;
use phitwire::link::{Change, ReceiveBuffer};

/// Flits received at a link end.
#[derive(Debug)]
pub struct FlitInput {
    pub(super) buffer: FlitBuffer,
    /// Flits arrived, and slots freed, since the last query.
    pub(super) arrived: [u32; VCS],
    pub(super) freed: [u32; VCS],
    /// Barrier and maintenance flits, which have no buffers: the owner takes them at once.
    pub(super) urgent: VecDeque<Flit>,
}

impl FlitInput {
    #[inline]
    pub fn buffer(&self) -> &FlitBuffer {
        &self.buffer
    }

    /// Takes the oldest flit of `vc`.
    ///
    /// # Panics
    /// If the channel is empty.
    #[inline]
    pub fn pop(&mut self, vc: usize) -> u64 {
        let (word, has_place) = self.buffer.pop(vc);
        self.freed[vc] += u32::from(has_place);
        #[cfg(test)]
        if has_place {
            self.freed[vc] = sabotage::of_credits(self.freed[vc]);
        }
        word
    }

    /// Fills `words` with the oldest flits of `vc`.
    ///
    /// # Panics
    /// If there are fewer flits.
    #[inline]
    pub fn pop_many(&mut self, vc: usize, words: &mut [u64]) {
        let freed = self.buffer.pop_many(vc, words);
        self.freed[vc] += freed;
        #[cfg(test)]
        if freed > 0 {
            self.freed[vc] = sabotage::of_credits(self.freed[vc]);
        }
    }

    #[inline]
    pub fn pop_urgent(&mut self) -> Option<Flit> {
        self.urgent.pop_front()
    }

    #[inline]
    pub fn has_urgent(&self) -> bool {
        !self.urgent.is_empty()
    }

    pub(super) fn receive(&mut self, vc: usize, flit: Flit) {
        let (arrived, is_free) = self.buffer.receive(vc, flit);
        self.arrived[vc] += arrived;
        self.freed[vc] += u32::from(is_free);
    }

    /// Completes the packets being received, whose rest never arrives.
    pub(super) fn cut_off(&mut self) {
        for vc in 0..VCS {
            self.arrived[vc] += self.buffer.complete(vc);
        }
        self.drop_begun();
    }

    /// Drops an incomplete maintenance packet whose rest does not arrive: its header was not yet
    /// read, and forwarding it would reserve ports in all routers ahead.
    pub(super) fn drop_begun(&mut self) {
        let is_maintenance = |flit: &Flit| flit.control.kind() == FlitKind::Maintenance;
        let is_header = |flit: &Flit| is_maintenance(flit) && flit.control.is_head();
        let Some(begin) = self.urgent.iter().rposition(is_header) else {
            return;
        };
        let came = self.urgent.range(begin..);
        let came = came.filter(|flit| is_maintenance(flit)).count();
        if came < MAINTENANCE_FLITS {
            let mut at = 0;
            self.urgent.retain(|flit| {
                at += 1;
                at <= begin || !is_maintenance(flit)
            });
            self.buffer.counters.rx_urgent_lost += came as u64;
        }
    }
}

impl ReceiveBuffer for FlitInput {
    fn take_changes(&mut self, mut report: impl FnMut(usize, Change)) {
        for (vc, arrived) in self.arrived.iter_mut().enumerate() {
            if *arrived > 0 {
                report(vc, Change::Arrived(core::mem::take(arrived)));
            }
        }
        if !self.urgent.is_empty() {
            report(URGENT, Change::Arrived(self.urgent.len() as u32));
        }
    }

    fn take_freed(&mut self, mut report: impl FnMut(usize, u32)) {
        for (vc, freed) in self.freed.iter_mut().enumerate() {
            if *freed > 0 {
                report(vc, core::mem::take(freed));
            }
        }
    }

    fn queued(&self) -> u64 {
        self.buffer.flits()
    }

    fn queued_of(&self, vc: usize) -> u64 {
        self.buffer.len(vc).into()
    }
}
