//! Credits of a virtual channel at both ends of a link, as cumulative counts.
//!
//! On the chip, VC acknowledgements travel in the sideband and increment the output port's credit
//! counters (BlackWidow sec. 4.3). Here they are cumulative counts modulo 2^20, so that a lost
//! frame leaks no credit.
//!
//! A 20-bit count does not show how old it is; the 48-bit acknowledgement in the same frame does. A
//! frame that acknowledges less is older, and its count is ignored. The counts of frames that
//! acknowledge the same amount differ by at most the size of the buffer, since every phit received
//! is either freed or in the buffer. A frame that acknowledges more is newer: it never frees less
//! than the previous count, nor more than is in use.
//!
//! A session starts without credits: the receiver's first count announces them, less the phits that
//! its input queue still holds from an earlier session.

use super::config::MAX_CREDITS;

/// Bits of a count on the wire.
pub const CREDIT_BITS: u32 = 20;
const CREDIT_MASK: u32 = (1 << CREDIT_BITS) - 1;

// A count one buffer ahead and a count one buffer behind must differ modulo 2^20.
const _: () = assert!(2 * MAX_CREDITS < CREDIT_MASK);

/// A count that the peer cannot have sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impossible;

/// The sender's side: credits for the peer's input queue.
#[derive(Clone, Debug, Default)]
pub struct SendCredits {
    offered: u32,
    /// The part of `offered` that may be sent now.
    available: u32,
    /// Credits ever received, less `offered`, modulo 2^32.
    freed: u32,
}

impl SendCredits {
    /// Starts without credits for the peer's buffer of `offered` phits.
    pub fn new(offered: u32) -> Self {
        Self {
            offered,
            available: 0,
            freed: 0_u32.wrapping_sub(offered),
        }
    }

    /// Phits that may be sent now.
    #[inline]
    pub fn available(&self) -> u32 {
        self.available
    }

    /// Phits of the peer's buffer in use or not yet announced.
    #[inline]
    fn used(&self) -> u32 {
        self.offered - self.available
    }

    /// Whether any of the peer's buffer is in use or not yet announced.
    #[inline]
    pub fn is_used(&self) -> bool {
        self.used() != 0
    }

    /// Takes `phits` credits.
    ///
    /// # Panics
    /// If there are too few: the caller first checks for the credits of a whole packet.
    #[inline]
    pub fn take(&mut self, phits: u32) {
        assert!(self.available >= phits, "phit sent without a credit");
        self.available -= phits;
    }

    /// Adds `phits` credits, returned one by one or in a count.
    ///
    /// # Panics
    /// If more are returned than were taken.
    #[inline]
    pub fn give(&mut self, phits: u32) {
        assert!(phits <= self.used(), "more credits returned than taken");
        self.available += phits;
        debug_assert!(
            self.available <= self.offered,
            "no more credits than buffers"
        );
        self.freed = self.freed.wrapping_add(phits);
    }

    /// The result of [`Self::release`] for `wire`, without applying it.
    #[inline]
    pub fn check(&self, wire: u32, newer: bool) -> Result<u32, Impossible> {
        let step = wire.wrapping_sub(self.freed) & CREDIT_MASK;
        if step <= self.used() {
            return Ok(step);
        }
        let before = self.freed.wrapping_sub(wire) & CREDIT_MASK;
        if !newer && before <= self.offered {
            return Ok(0); // Overtaken by a newer count.
        }
        Err(Impossible)
    }

    /// Applies the peer's cumulative count from a frame that acknowledges as much as any accepted
    /// before or, if it is `newer`, more. Returns the phits newly freed.
    #[inline]
    pub fn release(&mut self, wire: u32, newer: bool) -> Result<u32, Impossible> {
        let step = self.check(wire, newer)?;
        self.give(step);
        Ok(step)
    }

    /// Sets the available credits to `credits`, whatever was sent.
    #[cfg(any(test, feature = "testing"))]
    pub fn spoil(&mut self, credits: u32) {
        self.offered = self.used() + credits;
        self.available = credits;
    }
}

/// The receiver's side: phits used and freed in our input queue.
#[derive(Clone, Debug, Default)]
pub struct FreedCount {
    offered: u32,
    debt: u32,
    /// Phits of accepted packets, `debt` of an earlier session included.
    received: u64,
    freed: u64,
    reported: u64,
}

impl FreedCount {
    /// Starts a session whose input queue of `offered` phits still holds `debt` phits of an earlier
    /// one.
    pub fn new(offered: u32, debt: u32) -> Self {
        Self {
            offered,
            debt,
            received: debt.into(),
            freed: 0,
            reported: 0,
        }
    }

