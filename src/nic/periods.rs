//! Periods: the time of posting distinguishes a request from earlier requests with the same id.
//!
//! A response may arrive late: a link resends for a long time, a router is suspended, a wire has a
//! long delay. By then its request may have timed out, or its requester may have been killed and
//! restarted, and the id may be in use for another request. So a packet carries not only the id but
//! also the period in which it was posted, modulo the range of its field, and the response repeats
//! both. (TCP's PAWS, RFC 7323 sec. 5, is the same idea.) A NIC accepts a response only for a
//! request with the same id *and* period. In addition,
//!
//! - within a period, an id whose response has not arrived is used once: after a timeout it stays
//!   unused until the next period;
//! - a restarted NIC posts nothing before the first period that begins after its start, since it
//!   does not know which ids its predecessor used in the present one.
//!
//! So two requests with the same id and period field are at least (number of periods - 1) periods
//! apart, whatever was killed, suspended or delayed between them. A period lasts two seconds, or a
//! tenth of a request's timeout if that is longer.

use crate::time::{Duration, Time};

/// Shortest period, and so, unless timeouts are long, the longest wait of a restarted NIC.
const SHORTEST: Duration = Duration::from_ms(2_000);
/// Maximum number of periods per request timeout: with long timeouts, responses may be old.
const PER_TIMEOUT: u64 = 10;
const PS_PER_NS: u64 = 1_000;

/// Describes earlier incarnations of a NIC and their clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// Time in nanoseconds on a clock that all incarnations share, at this incarnation's time zero.
    /// It must not go backwards from one incarnation to the next.
    pub clock_ns: u64,
    /// Whether no predecessor can have requests or responses in flight.
    pub first: bool,
}

impl Default for Incarnation {
    /// The first incarnation, with its own clock.
    fn default() -> Self {
        Self {
            clock_ns: 0,
            first: true,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Periods {
    clock_ns: u64,
    length_ns: u64,
    number: u64,
    ends: Time,
    /// The first period in which requests may be posted.
    opens: u64,
}

impl Periods {
    /// Periods of a NIC that starts at `now` and whose requests time out after `timeout`. Periods
    /// are `longer` times as long as necessary.
    pub fn new(incarnation: Incarnation, now: Time, timeout: Duration, longer: u64) -> Self {
        assert!(longer > 0, "a period has a length");
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

    /// Records that the process was suspended for `span` until `now`, which excludes the
    /// suspension. The clock that all incarnations share kept running.
    pub(crate) fn handle_suspension(&mut self, now: Time, span: Duration) {
        self.clock_ns = self
            .clock_ns
            .saturating_add(span.as_ps().div_ceil(PS_PER_NS));
        self.next(now);
    }

    #[cold]
    fn next(&mut self, now: Time) {
        let clock_ns = self.clock_ns.saturating_add(now.as_ns());
        let number = clock_ns / self.length_ns;
        debug_assert!(self.number <= number, "periods follow each other");
        self.number = number;
        let left_ns = self.length_ns - clock_ns % self.length_ns;
        // `clock_ns` counts whole nanoseconds, so start at the last whole nanosecond.
        let began = Time::from_ps(now.as_ps() / PS_PER_NS * PS_PER_NS);
        self.ends = began + Duration::from_ns(left_ns);
        debug_assert!(now < self.ends, "the present period has not ended");
    }

    #[inline]
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Whether requests may be posted now.
    #[inline]
    pub(crate) const fn is_open(&self) -> bool {
        self.number >= self.opens
    }

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
        stood.handle_suspension(at_ms(500), Duration::from_ms(64_000));
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
