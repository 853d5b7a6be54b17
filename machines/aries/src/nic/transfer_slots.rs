//! Open transfers. Each occupies a slot until the response to its last packet.

use super::block_transfer::{Active, Stage};
use super::transfer_targets::TargetIndex;
use phitwire::time::Time;

/// Maximum number of open transfers, whether they are being sent or wait for their last responses.
/// A quarter of the SSIDs; the rest is for transactions.
pub(super) const MAX_UNDER_WAY: usize = 128;
const _: () = assert!(
    MAX_UNDER_WAY <= u8::MAX as usize,
    "slot numbers have 8 bits"
);

#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Option<Active>>,
    free: Vec<u8>,
}

impl Slots {
    /// Inserts a transfer and returns its slot.
    ///
    /// # Panics
    /// If there is no room.
    pub(super) fn insert(&mut self, active: Active) -> u8 {
        assert!(self.has_room(), "the caller checked for room");
        let slot = self.free.pop().unwrap_or(self.slots.len() as u8);
        if usize::from(slot) == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[usize::from(slot)] = Some(active);
        slot
    }

    pub(super) fn has_room(&self) -> bool {
        !self.free.is_empty() || self.slots.len() < MAX_UNDER_WAY
    }

    pub(super) fn get(&mut self, slot: u8) -> &mut Active {
        match &mut self.slots[usize::from(slot)] {
            Some(active) => active,
            None => unreachable!("a transfer stays until all its packets have ended"),
        }
    }

    #[inline]
    pub(super) fn target(&self, slot: u8) -> TargetIndex {
        match &self.slots[usize::from(slot)] {
            Some(active) => active.what.target,
            None => unreachable!("a transfer stays until all its packets have ended"),
        }
    }

    /// When the send in a slot is announced, if it waits for that.
    pub(super) fn announces_at(&self, slot: u8) -> Option<Time> {
        match self.slots[usize::from(slot)]?.stage {
            Stage::Announcing(at) => Some(at),
            _ => None,
        }
    }

    pub(super) fn remove(&mut self, slot: u8) {
        self.slots[usize::from(slot)] = None;
        self.free.push(slot);
    }

    pub(super) fn find(&self, which: impl Fn(&Active) -> bool) -> Vec<u8> {
        let is_one = |slot: &u8| self.slots[usize::from(*slot)].as_ref().is_some_and(&which);
        (0..self.slots.len() as u8).filter(is_one).collect()
    }
}
