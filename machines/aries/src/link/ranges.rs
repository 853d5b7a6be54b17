//! Runs of sets requested again by the peer.

/// Maximum number of runs kept; beyond it everything is resent.
const MAX_RANGES: usize = 32;

/// Runs of sets to be replayed, oldest request first.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    list: [(u64, u64); MAX_RANGES],
    len: usize,
}

impl Ranges {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Sets in all runs, except those below `acked`.
    pub fn sets(&self, acked: u64) -> u64 {
        let runs = self.list[..self.len].iter();
        runs.map(|(from, to)| to.saturating_sub(acked.max(*from)))
            .sum()
    }

    /// Adds the sets from `from` up to `to`; those already queued keep their position. Returns
    /// false if there are too many runs.
    pub fn add(&mut self, from: u64, to: u64) -> bool {
        debug_assert!(from <= to, "a run does not go back");
        for run in &mut self.list[..self.len] {
            if from <= run.1 && run.0 <= to {
                *run = (run.0.min(from), run.1.max(to));
                return true;
            }
        }
        if self.len == MAX_RANGES {
            return false;
        }
        self.list[self.len] = (from, to);
        self.len += 1;
        true
    }

    /// The first run, without the sets below `acked`.
    pub fn front(&mut self, acked: u64) -> Option<(u64, u64)> {
        while self.len > 0 {
            let (from, to) = self.list[0];
            if to > acked {
                return Some((from.max(acked), to));
            }
            self.remove_front();
        }
        None
    }

    /// Records that the first `sets` sets of the first run, as returned by [`Self::front`], were
    /// sent.
    pub fn sent(&mut self, from: u64, sets: u64) {
        debug_assert!(
            self.len > 0 && from + sets <= self.list[0].1,
            "the sets were those of the first run"
        );
        self.list[0].0 = from + sets;
        if self.list[0].0 >= self.list[0].1 {
            self.remove_front();
        }
    }

    fn remove_front(&mut self) {
        self.list.copy_within(1..self.len, 0);
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_join_and_go_out_in_the_order_of_the_requests() {
        let mut ranges = Ranges::default();
        assert!(ranges.add(10, 12) && ranges.add(5, 7) && ranges.add(11, 15) && ranges.add(7, 8));
        assert_eq!(ranges.sets(0), 8);
        assert_eq!(ranges.sets(6), 7);
        assert_eq!(ranges.front(0), Some((10, 15)));
        ranges.sent(10, 3);
        assert_eq!(ranges.front(0), Some((13, 15)));
        assert_eq!(ranges.front(14), Some((14, 15)));
        ranges.sent(14, 1);
        assert_eq!(ranges.front(6), Some((6, 8)));
        assert_eq!(ranges.front(8), None);
        assert!(ranges.is_empty());
    }

    #[test]
    fn bounded() {
        let mut ranges = Ranges::default();
        for i in 0..MAX_RANGES as u64 {
            assert!(ranges.add(10 * i, 10 * i + 1));
        }
        assert!(!ranges.add(1_000, 1_001) && ranges.add(5, 10));
        ranges.clear();
        assert_eq!(ranges.sets(0), 0);
    }
}
