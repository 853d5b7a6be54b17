//! A fixed delay between two pipeline stages.

/// Cycles that a [`DelayLine`] can hold an item at most.
pub const MAX_DELAY_CYCLES: u64 = 15;
const SLOTS: usize = MAX_DELAY_CYCLES as usize + 1;

/// Items that become due a fixed number of cycles after they were put in: the registers and wires
/// between two stages.
///
/// Work grows with the items that move, not with the buffers that exist: a stage learns from its delay
/// line which buffers have something new, and a line without items costs nothing. Cycles with
/// items must all be visited: [`next_due`](Self::next_due) names the next one.
#[derive(Clone, Debug)]
pub struct DelayLine<T> {
    slots: [Vec<T>; SLOTS],
    occupied: u16,
    delay_cycles: u64,
}

impl<T> DelayLine<T> {
    /// A line of `delay_cycles` stages.
    ///
    /// # Panics
    /// If `delay_cycles` is zero (two stages would see each other's writes of one cycle) or larger
    /// than [`MAX_DELAY_CYCLES`].
    pub fn new(delay_cycles: u64) -> Self {
        assert!(
            (1..=MAX_DELAY_CYCLES).contains(&delay_cycles),
            "a delay of 1 to 15 cycles"
        );
        Self {
            slots: [const { Vec::new() }; SLOTS],
            occupied: 0,
            delay_cycles,
        }
    }

    /// Puts `item` in at cycle `now`.
    #[inline]
    pub fn push(&mut self, now: u64, item: T) {
        let slot = (now + self.delay_cycles) as usize % SLOTS;
        self.slots[slot].push(item);
        self.occupied |= 1 << slot;
    }

    /// Takes the items due at cycle `now`, oldest first. Hand the emptied vector back with
    /// [`recycle`](Self::recycle), so that nothing is allocated in the steady state.
    #[inline]
    pub fn take_due(&mut self, now: u64) -> Vec<T> {
        let slot = now as usize % SLOTS;
        self.occupied &= !(1 << slot);
        core::mem::take(&mut self.slots[slot])
    }

    /// Whether items are due at cycle `now`.
    #[inline]
    pub const fn is_due(&self, now: u64) -> bool {
        self.occupied >> (now as usize % SLOTS) & 1 != 0
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
    fn items_come_out_after_the_delay_in_order() {
        for delay in 1..=MAX_DELAY_CYCLES {
            let mut line = DelayLine::new(delay);
            let mut seen = Vec::new();
            for now in 0..100u64 {
                assert_eq!(line.is_due(now), now >= delay);
                let due = line.take_due(now);
                seen.extend(due.iter().map(|&(at, n)| (now - at, at * 2 + n)));
                line.recycle(now, due);
                line.push(now, (now, 0));
                line.push(now, (now, 1));
            }
            assert!(seen.iter().all(|&(waited, _)| waited == delay));
            assert!(seen.iter().map(|s| s.1).eq(0..2 * (100 - delay)));
        }
    }

    #[test]
    fn next_due_names_the_next_cycle_with_items() {
        let mut line = DelayLine::new(12);
        assert_eq!(line.next_due(5), None);
        line.push(5, ());
        assert_eq!(line.next_due(6), Some(17));
        line.push(9, ());
        assert_eq!(line.next_due(17), Some(17));
        line.take_due(17);
        assert_eq!(line.next_due(18), Some(21));
        line.take_due(21);
        assert_eq!(line.next_due(22), None);
    }

    #[test]
    #[should_panic(expected = "a delay of 1 to 15 cycles")]
    fn a_delay_of_zero_is_refused() {
        let _ = DelayLine::<u8>::new(0);
    }
}
