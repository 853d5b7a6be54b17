//! Holds counted arrivals until the cycle in which they are due.

/// Number of cycle slots; entries may be up to one less ahead.
pub(super) const SLOTS: u64 = 128;

/// A counted arrival: its identifier and count.
pub(super) type Due = (u16, u16);

/// Counts by the cycle in which they are due, up to 127 cycles ahead.
///
/// Like [`Calendar`](phitwire::kit::Calendar), but with room for announcements far ahead. Few slots
/// are in use at a time, so the storage emptied last, which is still in the cache, is filled next.
#[derive(Debug)]
pub(super) struct DelayLine {
    slots: Box<[Vec<Due>]>,
    spare: Vec<Vec<Due>>,
    occupied: u128,
}

impl DelayLine {
    pub(super) fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Vec::new()).collect(),
            spare: Vec::new(),
            occupied: 0,
        }
    }

    /// Adds `count` for `what` at cycle `due`, which must be after the current cycle and less than
    /// [`SLOTS`] ahead.
    #[inline]
    pub(super) fn enter(&mut self, due: u64, what: u16, count: u32) {
        let slot = (due % SLOTS) as usize;
        if self.slots[slot].is_empty() {
            self.occupied |= 1 << slot;
            self.slots[slot] = self.spare.pop().unwrap_or_default();
        }
        match u16::try_from(count) {
            Ok(count) => self.slots[slot].push((what, count)),
            Err(_) => self.enter_many(slot, what, count),
        }
    }

    /// Adds a count too large for one entry.
    #[cold]
    fn enter_many(&mut self, slot: usize, what: u16, mut count: u32) {
        while count > 0 {
            let now = u16::try_from(count).unwrap_or(u16::MAX);
            self.slots[slot].push((what, now));
            count -= u32::from(now);
        }
    }

    /// The arrivals due at `now`, if any. Return their storage with [`recycle`](Self::recycle).
    #[inline]
    pub(super) fn take_due(&mut self, now: u64) -> Option<Vec<Due>> {
        let slot = (now % SLOTS) as usize;
        if self.occupied >> slot & 1 == 0 {
            return None;
        }
        self.occupied &= !(1 << slot);
        Some(core::mem::take(&mut self.slots[slot]))
    }

    /// Takes back the storage of delivered arrivals.
    #[inline]
    pub(super) fn recycle(&mut self, mut due: Vec<Due>) {
        due.clear();
        self.spare.push(due);
    }

    /// The first cycle at or after `now` with a due arrival.
    #[inline]
    pub(super) fn next_due(&self, now: u64) -> Option<u64> {
        if self.occupied == 0 {
            return None;
        }
        let ahead = self.occupied.rotate_right((now % SLOTS) as u32);
        Some(now + u64::from(ahead.trailing_zeros()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_out_when_they_are_due() {
        let mut delay = DelayLine::new();
        let mut seen = Vec::new();
        for now in 0..400u64 {
            // The second is too large for one entry, the third has the same cycle as the first.
            delay.enter(now + 1, 1, 1);
            delay.enter(now + 90, 2, 200_000);
            delay.enter(now + SLOTS - 1, 3, u16::MAX.into());
            assert_eq!(delay.next_due(now + 1), Some(now + 1));
            if let Some(due) = delay.take_due(now) {
                let of = |kind| due.iter().filter(move |&&(what, _)| what == kind);
                let counts = |kind| of(kind).map(|&(_, count)| u64::from(count)).sum::<u64>();
                seen.push([counts(1), counts(2), counts(3)]);
                delay.recycle(due);
            }
        }
        let at = |cycle: usize| seen[cycle - 1];
        assert_eq!(at(1), [1, 0, 0]);
        assert_eq!(at(89), [1, 0, 0]);
        assert_eq!(at(90), [1, 200_000, 0]);
        assert_eq!(at(127), [1, 200_000, 65_535]);
        assert_eq!(at(399), [1, 200_000, 65_535]);
        assert_eq!(delay.spare.len(), 1, "an emptied slot is filled next");
    }
}
