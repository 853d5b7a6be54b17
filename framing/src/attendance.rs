//! A clock for timeouts, which counts only time during which the process ran.
//!
//! A stopped host (a suspended machine, a frozen control group, a stopped process) or one without a
//! free processor does not mean a broken network. The awaited input may have arrived long ago and
//! be unread, so time during which the process could not check its inputs must not count towards a
//! timeout.

/// Longest gap in milliseconds between two checks of the inputs, intended sleep aside, that does
/// not count as a suspension. It is a fraction of every timeout (the shortest is `give_up_ms` at 2
/// s), and several time slices of a busy host.
pub const LONGEST_GAP_MS: u64 = 50;

/// Attended time of one process, in any unit, derived from a clock that never stops.
///
/// Call [`look`](Self::look) at each check of the inputs, and wherever the time is needed in
/// between. Each call counts the time since the previous one, up to the longest gap plus the
/// intended sleep. So timeouts take longer on a starved host but still end.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttendedClock {
    longest_gap: u64,
    looked: u64,
    absent: u64,
    unreported: u64,
}

impl AttendedClock {
    /// A clock that starts at `now`. A gap above `longest_gap` is a suspension.
    pub const fn new(longest_gap: u64, now: u64) -> Self {
        Self {
            longest_gap,
            looked: now,
            absent: 0,
            unreported: 0,
        }
    }

    /// Checks the clock at `now`, after an intended sleep of up to `asleep` since the last call.
    /// Returns the attended time.
    #[inline]
    pub const fn look(&mut self, now: u64, asleep: u64) -> u64 {
        let gap = now.saturating_sub(self.looked);
        self.leave_out(gap.saturating_sub(asleep.saturating_add(self.longest_gap)));
        self.looked = now;
        self.attended()
    }

    /// Like [`look`](Self::look), but excludes all time since the last call. Use it while the
    /// inputs may hold data that arrived during a suspension.
    pub const fn hold(&mut self, now: u64) -> u64 {
        self.leave_out(now.saturating_sub(self.looked));
        self.looked = now;
        self.attended()
    }

    const fn leave_out(&mut self, span: u64) {
        self.absent += span;
        self.unreported += span;
    }

    /// The attended time at the last [`look`](Self::look) or [`hold`](Self::hold).
    #[inline]
    pub const fn attended(&self) -> u64 {
        self.looked - self.absent
    }

    /// Total time excluded: attended time plus this is the time of the underlying clock.
    #[inline]
    pub const fn absent(&self) -> u64 {
        self.absent
    }

    /// Time excluded since the last call of this function.
    #[inline]
    pub const fn take_standstill(&mut self) -> u64 {
        core::mem::replace(&mut self.unreported, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standstills_do_not_count_and_sleeps_do() {
        let mut clock = AttendedClock::new(50, 1_000);
        assert_eq!(clock.look(1_050, 0), 1_050, "an allowed gap");
        assert_eq!(
            clock.look(4_050, 3_000),
            4_050,
            "a sleep that ended on time"
        );
        assert_eq!(
            clock.look(7_100, 3_000),
            7_100,
            "a sleep that ended slightly late"
        );
        assert_eq!(clock.take_standstill(), 0);
        assert_eq!(clock.look(10_200, 3_000), 10_150, "overslept");
        assert_eq!(clock.look(13_200, 0), 10_200, "prevented from running");
        assert_eq!(clock.take_standstill(), 50 + 2_950);
        assert_eq!(clock.take_standstill(), 0);
        assert_eq!(
            clock.hold(13_900),
            10_200,
            "the input queues are still full"
        );
        assert_eq!(clock.take_standstill(), 700);
        assert_eq!(clock.attended() + clock.absent(), 13_900);
    }

    #[test]
    fn on_a_starved_host_patience_ends_all_the_same() {
        let mut clock = AttendedClock::new(50, 0);
        let rounds = (1..).find(|n| clock.look(n * 1_000, 10) >= 2_000);
        assert_eq!(rounds, Some(34));
    }
}
