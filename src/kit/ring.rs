//! The ring behind a link's buffers, which grows with demand up to the capacity of the buffers.

use super::copy::copy_few;

/// Initial size in bytes: one page on most machines.
const FIRST_BYTES: usize = 4_096;

/// Slots for the elements of a queue, indexed by positions that only increase and wrap with their
/// type.
///
/// A link's depths allow for the worst backlog of its round trip. Most links never have it, and a
/// chip has 64 links, so a ring starts small and doubles on demand, up to its limit. It never
/// shrinks, since a link that had a backlog once is likely to have it again.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    /// The length is a power of two.
    slots: Box<[T]>,
    most: u32,
}

impl<T: Copy + Default> Ring<T> {
    /// A ring for up to `most` elements, rounded up to a power of two.
    pub fn new(most: u32) -> Self {
        let most = most.next_power_of_two();
        let first = (FIRST_BYTES / size_of::<T>()).next_power_of_two();
        Self {
            slots: vec![T::default(); first.min(most as usize)].into_boxed_slice(),
            most,
        }
    }

    /// Current number of slots.
    #[inline]
    pub fn slots(&self) -> u64 {
        self.slots.len() as u64
    }

    #[inline]
    fn index(&self, position: u64) -> usize {
        position as usize & (self.slots.len() - 1)
    }

    #[inline]
    pub fn get(&self, position: u64) -> T {
        self.slots[self.index(position)]
    }

    #[inline]
    pub fn get_mut(&mut self, position: u64) -> &mut T {
        &mut self.slots[position as usize & (self.slots.len() - 1)]
    }

    /// Stores `elements` at the positions from `from` on. There must be no more elements than
    /// slots.
    #[inline]
    pub fn put(&mut self, from: u64, elements: &[T]) {
        debug_assert!(
            elements.len() <= self.slots.len(),
            "more elements than slots"
        );
        let from = self.index(from);
        if let Some(room) = self.slots.get_mut(from..from + elements.len()) {
            copy_few(elements, room);
            return;
        }
        let (first, second) = elements.split_at(self.slots.len() - from);
        copy_few(first, &mut self.slots[from..]);
        copy_few(second, &mut self.slots[..second.len()]);
    }

    /// The `count` elements from position `from` on, in at most two pieces. `count` must not exceed
    /// the number of slots.
    #[inline]
    pub fn slices(&self, from: u64, count: usize) -> [&[T]; 2] {
        let from = self.index(from);
        let first = count.min(self.slots.len() - from);
        [
            &self.slots[from..from + first],
            &self.slots[..count - first],
        ]
    }

    /// Doubles the slots of a ring that holds elements from position `from` on.
    ///
    /// # Panics
    /// If the ring is at its limit: the writer checks for room first.
    #[cold]
    pub fn grow(&mut self, from: u64) {
        let old = self.slots();
        assert!(old < self.most.into(), "the ring is at its limit");
        let mut wider = Self {
            slots: vec![T::default(); 2 * old as usize].into_boxed_slice(),
            most: self.most,
        };
        for position in from..from + old {
            *wider.get_mut(position) = self.get(position);
        }
        *self = wider;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begins_with_a_page_and_doubles_up_to_the_most() {
        let mut ring = Ring::<u32>::new(5_000);
        assert_eq!(ring.slots(), 1_024);
        ring.grow(0);
        ring.grow(0);
        ring.grow(0);
        assert_eq!(ring.slots(), 8_192);
        assert_eq!(
            Ring::<u32>::new(5).slots(),
            8,
            "never more than the maximum"
        );
    }

    #[test]
    fn bulk_put_equals_single_writes() {
        for from in 0..20 {
            for count in 0..=8 {
                let elements: Vec<u32> = (1..=count).collect();
                let (mut whole, mut single) = (Ring::new(8), Ring::new(8));
                whole.put(from, &elements);
                for (position, element) in (from..).zip(&elements) {
                    *single.get_mut(position) = *element;
                }
                assert_eq!(whole.slots, single.slots, "{count} from {from}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "the ring is at its limit")]
    fn never_grows_beyond_the_most() {
        Ring::<u32>::new(8).grow(0);
    }

    #[test]
    fn elements_keep_their_positions_wherever_the_ring_began() {
        // The second wraps past 32 bits, as positions of input queues do.
        for from in [1_000_u64, u64::from(u32::MAX) - 100] {
            let mut ring = Ring::<u32>::new(4_096);
            for i in 0..1_024 {
                *ring.get_mut(from + i) = i as u32;
            }
            ring.grow(from);
            for i in 0..1_024 {
                assert_eq!(ring.get(u64::from((from + i) as u32)), i as u32);
            }
            let all = ring.slices(from, 1_024).concat();
            assert_eq!(all, (0..1_024).collect::<Vec<_>>());
        }
    }
}
