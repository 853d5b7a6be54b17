//! Latency and rate of a link, from its cable and lanes.

use super::BlackWidowOptions;
use crate::link::rates;
use crate::topology::FoldedClos;
use phitwire::link::LaneRate;
use phitwire::net::Link;
use phitwire::sim::direct::config::MAX_LINK_CYCLES;

/// Cycles of 1.25 ns per metre of cable, at 5 ns per metre.
const METRE_CYCLES: u32 = 4;

/// Latency of a phit or credit on a link, in cycles: from its cable length or, if the description
/// has none, [`BlackWidowOptions::link_cycles`].
pub(super) fn cycles(link: &Link, options: &BlackWidowOptions) -> u32 {
    link.metres.map_or(options.link_cycles, |metres| {
        METRE_CYCLES * u32::from(metres.max(1))
    })
}

/// Length of a window, at most the latency of the shortest link, and latency of the longest link,
/// both in cycles.
pub(super) fn window_and_longest(topology: &FoldedClos, options: &BlackWidowOptions) -> (u32, u32) {
    let all = || topology.links.iter().map(|link| cycles(link, options));
    let shortest = all().min().unwrap_or(options.link_cycles);
    let longest = all().max().unwrap_or(options.link_cycles);
    (shortest.min(MAX_LINK_CYCLES), longest)
}

/// Maximum number of cycles between two phits on any link, rounded up.
pub(super) fn slowest(topology: &FoldedClos) -> u32 {
    let quarters = topology
        .links
        .iter()
        .map(|link| Pace::of(link.rate).quarters);
    u32::from(quarters.max().unwrap_or(0)).div_ceil(4).max(1)
}

/// When a link accepts phits: one per cycle at 6.25 Gb/s, fewer at lower rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    /// Interval between phits in quarters of a cycle; 0 for a link that accepts one in every cycle.
    quarters: u8,
    /// When the link has sent all phits given to it, in quarters of a cycle.
    free: u64,
}

impl Pace {
    pub(super) fn of(rate: LaneRate) -> Self {
        let full = rates::G6_25.bits_per_second();
        let quarters = (4 * full).div_ceil(rate.bits_per_second()) as u8;
        Self {
            quarters: if quarters > 4 { quarters } else { 0 },
            free: 0,
        }
    }

    pub(super) const fn is_slow(&self) -> bool {
        self.quarters > 0
    }

    /// The first cycle in which the link accepts another phit.
    pub(super) const fn next(&self) -> u64 {
        self.free.div_ceil(4)
    }

    /// Gives the link a phit in cycle `now`, and returns the cycle in which it leaves.
    pub(super) fn send(&mut self, now: u64) -> u64 {
        let leaves = self.next().max(now);
        if now > self.next() {
            self.free = 4 * now;
        }
        self.free += u64::from(self.quarters);
        leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rate_is_kept_exactly() {
        for (rate, phits) in [
            (rates::G5_0, 80),
            (rates::G3_125, 50),
            (rates::G2_5, 40),
            (rates::G1_5625, 25),
            (rates::G1_25, 20),
        ] {
            let mut pace = Pace::of(rate);
            assert!(pace.is_slow());
            let left: Vec<u64> = (0..phits).map(|_| pace.send(0)).collect();
            assert!(
                left.is_sorted_by(|a, b| a < b),
                "{rate:?}: at most one per cycle"
            );
            assert_eq!(pace.next(), 100, "{rate:?}");
            let left: Vec<u64> = (0..phits).map(|_| pace.send(pace.next())).collect();
            assert!(left.is_sorted_by(|a, b| a < b), "{rate:?}");
            assert_eq!(pace.next(), 200, "{rate:?}: including the first");
            assert_eq!(pace.send(1_000), 1_000, "an idle link sends at once");
        }
        assert!(!Pace::of(rates::G6_25).is_slow());
    }
}
