//! What a wait is worth whose process stood still.

use phitwire_framing::attendance::AttendedClock;

use crate::time::{Duration, Time};

/// A process that had no look at its inputs for longer than this stood still, unless it slept on
/// purpose. A fraction of every patience (the shortest is the 2 s of `give_up_ms`), and several time
/// slices of a busy host.
pub const LONGEST_GAP: Duration = Duration::from_ms(50);

/// Attended time of a node: what a driver hands to it as `now`.
#[derive(Clone, Copy, Debug)]
pub struct Attendance {
    clock: AttendedClock,
}

impl Attendance {
    /// The node's time begins at `now`.
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

    /// The attended time at the last look.
    #[inline]
    pub const fn now(&self) -> Time {
        Time::from_ps(self.clock.attended())
    }

    /// When it will be `attended` if the process runs until then.
    #[inline]
    pub fn clock_time(&self, attended: Time) -> Time {
        attended + Duration::from_ps(self.clock.absent())
    }

    /// How long the process stood still since this was last asked.
    #[inline]
    pub const fn take_standstill(&mut self) -> Duration {
        Duration::from_ps(self.clock.take_standstill())
    }
}

/// What waits for others are given after the own process stood still.
///
/// Whatever stopped it may have stopped them, and may let them go later. So a wait that had begun
/// lasts longer by as much as the standstill, within bounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Grace {
    span: Duration,
    woken: Time,
}

impl Grace {
    /// The process stood still for `span` until `now`. All standstills together are good for `most`.
    pub fn stood_still(&mut self, now: Time, span: Duration, most: Duration) {
        self.span = (self.span + span).min(most);
        self.woken = now;
    }

    /// How much longer than usual to wait for what has been waited for since `since`.
    #[inline]
    pub fn of(&self, since: Time) -> Duration {
        if since <= self.woken {
            self.span
        } else {
            Duration::ZERO
        }
    }

    /// How much longer than usual to wait for others that have not been seen to run.
    #[inline]
    pub fn span(&self) -> Duration {
        self.span
    }

    /// Others have been seen to run for `settled` since the process woke: usual waits will do.
    #[inline]
    pub fn end(&mut self, now: Time, settled: Duration) {
        if self.span != Duration::ZERO && self.woken + settled <= now {
            self.span = Duration::ZERO;
        }
    }
}

/// Standstills kept apart.
const MOST_KEPT: usize = 32;

/// When a process stood still, so that what is measured across a standstill contains it: patience
/// does not count that time, a measurement does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standstills {
    /// The attended time of each, and how long it was.
    all: Vec<(Time, Duration)>,
}

impl Standstills {
    pub fn add(&mut self, now: Time, span: Duration) {
        if self.all.len() == MOST_KEPT {
            // The two oldest become one: a span that began between them is taken for longer.
            let (_, oldest) = self.all.remove(0);
            self.all[0].1 = self.all[0].1 + oldest;
        }
        self.all.push((now, span));
    }

    /// How long it was from `earlier` to `later`, both of attended time, by a clock that does not
    /// stop.
    #[inline]
    pub fn span(&self, earlier: Time, later: Time) -> Duration {
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
        grace.stood_still(ms(10), span, most);
        assert_eq!(grace.of(ms(9)), Duration::from_ms(70));
        assert_eq!(grace.of(ms(11)), Duration::ZERO);
        grace.stood_still(ms(20), span, most);
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
