//! Decides when to acknowledge: on data frames, after a delay, or at once.

use phitwire_framing::yarc::packet::Vc;

use super::receive::ReceiveTerms;
use phitwire::link::credits::FreedCount;
use phitwire::time::{Duration, Time};

/// Acknowledgements and VC acknowledgements not yet sent to the peer.
///
/// Every frame carries both (in the sideband), so traffic in both directions carries them for free.
/// Traffic in one direction needs idle phits for them, together after a delay, and at once if the
/// peer may need them to open its window or its credits.
#[derive(Debug)]
pub(super) struct Acks {
    freed: [FreedCount; 2],
    /// The next expected packet as last sent.
    reported: u64,
    reported_at: Time,
    due: Time,
    now: bool,
    delay: Duration,
    window: u64,
    max_packet: u32,
}

impl Acks {
    /// Starts a session on `terms`, with an announcement of the credits due at once.
    pub fn new(terms: &ReceiveTerms, delay: Duration) -> Self {
        Self {
            freed: terms.debt.map(|debt| FreedCount::new(terms.offered, debt)),
            reported: terms.first,
            reported_at: Time::ZERO,
            due: Time::NEVER,
            now: true,
            delay,
            window: terms.window.into(),
            max_packet: terms.max_packet,
        }
    }

    /// Records an accepted packet of `phits` phits; `expected` is the next packet.
    #[inline]
    pub fn accepted(&mut self, vc: Vc, phits: u32, expected: u64, now: Time) {
        self.freed[vc.index()].received(phits);
        if (expected - self.reported) * 4 >= self.window {
            self.now = true;
        } else if self.due == Time::NEVER {
            self.due = now + self.delay;
        }
    }

    /// Records that `phits` phits left the input queue.
    #[inline]
    pub fn free(&mut self, vc: Vc, phits: u32, now: Time) {
        let freed = &mut self.freed[vc.index()];
        freed.free(phits);
        if freed.urgent(self.max_packet) {
            self.now = true;
        } else if self.due == Time::NEVER {
            self.due = now + self.delay;
        }
    }

    /// Makes a frame to the peer due at once.
    #[inline]
    pub fn urge(&mut self) {
        self.now = true;
    }

    /// Schedules another acknowledgement, because the peer probes or resends something that was
    /// acknowledged. It is due at once if the last acknowledgement is older than the delay, so
    /// copies of frames, however many and fast, cost at most one reply per delay.
    #[inline]
    pub fn remind(&mut self) {
        self.due = self.due.min(self.reported_at + self.delay);
    }

    /// Whether a frame must be sent just for the acknowledgements.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.now || self.due <= now
    }

    /// When a frame must be sent just for the acknowledgements.
    #[inline]
    pub fn due(&self) -> Time {
        self.due
    }

    /// The current VC acknowledgements, without marking them as sent.
    #[cfg(any(test, feature = "testing"))]
    pub fn counts(&self) -> [u32; 2] {
        [self.freed[0].count(), self.freed[1].count()]
    }

    /// The VC acknowledgements for a frame that leaves now, with `expected` as its acknowledgement.
    #[inline]
    pub fn take_vc_acks(&mut self, expected: u64, now: Time) -> [u32; 2] {
        debug_assert!(
            self.reported <= expected && self.reported_at <= now,
            "both only grow"
        );
        self.reported = expected;
        self.reported_at = now;
        self.due = Time::NEVER;
        self.now = false;
        [self.freed[0].take_count(), self.freed[1].take_count()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acks() -> Acks {
        let terms = ReceiveTerms {
            first: 0,
            max_packet: 19,
            window: 64,
            offered: 1_000,
            reorder_phits: 100,
            debt: [0, 0],
        };
        let mut acks = Acks::new(&terms, Duration::from_us(40));
        assert!(acks.is_due(Time::ZERO), "credits are announced at once");
        acks.take_vc_acks(0, Time::ZERO);
        acks
    }

    #[test]
    fn acknowledgements_wait_for_each_other() {
        let mut acks = acks();
        for packet in 1..10 {
            acks.accepted(Vc::Request, 10, packet, Time::from_ns(packet));
        }
        assert!(!acks.is_due(Time::from_ns(20)));
        assert_eq!(
            acks.due(),
            Time::from_ns(40_001),
            "counted from the first credit"
        );
        assert!(acks.is_due(Time::from_ns(40_001)));
        acks.take_vc_acks(9, Time::from_ns(40_001));
        assert!(!acks.is_due(Time::from_ns(100_000)));
        assert_eq!(acks.due(), Time::NEVER);
    }

    #[test]
    fn a_quarter_of_the_window_does_not_wait() {
        let mut acks = acks();
        for packet in 1..=15 {
            acks.accepted(Vc::Request, 4, packet, Time::ZERO);
        }
        assert!(!acks.is_due(Time::ZERO));
        acks.accepted(Vc::Request, 4, 16, Time::ZERO);
        assert!(acks.is_due(Time::ZERO));
    }

    #[test]
    fn a_reminder_is_heeded_once_per_delay() {
        let mut acks = acks();
        acks.remind();
        assert!(!acks.is_due(Time::from_ns(39_999)), "acknowledged just now");
        assert!(acks.is_due(Time::from_ns(40_000)));
        acks.take_vc_acks(0, Time::from_ns(40_000));
        assert!(!acks.is_due(Time::from_ns(99_000)));
        acks.remind();
        assert!(
            acks.is_due(Time::from_ns(99_000)),
            "the last acknowledgement is old"
        );
    }

    #[test]
    fn credits_that_open_a_closed_channel_do_not_wait() {
        let mut acks = acks();
        for packet in 1..=10 {
            acks.accepted(Vc::Response, 19, packet, Time::ZERO);
        }
        acks.free(Vc::Response, 19, Time::ZERO);
        assert!(!acks.is_due(Time::ZERO));
        for packet in 11..=52 {
            acks.accepted(Vc::Response, 19, packet, Time::ZERO);
            acks.reported = packet;
        }
        acks.free(Vc::Response, 1, Time::ZERO);
        assert!(acks.is_due(Time::ZERO), "the peer knows of only 12 credits");
    }
}