    /// Counts an accepted packet of `phits` phits.
    #[inline]
    pub fn received(&mut self, phits: u32) {
        self.received += u64::from(phits);
    }

    /// Counts `phits` that left the input queue.
    ///
    /// # Panics
    /// If more is freed than was received.
    #[inline]
    pub fn free(&mut self, phits: u32) {
        self.freed += u64::from(phits);
        assert!(
            self.freed <= self.received,
            "more phits acknowledged than received"
        );
    }

    /// Returns the count to send and marks it as sent.
    #[inline]
    pub fn take_count(&mut self) -> u32 {
        debug_assert!(self.reported <= self.freed, "the count only grows");
        self.reported = self.freed;
        self.count()
    }

    /// The count as sent on the wire.
    #[inline]
    pub fn count(&self) -> u32 {
        (self.freed.wrapping_sub(u64::from(self.debt))) as u32 & CREDIT_MASK
    }

    /// Whether the peer may be waiting for credits: a quarter of the buffer is unreported, or the
    /// peer knows of fewer than two packets' worth.
    #[inline]
    pub fn urgent(&self, max_packet: u32) -> bool {
        let news = self.freed - self.reported;
        if news == 0 {
            return false;
        }
        let known_used = self.received - self.reported;
        news >= u64::from(self.offered / 4)
            || known_used + u64::from(2 * max_packet) > u64::from(self.offered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_count_opens_the_buffer_less_what_is_still_in_it() {
        let mut send = SendCredits::new(100);
        let mut freed = FreedCount::new(100, 30);
        assert_eq!(send.available(), 0);
        assert_eq!(send.release(freed.take_count(), false), Ok(70));
        assert_eq!(send.available(), 70);
        freed.free(30);
        assert_eq!(send.release(freed.take_count(), false), Ok(30));
        assert_eq!(send.available(), 100);
    }

    #[test]
    fn counts_go_round_and_old_ones_change_nothing() {
        let mut send = SendCredits::new(1_000);
        let mut freed = FreedCount::new(1_000, 0);
        assert_eq!(send.release(freed.take_count(), false), Ok(1_000));
        let mut old = 0;
        for round in 0..3_000_u32 {
            for _ in 0..700 {
                send.take(1);
            }
            assert_eq!(send.available(), 300);
            freed.received(700);
            freed.free(700);
            let wire = freed.take_count();
            assert_eq!(send.release(wire, false), Ok(700), "round {round}");
            assert_eq!(send.release(old, false), Ok(0));
            assert_eq!(
                send.release(old, true),
                Err(Impossible),
                "a newer acknowledgement cannot free less"
            );
            assert_eq!(send.release(wire, true), Ok(0));
            old = wire;
        }
    }

    #[test]
    fn acknowledging_more_than_was_sent_is_impossible() {
        let mut send = SendCredits::new(100);
        assert_eq!(send.release(0, false), Ok(100));
        send.take(1);
        assert_eq!(send.release(2, false), Err(Impossible));
        assert_eq!(send.available(), 99);
        assert_eq!(send.release(1, false), Ok(1));
    }

    #[test]
    fn a_count_older_than_a_buffer_ago_is_impossible() {
        let mut send = SendCredits::new(100);
        assert_eq!(send.release(0, false), Ok(100));
        for count in 1..=1_000 {
            send.take(1);
            assert_eq!(send.release(count, true), Ok(1));
        }
        assert_eq!(send.release(900, false), Ok(0));
        assert_eq!(send.release(899, false), Err(Impossible));
        assert_eq!(send.available(), 100);
    }

    #[test]
    #[should_panic(expected = "phit sent without a credit")]
    fn no_phit_without_a_credit() {
        SendCredits::new(100).take(1);
    }

    #[test]
    #[should_panic(expected = "more phits acknowledged than received")]
    fn nothing_is_freed_that_was_not_received() {
        let mut freed = FreedCount::new(100, 0);
        freed.received(4);
        freed.free(5);
    }

    #[test]
    fn news_are_urgent_when_the_peer_may_be_waiting() {
        let mut freed = FreedCount::new(100, 0);
        freed.received(40);
        freed.free(10);
        assert!(!freed.urgent(19));
        freed.received(30);
        assert!(freed.urgent(19), "the peer knows of only 30 free phits");
        freed.take_count();
        assert!(!freed.urgent(19));
        freed.free(25);
        assert!(freed.urgent(19), "a quarter of the buffer");
    }
}
