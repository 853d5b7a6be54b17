//! Messages of programs: their contents and their latencies.

use std::collections::BTreeMap;
use std::time::Duration;

use phitwire::nic::LatencyCounts;

/// Distance of the words that additions change, in bytes, so that they do not overlap.
const LINE: u64 = 64;

/// Distance of slots for messages of `size` bytes.
pub(crate) const fn stride(size: u64) -> u64 {
    size.next_multiple_of(LINE)
}

/// Fills `data` with message `number`. All words differ, within a message and between messages.
pub(crate) fn fill(number: u64, data: &mut [u8]) {
    for (index, chunk) in (0_u64..).zip(data.chunks_mut(8)) {
        let word = (number << 20 | index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
}

/// A histogram of latencies, with a resolution of one part in 64.
#[derive(Debug, Default)]
pub(crate) struct Latencies(BTreeMap<u64, u64>);

impl Latencies {
    pub(crate) fn add(&mut self, latency: Duration) {
        let ns = latency.as_nanos() as u64;
        // Keep seven significant bits.
        let shift = ns.max(1).ilog2().saturating_sub(6);
        *self.0.entry(ns >> shift << shift).or_default() += 1;
    }

    pub(crate) fn counts(&self) -> LatencyCounts {
        LatencyCounts {
            buckets: self.0.iter().map(|(&ns, &count)| (ns, count)).collect(),
            max_ns: self.0.keys().next_back().copied().unwrap_or(0),
        }
    }
}
