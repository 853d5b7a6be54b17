//! Latencies of a run: cheap to record, sparse when serialised, and mergeable over NICs.

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kit::Standstills;
use crate::time::{Duration, Time};

/// Higher latencies are recorded as this one: 2^40 ns, about 18 minutes.
const MAX_NS: u64 = 1 << 40;
/// Two decimal digits give an accuracy of 1 %, and the counts fit a second-level cache.
const DIGITS: u8 = 2;

/// Records latencies in 33 KiB. Messages issued together often complete together, so consecutive
/// equal latencies are counted before their bucket is looked up.
#[derive(Clone, Debug)]
pub struct LatencyRecorder {
    histogram: Histogram<u64>,
    /// The latest latency in ns, and its repetitions that are not in the histogram yet.
    latest_ns: u64,
    times: u64,
    standstills: Standstills,
}

impl Default for LatencyRecorder {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyRecorder {
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, MAX_NS, DIGITS);
        Self {
            histogram: histogram.expect("the constants are in range"),
            latest_ns: 0,
            times: 0,
            standstills: Standstills::default(),
        }
    }

    /// Records that the process was suspended for `span` until `now`, which excludes the
    /// suspension.
    pub fn handle_suspension(&mut self, now: Time, span: Duration) {
        self.standstills.add(now, span);
    }

    /// Wall time between two times that exclude suspensions.
    #[inline]
    pub fn span(&self, earlier: Time, later: Time) -> Duration {
        self.standstills.span(earlier, later)
    }

    /// Records the wall time between two times that exclude suspensions as a latency.
    #[inline]
    pub fn record_span(&mut self, earlier: Time, later: Time) {
        self.record(self.span(earlier, later).as_ns());
    }

    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        if ns != self.latest_ns {
            self.histogram
                .saturating_record_n(self.latest_ns, self.times);
            (self.latest_ns, self.times) = (ns, 0);
        }
        self.times += 1;
    }

    pub fn counts(&self) -> LatencyCounts {
        let mut all = self.histogram.clone();
        all.saturating_record_n(self.latest_ns, self.times);
        let buckets = all
            .iter_recorded()
            .map(|v| (v.value_iterated_to(), v.count_at_value()));
        let buckets: Vec<(u64, u64)> = buckets.collect();
        debug_assert!(
            buckets.is_sorted_by(|a, b| a.0 < b.0),
            "merging needs ascending buckets"
        );
        LatencyCounts {
            buckets,
            max_ns: all.max(),
        }
    }
}

/// Latencies as counts per bucket: `(highest latency of the bucket in ns, count)`, ascending,
/// without empty buckets. All recorders use the same buckets, so counts can be merged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyCounts {
    /// `(highest latency of the bucket in ns, count)`, ascending.
    pub buckets: Vec<(u64, u64)>,
    /// The highest latency recorded, in ns (to the precision of its bucket).
    pub max_ns: u64,
}

impl LatencyCounts {
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|&(_, n)| n).sum()
    }

    /// The latency in ns that `per_mille` of 1,000 messages did not exceed (500 for the median).
    /// Zero if nothing was counted.
    pub fn quantile(&self, per_mille: u16) -> u64 {
        let count = u128::from(self.count());
        let wanted = (count * u128::from(per_mille.min(1000)))
            .div_ceil(1000)
            .max(1);
        let mut seen = 0;
        for &(ns, n) in &self.buckets {
            seen += u128::from(n);
            if seen >= wanted {
                return ns.min(self.max_ns);
            }
        }
        0
    }

    /// The mean in ns, with each latency rounded up to its bucket's limit. Zero if nothing was
    /// counted.
    pub fn mean(&self) -> u64 {
        let sum: u128 = self
            .buckets
            .iter()
            .map(|&(ns, n)| u128::from(ns) * u128::from(n))
            .sum();
        (sum / u128::from(self.count()).max(1)) as u64
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        let mut merged = Vec::with_capacity(self.buckets.len() + other.buckets.len());
        let (mut a, mut b) = (
            self.buckets.iter().copied().peekable(),
            other.buckets.iter().copied().peekable(),
        );
        loop {
            let next = match (a.peek(), b.peek()) {
                (Some(x), Some(y)) if x.0 == y.0 => {
                    let sum = (x.0, x.1 + y.1);
                    a.next();
                    b.next();
                    Some(sum)
                }
                (Some(x), Some(y)) if x.0 < y.0 => a.next(),
                (Some(_), None) => a.next(),
                _ => b.next(),
            };
            match next {
                Some(bucket) => merged.push(bucket),
                None => break,
            }
        }
        self.buckets = merged;
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(values: impl IntoIterator<Item = u64>) -> LatencyCounts {
        let mut recorder = LatencyRecorder::new();
        values.into_iter().for_each(|v| recorder.record(v));
        recorder.counts()
    }

    #[test]
    fn merged_counts_are_the_counts_of_all() {
        let mut merged = recorded((1..5_000).step_by(3));
        merged.merge(&recorded((2..9_000_000).step_by(977)));
        let all = recorded((1..5_000).step_by(3).chain((2..9_000_000).step_by(977)));
        assert_eq!(merged, all);
        let mut empty = LatencyCounts::default();
        empty.merge(&all);
        assert_eq!(empty, all);
    }

    #[test]
    fn quantiles_are_right_to_one_percent() {
        let counts = recorded((1..=100_000).map(|n| n * 10));
        for (per_mille, ns) in [
            (500, 500_000),
            (900, 900_000),
            (990, 990_000),
            (999, 999_000),
        ] {
            let q = counts.quantile(per_mille);
            assert!(q.abs_diff(ns) * 100 <= ns, "{per_mille}: {q} against {ns}");
        }
        assert_eq!(counts.quantile(1000), counts.max_ns);
        assert!(counts.mean().abs_diff(500_000) < 5_000);
    }

    #[test]
    fn nothing_recorded_gives_zeros_and_everything_fits() {
        assert_eq!(LatencyCounts::default().quantile(500), 0);
        let counts = recorded([0, u64::MAX]);
        assert_eq!(counts.count(), 2);
        assert!(counts.max_ns >= MAX_NS - MAX_NS / 100);
    }
}
