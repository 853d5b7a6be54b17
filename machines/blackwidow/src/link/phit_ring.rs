//! The buffer of one virtual channel of an input queue.

use phitwire_framing::yarc::phit::Phit;

use phitwire::kit::ring::Ring;

/// Places for phits by their positions, a power of two of them.
pub(super) trait Places {
    /// Phits that have room now.
    fn places(&self) -> u64;
    /// The phit at `position`.
    fn get(&self, position: u32) -> Phit;
    /// The place of the phit at `position`.
    fn get_mut(&mut self, position: u32) -> &mut Phit;
    /// Makes more places, where phits lie from position `head` on.
    ///
    /// # Panics
    /// If there may not be more.
    fn grow(&mut self, head: u32);
}

/// For depths that most links never need.
impl Places for Ring<Phit> {
    #[inline]
    fn places(&self) -> u64 {
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

/// For the chip's own depth: no memory but where head and tail are.
impl<const N: usize> Places for [Phit; N] {
    #[inline]
    fn places(&self) -> u64 {
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
        panic!("a ring beyond what was asked for");
    }
}

/// Phits in the order in which they came. Positions count up for ever and wrap with their type.
///
/// The writer knows how many may be in it.
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

impl<P: Places> PhitRing<P> {
    /// Phits in it.
    #[inline]
    pub fn len(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Position of the next phit to be read.
    #[inline]
    pub fn head(&self) -> u32 {
        self.head
    }

    /// Position of the next phit to be written.
    #[inline]
    pub fn tail(&self) -> u32 {
        self.tail
    }

    /// What stands `ahead` phits behind the head, whether it is still in the ring or not.
    #[inline]
    pub fn at(&self, ahead: u32) -> Phit {
        self.phits.get(self.head.wrapping_add(ahead))
    }

    /// The phit `ahead` of which stand before it, left in place.
    #[inline]
    pub fn nth(&self, ahead: u32) -> Option<Phit> {
        (self.len() > ahead).then(|| self.at(ahead))
    }

    /// Writes a phit.
    ///
    /// # Panics
    /// If there are as many in it as there may be.
    #[inline]
    pub fn push(&mut self, phit: Phit) {
        if u64::from(self.len()) == self.phits.places() {
            self.phits.grow(self.head);
        }
        *self.phits.get_mut(self.tail) = phit;
        self.tail = self.tail.wrapping_add(1);
    }

    /// Takes the next phit.
    #[inline]
    pub fn pop(&mut self) -> Option<Phit> {
        let phit = self.nth(0)?;
        self.head = self.head.wrapping_add(1);
        Some(phit)
    }

    /// Begins again at position 0, if nothing is in it: what comes next lies in memory where what
    /// came before did, and is found in the cache. For owners who remember no positions.
    #[inline]
    pub fn rewind(&mut self) {
        if self.head == self.tail {
            (self.head, self.tail) = (0, 0);
        }
    }

    /// Removes what was written from position `tail` on.
    #[inline]
    pub fn cut(&mut self, tail: u32) {
        self.tail = tail;
    }
}
