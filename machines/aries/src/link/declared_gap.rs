//! Detects whether a gap that was declared lost was only late.

use phitwire::time::{Duration, Time};

/// A gap declared lost, watched for a late frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeclaredGap {
    /// The first missing set; `None` once it was counted.
    at: Option<u64>,
    since: Time,
    first_fill: Option<Duration>,
}

impl DeclaredGap {
    pub fn new(at: u64, since: Time) -> Self {
        Self {
            at: Some(at),
            since,
            first_fill: None,
        }
    }

    /// Records that the sets from `start` up to `end` arrived. Once the missing frame has arrived
    /// twice, late and resent, returns the time from the gap's appearance to its first arrival.
    pub fn record_arrival(&mut self, start: u64, end: u64, now: Time) -> Option<Duration> {
        let at = self.at?;
        if start > at || end <= at {
            return None;
        }
        let first = self.first_fill.replace(now.since(self.since));
        if first.is_some() {
            self.at = None;
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_comes_twice_after_its_gap_was_declared_was_only_late() {
        let mut gap = DeclaredGap::new(43, Time::from_ns(100));
        assert_eq!(gap.record_arrival(50, 60, Time::from_ns(110)), None);
        assert_eq!(gap.record_arrival(43, 51, Time::from_ns(150)), None);
        assert_eq!(
            gap.record_arrival(40, 60, Time::from_ns(300)),
            Some(Duration::from_ns(50))
        );
        assert_eq!(
            gap.record_arrival(40, 60, Time::from_ns(400)),
            None,
            "once only"
        );
    }
}
