//! The buffer of one virtual channel of an input queue.

use phitwire_framing::yarc::phit::Phit;

use phitwire::kit::ring::Ring;

/// Storage for a power of two of phits, addressed by position.
pub(super) trait PhitStorage {
    /// Number of slots now.
    fn capacity(&self) -> u64;
    fn get(&self, position: u32) -> Phit;
    fn get_mut(&mut self, position: u32) -> &mut Phit;
    /// Adds slots; phits are stored from position `head` on.
    ///
    /// # Panics
    /// If the maximum is reached.
    fn grow(&mut self, head: u32);
}

/// Storage for maximum depths that most links never need: grows on demand.
impl PhitStorage for Ring<Phit> {
    #[inline]
    fn capacity(&self) -> u64 {
        self.slots()
    }
    #[inline]
    fn get(&self, position: u32) -> Phit {
        self.get(position.into())
    }
    #[inline]
    fn get_mut(&mut self, position: u32) -> &mut Phit {
        self.get_mut(position.into())
    }
    fn grow(&mut self, head: u32) {
        self.grow(head.into());
    }
}

/// Storage for the chip's own depth: inline next to head and tail.
impl<const N: usize> PhitStorage for [Phit; N] {
    #[inline]
    fn capacity(&self) -> u64 {
        N as u64
    }
    #[inline]
    fn get(&self, position: u32) -> Phit {
        self[position as usize % N]
    }
    #[inline]
    fn get_mut(&mut self, position: u32) -> &mut Phit {
        &mut self[position as usize % N]
    }
    fn grow(&mut self, _: u32) {
        panic!("the ring is at its limit");
    }
}

/// A FIFO of phits. Positions count up forever and wrap with their type.
///
/// The writer bounds the number of phits.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct PhitRing<P = Ring<Phit>> {
    head: u32,
    tail: u32,
    phits: P,
}

impl PhitRing {
    /// An empty ring for up to `most` phits.
    pub fn new(most: u32) -> Self {
        Self {
            head: 0,
            tail: 0,
            phits: Ring::new(most),
        }
    }
}

impl<const N: usize> PhitRing<[Phit; N]> {
    /// An empty ring for up to `N` phits.
    pub const fn fixed() -> Self {
        const { assert!(N.is_power_of_two()) };
        Self {
            head: 0,
            tail: 0,
            phits: [Phit::IDLE; N],
        }
    }
}

impl<P: PhitStorage> PhitRing<P> {
    #[inline]
    pub fn len(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Position of the next phit to read.
    #[inline]
    pub fn head(&self) -> u32 {
        self.head
    }

    /// Position of the next phit to write.
    #[inline]
    pub fn tail(&self) -> u32 {
        self.tail
    }

    /// The slot `ahead` phits after the head, whether or not it is still in the ring.
    #[inline]
    pub fn at(&self, ahead: u32) -> Phit {
        self.phits.get(self.head.wrapping_add(ahead))
    }

    /// The phit `ahead` phits after the head, without taking it.
    #[inline]
    pub fn nth(&self, ahead: u32) -> Option<Phit> {
        (self.len() > ahead).then(|| self.at(ahead))
    }

    /// Writes a phit.
    ///
    /// # Panics
    /// If the ring is full and cannot grow.
    #[inline]
    pub fn push(&mut self, phit: Phit) {
        if u64::from(self.len()) == self.phits.capacity() {
            self.phits.grow(self.head);
        }
        *self.phits.get_mut(self.tail) = phit;
        self.tail = self.tail.wrapping_add(1);
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Phit> {
        let phit = self.nth(0)?;
        self.head = self.head.wrapping_add(1);
        Some(phit)
    }

    /// Restarts at position 0 if the ring is empty: new phits then reuse memory that is in the
    /// cache. For owners that keep no positions.
    #[inline]
    pub fn rewind(&mut self) {
        if self.head == self.tail {
            (self.head, self.tail) = (0, 0);
        }
    }

    /// Removes everything written from position `tail` on.
    #[inline]
    pub fn cut(&mut self, tail: u32) {
        self.tail = tail;
    }
}
