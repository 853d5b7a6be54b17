//! Decides when to acknowledge: on data, after a short delay, or at once.

use phitwire_framing::aries::flit::{MAX_PACKET_FLITS, VCS};
use phitwire_framing::aries::set::{VC_ACK_UNIT, vc_ack};

use phitwire::time::{Duration, Time};

/// Tenth flits carry VC acks for one channel at a time, in whole blocks. A control set with the
/// remainder may wait for this many delays.
const DELAYS_FOR_VC_ACKS: u64 = 16;

/// Buffer sizes and acknowledgement rules of a receiver, for [`Acks::new`].
#[derive(Clone, Copy, Debug)]
pub(super) struct AckTerms {
    /// Maximum number of sets that the peer may have unacknowledged.
    pub window: u64,
    /// Size of the buffer in flits.
    pub offered: u32,
    /// Flits private to each channel.
    pub private: u32,
    /// Flits of an earlier session still in the buffer.
    pub debt: [u32; VCS],
    /// Whether every frame carries all counts.
    pub full_numbers: bool,
    /// Longest time that an acknowledgement is held back to ride with others.
    pub delay: Duration,
}

/// Acknowledgements and VC acks not sent yet.
#[derive(Debug)]
pub(super) struct Acks {
    /// Flits freed per channel, minus those present when the session began; modulo 2^32.
    freed: [u32; VCS],
    reported: [u32; VCS],
    /// Flits freed but not reported, of all channels.
    unreported: u32,
    /// Flits in the buffer.
    held: u32,
    /// Flits above which `held` plus `unreported` mean that the peer may be waiting for credits.
    capacity: u32,
    private: u32,
    /// The next expected set as last reported.
    reported_set: u64,
    ack_due: Time,
    vc_due: Time,
    now: bool,
    delay: Duration,
    vc_delay: Duration,
    window: u64,
}

impl Acks {
    /// Starts a session on `terms`, with an announcement of the credits due at once.
    pub fn new(terms: AckTerms) -> Self {
        let delays = if terms.full_numbers {
            1
        } else {
            DELAYS_FOR_VC_ACKS
        };
        assert!(
            terms.private * VCS as u32 <= terms.offered,
            "every channel has its private part of the buffer"
        );
        let freed = terms.debt.map(|debt| 0_u32.wrapping_sub(debt));
        Self {
            freed,
            reported: freed,
            unreported: 0,
            held: terms.debt.iter().sum(),
            capacity: terms.offered,
            private: terms.private,
            reported_set: 0,
            ack_due: Time::NEVER,
            vc_due: Time::NEVER,
            now: true,
            delay: terms.delay,
            vc_delay: terms.delay.times(delays),
            window: terms.window,
        }
    }

    /// Records accepted sets with `flits` flits of packets; `expected` is the next set.
    #[inline]
    pub fn accepted(&mut self, flits: u32, expected: u64, now: Time) {
        debug_assert!(expected >= self.reported_set, "accepted sets stay accepted");
        self.held += flits;
        if (expected - self.reported_set) * 4 >= self.window {
            self.now = true;
        } else if self.ack_due == Time::NEVER {
            self.ack_due = now + self.delay;
        }
    }

    /// Records that `flits` flits of `vc` left the buffer.
    ///
    /// # Panics
    /// If the buffer holds fewer.
    #[inline]
    pub fn free(&mut self, vc: usize, flits: u32, now: Time) {
        assert!(self.held >= flits, "more flits acknowledged than held");
        self.held -= flits;
        self.unreported += flits;
        self.freed[vc] = self.freed[vc].wrapping_add(flits);
        if self.is_urgent() {
            self.now = true;
        } else if self.vc_due == Time::NEVER {
            self.vc_due = now + self.vc_delay;
        }
    }

    /// Whether the peer may be waiting for unreported credits: a quarter of the buffer, or as much
    /// as it can still use while every other channel keeps its private part.
    #[inline]
    fn is_urgent(&self) -> bool {
        let known = self.held + self.unreported + self.private * (VCS as u32 - 1);
        let left = self.capacity.saturating_sub(known);
        self.unreported >= self.capacity / 4 || self.unreported >= left.max(MAX_PACKET_FLITS as u32)
    }

    /// Makes a frame to the peer due at once.
    #[inline]
    pub fn urge(&mut self) {
        self.now = true;
    }

    /// Makes a frame to the peer due within a delay of VC acks, even with nothing to acknowledge.
    #[inline]
    pub fn suggest(&mut self, now: Time) {
        self.vc_due = self.vc_due.min(now + self.delay.times(DELAYS_FOR_VC_ACKS));
    }

