//! Items that become due in the next few cycles.

/// Maximum number of cycles ahead that an item can be entered.
pub(crate) const MAX_AHEAD_CYCLES: u64 = 15;
const SLOTS: usize = MAX_AHEAD_CYCLES as usize + 1;

/// Items by the cycle at which they are due, up to 15 cycles ahead.
///
/// An idle stage is skipped and entered here for the cycle in which it has work again. Every cycle
/// with items must be visited: [`next_due`](Self::next_due) names the next one.
#[derive(Clone, Debug)]
pub struct Calendar<T> {
    slots: [Vec<T>; SLOTS],
    occupied: u16,
}

impl<T> Default for Calendar<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Calendar<T> {
    pub const fn new() -> Self {
        Self {
            slots: [const { Vec::new() }; SLOTS],
            occupied: 0,
        }
    }

    /// Enters `item` for cycle `now + ahead`; `ahead` is 1 to [`MAX_AHEAD_CYCLES`].
    #[inline]
    pub fn enter(&mut self, now: u64, ahead: u64, item: T) {
        debug_assert!(
            (1..=MAX_AHEAD_CYCLES).contains(&ahead),
            "{ahead} cycles ahead, outside 1 to {MAX_AHEAD_CYCLES}"
        );
        let slot = (now + ahead) as usize % SLOTS;
        self.slots[slot].push(item);
        self.occupied |= 1 << slot;
    }

    /// Whether items are due at cycle `now`.
    #[inline]
    pub const fn is_due(&self, now: u64) -> bool {
        self.occupied >> (now as usize % SLOTS) & 1 != 0
    }

    /// Takes the items due at cycle `now`, in order of entry. Return the vector with
    /// [`recycle`](Self::recycle) to avoid allocation in the steady state.
    #[inline]
    pub fn take_due(&mut self, now: u64) -> Vec<T> {
        let slot = now as usize % SLOTS;
        self.occupied &= !(1 << slot);
        core::mem::take(&mut self.slots[slot])
    }

    /// Returns the storage of the items taken at cycle `now`.
    #[inline]
    pub fn recycle(&mut self, now: u64, mut items: Vec<T>) {
        items.clear();
        self.slots[now as usize % SLOTS] = items;
    }

    /// The first cycle at or after `now` at which items are due.
    #[inline]
    pub const fn next_due(&self, now: u64) -> Option<u64> {
        if self.occupied == 0 {
            return None;
        }
        let ahead = self
            .occupied
            .rotate_right((now as usize % SLOTS) as u32)
            .trailing_zeros();
        Some(now + ahead as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_when_they_are_due_in_order() {
        for ahead in 1..=MAX_AHEAD_CYCLES {
            let mut calendar = Calendar::new();
            let mut seen = Vec::new();
            for now in 0..100u64 {
                assert_eq!(calendar.is_due(now), now >= ahead);
                let due = calendar.take_due(now);
                seen.extend(due.iter().map(|&(at, n)| (now - at, at * 2 + n)));
                calendar.recycle(now, due);
                calendar.enter(now, ahead, (now, 0));
                calendar.enter(now, ahead, (now, 1));
            }
            assert!(seen.iter().all(|&(waited, _)| waited == ahead));
            assert!(seen.iter().map(|s| s.1).eq(0..2 * (100 - ahead)));
        }
    }

    #[test]
    fn next_due_names_the_next_cycle_with_items() {
        let mut calendar = Calendar::new();
        assert_eq!(calendar.next_due(5), None);
        calendar.enter(5, 12, ());
        assert_eq!(calendar.next_due(6), Some(17));
        calendar.enter(9, 12, ());
        calendar.enter(9, 1, ());
        assert_eq!(calendar.next_due(10), Some(10));
        calendar.take_due(10);
        assert_eq!(calendar.next_due(11), Some(17));
        calendar.take_due(17);
        assert_eq!(calendar.next_due(18), Some(21));
        calendar.take_due(21);
        assert_eq!(calendar.next_due(22), None);
    }
}
