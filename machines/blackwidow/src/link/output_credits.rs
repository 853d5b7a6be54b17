//! Credits towards the input queue at the far end of a link, and the packet that takes them.

use phitwire_framing::yarc::packet::Vc;

use phitwire::link::credits::{Impossible, SendCredits};

/// Credits of both virtual channels of a link.
///
/// Call order: [`begin`](Self::begin) for each packet, if there are credits for all of it, then
/// [`take`](Self::take) for its phits.
#[derive(Clone, Debug)]
pub struct OutputCredits {
    vcs: [SendCredits; 2],
    /// Virtual channel of the packet being sent, or sent last.
    vc: Vc,
    max_packet: u32,
}

impl OutputCredits {
    /// Starts without credits, for input queues of `offered` phits and packets up to `max_packet`
    /// phits.
    pub(super) fn new(offered: [u32; 2], max_packet: u32) -> Self {
        Self {
            vcs: offered.map(SendCredits::new),
            vc: Vc::Request,
            max_packet,
        }
    }

    /// The longest packet, in phits.
    #[inline]
    pub(super) fn max_packet(&self) -> u32 {
        self.max_packet
    }

    /// Phits of `vc` that may be sent now.
    #[inline]
    pub fn available(&self, vc: Vc) -> u32 {
        self.vcs[vc.index()].available()
    }

    /// Credits of `vc` missing for a packet of maximum length, which must fit before any packet
    /// begins (virtual cut-through, BlackWidow sec. 4.2).
    #[inline]
    pub fn lacking(&self, vc: Vc) -> u32 {
        self.max_packet.saturating_sub(self.available(vc))
    }

    /// Whether there are credits for a packet of the maximum length on `vc`.
    #[inline]
    pub fn has_room(&self, vc: Vc) -> bool {
        self.available(vc) >= self.max_packet
    }

    /// Whether there are credits on `vc` for a packet of maximum length plus `more` phits.
    #[inline]
    pub fn is_ample(&self, vc: Vc, more: u32) -> bool {
        self.available(vc) >= self.max_packet + more
    }

    /// Whether some of the peer's input queue is in use or not announced yet.
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.vcs.iter().any(SendCredits::is_used)
    }

    #[inline]
    pub fn begin(&mut self, vc: Vc) {
        self.vc = vc;
    }

    /// Takes a credit each for the next `phits` phits of the packet; returns its virtual channel.
    ///
    /// # Panics
    /// If there are too few credits: the caller checks them for the whole packet first.
    #[inline]
    pub fn take(&mut self, phits: u32) -> Vc {
        self.vcs[self.vc.index()].take(phits);
        self.vc
    }

    /// Adds `phits` credits of `vc` that arrived individually, not as a cumulative count.
    ///
    /// # Panics
    /// If more are returned than were taken.
    #[inline]
    pub fn give(&mut self, vc: Vc, phits: u32) {
        self.vcs[vc.index()].give(phits);
    }

    /// Checks whether [`Self::release`] would accept the counts `wire`.
    #[inline]
    pub(super) fn check(&self, wire: [u32; 2], newer: bool) -> Result<(), Impossible> {
        for (credits, wire) in self.vcs.iter().zip(wire) {
            credits.check(wire, newer)?;
        }
        Ok(())
    }

    /// Applies the peer's cumulative counts; see [`SendCredits::release`]. Returns the number of
    /// newly freed phits, or why the counts are impossible.
    #[inline]
    pub(super) fn release(&mut self, wire: [u32; 2], newer: bool) -> Result<u32, Impossible> {
        let mut freed = 0;
        for (credits, wire) in self.vcs.iter_mut().zip(wire) {
            freed += credits.release(wire, newer)?;
        }
        Ok(freed)
    }

    /// Sets the credits of `vc` to `credits`, whatever was sent.
    #[cfg(test)]
    pub(crate) fn spoil(&mut self, vc: Vc, credits: u32) {
        self.vcs[vc.index()].spoil(credits);
    }
}
