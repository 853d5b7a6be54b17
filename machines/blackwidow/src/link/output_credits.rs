//! Credits towards the input queue at the other end of a link, and the packet that takes them.

use phitwire_framing::yarc::packet::Vc;

use phitwire::link::credits::{Impossible, SendCredits};

/// Credits of both virtual channels of a link, and what may begin with them.
///
/// Call order: [`begin`](Self::begin) for each packet, if there are credits for all of it, then
/// [`take`](Self::take) for its phits.
#[derive(Clone, Debug)]
pub struct OutputCredits {
    vcs: [SendCredits; 2],
    /// Virtual channel of the packet that is handed over, or was last.
    vc: Vc,
    max_packet: u32,
}

impl OutputCredits {
    /// No credits yet of input queues of `offered` phits, for packets up to `max_packet` phits.
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

    /// Credits of `vc` that are too few for a packet of the maximum length, which has to fit before
    /// any begins (virtual cut-through, paper, section 4.2).
    #[inline]
    pub fn lacking(&self, vc: Vc) -> u32 {
        self.max_packet.saturating_sub(self.available(vc))
    }

    /// Whether there are credits for a packet of the maximum length on `vc`.
    #[inline]
    pub fn has_room(&self, vc: Vc) -> bool {
        self.available(vc) >= self.max_packet
    }

    /// Whether there are credits for a packet of the maximum length and `more` phits on `vc`.
    #[inline]
    pub fn is_ample(&self, vc: Vc, more: u32) -> bool {
        self.available(vc) >= self.max_packet + more
    }

    /// Whether some of the peer's input queue is in use, or not announced yet.
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.vcs.iter().any(SendCredits::is_used)
    }

    /// A packet on `vc` begins.
    #[inline]
    pub fn begin(&mut self, vc: Vc) {
        self.vc = vc;
    }

    /// The next `phits` phits of the packet take a credit each; its virtual channel.
    ///
    /// # Panics
    /// If there are too few: the caller makes sure of credits for all of a packet first.
    #[inline]
    pub fn take(&mut self, phits: u32) -> Vc {
        self.vcs[self.vc.index()].take(phits);
        self.vc
    }

    /// `phits` credits of `vc` have come, by themselves and not in a count.
    ///
    /// # Panics
    /// If more come back than were taken.
    #[inline]
    pub fn give(&mut self, vc: Vc, phits: u32) {
        self.vcs[vc.index()].give(phits);
    }

    /// What [`Self::release`] would say of the counts `wire`.
    #[inline]
    pub(super) fn check(&self, wire: [u32; 2], newer: bool) -> Result<(), Impossible> {
        for (credits, wire) in self.vcs.iter().zip(wire) {
            credits.check(wire, newer)?;
        }
        Ok(())
    }

    /// Takes in the peer's cumulative counts; see [`SendCredits::release`]. Returns the phits that
    /// they newly free, or why they cannot be.
    #[inline]
    pub(super) fn release(&mut self, wire: [u32; 2], newer: bool) -> Result<u32, Impossible> {
        let mut freed = 0;
        for (credits, wire) in self.vcs.iter_mut().zip(wire) {
            freed += credits.release(wire, newer)?;
        }
        Ok(freed)
    }

    /// Leaves `credits` credits of `vc`, whatever was sent.
    #[cfg(test)]
    pub(crate) fn spoil(&mut self, vc: Vc, credits: u32) {
        self.vcs[vc.index()].spoil(credits);
    }
}
