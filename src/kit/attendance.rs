//! Attended time: timeouts exclude the time during which the process did not run; measurements
//! include it.

use phitwire_framing::attendance::{AttendedClock, LONGEST_GAP_MS};

use crate::time::{Duration, Time};

/// If two checks of the inputs are farther apart than this, intended sleep not counted, the process
/// was suspended.
pub const LONGEST_GAP: Duration = Duration::from_ms(LONGEST_GAP_MS);

/// Attended time of a node, which its driver passes to it as `now`.
#[derive(Clone, Copy, Debug)]
pub struct Attendance {
    clock: AttendedClock,
}

impl Attendance {
    /// Attended time that begins at `now`.
    pub const fn new(now: Time) -> Self {
        Self {
            clock: AttendedClock::new(LONGEST_GAP.as_ps(), now.as_ps()),
        }
    }

    /// See [`AttendedClock::look`].
    #[inline]
    pub const fn look(&mut self, now: Time, asleep: Duration) -> Time {
        Time::from_ps(self.clock.look(now.as_ps(), asleep.as_ps()))
    }

    /// See [`AttendedClock::hold`].
    pub const fn hold(&mut self, now: Time) -> Time {
        Time::from_ps(self.clock.hold(now.as_ps()))
    }

    /// The attended time at the last check.
    #[inline]
    pub(crate) const fn now(&self) -> Time {
        Time::from_ps(self.clock.attended())
    }

    /// The clock time at which attended time reaches `attended`, if the process runs until then.
    #[inline]
    pub(crate) fn clock_time(&self, attended: Time) -> Time {
        attended + Duration::from_ps(self.clock.absent())
    }

    /// Total time for which the process was suspended since the last call.
    #[inline]
    pub const fn take_standstill(&mut self) -> Duration {
        Duration::from_ps(self.clock.take_standstill())
    }
}

/// Extra time for waits on peers after this process was suspended.
///
/// Whatever suspended this process may have suspended its peers too, and they may resume later. A
/// wait already begun is therefore extended by the length of the suspension, up to a limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Grace {
    span: Duration,
    woken: Time,
}

impl Grace {
    /// The process was suspended for `span` until `now`. The total extension is at most `most`.
    pub(crate) fn handle_suspension(&mut self, now: Time, span: Duration, most: Duration) {
        self.span = (self.span + span).min(most);
        self.woken = now;
    }

    /// Extension of a wait that began at `since`.
    #[inline]
    pub(crate) fn of(&self, since: Time) -> Duration {
        if since <= self.woken {
            self.span
        } else {
            Duration::ZERO
        }
    }

    /// Extension of a wait for peers that are not yet known to run.
    #[inline]
    pub(crate) fn span(&self) -> Duration {
        self.span
    }

    /// Records that peers are known to run. The extension ends if `settled` has passed since the
    /// process woke.
    #[inline]
    pub(crate) fn end(&mut self, now: Time, settled: Duration) {
        if self.span != Duration::ZERO && self.woken + settled <= now {
            self.span = Duration::ZERO;
        }
    }
}

/// Maximum number of suspensions recorded separately; older ones are merged.
const MOST_KEPT: usize = 32;

/// Suspensions of a process. A measurement uses them to convert attended times into clock time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standstills {
    /// Attended time and length of each suspension.
    all: Vec<(Time, Duration)>,
}

impl Standstills {
    pub(crate) fn add(&mut self, now: Time, span: Duration) {
        if self.all.len() == MOST_KEPT {
            // Merge the two oldest. A span that began between them is then overestimated.
            let (_, oldest) = self.all.remove(0);
            self.all[0].1 = self.all[0].1 + oldest;
        }
        self.all.push((now, span));
    }

    /// Clock time between two attended times.
    #[inline]
    pub(crate) fn span(&self, earlier: Time, later: Time) -> Duration {
        let attended = later.since(earlier);
        match self.all.last() {
            Some((last, _)) if *last >= earlier => attended + self.within(earlier, later),
            _ => attended,
        }
    }

    #[cold]
    fn within(&self, earlier: Time, later: Time) -> Duration {
        let within = self.all.iter().rev().take_while(|(at, _)| *at >= earlier);
        let within = within.filter(|(at, _)| *at <= later);
        within.fold(Duration::ZERO, |sum, (_, span)| sum + *span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Duration::from_ms(ms)
    }

    #[test]
    fn grace_is_for_waits_that_had_begun_and_is_bounded() {
        let mut grace = Grace::default();
        let (span, most) = (Duration::from_ms(70), Duration::from_ms(100));
        grace.handle_suspension(ms(10), span, most);
        assert_eq!(grace.of(ms(9)), Duration::from_ms(70));
        assert_eq!(grace.of(ms(11)), Duration::ZERO);
        grace.handle_suspension(ms(20), span, most);
        assert_eq!(grace.of(ms(11)), Duration::from_ms(100));
        grace.end(ms(24), Duration::from_ms(5));
        assert_eq!(grace.of(ms(11)), Duration::from_ms(100));
        grace.end(ms(25), Duration::from_ms(5));
        assert_eq!(grace.of(ms(11)), Duration::ZERO);
    }

    #[test]
    fn measurements_contain_standstills() {
        let mut standstills = Standstills::default();
        for n in 0..40 {
            standstills.add(ms(10 * n), Duration::from_ms(1_000));
        }
        assert_eq!(standstills.all.len(), MOST_KEPT);
        assert_eq!(standstills.span(ms(391), ms(395)), Duration::from_ms(4));
        assert_eq!(standstills.span(ms(385), ms(395)), Duration::from_ms(1_010));
        assert_eq!(standstills.span(ms(365), ms(375)), Duration::from_ms(1_010));
        assert_eq!(standstills.span(ms(0), ms(395)), Duration::from_ms(40_395));
    }
}
