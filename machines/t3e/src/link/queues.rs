//! Queues of flits, one per virtual channel. Live links and virtual time differ only in how the
//! words are stored.

use phitwire_framing::t3e::flit::{VCS, vc};

use super::config::Depths;
use phitwire::kit::ring::Ring;

/// Storage of the queues' words, by channel and a position that counts up and wraps.
pub(super) trait Words {
    fn get(&self, vc: usize, at: u16) -> u64;
    fn get_mut(&mut self, vc: usize, at: u16) -> &mut u64;
    /// Makes room for one more word after the `len` words that begin at `first`.
    fn make_room(&mut self, vc: usize, first: u16, len: u16);
}

/// Words in growing rings.
pub(super) type Rings = [Ring<u64>; VCS];

impl Words for Rings {
    #[inline]
    fn get(&self, vc: usize, at: u16) -> u64 {
        self[vc].get(at.into())
    }

    #[inline]
    fn get_mut(&mut self, vc: usize, at: u16) -> &mut u64 {
        self[vc].get_mut(at.into())
    }

    #[inline]
    fn make_room(&mut self, vc: usize, first: u16, len: u16) {
        if u64::from(len) == self[vc].slots() {
            self[vc].grow(first.into());
        }
    }
}

/// Words of channels no deeper than the machine's, stored next to their queues without a pointer.
#[derive(Clone, Debug)]
pub(super) struct Slots([u64; ALL_SLOTS]);

/// Slots of a deterministic channel and of the adaptive one.
const SLOTS: usize = (Depths::PROCESSOR.deterministic as usize).next_power_of_two();
const ADAPTIVE_SLOTS: usize = (Depths::PROCESSOR.adaptive as usize).next_power_of_two();
const ALL_SLOTS: usize = vc::ADAPTIVE * SLOTS + ADAPTIVE_SLOTS;

impl Slots {
    /// Slots for channels of these depths.
    ///
    /// # Panics
    /// If the slots do not suffice.
    pub(super) fn new(depths: Depths) -> Self {
        let fits = usize::from(depths.deterministic) <= SLOTS
            && usize::from(depths.adaptive) <= ADAPTIVE_SLOTS;
        assert!(fits, "the depths exceed those of the machine");
        Self([0; ALL_SLOTS])
    }

    #[inline]
    const fn of(vc: usize) -> usize {
        if vc == vc::ADAPTIVE {
            ADAPTIVE_SLOTS
        } else {
            SLOTS
        }
    }

    #[inline]
    const fn index(vc: usize, at: u16) -> usize {
        vc * SLOTS + (at as usize & (Self::of(vc) - 1))
    }
}

impl Words for Slots {
    #[inline]
    fn get(&self, vc: usize, at: u16) -> u64 {
        self.0[Self::index(vc, at)]
    }

    #[inline]
    fn get_mut(&mut self, vc: usize, at: u16) -> &mut u64 {
        &mut self.0[Self::index(vc, at)]
    }

    #[inline]
    fn make_room(&mut self, vc: usize, _: u16, len: u16) {
        debug_assert!(usize::from(len) < Self::of(vc), "there is a free slot");
    }
}

/// Queues of flits, one per virtual channel: their lengths and their positions in the separate
/// [`Words`]. All channels share half a cache line, since the routers of a large machine exceed the
/// caches.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    /// Position of the oldest flit; wraps.
    first: [u16; VCS],
    /// Number of flits.
    len: [u16; VCS],
    /// Capacity in flits.
    slots: [u16; VCS],
}

const _: () = assert!(size_of::<Queues>() <= 32);

impl Queues {
    pub fn new(depths: Depths) -> Self {
        Self {
            first: [0; VCS],
            len: [0; VCS],
            slots: depths.all().map(|slots| slots as u16),
        }
    }

    /// Moves the first position of empty queues.
    #[cfg(test)]
    pub fn beginning_at(mut self, first: u16) -> Self {
        self.first = [first; VCS];
        self
    }

    /// Whether there is a free slot, with `more` slots beyond the capacity.
    #[inline]
    pub fn has_slot(&self, vc: usize, more: u16) -> bool {
        self.len[vc] < self.slots[vc] + more
    }

