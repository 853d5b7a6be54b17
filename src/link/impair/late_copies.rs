//! Late copies of frames, as from a duplicating switch with a deep queue, a second path, netem's
//! reordering under a long delay, or a replayed capture.

use std::collections::BTreeMap;

use super::netem::Probability;
use crate::rng::Rng;
use crate::time::{Duration, Time};

/// Maximum number of copies held by one [`LateCopies`]; frames beyond that are not copied, but
/// counted.
pub(crate) const MAX_HELD_COPIES: usize = 100_000;

/// Counters of [`LateCopies`], in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LateCopyCounters {
    pub(crate) taken: u64,
    /// Frames not copied because [`MAX_HELD_COPIES`] were held.
    pub(crate) over_limit: u64,
    pub(crate) delivered: u64,
}

/// Range of delays of copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// Shortest delay.
    pub(crate) least: Duration,
    /// Longest delay.
    pub(crate) most: Duration,
}

impl Lateness {
    /// A random delay, each order of magnitude equally likely: of copies 10 ms to 10 s late, as
    /// many come within 100 ms as after a second.
    fn pick(self, rng: &mut Rng) -> Duration {
        let (least, most) = (self.least.as_ps().max(1), self.most.as_ps());
        let mut octaves = 1;
        while least << octaves < most {
            octaves += 1;
        }
        let from = least << rng.below(octaves);
        Duration::from_ps((from + rng.below(from)).min(most))
    }
}

/// Copies a share of the frames in one direction of a link, and delivers the copies unchanged much
/// later. Seeded, like all impairments.
///
/// Call order: [`see`](Self::see) for each frame that passes, [`poll`](Self::poll) until `None`,
/// then again at [`next_deadline`](Self::next_deadline).
#[derive(Clone, Debug)]
pub(crate) struct LateCopies {
    share: Probability,
    lateness: Lateness,
    rng: Rng,
    /// Copies by due time; the serial number keeps equal times apart.
    held: BTreeMap<(Time, u64), Vec<u8>>,
    counters: LateCopyCounters,
}

impl LateCopies {
    #[cfg(test)]
    pub(crate) const fn counters(&self) -> &LateCopyCounters {
        &self.counters
    }

    /// Copies `share` of all frames.
    ///
    /// # Panics
    /// If the shortest delay exceeds the longest.
    pub(crate) fn new(share: Probability, lateness: Lateness, rng: Rng) -> Self {
        assert!(
            lateness.least <= lateness.most,
            "the shortest delay exceeds the longest"
        );
        Self {
            share,
            lateness,
            rng,
            held: BTreeMap::new(),
            counters: LateCopyCounters::default(),
        }
    }

    /// Takes no more copies; those held are still delivered.
    pub(crate) fn stop(&mut self) {
        self.share = Probability::ZERO;
    }

    /// A frame passes at `at`.
    pub(crate) fn see(&mut self, at: Time, bytes: &[u8]) {
        let point = (self.rng.next_u64() >> 32) as u32;
        if self.share == Probability::ZERO || point > self.share.parts() {
            return;
        }
        if self.held.len() == MAX_HELD_COPIES {
            self.counters.over_limit += 1;
            return;
        }
        let due = at + self.lateness.pick(&mut self.rng);
        self.counters.taken += 1;
        self.held
            .insert((due, self.counters.taken), bytes.to_owned());
    }

    /// The next copy due by `now`.
    pub(crate) fn poll(&mut self, now: Time) -> Option<(Time, Vec<u8>)> {
        let first = self.held.first_entry()?;
        let at = first.key().0;
        if at > now {
            return None;
        }
        self.counters.delivered += 1;
        Some((at, first.remove()))
    }

    /// When the next copy is due, if any is held.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.held.first_key_value().map(|((at, _), _)| *at)
    }

    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_ms(1);

    fn late(percent: u64) -> LateCopies {
        let lateness = Lateness {
            least: MS.times(10),
            most: MS.times(10_000),
        };
        LateCopies::new(
            Probability::from_ratio(percent, 100),
            lateness,
            Rng::new(7, 0),
        )
    }

    #[test]
    fn copies_are_unchanged_and_on_time_with_delays_of_every_magnitude() {
        let mut late = late(100);
        for number in 0..3_000_u32 {
            late.see(Time::ZERO, &number.to_be_bytes());
        }
        let mut came = Vec::new();
        let mut last = Time::ZERO;
        let mut decades = [0_u32; 3];
        while let Some(next) = late.next_deadline() {
            assert_eq!(
                late.poll(Time::from_ps(next.as_ps() - 1)),
                None,
                "not before"
            );
            let (at, bytes) = late.poll(next).expect("the copy is due");
            assert!(at >= last && at == next);
            last = at;
            let ms = at.since(Time::ZERO).as_ns() / 1_000_000;
            assert!((10..=10_000).contains(&ms), "{ms} ms");
            decades[ms.ilog10().min(3) as usize - 1] += 1;
            came.push(u32::from_be_bytes(bytes.try_into().expect("four bytes")));
        }
        came.sort_unstable();
        assert_eq!(came, (0..3_000).collect::<Vec<_>>());
        assert!(decades.iter().all(|copies| *copies > 600), "{decades:?}");
        assert_eq!(late.counters().delivered, 3_000);
    }

    #[test]
    fn a_share_is_copied_and_none_once_stopped() {
        let mut late = late(5);
        for _ in 0..10_000 {
            late.see(Time::ZERO, &[1]);
        }
        let held = late.held();
        assert!((400..600).contains(&held), "{held}");
        late.stop();
        late.see(Time::ZERO, &[2]);
        assert_eq!(late.held(), held);
    }

    #[test]
    fn held_copies_are_bounded() {
        let mut late = late(100);
        for _ in 0..MAX_HELD_COPIES + 10 {
            late.see(Time::ZERO, &[]);
        }
        assert_eq!(late.held(), MAX_HELD_COPIES);
        assert_eq!(late.counters().over_limit, 10);
    }
}
