//! Due times of the messages of a run with a rate.

use super::traffic_spec::Gaps;
use crate::rng::{Geometric, Rng};
use crate::time::{Duration, Time};

const PS_PER_SECOND: u128 = 1_000_000_000_000;

/// Stream of the seed for the start time of a source, separate from that of its destinations.
const PHASE_STREAM: u64 = 1 << 33;

/// Random gaps are multiples of the mean gap divided by this number, which approximates an
/// exponential distribution.
const STEPS: u64 = 256;

/// An open loop: the messages of one source are due at even intervals or after random gaps, whether
/// or not earlier ones could be issued.
///
/// With even gaps, message *k* is due exactly *k* / rate after the first, rounded up to a
/// picosecond, so that errors do not accumulate. The first is due at a random time within the first
/// interval, so that sources do not send in step. A node that runs late finds several messages due
/// at once.
///
/// Random gaps have a geometric distribution with the same mean, like those of the sources of
/// `phitwire sim`: the open loop of queueing theory.
///
/// If the window or the queue before the link is full, due messages are owed, up to a window of
/// them, and issued as soon as possible. Due messages beyond that are dropped and counted.
/// Otherwise an unbounded burst would follow a short stop of the network, and a network that cannot
/// carry the rate would be offered its whole backlog at the end of the run.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    rate: u64,
    /// Maximum number of messages owed.
    most: u64,
    first: Time,
    /// Messages due so far.
    due: u64,
    next: Time,
    owed: u64,
    /// Due messages that will never be issued.
    dropped: u64,
    random: Option<(Rng, Geometric)>,
    /// Total time of suspensions, included in due times: messages due during a suspension are owed
    /// or dropped.
    standstill: Duration,
}

impl Pace {
    /// Paces source `own`, which issues `rate` messages per second, above zero, from `now` on and
    /// owes at most `most`.
    pub(crate) fn new(
        (rate, gaps): (u64, Gaps),
        most: u32,
        (seed, own): (u64, u16),
        now: Time,
    ) -> Self {
        assert!(rate > 0, "a run without a rate has no pace");
        let interval = (PS_PER_SECOND as u64).div_ceil(rate);
        let mut rng = Rng::new(seed, PHASE_STREAM | u64::from(own));
        let first = Time::from_ps(now.as_ps().saturating_add(rng.below(interval)));
        Self {
            rate,
            most: most.into(),
            first,
            due: 0,
            next: first,
            owed: 0,
            dropped: 0,
            random: (gaps == Gaps::Random).then(|| (rng, Geometric::new(1, STEPS))),
            standstill: Duration::ZERO,
        }
    }

    /// Advances to `now`, and returns the number of messages that may be issued.
    #[inline]
    pub(crate) fn owed(&mut self, now: Time) -> u64 {
        let now = now + self.standstill;
        if now >= self.next {
            self.fall_due(now);
        }
        self.owed
    }

    /// Records a suspension of the process for `span`; later values of `now` exclude it.
    pub(crate) fn handle_suspension(&mut self, span: Duration) {
        self.standstill = self.standstill + span;
    }

    fn fall_due(&mut self, now: Time) {
        if self.random.is_some() {
            self.fall_due_at_random(now);
        } else {
            self.fall_due_evenly(now);
        }
        let excess = self.owed.saturating_sub(self.most);
        self.owed -= excess;
        self.dropped += excess;
        debug_assert!(
            self.owed <= self.most && self.owed + self.dropped <= self.due,
            "a due message is owed, dropped or issued"
        );
    }

    fn fall_due_at_random(&mut self, now: Time) {
        let Some((rng, gap)) = &mut self.random else {
            return;
        };
        let interval = (PS_PER_SECOND as u64).div_ceil(self.rate);
        // After a stop of many intervals, count the mean number of messages; all but a window are
        // dropped anyway.
        let missed = now.since(self.next).as_ps() / interval;
        if missed > 2 * self.most + STEPS {
            self.due += missed;
            self.owed += missed;
            self.next = now;
        }
        while self.next <= now && self.next < Time::NEVER {
            self.due += 1;
            self.owed += 1;
            let gap = u128::from(interval) * u128::from(1 + gap.draw(rng)) / u128::from(STEPS);
            let next = u128::from(self.next.as_ps()) + gap.max(1);
            self.next = Time::from_ps(u64::try_from(next).unwrap_or(u64::MAX));
        }
    }

    fn fall_due_evenly(&mut self, now: Time) {
        let since = u128::from(now.since(self.first).as_ps());
        // The result is below 2^64, because the rate is below one message per nanosecond.
        let due = (since * u128::from(self.rate) / PS_PER_SECOND) as u64 + 1;
        debug_assert!(self.due <= due, "messages fall due one after another");
        self.owed += due - self.due;
        self.due = due;
        let after = (u128::from(due) * PS_PER_SECOND).div_ceil(self.rate.into());
        let next = u128::from(self.first.as_ps()) + after;
        self.next = Time::from_ps(u64::try_from(next).unwrap_or(u64::MAX));
    }

    /// Records that `messages` of the owed messages were issued.
    #[inline]
    pub(crate) fn issued(&mut self, messages: u64) {
        debug_assert!(messages <= self.owed, "more messages issued than owed");
        self.owed -= messages;
    }

    /// When the next message is due, unless messages are owed. In that case the event that unblocks
    /// the source wakes it.
    #[inline]
    pub(crate) fn next_issue(&self) -> Option<Time> {
        let next = self.next.as_ps().saturating_sub(self.standstill.as_ps());
        (self.owed == 0).then_some(Time::from_ps(next))
    }

