//! Periods: the time of posting distinguishes a request from earlier ones with its id.
//!
//! A response may arrive late: links resend as often as they must, a router stops, a wire has a
//! long delay. By then its request may have timed out, or its requester may have been killed and
//! restarted, and the id may be in use for another request. So in addition to the id a packet
//! carries the period in which it was posted, modulo what its bits can hold, and the response
//! repeats it. (TCP's PAWS, RFC 7323 section 5, is the same idea.) A response is accepted only for
//! a request of its id *and* period, and
//!
//! - within a period an id whose response has not arrived serves once: after a timeout it rests
//!   until the next;
//! - a NIC that has a predecessor begins with the first period that starts after itself, since it
//!   does not know that one's requests in the present period.
//!
//! So two requests of one name are at least (number of periods - 1) periods apart, whatever was
//! killed, stopped or delayed between them. Periods are two seconds long, and at least a tenth of a
//! request's timeout.

use crate::time::{Duration, Time};

/// Shortest period: the longest wait of a restarted NIC, unless timeouts are long.
const SHORTEST: Duration = Duration::from_ms(2_000);
/// Maximum number of periods in a request's timeout: after long timeouts, responses may be old.
const PER_TIMEOUT: u64 = 10;
const PS_PER_NS: u64 = 1_000;

/// What a NIC knows of its predecessors and their requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// The reading, in nanoseconds, of a clock that all incarnations share when this one's time was
    /// zero. It may not go backwards from one incarnation to the next.
    pub clock_ns: u64,
    /// Whether there was no predecessor with requests or responses still in flight.
    pub first: bool,
}

impl Default for Incarnation {
    /// The first incarnation, on its own clock.
    fn default() -> Self {
        Self {
            clock_ns: 0,
            first: true,
        }
    }
}

/// The present period.
#[derive(Clone, Copy, Debug)]
pub struct Periods {
    clock_ns: u64,
    length_ns: u64,
    number: u64,
    /// When the present period ends.
    ends: Time,
    /// The first period in which requests may be posted.
    opens: u64,
}

impl Periods {
    /// Periods of a NIC that begins at `now` and whose requests time out after `timeout`; `longer`
    /// times as long as necessary.
    pub fn new(incarnation: Incarnation, now: Time, timeout: Duration, longer: u64) -> Self {
        let length_ns = (timeout.as_ns() / PER_TIMEOUT)
            .max(SHORTEST.as_ns())
            .saturating_mul(longer);
        let mut periods = Self {
            clock_ns: incarnation.clock_ns,
            length_ns,
            number: 0,
            ends: now,
            opens: 0,
        };
        periods.advance(now);
        periods.opens = periods.number + u64::from(!incarnation.first);
        periods
    }

    #[inline]
    pub(crate) fn advance(&mut self, now: Time) {
        if now >= self.ends {
            self.next(now);
        }
    }

    /// Records that the process was suspended for `span`, which ended at `now`; `now` excludes it.
    /// The clock that all incarnations share kept running.
    pub(crate) fn stood_still(&mut self, now: Time, span: Duration) {
        self.clock_ns = self
            .clock_ns
            .saturating_add(span.as_ps().div_ceil(PS_PER_NS));
        self.next(now);
    }

    #[cold]
    fn next(&mut self, now: Time) {
        let clock_ns = self.clock_ns.saturating_add(now.as_ns());
        self.number = clock_ns / self.length_ns;
        let left_ns = self.length_ns - clock_ns % self.length_ns;
        // `clock_ns` has whole nanoseconds, so count from the start of the current one.
        let began = Time::from_ps(now.as_ps() / PS_PER_NS * PS_PER_NS);
        self.ends = began + Duration::from_ns(left_ns);
    }

    #[inline]
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Whether requests may be posted.
    #[inline]
    pub(crate) const fn is_open(&self) -> bool {
        self.number >= self.opens
    }

    /// When the next period begins.
    pub(crate) const fn ends(&self) -> Time {
        self.ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_ms(2_000);

    fn at_ms(ms: u64) -> Time {
        Time::ZERO + Duration::from_ms(ms)
    }

    #[test]
    fn a_successor_waits_for_the_next_period_and_the_first_does_not() {
        let of = |first| Incarnation { clock_ns: 0, first };
        assert!(Periods::new(of(true), at_ms(5_700), TIMEOUT, 1).is_open());
        let mut next = Periods::new(of(false), at_ms(5_700), TIMEOUT, 1);
        assert!(!next.is_open());
        assert_eq!((next.number(), next.ends()), (2, at_ms(6_000)));
        next.advance(at_ms(6_000) + Duration::from_ps(1));
        assert!(next.is_open());
        assert_eq!((next.number(), next.ends()), (3, at_ms(8_000)));
    }

    #[test]
    fn processes_count_on_a_common_clock() {
        let of = |clock_ns, first| Incarnation { clock_ns, first };
        let mut next = Periods::new(of(9_999_999_999, false), Time::ZERO, TIMEOUT, 1);
        assert_eq!(next.number(), 4);
        assert!(!next.is_open());
        next.advance(Time::from_ns(1));
        assert!(next.is_open() && next.number() == 5);
        assert!(Periods::new(of(9_999_999_999, true), Time::ZERO, TIMEOUT, 1).is_open());
    }

    #[test]
    fn a_standstill_passes_periods_as_running_does() {
        let mut ran = Periods::new(Incarnation::default(), Time::ZERO, TIMEOUT, 1);
        let mut stood = ran;
        ran.advance(at_ms(64_500));
        stood.advance(at_ms(500));
        stood.stood_still(at_ms(500), Duration::from_ms(64_000));
        assert_eq!(stood.number(), ran.number());
        assert_eq!(stood.ends(), at_ms(2_000));
    }

    #[test]
    fn long_time_outs_make_long_periods() {
        let minutes = Duration::from_ms(200_000);
        let periods = Periods::new(Incarnation::default(), Time::ZERO, minutes, 4);
        assert_eq!(periods.ends(), at_ms(80_000));
    }
}
