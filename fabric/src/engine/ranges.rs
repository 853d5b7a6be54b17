//! Ranges of the program's memory that peers may get from, for long messages.

use phitwire_client::door::{Access, Status};

use super::core::Core;
use super::outbox::{Outgoing, names};
use super::reach::{Reach, lines};
use crate::memory::Bytes;

/// Maximum number of ranges open for long messages; they stay open for the next one.
const MOST_RANGES: usize = 128;

/// The transfers that share a range, and end together if it has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Messages of the program to this peer.
    Peer(usize),
    /// Reads of the registered memory with this key.
    Region(u64),
}

/// A range that peers may get from.
#[derive(Debug)]
struct Range {
    readers: Readers,
    base: u64,
    end: u64,
    state: Opened,
    /// Number of transfers that use it.
    users: u32,
    /// Transfers that are announced once it is open.
    waiting: Vec<u64>,
    /// Value of a counter when it was last requested.
    used: u64,
    /// Whether it is closed as soon as it is open.
    is_unwanted: bool,
}

/// The state of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// Not open yet.
    Soon,
    /// Open, with this handle and base address.
    Open(Reach),
    /// The NIC is closing it.
    Closing,
    /// It could not be opened, or has been closed.
    Never,
}

#[derive(Debug, Default)]
pub struct Ranges {
    all: Vec<Range>,
    clock: u64,
}

impl Ranges {
    /// Returns a range that contains `bytes` and is open to peers, or soon will be.
    pub(super) fn open(
        &mut self,
        core: &mut Core,
        bytes: &Bytes,
        readers: Readers,
    ) -> Option<usize> {
        let part = lines(bytes)?;
        let base = part.own_address().filter(|_| core.reaches_own)?;
        let end = base + part.bytes;
        self.clock += 1;
        let used = self.clock;
        let all = &mut self.all;
        let has_it = |range: &Range| {
            let is_open = matches!(range.state, Opened::Soon | Opened::Open(_));
            let is_theirs = range.readers == readers && is_open && !range.is_unwanted;
            is_theirs && range.base <= base && end <= range.end
        };
        if let Some(slot) = all.iter().position(has_it) {
            all[slot].users += 1;
            all[slot].used = used;
            return Some(slot);
        }
        let range = Range {
            readers,
            base,
            end,
            state: Opened::Soon,
            users: 1,
            waiting: Vec::new(),
            used,
            is_unwanted: false,
        };
        let slot = if all.len() < MOST_RANGES {
            all.push(range);
            all.len() - 1
        } else {
            let is_free = |(_, range): &(usize, &mut Range)| {
                range.users == 0 && matches!(range.state, Opened::Open(_) | Opened::Never)
            };
            let free = all.iter_mut().enumerate().filter(is_free);
            let (slot, _) = free.min_by_key(|(_, range)| range.used)?;
            let old = std::mem::replace(&mut all[slot], range);
            debug_assert_eq!(old.users, 0, "a transfer still fetches from it");
            if let Opened::Open(reach) = old.state {
                core.outbox.push(Outgoing::Deregister(0, reach.handle));
            }
            slot
        };
        let access = Access {
            put: false,
            get: true,
            atomic: false,
        };
        core.outbox
            .push(Outgoing::Register(slot as u64, part, access));
        Some(slot)
    }

    /// Lets a transfer wait until a range is open.
    pub(super) fn wait(&mut self, range: usize, transfer: u64) {
        debug_assert_eq!(self.state(range), Opened::Soon);
        self.all[range].waiting.push(transfer);
    }

    /// Handles the completion of a range's registration. Returns the transfers that waited for it.
    pub(super) fn registered(
        &mut self,
        core: &mut Core,
        number: u64,
        (status, word): (Status, u64),
    ) -> Vec<u64> {
        let slot = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(range) = self.all.get_mut(slot) else {
            return Vec::new();
        };
        range.state = match (status, u16::try_from(word)) {
            (Status::Done, Ok(handle)) => Opened::Open(Reach {
                handle,
                base: range.base,
            }),
            _ => Opened::Never,
        };
        let waiting = std::mem::take(&mut range.waiting);
        if range.is_unwanted {
            self.close(core, slot);
        }
        waiting
    }

    /// Closes a range: peers can no longer get from it once it is [`Opened::Never`].
    pub(super) fn close(&mut self, core: &mut Core, slot: usize) {
        let range = &mut self.all[slot];
        range.is_unwanted = true;
        if let Opened::Open(reach) = range.state {
            range.state = Opened::Closing;
            let number = names::RANGE | slot as u64;
            core.outbox.push(Outgoing::Deregister(number, reach.handle));
        }
    }

    /// Frees a handle: closes the unused range that was requested longest ago.
    pub(super) fn close_idle(&mut self, core: &mut Core) {
        let is_idle = |range: &Range| range.users == 0 && matches!(range.state, Opened::Open(_));
        let all = self.all.iter().enumerate();
        let idle = all.filter(|(_, range)| is_idle(range));
        if let Some((slot, _)) = idle.min_by_key(|(_, range)| range.used) {
            self.close(core, slot);
        }
    }

    /// Closes all ranges of these readers.
    pub(super) fn close_all(&mut self, core: &mut Core, readers: Readers) {
        for slot in 0..self.all.len() {
            if self.all[slot].readers == readers {
                self.close(core, slot);
            }
        }
    }

    /// Handles the completion of a range's closing.
    pub(super) fn closed(&mut self, slot: usize) {
        if let Some(range) = self.all.get_mut(slot) {
            debug_assert_eq!(range.state, Opened::Closing);
            range.state = Opened::Never;
        }
    }

    /// Whether a range of these readers is being closed, or will be.
    pub(super) fn is_closing(&self, readers: Readers) -> bool {
        let mut all = self.all.iter().filter(|range| range.readers == readers);
        all.any(|range| range.is_unwanted && range.state != Opened::Never)
    }

    /// Number of transfers that use ranges.
    #[cfg(test)]
    pub(super) fn users(&self) -> usize {
        self.all.iter().map(|range| range.users as usize).sum()
    }

    pub(super) fn state(&self, range: usize) -> Opened {
        debug_assert!(self.all[range].users > 0, "only its users ask");
        self.all[range].state
    }

    /// Removes a transfer from the users of its range.
    pub(super) fn leave(&mut self, range: usize) {
        let range = &mut self.all[range];
        debug_assert!(range.users > 0, "each user leaves once");
        range.users = range.users.saturating_sub(1);
    }
}
