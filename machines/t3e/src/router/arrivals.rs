//! What comes in at a port, and when the crossbar may have it.

use std::collections::VecDeque;

/// Cycles that flits may be announced ahead, and be in the stages of an input, together at most.
pub(super) const SLOTS: usize = 16;
const SLOT_BITS: u32 = 4;

/// Flits that come, one in a cycle as on the wires, until the stages of their input let the crossbar
/// have them: by the cycle in which a flit comes, modulo [`SLOTS`], its channel and one, or zero.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrivals(u64);

/// Flits that came at once, in a frame, and are still to come in one by one: of which channel, and how
/// many.
#[derive(Clone, Debug, Default)]
pub(super) struct Frames(VecDeque<(u8, u32)>);

impl Frames {
    /// Flits of `vc` are there.
    pub fn enqueue(&mut self, vc: usize, flits: u32) {
        self.0.push_back((vc as u8, flits));
    }

    /// Whether there are any.
    pub fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Takes all flits up to the next change of channel: the channel, and their number.
    pub fn take(&mut self) -> Option<(usize, u16)> {
        let (vc, flits) = self.0.pop_front()?;
        let now = u16::try_from(flits).unwrap_or(u16::MAX);
        if u32::from(now) < flits {
            self.0.push_front((vc, flits - u32::from(now)));
        }
        Some((vc.into(), now))
    }

    /// The channel of the next one, which comes in.
    pub fn next(&mut self) -> Option<usize> {
        let (vc, flits) = self.0.front_mut()?;
        let vc = usize::from(*vc);
        *flits -= 1;
        if *flits == 0 {
            self.0.pop_front();
        }
        Some(vc)
    }
}

/// Where the flit of a cycle is.
#[inline]
const fn at(cycle: u64) -> u32 {
    (cycle % SLOTS as u64) as u32 * SLOT_BITS
}

impl Arrivals {
    /// A flit of `vc` comes in `cycle`, in which no other one does.
    #[inline]
    pub fn announce(&mut self, cycle: u64, vc: usize) {
        debug_assert!(self.0 >> at(cycle) & 0xf == 0, "a link moves one flit");
        self.0 |= (vc as u64 + 1) << at(cycle);
    }

    /// Whether anything is on its way.
    #[inline]
    pub fn any(self) -> bool {
        self.0 != 0
    }

    /// The channel of the flit that comes in `cycle`, in which one does, and enters the stages.
    #[inline]
    pub fn at(self, cycle: u64) -> usize {
        (self.0 >> at(cycle) & 0xf) as usize - 1
    }

    /// The same for one that came in `cycle` and leaves the stages, or does not enter them.
    #[inline]
    pub fn take(&mut self, cycle: u64) -> usize {
        let vc = self.at(cycle);
        self.0 &= !(0xf << at(cycle));
        vc
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flits_are_told_apart_by_their_cycles() {
        let mut arrivals = Arrivals::default();
        arrivals.announce(15, 1);
        arrivals.announce(16, 4);
        assert_eq!((arrivals.at(15), arrivals.at(16)), (1, 4));
        assert_eq!(arrivals.take(15), 1);
        assert!(arrivals.any());
        assert_eq!(arrivals.take(16), 4);
        assert!(!arrivals.any());
    }

    #[test]
    fn what_came_in_a_frame_comes_in_one_by_one() {
        let mut frames = Frames::default();
        frames.enqueue(2, 2);
        frames.enqueue(0, 1);
        assert!(frames.any());
        let came: Vec<_> = core::iter::from_fn(|| frames.next()).collect();
        assert_eq!(came, [2, 2, 0]);
        assert!(!frames.any());
    }
}