    /// Whether a frame must be sent for the acknowledgements alone.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.now || self.due() <= now
    }

    /// When a frame must be sent for the acknowledgements alone.
    #[inline]
    pub fn due(&self) -> Time {
        self.ack_due.min(self.vc_due)
    }

    /// Whether the due acknowledgements need a control set.
    #[inline]
    pub fn wants_control(&self, now: Time) -> bool {
        self.now || self.vc_due <= now
    }

    /// The VC acks for a control set that leaves now, with `expected` as its acknowledgement.
    #[inline]
    pub fn take_vc_acks(&mut self, expected: u64) -> [u32; VCS] {
        debug_assert_eq!(
            self.unreported,
            (0..VCS)
                .map(|vc| self.freed[vc].wrapping_sub(self.reported[vc]))
                .fold(0, u32::wrapping_add),
            "the unreported flits are those freed since the last report"
        );
        self.reported_set = expected;
        self.ack_due = Time::NEVER;
        self.vc_due = Time::NEVER;
        self.now = false;
        self.unreported = 0;
        self.reported = self.freed;
        self.freed
    }

    /// The VC ack of `vc` for a tenth flit that leaves now, with `expected` as its acknowledgement.
    #[inline]
    pub fn take_vc_ack(&mut self, vc: usize, expected: u64) -> u8 {
        self.reported_set = expected;
        self.ack_due = Time::NEVER;
        let whole = self.freed[vc] / VC_ACK_UNIT * VC_ACK_UNIT;
        let step = whole.wrapping_sub(self.reported[vc]);
        if step < 1 << 31 {
            debug_assert!(step <= self.unreported, "more flits reported than freed");
            self.unreported -= step;
            self.reported[vc] = whole;
            if self.unreported == 0 {
                self.vc_due = Time::NEVER;
            }
        }
        vc_ack(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acks(full_numbers: bool) -> Acks {
        let mut acks = Acks::new(AckTerms {
            window: 64,
            offered: 1_024,
            private: 16,
            debt: [0; VCS],
            full_numbers,
            delay: Duration::from_us(40),
        });
        assert!(acks.is_due(Time::ZERO), "credits are announced at once");
        assert_eq!(acks.take_vc_acks(0), [0; VCS]);
        acks
    }

    #[test]
    fn acknowledgements_wait_for_each_other_but_not_beyond_a_quarter_of_the_window() {
        let mut acks = acks(true);
        for set in 1..16 {
            acks.accepted(6, set, Time::from_ns(set));
        }
        assert!(!acks.is_due(Time::from_ns(20)));
        assert_eq!(
            acks.due(),
            Time::from_ns(40_001),
            "counted from the first credit"
        );
        acks.accepted(6, 16, Time::from_ns(20));
        assert!(acks.is_due(Time::from_ns(20)));
        acks.take_vc_acks(16);
        assert_eq!(acks.due(), Time::NEVER);
    }

    #[test]
    fn credits_that_open_a_closed_buffer_do_not_wait() {
        let mut acks = acks(true);
        acks.accepted(800, 1, Time::ZERO);
        acks.free(3, 50, Time::ZERO);
        assert!(
            !acks.is_due(Time::ZERO),
            "acknowledgements for 112 flits are left"
        );
        acks.free(3, 62, Time::ZERO);
        assert!(acks.is_due(Time::ZERO), "due again after as many flits");
        acks.take_vc_acks(1);
        acks.accepted(300, 1, Time::ZERO);
        acks.free(5, 13, Time::ZERO);
        assert!(!acks.is_due(Time::ZERO));
        acks.free(5, 1, Time::ZERO);
        assert!(acks.is_due(Time::ZERO), "enough for a longest packet");
    }

    #[test]
    fn tenth_flits_acknowledge_whole_blocks_of_one_channel() {
        let mut acks = acks(false);
        acks.accepted(100, 1, Time::ZERO);
        acks.free(2, 20, Time::ZERO);
        acks.free(3, 8, Time::ZERO);
        assert_eq!(acks.take_vc_ack(1, 1), 0);
        assert_eq!(acks.take_vc_ack(2, 1), 2);
        assert_eq!(acks.take_vc_ack(3, 1), 1);
        assert_eq!(acks.unreported, 4);
        assert!(!acks.is_due(Time::from_ns(600_000)));
        assert!(
            acks.is_due(Time::from_ns(640_000)),
            "for the last four flits"
        );
        assert_eq!(acks.take_vc_acks(1)[2], 20);
        assert_eq!(acks.due(), Time::NEVER);
        acks.free(2, 3, Time::ZERO);
        assert_eq!(
            acks.take_vc_ack(2, 1),
            2,
            "23 flits are not three blocks, and 20 were announced"
        );
        acks.free(2, 1, Time::ZERO);
        assert_eq!((acks.take_vc_ack(2, 1), acks.unreported), (3, 0));
    }

    #[test]
    fn debt_of_an_earlier_session_is_reported_as_negative() {
        let mut acks = Acks::new(AckTerms {
            window: 64,
            offered: 1_024,
            private: 16,
            debt: [0, 30, 0, 0, 0, 0, 0, 0],
            full_numbers: false,
            delay: Duration::from_us(40),
        });
        acks.free(1, 5, Time::ZERO);
        assert_eq!(acks.take_vc_acks(0)[1], 25_u32.wrapping_neg());
        acks.free(1, 25, Time::ZERO);
        assert_eq!((acks.take_vc_ack(1, 0), acks.unreported), (0, 0));
    }

    #[test]
    #[should_panic(expected = "more flits acknowledged than held")]
    fn nothing_is_freed_that_was_not_received() {
        let mut acks = acks(true);
        acks.accepted(4, 1, Time::ZERO);
        acks.free(0, 5, Time::ZERO);
    }
}
