//! Flits that arrive at a port, and the cycles in which they become ready for the crossbar.

use std::collections::VecDeque;

/// Maximum sum, in cycles, of a flit's advance notice and its time in the stages of an input.
pub(super) const SLOTS: usize = 16;
const SLOT_BITS: u32 = 4;

/// The flits in the stages of an input, and those about to arrive. As on the wires, at most one
/// arrives per cycle. For each arrival cycle modulo [`SLOTS`] it holds the channel plus one, or
/// zero.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrivals(u64);

/// Flits that arrived at once, in a frame, and must enter one by one: channel and number.
#[derive(Clone, Debug, Default)]
pub(super) struct Frames(VecDeque<(u8, u32)>);

impl Frames {
    /// Records flits of `vc` that have arrived.
    pub fn enqueue(&mut self, vc: usize, flits: u32) {
        self.0.push_back((vc as u8, flits));
    }

    pub fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Takes all flits up to the next change of channel, and returns the channel and their number.
    pub fn take(&mut self) -> Option<(usize, u16)> {
        let (vc, flits) = self.0.pop_front()?;
        let now = u16::try_from(flits).unwrap_or(u16::MAX);
        if u32::from(now) < flits {
            self.0.push_front((vc, flits - u32::from(now)));
        }
        Some((vc.into(), now))
    }

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

/// Bit position of a cycle's slot.
#[inline]
const fn at(cycle: u64) -> u32 {
    (cycle % SLOTS as u64) as u32 * SLOT_BITS
}

impl Arrivals {
    /// Records a flit of `vc` that arrives in `cycle`, in which no other flit arrives.
    #[inline]
    pub fn announce(&mut self, cycle: u64, vc: usize) {
        debug_assert!(
            self.0 >> at(cycle) & 0xf == 0,
            "a link moves one flit per cycle"
        );
        self.0 |= (vc as u64 + 1) << at(cycle);
    }

    #[inline]
    pub fn any(self) -> bool {
        self.0 != 0
    }

    /// The channel of the flit that arrives in `cycle` and enters the stages. There must be one.
    #[inline]
    pub fn at(self, cycle: u64) -> usize {
        (self.0 >> at(cycle) & 0xf) as usize - 1
    }

    /// Removes the flit that arrived in `cycle` when it leaves the stages or bypasses them, and
    /// returns its channel.
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
    fn flits_are_distinguished_by_their_cycles() {
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
    fn flits_of_a_frame_enter_one_by_one() {
        let mut frames = Frames::default();
        frames.enqueue(2, 2);
        frames.enqueue(0, 1);
        assert!(frames.any());
        let came: Vec<_> = core::iter::from_fn(|| frames.next()).collect();
        assert_eq!(came, [2, 2, 0]);
        assert!(!frames.any());
    }
}