    #[inline]
    pub fn push(&mut self, words: &mut impl Words, vc: usize, word: u64) {
        words.make_room(vc, self.first[vc], self.len[vc]);
        *words.get_mut(vc, self.end(vc)) = word;
        self.len[vc] += 1;
    }

    /// Position after the youngest flit.
    #[inline]
    pub fn end(&self, vc: usize) -> u16 {
        self.first[vc].wrapping_add(self.len[vc])
    }

    /// The flit at index `at` of a channel that has one.
    #[inline]
    pub fn get(&self, words: &impl Words, vc: usize, at: u16) -> u64 {
        words.get(vc, self.first[vc].wrapping_add(at))
    }

    /// Takes the oldest flit of a channel.
    ///
    /// # Panics
    /// If the channel is empty.
    #[inline]
    pub fn pop(&mut self, words: &impl Words, vc: usize) -> u64 {
        let word = self.get(words, vc, 0);
        self.leave(vc, 1);
        word
    }

    /// Removes the oldest flits of a channel. Returns the position of the first.
    ///
    /// # Panics
    /// If there are fewer flits.
    #[inline]
    pub fn leave(&mut self, vc: usize, flits: u16) -> u16 {
        assert!(self.len[vc] >= flits, "more flits taken than queued");
        let first = self.first[vc];
        self.first[vc] = first.wrapping_add(flits);
        self.len[vc] -= flits;
        first
    }

    /// If the queue is empty, restarts it at the front of its storage, which is likely still
    /// cached.
    #[inline]
    pub fn rewind(&mut self, vc: usize) {
        self.first[vc] *= u16::from(self.len[vc] > 0);
    }

    #[inline]
    pub fn len(&self, vc: usize) -> u16 {
        self.len[vc]
    }

    /// Total number of flits.
    pub fn flits(&self) -> u64 {
        self.len.iter().copied().map(u64::from).sum()
    }

    pub fn free(&self, vc: usize) -> u16 {
        self.slots[vc].saturating_sub(self.len[vc])
    }

    /// Flits of a channel beyond its capacity.
    pub fn excess(&self, vc: usize) -> u16 {
        self.len[vc].saturating_sub(self.slots[vc])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots and rings behave alike.
    #[test]
    fn flits_come_out_as_they_came_wherever_they_lie() {
        let depths = Depths::PROCESSOR;
        let mut slots = Slots::new(depths);
        let mut rings: Rings = core::array::from_fn(|_| Ring::new(64));
        let (mut short, mut long) = (Queues::new(depths), Queues::new(depths));
        let (mut came, mut went) = ([0; VCS], [0; VCS]);
        for step in 0..20_000_u64 {
            let vc = (step * 7 % 11 % VCS as u64) as usize;
            let word = |number: u64| number << 3 | vc as u64;
            if step / 300 % 2 == 0 && short.has_slot(vc, 0) {
                short.push(&mut slots, vc, word(came[vc]));
                long.push(&mut rings, vc, word(came[vc]));
                came[vc] += 1;
            } else if short.len(vc) > 0 {
                assert_eq!(short.pop(&slots, vc), word(went[vc]));
                assert_eq!(long.pop(&rings, vc), word(went[vc]));
                short.rewind(vc);
                went[vc] += 1;
            }
        }
        assert!(went.iter().all(|&went| went > 200), "{went:?}");
        assert_eq!(
            short.flits(),
            came.iter().sum::<u64>() - went.iter().sum::<u64>()
        );
    }

    /// Positions wrap while rings grow.
    #[test]
    fn flits_come_out_as_they_came_where_positions_wrap() {
        let mut rings: Rings = core::array::from_fn(|_| Ring::new(2_048));
        assert!(rings[0].slots() < 600, "the ring has to grow");
        let mut queues = Queues::new(Depths::LIVE).beginning_at(u16::MAX - 300);
        for word in 0..600 {
            queues.push(&mut rings, 3, word);
        }
        assert!(rings[3].slots() >= 600 && queues.end(3) < 600);
        for word in 0..600 {
            assert_eq!(queues.get(&rings, 3, (599 - word) as u16), 599);
            assert_eq!(queues.pop(&rings, 3), word);
        }
        assert_eq!(queues.flits(), 0);
    }

    #[test]
    #[should_panic(expected = "exceed those of the machine")]
    fn slots_are_not_for_deep_channels() {
        Slots::new(Depths::LIVE);
    }
}
