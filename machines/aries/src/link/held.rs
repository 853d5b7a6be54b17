//! Sets that arrived after a gap.

use phitwire_framing::aries::flit::Flit;
use phitwire_framing::aries::set::DATA_FLITS;

/// Keeps sets by number in a ring, with a presence bit each.
#[derive(Debug)]
pub(super) struct HeldSets {
    /// Empty until the first set is held: on most wires none ever is.
    flits: Box<[[Flit; DATA_FLITS]]>,
    slots: usize,
    present: Box<[u64]>,
    limit: u64,
    held: u64,
}

impl HeldSets {
    /// Reserves room for the `limit` sets from the expected one on; 0 holds none.
    pub fn new(limit: u16) -> Self {
        let slots = match limit {
            0 => 0,
            _ => usize::from(limit).next_power_of_two().max(64),
        };
        Self {
            flits: Box::default(),
            slots,
            present: vec![0; slots / 64].into_boxed_slice(),
            limit: limit.into(),
            held: 0,
        }
    }

    #[inline]
    fn slot(&self, set: u64) -> usize {
        set as usize & self.slots.wrapping_sub(1)
    }

    #[inline]
    pub fn has(&self, set: u64) -> bool {
        let slot = self.slot(set);
        self.held != 0 && self.present[slot / 64] >> (slot % 64) & 1 != 0
    }

    /// Whether any set can be held.
    #[inline]
    pub fn keeps(&self) -> bool {
        self.limit != 0
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Whether `set` could be held while `expected` is expected.
    #[inline]
    pub fn reaches(&self, expected: u64, set: u64) -> bool {
        set - expected < self.limit
    }

    /// Keeps a set that [`Self::reaches`] and that is not held yet.
    #[inline]
    pub fn hold(&mut self, set: u64, flits: &[Flit; DATA_FLITS]) {
        if self.flits.is_empty() {
            self.flits = vec![[Flit::IDLE; DATA_FLITS]; self.slots].into_boxed_slice();
        }
        debug_assert!(!self.has(set), "set {set} is held once");
        let slot = self.slot(set);
        self.flits[slot] = *flits;
        self.present[slot / 64] |= 1 << (slot % 64);
        self.held += 1;
    }

    #[inline]
    pub fn take(&mut self, set: u64) -> Option<[Flit; DATA_FLITS]> {
        if !self.has(set) {
            return None;
        }
        let slot = self.slot(set);
        self.present[slot / 64] &= !(1 << (slot % 64));
        debug_assert!(self.held > 0, "a set that is present is counted");
        self.held -= 1;
        Some(self.flits[slot])
    }

    /// The next run of missing sets among those from `from` up to `to`, all within reach.
    pub fn gap(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let start = self.skip(from, to, true);
        if start >= to {
            return None;
        }
        Some((start, self.skip(start, to, false)))
    }

    /// The first missing set in `from..to` if `over_held`, otherwise the first held one; `to` if
    /// there is none.
    fn skip(&self, from: u64, to: u64, over_held: bool) -> u64 {
        if self.held == 0 {
            return if over_held { from } else { to };
        }
        let mut at = from;
        while at < to {
            let slot = self.slot(at);
            let word = self.present[slot / 64] >> (slot % 64);
            let run = if over_held {
                word.trailing_ones()
            } else {
                word.trailing_zeros()
            };
            let left = 64 - (slot % 64) as u32;
            at += u64::from(run.min(left));
            if run < left {
                break;
            }
        }
        at.min(to)
    }

    pub fn clear(&mut self) {
        self.present.fill(0);
        self.held = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire::rng::Rng;

    #[test]
    fn gaps_are_the_missing_sets() {
        let mut held = HeldSets::new(200);
        assert_eq!(held.gap(5, 9), Some((5, 9)));
        assert_eq!(held.gap(5, 5), None);
        for set in (60..70).chain(100..256) {
            held.hold(set, &[Flit::new(set); DATA_FLITS]);
        }
        assert_eq!(held.gap(58, 256), Some((58, 60)));
        assert_eq!(held.gap(60, 256), Some((70, 100)));
        assert_eq!(held.gap(100, 256), None);
        assert_eq!(held.gap(100, 258), Some((256, 258)));
        assert_eq!(held.gap(65, 90), Some((70, 90)));
        assert_eq!(held.take(65), Some([Flit::new(65); DATA_FLITS]));
        assert_eq!(held.take(65), None);
        assert_eq!(held.gap(60, 66), Some((65, 66)));
        assert!(held.reaches(57, 256) && !held.reaches(57, 257));
        held.clear();
        assert!(held.is_empty() && !held.has(100));
    }

    #[test]
    fn any_pattern_of_gaps_is_found() {
        let mut rng = Rng::new(4, 0);
        for _ in 0..200 {
            let mut held = HeldSets::new(64 << rng.below(3));
            let first = rng.below(1 << 40);
            let len = rng.below(held.limit + 1);
            let there: Vec<bool> = (0..len).map(|i| rng.chance(i % 7, 7)).collect();
            for (i, _) in there.iter().enumerate().filter(|(_, there)| **there) {
                held.hold(first + i as u64, &[Flit::IDLE; DATA_FLITS]);
            }
            let mut found = vec![true; there.len()];
            let mut at = first;
            while let Some((from, to)) = held.gap(at, first + len) {
                (from..to).for_each(|set| found[(set - first) as usize] = false);
                at = to;
            }
            assert_eq!(found, there);
        }
    }

    #[test]
    fn nothing_is_held_without_room() {
        let held = HeldSets::new(0);
        assert!(!held.reaches(5, 5) && !held.has(5));
        assert_eq!(held.gap(5, 9), Some((5, 9)));
    }
}
