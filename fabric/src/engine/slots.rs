//! Layout of the segment that the NIC reaches, and which of its slots are free.

use super::wire::{PART, SLOT};

/// Maximum number of posted receives.
pub const RECEIVES: usize = 256;
/// Minimum number of posted receives. Each peer may have two messages in flight; a message that
/// finds no receive is rejected and resent.
pub const LEAST_RECEIVES: usize = 64;
/// Maximum number of messages in flight. Together with the fetches and block transfers of one-sided
/// operations they stay below a program's 128 transfers, behind which probes would wait.
pub const SENDS: usize = 64;
/// Maximum number of parts waiting to be fetched by peers.
pub const STAGES: usize = 96;
/// Maximum number of parts being fetched.
pub const FETCHES: usize = 32;

const SENDS_AT: u64 = (RECEIVES * SLOT) as u64;
/// Offset of the stages, which peers reach.
pub const STAGES_AT: u64 = SENDS_AT + (SENDS * SLOT) as u64;
const FETCHES_AT: u64 = STAGES_AT + (STAGES * PART) as u64;
/// Offset of the buffer for the words that probes fetch; never read.
pub const PROBES_AT: u64 = FETCHES_AT + (FETCHES * PART) as u64;
/// Bytes of the segment.
pub const SEGMENT: u64 = PROBES_AT + 64;
// Registered memory begins at a line, and the stages are registered.
const _: () = assert!(STAGES_AT.is_multiple_of(64) && PROBES_AT.is_multiple_of(64));

/// Offset of a receive slot.
pub const fn receive_at(slot: usize) -> u64 {
    (slot * SLOT) as u64
}

/// Offset of a send slot.
pub const fn send_at(slot: usize) -> u64 {
    SENDS_AT + (slot * SLOT) as u64
}

/// Offset of a stage, from [`STAGES_AT`].
pub const fn stage_at(slot: usize) -> u64 {
    (slot * PART) as u64
}

/// Offset of a fetch slot.
pub const fn fetch_at(slot: usize) -> u64 {
    FETCHES_AT + (slot * PART) as u64
}

/// Values by number; free numbers are reused.
#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<usize>,
    most: usize,
}

impl<T> Slab<T> {
    /// An empty slab for up to `most` values.
    pub const fn new(most: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            most,
        }
    }

    /// Count of free numbers.
    pub fn room(&self) -> usize {
        debug_assert!(self.len() <= self.most, "a slab does not outgrow its limit");
        self.most - (self.slots.len() - self.free.len())
    }

    /// Inserts a value and returns its number; `None` if full.
    pub fn insert(&mut self, value: T) -> Option<usize> {
        if let Some(slot) = self.free.pop() {
            debug_assert!(self.slots[slot].is_none(), "a free slot is empty");
            self.slots[slot] = Some(value);
            return Some(slot);
        }
        (self.slots.len() < self.most).then(|| {
            self.slots.push(Some(value));
            self.slots.len() - 1
        })
    }

    pub fn get(&self, slot: usize) -> Option<&T> {
        self.slots.get(slot)?.as_ref()
    }

    pub fn get_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.slots.get_mut(slot)?.as_mut()
    }

    pub fn remove(&mut self, slot: usize) -> Option<T> {
        let value = self.slots.get_mut(slot)?.take()?;
        self.free.push(slot);
        debug_assert!(self.free.len() <= self.slots.len(), "a slot is freed once");
        Some(value)
    }

    pub fn into_all(self) -> impl Iterator<Item = T> {
        self.slots.into_iter().flatten()
    }

    pub const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten()
    }
}
