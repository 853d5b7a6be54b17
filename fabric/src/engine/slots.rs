//! Where things are in the segment that the network interface reaches, and which of it is free.

use super::wire::{PART, SLOT};

/// Posted receives.
pub const RECEIVES: usize = 256;
/// Messages on their way: with the fetches and block transfers of one-sided operations fewer than the
/// 128 transfers of a program, behind which questions to other ends would wait.
pub const SENDS: usize = 64;
/// Parts that wait to be fetched by others.
pub const STAGES: usize = 96;
/// Parts that are being fetched.
pub const FETCHES: usize = 32;

const SENDS_AT: u64 = (RECEIVES * SLOT) as u64;
/// Where the stages begin, which others reach.
pub const STAGES_AT: u64 = SENDS_AT + (SENDS * SLOT) as u64;
const FETCHES_AT: u64 = STAGES_AT + (STAGES * PART) as u64;
/// Where the words of signs of life go, which nobody reads.
pub const PROBES_AT: u64 = FETCHES_AT + (FETCHES * PART) as u64;
/// Bytes of the segment.
pub const SEGMENT: u64 = PROBES_AT + 64;

/// Where a slot's bytes begin.
pub const fn receive_at(slot: usize) -> u64 {
    (slot * SLOT) as u64
}

/// Where a slot's bytes begin.
pub const fn send_at(slot: usize) -> u64 {
    SENDS_AT + (slot * SLOT) as u64
}

/// Where a stage's bytes begin, counted from [`STAGES_AT`].
pub const fn stage_at(slot: usize) -> u64 {
    (slot * PART) as u64
}

/// Where a slot's bytes begin.
pub const fn fetch_at(slot: usize) -> u64 {
    FETCHES_AT + (slot * PART) as u64
}

/// Values by number, whose numbers serve again.
#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<usize>,
    most: usize,
}

impl<T> Slab<T> {
    /// At most so many.
    pub const fn new(most: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            most,
        }
    }

    /// Free places.
    pub fn room(&self) -> usize {
        self.most - (self.slots.len() - self.free.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len()
    }

    /// Keeps a value; the number, unless all are in use.
    pub fn insert(&mut self, value: T) -> Option<usize> {
        if let Some(slot) = self.free.pop() {
            self.slots[slot] = Some(value);
            return Some(slot);
        }
        (self.slots.len() < self.most).then(|| {
            self.slots.push(Some(value));
            self.slots.len() - 1
        })
    }

    /// The value of that number.
    pub fn get(&self, slot: usize) -> Option<&T> {
        self.slots.get(slot)?.as_ref()
    }

    /// The value of that number.
    pub fn get_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.slots.get_mut(slot)?.as_mut()
    }

    /// The first of them, and its number.
    pub fn first_mut(&mut self) -> Option<(usize, &mut T)> {
        let slots = self.slots.iter_mut().enumerate();
        slots
            .flat_map(|(slot, value)| Some((slot, value.as_mut()?)))
            .next()
    }

    /// Takes it out.
    pub fn remove(&mut self, slot: usize) -> Option<T> {
        let value = self.slots.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(value)
    }

    /// All values, taken out.
    pub fn into_all(self) -> impl Iterator<Item = T> {
        self.slots.into_iter().flatten()
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// All values.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }

    /// All values.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten()
    }
}