    /// Ends issuing at `end`, and drops the messages still owed then.
    pub(crate) fn end(&mut self, end: Time) {
        // A message due exactly at the end is not part of the run.
        if let Some(last) = end.as_ps().checked_sub(1) {
            self.owed(Time::from_ps(last));
        }
        self.dropped += self.owed;
        self.owed = 0;
    }

    /// Messages that were due and will not be issued.
    pub(crate) const fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    const SECOND: Time = Time::from_ps(1_000_000_000_000);

    fn pace(rate: u64, most: u32, seed: u64) -> Pace {
        Pace::new((rate, Gaps::Even), most, (seed, 3), Time::ZERO)
    }

    /// Issues messages as they become due until `end`, and returns the times.
    fn issues(pace: &mut Pace, end: Time) -> Vec<Time> {
        let mut all = Vec::new();
        while let Some(now) = pace.next_issue().filter(|&at| at < end) {
            assert_eq!(pace.owed(now), 1, "one message at a time, each when due");
            pace.issued(1);
            all.push(now);
        }
        all
    }

    #[test]
    fn a_rate_is_kept_exactly_and_evenly() {
        for rate in [1, 3, 7, 1_000, 333_333, 1_000_003] {
            let mut pace = pace(rate, 1, 5);
            let end = Time::from_ps(3 * SECOND.as_ps());
            let all = issues(&mut pace, end);
            assert_eq!(all.len() as u64, 3 * rate, "{rate} per second");
            let interval = SECOND.as_ps() / rate;
            let (first, last) = (all[0], all[all.len() - 1]);
            let exact = (3 * rate - 1) as u128 * PS_PER_SECOND;
            let exact = exact.div_ceil(u128::from(rate)) as u64;
            assert_eq!(last.since(first), Duration::from_ps(exact), "no drift");
            for two in all.windows(2) {
                let gap = two[1].since(two[0]).as_ps();
                assert!(
                    (interval..=interval + 1).contains(&gap),
                    "{gap} of {interval} ps"
                );
            }
            pace.end(end);
            assert_eq!(pace.dropped(), 0);
        }
    }

    #[test]
    fn sources_start_at_different_times_set_by_the_seed() {
        let first = |own, seed| Pace::new((10, Gaps::Even), 1, (seed, own), SECOND).first;
        let all: Vec<Time> = (0..100).map(|own| first(own, 1)).collect();
        let interval = SECOND.as_ps() / 10;
        assert!(all.iter().all(|at| at.since(SECOND).as_ps() < interval));
        for part in 0..4 {
            let quarter = |at: &&Time| at.since(SECOND).as_ps() * 4 / interval == part;
            let here = all.iter().filter(quarter).count();
            assert!((10..=40).contains(&here), "{here} of 100 in quarter {part}");
        }
        assert_eq!(first(7, 1), first(7, 1));
        assert_ne!(first(7, 1), first(7, 2));
    }

    #[test]
    fn owed_messages_are_bounded_and_the_rest_is_counted() {
        let mut pace = pace(1_000, 50, 1);
        let at = |ms| Time::ZERO + Duration::from_ms(ms);
        // Issue nothing for a tenth of a second.
        for ms in [10, 20, 100] {
            assert_eq!(pace.owed(at(ms)), ms.min(50));
            assert_eq!(
                pace.next_issue(),
                None,
                "a blocked message schedules no wake-up"
            );
        }
        assert_eq!(pace.dropped(), 50);
        pace.issued(50);
        let next = pace.next_issue().expect("no message is owed");
        assert!(next > at(100) && next <= at(101));
        assert_eq!(pace.owed(at(110)), 10);
        pace.issued(4);
        pace.end(at(120));
        assert_eq!((pace.dropped(), pace.owed), (50 + 16, 0));
        // Every due message is either issued or dropped.
        assert_eq!(pace.due, 54 + 66);
    }

    /// A stop of days is handled in one step, not per message, and does not overflow.
    #[test]
    fn a_long_stop_costs_no_more_than_a_short_one() {
        for gaps in [Gaps::Even, Gaps::Random] {
            let rate = (super::super::traffic_spec::MAX_RATE, gaps);
            let mut pace = Pace::new(rate, 1 << 16, (1, 3), Time::ZERO);
            let late = Time::from_ps(u64::MAX - 1);
            assert_eq!(pace.owed(late), 1 << 16);
            assert!(pace.dropped() > 1 << 53);
            pace.issued(1 << 16);
            assert!(pace.next_issue().is_some_and(|at| at > late));
        }
    }

    /// Exponentially distributed gaps have a standard deviation equal to their mean.
    #[test]
    fn random_gaps_have_the_mean_of_the_rate_and_its_deviation() {
        let mut pace = Pace::new((1_000, Gaps::Random), 9, (5, 3), Time::ZERO);
        let all = issues(&mut pace, Time::from_ps(20 * SECOND.as_ps()));
        let gap = |two: &[Time]| two[1].since(two[0]).as_ps() as f64 / 1e9;
        let gaps: Vec<f64> = all.windows(2).map(gap).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>();
        let deviation = (variance / gaps.len() as f64).sqrt();
        // The standard error over 20,000 gaps allows 0.02 for the mean and 0.03 for the deviation.
        assert!((mean - 1.0).abs() < 0.022, "{mean}");
        assert!((deviation - 1.0).abs() < 0.03, "{deviation}");
    }

    #[test]
    fn a_run_that_is_over_before_its_first_message_owes_nothing() {
        let mut pace = pace(1, 10, 1);
        assert!(pace.first > Time::from_ns(2));
        pace.end(Time::from_ns(1));
        assert_eq!(pace.dropped(), 0);
        pace.end(Time::ZERO);
        assert_eq!(pace.dropped(), 0);
    }
}
