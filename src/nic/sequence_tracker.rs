//! Checks numbers that should arrive in sequence, and accounts for the others.

use std::collections::BTreeSet;

/// Maximum number of skipped numbers remembered per set of counters; numbers beyond that stay
/// missing.
const MAX_HOLES: usize = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SequenceArrival {
    InOrder,
    /// Later than the next one; this many numbers were skipped.
    Ahead(u32),
    /// After a later one, but for the first time.
    Late,
    Again,
}

/// Counters from zero that wrap at 2^32. Each number should arrive exactly once.
#[derive(Clone, Debug, Default)]
pub(crate) struct SequenceTracker {
    next: Box<[u32]>,
    /// Skipped numbers with their counter; empty in an orderly run.
    holes: BTreeSet<(u16, u32)>,
}

impl SequenceTracker {
    pub(crate) fn new(counters: usize) -> Self {
        assert!(
            counters <= 1 << u16::BITS,
            "a hole names its counter by 16 bits"
        );
        Self {
            next: vec![0; counters].into_boxed_slice(),
            holes: BTreeSet::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.next.len()
    }

    /// The next expected number; `None` if the counter does not exist.
    #[inline]
    pub(crate) fn next(&self, counter: u64) -> Option<u32> {
        self.next.get(usize::try_from(counter).ok()?).copied()
    }

    /// Records that the next number of `counter` arrived.
    #[inline]
    pub(crate) fn advance(&mut self, counter: u64) {
        let next = &mut self.next[counter as usize];
        *next = next.wrapping_add(1);
    }

    /// Records that `number` arrived. Half of all numbers count as later than the next, the others
    /// as earlier.
    pub(crate) fn take(&mut self, counter: u64, number: u32) -> SequenceArrival {
        let next = self.next[counter as usize];
        let key = counter as u16;
        let skipped = number.wrapping_sub(next);
        match skipped {
            0 => {
                self.advance(counter);
                SequenceArrival::InOrder
            }
            1..=0x7fff_ffff => {
                let room = MAX_HOLES - self.holes.len();
                let kept = (skipped as usize).min(room) as u32;
                // Keep the latest, which are the most likely still to arrive.
                let first = skipped - kept;
                let holes = (first..skipped).map(|n| (key, next.wrapping_add(n)));
                self.holes.extend(holes);
                debug_assert!(
                    self.holes.len() <= MAX_HOLES,
                    "the number of remembered holes is bounded"
                );
                self.next[counter as usize] = number.wrapping_add(1);
                SequenceArrival::Ahead(skipped)
            }
            _ if self.holes.remove(&(key, number)) => SequenceArrival::Late,
            _ => SequenceArrival::Again,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_counts_once_however_late() {
        let mut turns = SequenceTracker::new(2);
        assert_eq!(turns.take(0, 0), SequenceArrival::InOrder);
        assert_eq!(turns.take(0, 5_000), SequenceArrival::Ahead(4_999));
        for number in (1..5_000).rev() {
            assert_eq!(turns.take(0, number), SequenceArrival::Late, "{number}");
        }
        for number in [0, 1, 4_999, 5_000] {
            assert_eq!(turns.take(0, number), SequenceArrival::Again, "{number}");
        }
        assert_eq!((turns.next(0), turns.next(1)), (Some(5_001), Some(0)));
        assert_eq!(turns.next(2), None);
        assert!(turns.holes.is_empty());
    }

    #[test]
    fn remembered_gaps_are_bounded() {
        let mut turns = SequenceTracker::new(1);
        assert_eq!(turns.take(0, 1 << 20), SequenceArrival::Ahead(1 << 20));
        assert_eq!(turns.holes.len(), MAX_HOLES);
        assert_eq!(turns.take(0, (1 << 20) - 1), SequenceArrival::Late);
        assert_eq!(turns.take(0, 3), SequenceArrival::Again);
    }

    #[test]
    fn numbers_wrap() {
        let mut turns = SequenceTracker::new(1);
        turns.next[0] = u32::MAX;
        assert_eq!(turns.take(0, 1), SequenceArrival::Ahead(2));
        assert_eq!(turns.take(0, u32::MAX), SequenceArrival::Late);
        assert_eq!(turns.take(0, 0), SequenceArrival::Late);
        assert_eq!(turns.take(0, 2), SequenceArrival::InOrder);
    }
}
