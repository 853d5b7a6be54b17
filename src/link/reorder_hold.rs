//! How late a missing frame may be before it counts as lost.

use crate::time::Duration;

/// How long a gap may be attributed to a late frame.
///
/// Learnt per link, like the reordering window of RACK (RFC 8985): a gap that fills without a
/// resend shows how late frames get; a frame that arrives after its gap was declared lost shows
/// that the hold is too short; true losses shrink it.
#[derive(Clone, Debug)]
pub struct ReorderHold {
    hold: Duration,
    least: Duration,
    most: Duration,
}

impl ReorderHold {
    pub fn new(least: Duration, most: Duration) -> Self {
        debug_assert!(least <= most, "the shortest hold is not above the longest");
        Self {
            hold: least,
            least,
            most,
        }
    }

    #[inline]
    pub fn get(&self) -> Duration {
        self.hold
    }

    fn set(&mut self, ps: u64) {
        self.hold = Duration::from_ps(ps).max(self.least).min(self.most);
        debug_assert!(self.least <= self.hold && self.hold <= self.most);
    }

    /// A gap filled without a resend after `extent`, and another is open.
    pub fn at_least(&mut self, extent: Duration) {
        let hold = self.hold.as_ps();
        self.set(with_margin(extent).max(hold));
    }

    /// A gap filled without a resend after `extent`, and no other is open.
    pub fn filled(&mut self, extent: Duration) {
        let hold = self.hold.as_ps();
        self.set(with_margin(extent).max(hold - hold / 64));
    }

    /// A gap was declared lost, but its frame arrived `extent` after the gap appeared, before a
    /// resend could have arrived. So `extent` is certain, and less than the hold plus a round trip.
    /// The next frame may be later still, and a wrong guess costs a window of packets: double at
    /// once.
    pub fn late(&mut self, extent: Duration) {
        let hold = self.hold.as_ps();
        self.set(extent.as_ps().saturating_mul(2).max(hold));
    }

    /// A gap was declared lost, but its frame arrived `extent` after the gap appeared. At most
    /// quadruples the hold, since a duplicate of a resend looks the same.
    pub fn too_short(&mut self, extent: Duration) {
        let hold = self.hold.as_ps();
        self.set(with_margin(extent).clamp(hold, hold.saturating_mul(4)));
    }

    /// A gap was a true loss.
    pub fn lost(&mut self) {
        let hold = self.hold.as_ps();
        self.set(hold - hold / 8);
    }
}

fn with_margin(extent: Duration) -> u64 {
    extent.as_ps().saturating_add(extent.as_ps() / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hold_learns_from_late_frames_and_forgets_with_losses() {
        let mut hold = ReorderHold::new(Duration::from_us(50), Duration::from_ms(100));
        hold.filled(Duration::from_us(10));
        assert_eq!(hold.get(), Duration::from_us(50));
        for _ in 0..8 {
            hold.too_short(Duration::from_ms(1));
        }
        assert_eq!(
            hold.get(),
            Duration::from_us(1_250),
            "grows to the observed delay"
        );
        hold.at_least(Duration::from_us(10));
        assert_eq!(hold.get(), Duration::from_us(1_250), "the value is kept");
        hold.at_least(Duration::from_ms(2));
        assert_eq!(hold.get(), Duration::from_us(2_500));
        hold.late(Duration::from_ms(1));
        assert_eq!(
            hold.get(),
            Duration::from_us(2_500),
            "keeps the larger observation"
        );
        hold.late(Duration::from_ms(2));
        assert_eq!(
            hold.get(),
            Duration::from_ms(4),
            "the maximum applies at once"
        );
        hold.filled(Duration::from_ms(900));
        assert_eq!(hold.get(), Duration::from_ms(100), "bounded");
        for _ in 0..100 {
            hold.lost();
        }
        assert_eq!(hold.get(), Duration::from_us(50));
    }
}
