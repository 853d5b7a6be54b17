//! Credits on their way back: one with every flit, data or idle.

use crate::machine::t3e::format::VCS;
use crate::sim::direct::model::MAX_VCS;

/// Cycles of the longest window.
const CYCLES: usize = 4;

/// The credits that come back on a link in one window: at most one in a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Returned([u8; CYCLES]);

impl Returned {
    /// The channel whose credit comes in a cycle.
    #[inline]
    pub(super) fn get(&self, cycle: usize) -> Option<usize> {
        usize::from(self.0[cycle]).checked_sub(1)
    }

    /// A credit of `vc` in a cycle that has none.
    #[inline]
    pub(super) fn set(&mut self, cycle: usize, vc: usize) {
        debug_assert!(self.0[cycle] == 0 && vc < VCS, "a flit returns one credit");
        self.0[cycle] = vc as u8 + 1;
    }

    pub(super) fn delayed(&self, by: usize, window: usize) -> [Self; 2] {
        let mut parts = [Self::default(); 2];
        for cycle in 0..window {
            let at = cycle + by;
            parts[at / window].0[at % window] = self.0[cycle];
        }
        parts
    }

    pub(super) fn add(&mut self, more: &Self) {
        for (own, more) in self.0.iter_mut().zip(more.0) {
            *own |= more;
        }
    }

    pub(super) fn counts(&self) -> [u32; MAX_VCS] {
        let mut counts = [0; MAX_VCS];
        for vc in (0..CYCLES).filter_map(|cycle| self.get(cycle)) {
            counts[vc] += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credits_travel_in_their_cycles() {
        let mut sent = Returned::default();
        sent.set(0, 4);
        sent.set(2, 1);
        assert_eq!(
            (sent.get(0), sent.get(1), sent.get(2)),
            (Some(4), None, Some(1))
        );
        let [now, next] = sent.delayed(1, 3);
        assert_eq!(
            (now.get(1), now.get(0), next.get(0)),
            (Some(4), None, Some(1))
        );
        let mut both = now;
        both.add(&next);
        assert_eq!(both.counts(), sent.counts());
        assert_eq!(sent.counts(), [0, 1, 0, 0, 1, 0, 0, 0]);
    }
}
