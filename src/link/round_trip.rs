//! Round-trip estimate, and the timeouts derived from it.

use crate::time::Duration;

/// Measured round trips.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// The smoothed round trip; zero before the first measurement.
    pub(crate) smoothed: Duration,
    /// Measurements so far.
    pub(crate) samples: u64,
}

/// Round-trip estimate after Jacobson ("Congestion Avoidance and Control", 1988), with the timeouts
/// derived from it. The BlackWidow paper gives none: its links are single cables, whereas ours may
/// cross any path.
#[derive(Clone, Debug)]
pub struct RoundTrip {
    smoothed_ps: u64,
    deviation_ps: u64,
    shortest_ps: u64,
    samples: u64,
    doublings: u32,
    least: Duration,
    most: Duration,
}

impl RoundTrip {
    /// Starts without measurements; timeouts start at `least`, and doubling ends at `most`.
    pub fn new(least: Duration, most: Duration) -> Self {
        debug_assert!(
            least <= most,
            "the shortest timeout is not above the longest"
        );
        Self {
            smoothed_ps: 0,
            deviation_ps: 0,
            shortest_ps: 0,
            samples: 0,
            doublings: 0,
            least,
            most,
        }
    }

    /// Adds a measurement and undoes all doublings.
    pub fn sample(&mut self, round_trip: Duration) {
        let sample = round_trip.as_ps().max(1);
        self.doublings = 0;
        self.samples += 1;
        if self.smoothed_ps == 0 {
            self.smoothed_ps = sample;
            self.deviation_ps = sample / 2;
            self.shortest_ps = sample;
            return;
        }
        let error = sample.abs_diff(self.smoothed_ps);
        self.deviation_ps = self.deviation_ps - self.deviation_ps / 4 + error / 4;
        self.smoothed_ps = self.smoothed_ps - self.smoothed_ps / 8 + sample / 8;
        // A path may get longer: without confirmation, the shortest drifts up towards the mean.
        let drift = self.smoothed_ps.saturating_sub(self.shortest_ps) / 256;
        self.shortest_ps = sample.min(self.shortest_ps + drift);
        debug_assert!(
            self.shortest_ps <= sample && self.smoothed_ps > 0,
            "the minimum bounds all measurements"
        );
    }

    /// The smoothed round trip, once measured.
    pub(crate) fn smoothed(&self) -> Option<Duration> {
        (self.smoothed_ps != 0).then(|| Duration::from_ps(self.smoothed_ps))
    }

    pub(crate) fn seen(&self) -> Seen {
        Seen {
            smoothed: Duration::from_ps(self.smoothed_ps),
            samples: self.samples,
        }
    }

    /// Mean plus four deviations, once measured, without the lower bound of timeouts.
    pub fn measured(&self) -> Option<Duration> {
        let ps = self
            .smoothed_ps
            .saturating_add(self.deviation_ps.saturating_mul(4));
        (self.smoothed_ps != 0).then(|| Duration::from_ps(ps))
    }

    /// Roughly the shortest round trip measured; zero before the first.
    pub fn shortest(&self) -> Duration {
        Duration::from_ps(self.shortest_ps)
    }

    fn base(&self) -> Duration {
        let ps = self
            .smoothed_ps
            .saturating_add(self.deviation_ps.saturating_mul(4));
        self.least.max(Duration::from_ps(ps))
    }

    /// Time after which unacknowledged data counts as lost: mean plus four deviations, doubled with
    /// every failure. The longest timeout bounds the doubling, not the measurement.
    pub fn timeout(&self) -> Duration {
        let base = self.base();
        base.times(1 << self.doublings).min(self.most.max(base))
    }

    /// Timeout of the `try_number`-th probe of a peer that owes only credits: its silence says
    /// nothing about the round trip.
    pub(crate) fn credit_timeout(&self, try_number: u32) -> Duration {
        let base = self.base();
        base.times(1 << try_number.min(32)).min(self.most.max(base))
    }

    /// Time after which to probe the peer: two round trips, at least a quarter of the shortest
    /// timeout, at most the timeout.
    pub(crate) fn probe_timeout(&self) -> Duration {
        let patience = Duration::from_ps(self.smoothed_ps.saturating_mul(2));
        patience
            .max(Duration::from_ps(self.least.as_ps() / 4))
            .min(self.timeout())
    }

    /// The timeout expired: doubles it until the next measurement. With a timeout that is too
    /// short, every packet is resent, and resent packets cannot be measured (Karn and Partridge,
    /// 1987).
    pub fn back_off(&mut self) {
        if self.timeout() < self.most {
            self.doublings += 1;
        }
        debug_assert!(
            self.doublings < u64::BITS,
            "the longest timeout bounds the doublings"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator() -> RoundTrip {
        RoundTrip::new(Duration::from_ms(1), Duration::from_ms(250))
    }

    #[test]
    fn timeout_follows_the_measured_round_trip() {
        let mut rtt = estimator();
        assert_eq!(rtt.timeout(), Duration::from_ms(1));
        for _ in 0..100 {
            rtt.sample(Duration::from_us(30));
        }
        assert_eq!(
            rtt.timeout(),
            Duration::from_ms(1),
            "never below the minimum"
        );
        for _ in 0..200 {
            rtt.sample(Duration::from_ms(200));
        }
        let timeout = rtt.timeout();
        assert!(timeout > Duration::from_ms(200) && timeout < Duration::from_ms(220));
        for _ in 0..200 {
            rtt.sample(Duration::from_us(30));
        }
        assert!(rtt.timeout() < Duration::from_ms(2), "falls again");
    }

    #[test]
    fn jitter_widens_the_timeout_beyond_every_sample() {
        let mut rtt = estimator();
        for i in 0..400_u64 {
            rtt.sample(Duration::from_us(20_000 + (i * 7_919) % 10_000));
        }
        assert!(rtt.timeout() > Duration::from_ms(30));
    }

    #[test]
    fn doublings_end_and_a_measurement_undoes_them() {
        let mut rtt = estimator();
        let mut last = rtt.timeout();
        for _ in 0..20 {
            rtt.back_off();
            assert!(rtt.timeout() >= last);
            last = rtt.timeout();
        }
        assert_eq!(last, Duration::from_ms(250));
        rtt.sample(Duration::from_us(50));
        assert_eq!(rtt.timeout(), Duration::from_ms(1));
    }

    #[test]
    fn a_round_trip_longer_than_the_bound_of_doublings_is_still_waited_for() {
        let mut rtt = estimator();
        for _ in 0..200 {
            rtt.sample(Duration::from_ms(400));
        }
        assert!(rtt.timeout() >= Duration::from_ms(400));
        rtt.back_off();
        assert!(rtt.timeout() >= Duration::from_ms(400));
    }

    #[test]
    fn shortest_drifts_up_when_the_path_gets_longer() {
        let mut rtt = estimator();
        rtt.sample(Duration::from_us(10));
        for _ in 0..2_000 {
            rtt.sample(Duration::from_ms(10));
        }
        assert!(rtt.shortest() > Duration::from_ms(9));
    }
}
