//! Credits of links whose input buffers eight virtual channels share, and the loads that travel with them.

use phitwire_framing::flit48::VCS;

use super::INPUT_FLITS;
use crate::router::aries::pipeline::LOAD_CYCLES;
use crate::sim::direct::exchange::delay_cycles;
use crate::sim::direct::family::MAX_VCS;

/// Flits of an input buffer that belong to each virtual channel alone: two blocks, the least that hold a longest packet.
const PRIVATE: u16 = 16;
/// Flits that all virtual channels share.
const COMMON: u16 = INPUT_FLITS as u16 - PRIVATE * VCS as u16;
/// Bits of a load with a mark that there is one.
const LOAD_BITS: usize = 5;
const LOAD_MARK: u64 = 1 << 4;

/// What comes back over a lane in a window: at most one credit per cycle, and at most one load every ten cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Returned {
    /// Cycles in which a credit arrives.
    pub(super) cycles: u64,
    /// Bits of the number of its virtual channel.
    vcs: [u64; 3],
    /// Loads, by tens of cycles.
    loads: u64,
}

impl Returned {
    /// A credit in a cycle that has none.
    #[inline]
    pub(super) fn credit(&mut self, cycle: u32, vc: usize) {
        self.cycles |= 1 << cycle;
        for (bit, cycles) in self.vcs.iter_mut().enumerate() {
            *cycles |= (vc as u64 >> bit & 1) << cycle;
        }
    }

    /// Virtual channel of the credit of a cycle.
    #[inline]
    pub(super) fn vc(&self, cycle: u32) -> usize {
        let bit = |bit: usize| (self.vcs[bit] >> cycle & 1) << bit;
        (bit(0) | bit(1) | bit(2)) as usize
    }

    /// A load, 0 to 15, in a cycle that is a multiple of ten.
    #[inline]
    pub(super) fn tell(&mut self, cycle: u32, load: u8) {
        let at = cycle as usize / LOAD_CYCLES as usize * LOAD_BITS;
        self.loads &= !(0x1f << at);
        self.loads |= (LOAD_MARK | u64::from(load & 15)) << at;
    }

    #[inline]
    pub(super) const fn has_loads(&self) -> bool {
        self.loads != 0
    }

    /// The last load told up to and including a cycle, if any was.
    #[inline]
    pub(super) const fn load(&self, cycle: u32) -> Option<u8> {
        let bits = (cycle as usize / LOAD_CYCLES as usize + 1) * LOAD_BITS;
        let told = self.loads & (u64::MAX >> (64 - bits));
        if told == 0 {
            return None;
        }
        let last = (63 - told.leading_zeros()) as usize / LOAD_BITS;
        Some((told >> (last * LOAD_BITS) & 15) as u8)
    }

    pub(super) fn delayed(&self, by: usize, window: usize) -> [Self; 2] {
        let [cycles, next_cycles] = delay_cycles(self.cycles, by, window);
        let mut parts = [Self::default(); 2];
        (parts[0].cycles, parts[1].cycles) = (cycles, next_cycles);
        for (bit, &vcs) in self.vcs.iter().enumerate() {
            [parts[0].vcs[bit], parts[1].vcs[bit]] = delay_cycles(vcs, by, window);
        }
        let places = |cycles: usize| cycles / LOAD_CYCLES as usize * LOAD_BITS;
        [parts[0].loads, parts[1].loads] = delay_cycles(self.loads, places(by), places(window));
        parts
    }

    pub(super) fn add(&mut self, more: &Self) {
        self.cycles |= more.cycles;
        for (vcs, more) in self.vcs.iter_mut().zip(more.vcs) {
            *vcs |= more;
        }
        self.loads |= more.loads;
    }

    pub(super) fn counts(&self) -> [u32; MAX_VCS] {
        core::array::from_fn(|vc| self.count_of(vc))
    }

    #[inline]
    fn count_of(&self, vc: usize) -> u32 {
        let mut cycles = self.cycles;
        for (bit, vcs) in self.vcs.iter().enumerate() {
            cycles &= if vc >> bit & 1 != 0 { *vcs } else { !vcs };
        }
        cycles.count_ones()
    }
}

