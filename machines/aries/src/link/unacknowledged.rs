//! Unacknowledged flits of an ideal link.

/// Estimates the flits sent within the last round trip of a link: those of the current period and a
/// share of the previous one. A period is a round trip long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unacknowledged {
    /// Cycles of a period; 0 without a link.
    round: u16,
    this: u16,
    before: u16,
    /// The cycle in which the current period began: a multiple of `round`.
    since: u64,
}

impl Unacknowledged {
    /// For a link that acknowledges a flit `round` cycles after it was sent.
    pub(super) fn over(round: u16) -> Self {
        Self {
            round,
            ..Self::default()
        }
    }

    /// Records a sent flit. Time must not go back.
    #[inline]
    pub(super) fn sent(&mut self, now: u64) {
        let round = u64::from(self.round.max(1));
        if now - self.since >= round {
            let next = now - self.since < 2 * round;
            self.before = if next { self.this } else { 0 };
            (self.this, self.since) = (0, now - now % round);
        }
        self.this += 1;
    }

    #[inline]
    pub(super) fn flits(&self, now: u64) -> u32 {
        let round = u64::from(self.round.max(1));
        let passed = now - self.since;
        let (this, before, within) = if passed < round {
            (self.this, self.before, passed)
        } else if passed < 2 * round {
            (0, self.this, passed - round)
        } else {
            return 0;
        };
        let round = round as u32;
        u32::from(this) + u32::from(before) * (round - within as u32) / round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_stream_has_a_round_trip_on_its_way() {
        let round = 270;
        let mut flight = Unacknowledged::over(270);
        for cycle in 0..10 * round {
            if cycle % 10 != 9 {
                flight.sent(cycle);
            }
        }
        let on_its_way = u64::from(flight.flits(10 * round));
        assert!(on_its_way.abs_diff(round * 9 / 10) <= 2, "{on_its_way}");
        // After half a round trip without flits half of them are left, after a whole one none.
        let half = u64::from(flight.flits(10 * round + round / 2));
        assert!(half.abs_diff(round * 9 / 20) <= 2, "{half}");
        assert_eq!(flight.flits(11 * round), 0);
        assert_eq!(
            Unacknowledged::default().flits(5),
            0,
            "the port has no link"
        );
    }
}
