//! Everything on the links of a partition, sorted for the checkers.

use core::ops::Range;

use super::exchange::Arrivals;
use super::model::Lanes;
use crate::kit::bits;

/// Future arrivals at the link ends of a partition, sorted by slot and window.
#[derive(Debug)]
pub(crate) struct InFlight<L: Lanes> {
    arrivals: Vec<Entry<L>>,
    phits: Vec<L::Phit>,
}

#[derive(Clone, Copy, Debug)]
struct Entry<L: Lanes> {
    slot: u32,
    window: u64,
    arrivals: Arrivals<L>,
    /// Index of the slot's first phit.
    from: usize,
}

impl<L: Lanes> InFlight<L> {
    pub(crate) const fn new() -> Self {
        Self {
            arrivals: Vec::new(),
            phits: Vec::new(),
        }
    }

    /// Adds the arrivals at `slot` in `window`, with the phits in cycle order.
    pub(crate) fn add(
        &mut self,
        slot: u32,
        window: u64,
        arrivals: Arrivals<L>,
        phits: impl Iterator<Item = L::Phit>,
    ) {
        let from = self.phits.len();
        self.phits.extend(phits);
        self.arrivals.push(Entry {
            slot,
            window,
            arrivals,
            from,
        });
    }

    pub(crate) fn sort(&mut self) {
        self.arrivals
            .sort_by_key(|entry| (entry.slot, entry.window));
    }

    fn of(&self, slots: Range<u32>) -> &[Entry<L>] {
        let from = self
            .arrivals
            .partition_point(|entry| entry.slot < slots.start);
        let to = self
            .arrivals
            .partition_point(|entry| entry.slot < slots.end);
        &self.arrivals[from..to]
    }

    /// The phits that arrive at the lanes of a link end, in order.
    pub(crate) fn phits(&self, slots: Range<u32>) -> Vec<L::Phit> {
        let mut found = Vec::new();
        for entry in self.of(slots) {
            for (at, cycle) in (entry.from..).zip(bits(entry.arrivals.phits)) {
                found.push(((entry.window, cycle, entry.slot), self.phits[at]));
            }
        }
        found.sort_by_key(|&(key, _)| key);
        found.into_iter().map(|(_, phit)| phit).collect()
    }

    /// The credits that arrive at the lanes of a link end.
    pub(crate) fn credits(&self, slots: Range<u32>) -> impl Iterator<Item = L::Credits> {
        self.of(slots).iter().map(|entry| entry.arrivals.credits)
    }
}