/// What a sender knows of the input buffer at the other end: flits sent for which no credit has come back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    used: [u16; VCS],
    /// Those beyond the private parts.
    common: u16,
    all: u16,
}

impl Room {
    /// Whether so many more flits of a virtual channel have room.
    #[inline]
    pub(super) const fn fits(&self, vc: usize, flits: usize) -> bool {
        flits <= (PRIVATE.saturating_sub(self.used[vc]) + (COMMON - self.common)) as usize
    }

    /// Whether any virtual channel can have so many more flits, for certain.
    #[inline]
    pub(super) const fn is_ample(&self, flits: usize) -> bool {
        self.common as usize + flits <= COMMON as usize
    }

    #[inline]
    pub(super) fn take(&mut self, vc: usize) {
        self.used[vc] += 1;
        self.all += 1;
        self.common += u16::from(self.used[vc] > PRIVATE);
    }

    #[inline]
    pub(super) fn give(&mut self, vc: usize) {
        // A credit too many is the checkers' business.
        let common = u16::from(self.used[vc] > PRIVATE);
        self.common = self.common.saturating_sub(common);
        self.used[vc] = self.used[vc].saturating_sub(1);
        self.all = self.all.saturating_sub(1);
    }

    /// All credits of a lane in a window.
    #[inline]
    pub(super) fn give_all(&mut self, returned: &Returned) {
        let mut cycles = returned.cycles;
        while cycles != 0 {
            let cycle = cycles.trailing_zeros();
            cycles &= cycles - 1;
            self.give(returned.vc(cycle));
        }
    }

    /// Flits on the way or in the input buffer of the other end, as far as known.
    #[inline]
    pub(super) const fn all(&self) -> u32 {
        self.all as u32
    }

    /// Places that are not known to be taken, for each virtual channel.
    pub(super) fn left(&self) -> [u32; MAX_VCS] {
        self.used.map(|used| INPUT_FLITS - u32::from(used))
    }

    #[cfg(test)]
    pub(super) fn spoil(&mut self, vc: usize, used: u16) {
        self.used[vc] = used;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credits_and_loads_travel_in_their_cycles() {
        let mut sent = Returned::default();
        for (cycle, vc) in [(0, 7), (3, 2), (29, 5), (39, 2)] {
            sent.credit(cycle, vc);
            assert_eq!(sent.vc(cycle), vc);
        }
        sent.tell(0, 15);
        sent.tell(30, 4);
        assert_eq!(sent.counts(), [0, 0, 2, 0, 0, 1, 0, 1]);
        assert_eq!(
            [0, 9, 29, 30, 39].map(|c| sent.load(c)),
            [15, 15, 15, 4, 4].map(Some)
        );
        let [now, next] = sent.delayed(10, 40);
        assert_eq!(
            (now.cycles, next.cycles),
            (1 << 10 | 1 << 13 | 1 << 39, 1 << 9)
        );
        assert_eq!((now.vc(10), now.vc(39), next.vc(9)), (7, 5, 2));
        assert_eq!(
            (now.load(9), now.load(39), next.load(0)),
            (None, Some(15), Some(4))
        );
        let mut both = next;
        both.add(&now);
        assert_eq!(both.counts(), sent.counts());
        assert_eq!((both.load(0), both.load(25)), (Some(4), Some(15)));
    }

    #[test]
    fn one_virtual_channel_can_have_the_whole_common_part_and_no_more() {
        let mut room = Room::default();
        let mut taken = 0;
        while room.fits(3, 1) {
            room.take(3);
            taken += 1;
        }
        assert_eq!(taken, PRIVATE + COMMON);
        assert!(!room.is_ample(1));
        assert!(
            room.fits(4, 16) && !room.fits(4, 17),
            "a packet of everybody else fits"
        );
        for _ in 0..taken {
            room.give(3);
        }
        assert_eq!((room.all(), room.common), (0, 0));
        assert!(room.is_ample(usize::from(COMMON)));
    }
}
