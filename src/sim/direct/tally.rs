//! Counts during a run.

use hdrhistogram::Histogram;

use super::report::LatencySummary;
use crate::nic::LatencyCounts;

/// Latencies are accurate to 0.1 %.
const DIGITS: u8 = 3;
/// Longer latencies are counted as this, in cycles.
const MAX_CYCLES: u64 = 1 << 30;

/// Counts of a partition's terminals; they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets whose last phit sources have sent, replies included.
    pub sent_packets: u64,
    pub sent_phits: u64,
    /// Packets that arrived, replies included.
    pub arrived_packets: u64,
    pub arrived_phits: u64,
    /// Sum of the latencies of counted packets (with replies, only the replies).
    pub(crate) latency_cycles: u64,
    /// Packets in that sum.
    pub(crate) latency_packets: u64,
    /// Requests whose sending has begun.
    pub requests_sent: u64,
    /// Requests born in the measurement whose sending has begun.
    pub(crate) measured_sent: u64,
    /// Measured packets that arrived.
    pub(crate) measured_arrived: u64,
    pub replies_made: u64,
    /// Replies whose sending has begun.
    pub replies_sent: u64,
    /// Sum of the keys of all packets whose sending has begun, modulo 2^64.
    pub(crate) sent_keys: u64,
    /// Sum of the keys of all packets that arrived, modulo 2^64.
    pub arrived_keys: u64,
    /// Sum of the births of all messages sent, modulo 2^64.
    pub(crate) sent_births: u64,
    /// Sum of the births carried by packets, over all messages whose latency was counted.
    pub(crate) arrived_births: u64,
    /// Packets with damaged contents.
    pub damaged: u64,
    /// Packets that arrived at the wrong processor.
    pub misrouted: u64,
    /// Requests that overtook an earlier one of the same source, destination and hash bits.
    pub overtaken: u64,
}

impl Tally {
    /// Adds the counts of another partition.
    pub(crate) fn add(&mut self, other: &Self) {
        self.each(other, u64::wrapping_add);
    }

    /// Counts since `earlier`.
    pub(crate) fn since(mut self, earlier: &Self) -> Self {
        self.each(earlier, u64::wrapping_sub);
        self
    }

    fn each(&mut self, other: &Self, f: impl Fn(u64, u64) -> u64) {
        let apply = |own: &mut u64, other: u64| *own = f(*own, other);
        apply(&mut self.sent_packets, other.sent_packets);
        apply(&mut self.sent_phits, other.sent_phits);
        apply(&mut self.arrived_packets, other.arrived_packets);
        apply(&mut self.arrived_phits, other.arrived_phits);
        apply(&mut self.latency_cycles, other.latency_cycles);
        apply(&mut self.latency_packets, other.latency_packets);
        apply(&mut self.requests_sent, other.requests_sent);
        apply(&mut self.measured_sent, other.measured_sent);
        apply(&mut self.measured_arrived, other.measured_arrived);
        apply(&mut self.replies_made, other.replies_made);
        apply(&mut self.replies_sent, other.replies_sent);
        apply(&mut self.sent_keys, other.sent_keys);
        apply(&mut self.arrived_keys, other.arrived_keys);
        apply(&mut self.sent_births, other.sent_births);
        apply(&mut self.arrived_births, other.arrived_births);
        apply(&mut self.damaged, other.damaged);
        apply(&mut self.misrouted, other.misrouted);
        apply(&mut self.overtaken, other.overtaken);
    }
}

/// The latencies of some packets as plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyTotals {
    /// Latencies in cycles, accurate to 0.1 %, each with its number of packets. They are in any
    /// order, and a latency may occur once per part.
    counts: Vec<(u64, u64)>,
    /// Exact sum of all latencies.
    sum: u64,
}

impl LatencyTotals {
    /// Adds the latencies of other packets.
    pub(crate) fn merge(&mut self, other: Self) {
        self.counts.extend(other.counts);
        self.sum += other.sum;
    }
}

impl From<&LatencyTotals> for Latencies {
    /// The conversion is exact: a value stands for all values of its bucket.
    fn from(totals: &LatencyTotals) -> Self {
        let mut latencies = Self::new();
        for &(cycles, packets) in &totals.counts {
            latencies.histogram.saturating_record_n(cycles, packets);
        }
        latencies.sum = totals.sum;
        latencies
    }
}

/// Latencies of the measured packets.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    histogram: Histogram<u64>,
    sum: u64,
}

impl Latencies {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, MAX_CYCLES, DIGITS);
        Self {
            histogram: histogram.expect("the constants are in range"),
            sum: 0,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.histogram.clear();
        self.sum = 0;
    }

    #[inline]
    pub(crate) fn record(&mut self, cycles: u64) {
        self.histogram.saturating_record(cycles);
        self.sum += cycles;
    }

    /// All latencies in the form in which parts report them.
    pub(crate) fn totals(&self) -> LatencyTotals {
        let all = self.histogram.iter_recorded();
        LatencyTotals {
            counts: all
                .map(|step| (step.value_iterated_to(), step.count_at_value()))
                .collect(),
            sum: self.sum,
        }
    }

    pub(crate) fn min(&self) -> Option<u64> {
        (!self.histogram.is_empty()).then(|| self.histogram.min())
    }

    /// Frequency of each latency, in cycles where live runs use nanoseconds.
    pub(crate) fn counts(&self) -> LatencyCounts {
        let all = self.histogram.iter_recorded();
        LatencyCounts {
            buckets: all
                .map(|step| (step.value_iterated_to(), step.count_at_value()))
                .collect(),
            max_ns: self.histogram.max(),
        }
    }

    pub(crate) fn summary(&self) -> LatencySummary {
        let count = self.histogram.len();
        if count == 0 {
            return LatencySummary::default();
        }
        LatencySummary {
            count,
            min: self.histogram.min(),
            mean: self.sum as f64 / count as f64,
            p50: self.histogram.value_at_quantile(0.5),
            p90: self.histogram.value_at_quantile(0.9),
            p99: self.histogram.value_at_quantile(0.99),
            p99_9: self.histogram.value_at_quantile(0.999),
            max: self.histogram.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_latencies_are_those_of_one_part() {
        let mut rng = crate::rng::Rng::new(3, 1);
        let mut all = Latencies::new();
        let mut parts = [Latencies::new(), Latencies::new(), Latencies::new()];
        for _ in 0..20_000 {
            let bits = rng.next_u64() % 32;
            let cycles = rng.next_u64() >> (63 - bits);
            all.record(cycles);
            parts[rng.next_u64() as usize % 2].record(cycles);
        }
        let mut totals = LatencyTotals::default();
        parts.iter().for_each(|part| totals.merge(part.totals()));
        let merged = Latencies::from(&totals);
        assert_eq!(merged.summary(), all.summary());
        assert_eq!(merged.counts(), all.counts());
        assert_eq!(merged.min(), all.min());
        assert_eq!(Latencies::from(&LatencyTotals::default()).min(), None);
    }
}
