//! What comes in at a port, and when the crossbar may have it.

use std::collections::VecDeque;

/// Cycles that flits may be announced ahead, and be in the stages of an input, together at most.
const SLOTS: u64 = 16;
const SLOT_BITS: u32 = 4;

/// Flits that come, one in a cycle as on the wires, until the stages of their input let the crossbar
/// have them.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// By the cycle in which a flit comes, modulo [`SLOTS`]: its channel and one, or zero.
    slots: u64,
    /// Channels of flits that came at once, in a frame, and how many of each.
    waiting: VecDeque<(u8, u32)>,
}

/// Where the flit of a cycle is.
#[inline]
const fn at(cycle: u64) -> u32 {
    (cycle % SLOTS) as u32 * SLOT_BITS
}

impl Arrivals {
    /// A flit of `vc` comes in `cycle`, in which no other one does.
    #[inline]
    pub fn announce(&mut self, cycle: u64, vc: usize) {
        debug_assert!(self.slots >> at(cycle) & 0xf == 0, "a link moves one flit");
        self.slots |= (vc as u64 + 1) << at(cycle);
    }

    /// Flits of `vc` are there, to come in one by one.
    pub fn enqueue(&mut self, vc: usize, flits: u32) {
        self.waiting.push_back((vc as u8, flits));
    }

    /// Whether anything is on its way.
    #[inline]
    pub fn any(&self) -> bool {
        self.slots != 0 || !self.waiting.is_empty()
    }

    /// The channel of the flit that came `stages` cycles before `cycle`, if one did.
    #[inline]
    pub fn ripen(&mut self, cycle: u64, stages: u64) -> Option<usize> {
        let at = at(cycle.wrapping_sub(stages));
        let found = self.slots >> at & 0xf;
        self.slots &= !(0xf << at);
        (found as usize).checked_sub(1)
    }

    /// The channel of the flit that comes in `cycle`, and enters the stages.
    #[inline]
    pub fn next(&mut self, cycle: u64) -> Option<usize> {
        let found = self.slots >> at(cycle) & 0xf;
        if found == 0 && !self.waiting.is_empty() {
            return self.next_waiting(cycle);
        }
        (found as usize).checked_sub(1)
    }

    fn next_waiting(&mut self, cycle: u64) -> Option<usize> {
        let (vc, flits) = self.waiting.front_mut()?;
        let vc = usize::from(*vc);
        *flits -= 1;
        if *flits == 0 {
            self.waiting.pop_front();
        }
        self.announce(cycle, vc);
        Some(vc)
    }

    /// The flit of `cycle` does not enter the stages.
    #[inline]
    pub fn forward(&mut self, cycle: u64) {
        self.slots &= !(0xf << at(cycle));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flits_are_ready_when_they_are_through_the_stages() {
        let mut arrivals = Arrivals::default();
        arrivals.announce(15, 1);
        arrivals.announce(16, 4);
        assert_eq!(arrivals.next(14), None);
        assert_eq!((arrivals.next(15), arrivals.ripen(15, 3)), (Some(1), None));
        arrivals.forward(15);
        assert_eq!(arrivals.next(16), Some(4));
        assert_eq!(
            (arrivals.ripen(18, 3), arrivals.ripen(19, 3)),
            (None, Some(4))
        );
        assert!(!arrivals.any());
    }

    #[test]
    fn what_came_in_a_frame_comes_in_one_by_one() {
        let mut arrivals = Arrivals::default();
        arrivals.enqueue(2, 2);
        arrivals.enqueue(0, 1);
        let came: Vec<_> = (100..105).map(|cycle| arrivals.next(cycle)).collect();
        assert_eq!(came, [Some(2), Some(2), Some(0), None, None]);
        let ripe: Vec<_> = (103..106).map(|cycle| arrivals.ripen(cycle, 3)).collect();
        assert_eq!(ripe, [Some(2), Some(2), Some(0)]);
        assert!(!arrivals.any());
    }
}
