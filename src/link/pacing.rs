//! The line clock: when phits, or sets of flits, have crossed the lanes.

use super::config::LinkClock;
use super::lane_rate::LaneRate;
use crate::time::{Duration, Time};

/// Releases phits at the rate of the lanes in use (BlackWidow sec. 4.4), or at once.
///
/// A phit may enter a frame when its last bit would have left the lanes. Idle phits that pad a
/// frame take no time: the real link sends idles anyway.
#[derive(Debug)]
pub struct LineClock {
    /// Bits per unit counted: a phit, or a set.
    bits: u64,
    rate: LaneRate,
    clock: LinkClock,
    /// Time of one phit; zero when free-running.
    phit: Duration,
    /// When the line has sent, or will have sent, all phits handed out.
    free_at: Time,
    /// Phits were waiting at the last call, so the line has been busy since `free_at`.
    busy: bool,
}

impl LineClock {
    /// A line for units of `bits` bits.
    pub fn new(bits: u64, rate: LaneRate, clock: LinkClock, lanes: u8) -> Self {
        let mut line = Self {
            bits,
            rate,
            clock,
            phit: Duration::ZERO,
            free_at: Time::ZERO,
            busy: false,
        };
        line.set_lanes(lanes);
        line
    }

    /// Changes the lanes: fewer make a slower line.
    pub fn set_lanes(&mut self, lanes: u8) {
        let lanes = lanes.count_ones();
        self.phit = match self.clock {
            LinkClock::Paced { dilation } if lanes > 0 => {
                self.rate.time_of(self.bits, lanes).times(dilation.into())
            }
            _ => Duration::ZERO,
        };
    }

    #[inline]
    pub fn is_paced(&self) -> bool {
        self.phit != Duration::ZERO
    }

    /// Line time of `phits` phits; `None` when free-running.
    #[inline]
    pub fn time_of(&self, phits: u64) -> Option<Duration> {
        self.is_paced().then(|| self.phit.times(phits))
    }

    /// Whether [`Self::sent`] must be called once phits wait, so that their time starts to run.
    #[inline]
    pub fn is_idle(&self) -> bool {
        !self.busy
    }

    /// Number of the `waiting` phits that have crossed the lanes by `now`.
    pub fn sent(&mut self, waiting: u64, now: Time) -> u64 {
        if !self.is_paced() {
            return waiting;
        }
        if waiting == 0 {
            self.busy = false;
            return 0;
        }
        if !self.busy {
            self.busy = true;
            self.free_at = self.free_at.max(now);
        }
        if now < self.free_at {
            return 0;
        }
        (now.since(self.free_at).as_ps() / self.phit.as_ps()).min(waiting)
    }

    /// `phits` of `waiting` were put into a frame.
    pub fn hand_out(&mut self, phits: u64, waiting: u64) {
        debug_assert!(phits <= waiting, "more phits handed out than are waiting");
        self.free_at += self.phit.times(phits);
        self.busy = phits < waiting;
    }

    /// Discards unused line time at `now`, when nothing is left to send.
    #[inline]
    pub fn catch_up(&mut self, now: Time) {
        self.free_at = self.free_at.max(now);
    }

    /// When `phits` more will have crossed the lanes.
    #[inline]
    pub fn sent_at(&self, phits: u64) -> Time {
        self.free_at + self.phit.times(phits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: LaneRate = LaneRate::new(0, 6_250_000_000);
    const PACED: LinkClock = LinkClock::Paced { dilation: 1 };

    #[test]
    fn phits_leave_at_the_rate_of_the_lanes() {
        for (lanes, per_us) in [(7, 781), (5, 520), (4, 260)] {
            let mut line = LineClock::new(24, FULL, PACED, lanes);
            let start = Time::from_ns(500);
            assert_eq!(line.sent(10_000, start), 0);
            assert_eq!(line.sent(10_000, start + Duration::from_us(1)), per_us);
        }
    }

    #[test]
    fn time_without_phits_is_not_saved_up() {
        let mut line = LineClock::new(24, FULL, PACED, 7);
        assert_eq!(line.sent(1, Time::ZERO), 0);
        assert_eq!(line.sent(1, Time::from_ns(2)), 1);
        line.hand_out(1, 1);
        assert_eq!(line.sent(5, Time::from_ns(1_000)), 0, "starts now");
        assert_eq!(line.sent_at(5), Time::from_ps(1_000_000 + 5 * 1_280));
        assert_eq!(line.sent(5, line.sent_at(5)), 5);
    }

    #[test]
    fn dilation_stretches_and_free_running_does_not_wait() {
        let mut line = LineClock::new(24, FULL, LinkClock::Paced { dilation: 1_000 }, 7);
        line.sent(9, Time::ZERO);
        assert_eq!(line.sent_at(1), Time::from_ns(1_280));
        let mut free = LineClock::new(24, FULL, LinkClock::FreeRunning, 7);
        assert_eq!(free.sent(9, Time::ZERO), 9);
    }
}
