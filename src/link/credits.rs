//! Credits of a virtual channel at both ends of a link, as cumulative counts.
//!
//! Paper, section 4.3: VC acknowledgements travel in the sideband and increment the credit counters
//! of the output port. Here they are cumulative counts modulo 2^20 and not increments, so that a
//! lost frame leaks no credit.
//!
//! Twenty bits do not tell how old a count is; the acknowledgement in the same frame, which has 48,
//! does. One that acknowledges less was sent before and is not asked. Between frames that
//! acknowledge the same, counts differ by no more than the buffer holds: what is freed was
//! received, and all but what the buffer holds was freed. A frame that acknowledges more was sent
//! later and frees no less, and no more than is in use.
//!
//! A session starts with no credits: the receiver's first count announces them. It is negative by
//! as many phits as its input queue still holds from an earlier session.

use super::config::MAX_CREDIT_PHITS;

/// Bits of a count as the wire has it.
pub(crate) const CREDIT_BITS: u32 = 20;
const CREDIT_MASK: u32 = (1 << CREDIT_BITS) - 1;

// A buffer more, and a buffer less, are different counts.
const _: () = assert!(2 * MAX_CREDIT_PHITS < CREDIT_MASK);

/// An acknowledgement of more than was ever sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Impossible;

/// The sender's side: credits towards the peer's input queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendCredits {
    offered: u32,
    /// Of `offered`, what may be sent now.
    available: u32,
    /// Phits of the peer's buffer ever free, less `offered`, modulo 2^32.
    freed: u32,
}

impl SendCredits {
    /// No credits yet of a buffer of `offered` phits.
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

    /// Phits of the peer's buffer that are in use, or not announced yet.
    #[inline]
    fn used(&self) -> u32 {
        self.offered - self.available
    }

    /// Whether some of the peer's buffer is in use, or not announced yet.
    #[inline]
    pub fn is_used(&self) -> bool {
        self.used() != 0
    }

    /// Takes a credit for each of `phits`.
    ///
    /// # Panics
    /// If there are too few: the caller makes sure of credits for all of a packet first.
    #[inline]
    pub fn take(&mut self, phits: u32) {
        assert!(self.available >= phits, "a phit without a credit");
        self.available -= phits;
    }

    /// `phits` credits have come, by themselves or in a count.
    ///
    /// # Panics
    /// If more come back than were taken.
    #[inline]
    pub fn give(&mut self, phits: u32) {
        assert!(phits <= self.used(), "a credit that nobody took");
        self.available += phits;
        self.freed = self.freed.wrapping_add(phits);
    }

    /// What [`Self::release`] would do with `wire`, without doing it.
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

    /// Takes in the peer's cumulative count from a frame that acknowledges as much as any accepted
    /// before or, if it is `newer`, more. Returns the phits it newly frees, or why it cannot be.
    #[inline]
    pub fn release(&mut self, wire: u32, newer: bool) -> Result<u32, Impossible> {
        let step = self.check(wire, newer)?;
        self.give(step);
        Ok(step)
    }

    /// Leaves `credits` credits, whatever was sent.
    #[cfg(test)]
    pub fn spoil(&mut self, credits: u32) {
        self.offered = self.used() + credits;
        self.available = credits;
    }
}

/// The receiver's side: what of our input queue was used and freed.
#[derive(Clone, Debug, Default)]
pub(crate) struct FreedCount {
    offered: u32,
    debt: u32,
    /// Phits of accepted packets, `debt` of an earlier session included.
    received: u64,
    freed: u64,
    told: u64,
}

impl FreedCount {
    /// A session whose input queue of `offered` phits still holds `debt` phits of an earlier one.
    pub fn new(offered: u32, debt: u32) -> Self {
        Self {
            offered,
            debt,
            received: debt.into(),
            freed: 0,
            told: 0,
        }
    }

    /// An accepted packet has `phits` phits.
    #[inline]
    pub fn received(&mut self, phits: u32) {
        self.received += u64::from(phits);
    }

    /// `phits` have left the input queue.
    ///
    /// # Panics
    /// If more would be freed than was received.
    #[inline]
    pub fn free(&mut self, phits: u32) {
        self.freed += u64::from(phits);
        assert!(
            self.freed <= self.received,
            "more VC acknowledgements than phits"
        );
    }

    /// The count that goes over the wire, which is thereby told.
    #[inline]
    pub fn tell(&mut self) -> u32 {
        self.told = self.freed;
        self.count()
    }

    /// The count as the wire has it.
    #[inline]
    pub fn count(&self) -> u32 {
        (self.freed.wrapping_sub(u64::from(self.debt))) as u32 & CREDIT_MASK
    }

    /// Whether the peer may be waiting for the news: a quarter of the buffer, or fewer than two
    /// packets' worth of credits as far as it knows.
    #[inline]
    pub fn urgent(&self, max_packet: u32) -> bool {
        let news = self.freed - self.told;
        if news == 0 {
            return false;
        }
        let known_used = self.received - self.told;
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
        assert_eq!(send.release(freed.tell(), false), Ok(70));
        assert_eq!(send.available(), 70);
        freed.free(30);
        assert_eq!(send.release(freed.tell(), false), Ok(30));
        assert_eq!(send.available(), 100);
    }

    #[test]
    fn counts_go_round_and_old_ones_change_nothing() {
        let mut send = SendCredits::new(1_000);
        let mut freed = FreedCount::new(1_000, 0);
        assert_eq!(send.release(freed.tell(), false), Ok(1_000));
        let mut old = 0;
        for round in 0..3_000_u32 {
            for _ in 0..700 {
                send.take(1);
            }
            assert_eq!(send.available(), 300);
            freed.received(700);
            freed.free(700);
            let wire = freed.tell();
            assert_eq!(send.release(wire, false), Ok(700), "round {round}");
            assert_eq!(send.release(old, false), Ok(0));
            assert_eq!(
                send.release(old, true),
                Err(Impossible),
                "who acknowledges more has freed no less"
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
    #[should_panic(expected = "a phit without a credit")]
    fn no_phit_without_a_credit() {
        SendCredits::new(100).take(1);
    }

    #[test]
    #[should_panic(expected = "more VC acknowledgements than phits")]
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
        assert!(freed.urgent(19), "the peer knows of 30 free phits only");
        freed.tell();
        assert!(!freed.urgent(19));
        freed.free(25);
        assert!(freed.urgent(19), "a quarter of the buffer");
    }
}
