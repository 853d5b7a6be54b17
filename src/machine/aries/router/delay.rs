//! What arrives behind a fixed number of stages.

/// Cycles ahead that something can be entered, plus one.
pub(super) const SLOTS: u64 = 128;

/// Counts by the cycle at which they are due, up to 127 cycles ahead.
///
/// As [`Calendar`](crate::kit::Calendar), with room for announcements long before.
#[derive(Debug)]
pub(super) struct DelayLine {
    slots: Box<[Vec<(u16, u32)>]>,
    occupied: u128,
}

impl DelayLine {
    pub(super) fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Vec::new()).collect(),
            occupied: 0,
        }
    }

    /// Enters `count` for `what` at cycle `due`, which is after the cycle that runs and less than
    /// [`SLOTS`] ahead.
    #[inline]
    pub(super) fn enter(&mut self, due: u64, what: u16, count: u32) {
        let slot = (due % SLOTS) as usize;
        self.slots[slot].push((what, count));
        self.occupied |= 1 << slot;
    }

    /// What is due at `now`, if anything. To be handed back by [`recycle`](Self::recycle).
    #[inline]
    pub(super) fn take_due(&mut self, now: u64) -> Option<Vec<(u16, u32)>> {
        let slot = (now % SLOTS) as usize;
        if self.occupied >> slot & 1 == 0 {
            return None;
        }
        self.occupied &= !(1 << slot);
        Some(core::mem::take(&mut self.slots[slot]))
    }

    /// Returns the storage of what was due at `now`.
    #[inline]
    pub(super) fn recycle(&mut self, now: u64, mut due: Vec<(u16, u32)>) {
        due.clear();
        self.slots[(now % SLOTS) as usize] = due;
    }

    /// The first cycle at or after `now` at which something is due.
    #[inline]
    pub(super) fn next_due(&self, now: u64) -> Option<u64> {
        if self.occupied == 0 {
            return None;
        }
        let ahead = self.occupied.rotate_right((now % SLOTS) as u32);
        Some(now + u64::from(ahead.trailing_zeros()))
    }
}
