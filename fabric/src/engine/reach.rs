//! Memory of the program that NICs reach in place: the access that peers have, and how they learn
//! of it.

use phitwire_client::door::{Access, Completion, Local, Status};

use super::endpoint::Endpoint;
use super::outbox::{Outgoing, names};
use super::renewal::RENEWAL;
use super::shared::Shared;
use crate::flags::{FI_REMOTE_READ, FI_REMOTE_WRITE};
use crate::memory::Bytes;

/// Registered memory begins at a line and has whole words.
pub const LINE: u64 = 64;
const WORD: u64 = 4;
/// Maximum number of ranges open for long messages; they stay open for the next one.
const MOST_RANGES: usize = 128;
/// Marks the name of a registration that is waited for, and whose number follows; ranges use
/// theirs.
pub(super) const AWAITED: u64 = 1 << 32;

/// Where a NIC finds the memory of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The handle of its registration.
    pub handle: u16,
    /// The address of its first byte, a multiple of 64.
    pub base: u64,
}

/// Marks keys that hold a reach; other keys are small numbers.
const MARK: u64 = 1 << 63;
const SERIAL_SHIFT: u32 = 54;
const SERIALS: u64 = 1 << 9;
const HANDLE_SHIFT: u32 = 42;
const HANDLES: u64 = 1 << 12;
const BASES: u64 = 1 << HANDLE_SHIFT;

impl Reach {
    /// The key that holds this reach; keys with the same handle differ by `serial`.
    pub const fn key(self, serial: u64) -> u64 {
        MARK | ((serial % SERIALS) << SERIAL_SHIFT)
            | ((self.handle as u64 % HANDLES) << HANDLE_SHIFT)
            | (self.base / LINE % BASES)
    }

    /// The reach in a key; `None` if NICs do not reach its memory.
    pub const fn of_key(key: u64) -> Option<Self> {
        if key & MARK == 0 {
            return None;
        }
        Some(Self {
            handle: (key >> HANDLE_SHIFT & (HANDLES - 1)) as u16,
            base: (key & (BASES - 1)) * LINE,
        })
    }
}

/// The lines that contain `bytes`, in the form that can be registered; `None` if they overflow.
pub(super) fn lines(bytes: &Bytes) -> Option<Local> {
    let base = bytes.address() / LINE * LINE;
    let end = bytes.address().checked_add(bytes.len() as u64)?;
    Some(Local::own(base, end.checked_next_multiple_of(WORD)? - base))
}

/// The access of NICs to memory opened with libfabric's flags. A read-only atomic operation is a
/// get.
pub(super) const fn access_of(flags: u64) -> Access {
    Access {
        put: flags & FI_REMOTE_WRITE != 0,
        get: flags & FI_REMOTE_READ != 0,
        atomic: flags & FI_REMOTE_WRITE != 0,
    }
}

/// A range that peers may get from.
#[derive(Clone, Copy, Debug)]
struct Range {
    base: u64,
    end: u64,
    state: Opened,
    /// Transfers that use it.
    users: u32,
    /// When it was last requested, by a counter.
    used: u64,
}

/// Whether a range is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// Not yet.
    Soon,
    /// Open, with this handle and base address.
    Open(Reach),
    /// The range cannot be opened.
    Never,
}

/// The ranges of an endpoint.
#[derive(Debug, Default)]
pub struct Ranges {
    all: Vec<Range>,
    clock: u64,
}

/// A registration that is waited for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Awaited {
    /// Number of the registration: one given up may complete while the next is waited for.
    number: u32,
    ended: Option<(Status, u64)>,
}

impl Awaited {
    /// Command name of the registration.
    const fn name(self) -> u64 {
        AWAITED | self.number as u64
    }

    /// Abandons the previous request and returns the name for the next.
    const fn next(&mut self) -> u64 {
        self.number = self.number.wrapping_add(1);
        self.ended = None;
        self.name()
    }
}

impl Endpoint {
    /// Begins to open memory to peers and returns the address of its first byte there; `None` if
    /// NICs cannot reach it. [`Self::ended_registration`] has the handle.
    pub fn begin_opening(&mut self, bytes: &Bytes, access: u64) -> Option<u64> {
        if !self.core.reaches_own || bytes.is_empty() {
            return None;
        }
        let part = lines(bytes)?;
        self.begin_registration(part, access_of(access));
        part.own_address()
    }

    /// Begins a registration; the previous one is given up.
    pub(super) fn begin_registration(&mut self, part: Local, access: Access) {
        let number = self.awaited.next();
        self.core
            .outbox
            .push(Outgoing::Register(number, part, access));
    }

    /// Begins to close opened memory; no peer reaches it once [`Self::ended_registration`] is
    /// there.
    pub fn begin_closing(&mut self, handle: u16) {
        let number = self.awaited.next();
        self.core.outbox.push(Outgoing::Deregister(number, handle));
    }

    /// The outcome of the last registration or closing that was begun, and its handle.
    pub const fn ended_registration(&self) -> Option<(Status, u64)> {
        self.awaited.ended
    }

    /// The last registration is no longer waited for: if it succeeds later, it is undone.
    pub const fn leave_registration(&mut self) {
        self.awaited.next();
    }

    /// Handles the completion of a registration.
    pub(super) fn registered(&mut self, shared: &mut Shared, completion: &Completion) {
        let Completion::End {
            name, status, word, ..
        } = *completion
        else {
            return;
        };
        let number = name & !names::KINDS;
        if number & RENEWAL != 0 {
            let opened = name & names::KINDS == names::REGISTER;
            self.renewal_went_on(shared, number & !RENEWAL, opened, (status, word));
        } else if number & AWAITED != 0 {
            if number == self.awaited.name() {
                self.awaited.ended = Some((status, word));
            } else if name & names::KINDS == names::REGISTER
                && status == Status::Done
                && let Ok(handle) = u16::try_from(word)
            {
                // Deregister: the requester of this registration gave up.
                self.core.outbox.push(Outgoing::Deregister(0, handle));
            }
        } else if name & names::KINDS == names::REGISTER
            && let Some(range) = self.ranges.all.get_mut(number as usize)
        {
            range.state = match (status, u16::try_from(word)) {
                (Status::Done, Ok(handle)) => Opened::Open(Reach {
                    handle,
                    base: range.base,
                }),
                _ => Opened::Never,
            };
        }
    }

    /// A range that contains `bytes`, from which peers can get them: open already, or soon.
    pub(super) fn open_range(&mut self, bytes: &Bytes) -> Option<usize> {
        let part = lines(bytes)?;
        let base = part.own_address().filter(|_| self.core.reaches_own)?;
        let end = base + part.bytes;
        self.ranges.clock += 1;
        let used = self.ranges.clock;
        let all = &mut self.ranges.all;
        let has_it =
            |range: &Range| range.base <= base && end <= range.end && range.state != Opened::Never;
        if let Some(slot) = all.iter().position(has_it) {
            all[slot].users += 1;
            all[slot].used = used;
            return Some(slot);
        }
        let range = Range {
            base,
            end,
            state: Opened::Soon,
            users: 1,
            used,
        };
        let slot = if all.len() < MOST_RANGES {
            all.push(range);
            all.len() - 1
        } else {
            let is_free =
                |(_, range): &(usize, &mut Range)| range.users == 0 && range.state != Opened::Soon;
            let free = all.iter_mut().enumerate().filter(is_free);
            let (slot, _) = free.min_by_key(|(_, range)| range.used)?;
            let old = std::mem::replace(&mut all[slot], range);
            if let Opened::Open(reach) = old.state {
                self.core.outbox.push(Outgoing::Deregister(0, reach.handle));
            }
            slot
        };
        let access = Access {
            put: false,
            get: true,
            atomic: false,
        };
        self.core
            .outbox
            .push(Outgoing::Register(slot as u64, part, access));
        Some(slot)
    }

    /// Whether a range is open.
    pub(super) fn opened(&self, range: usize) -> Opened {
        self.ranges.all[range].state
    }

    /// A transfer no longer needs its range.
    pub(super) fn leave_range(&mut self, range: usize) {
        let range = &mut self.ranges.all[range];
        range.users = range.users.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_read_only_is_not_changed() {
        let access = |put, get, atomic| Access { put, get, atomic };
        assert_eq!(access_of(FI_REMOTE_READ), access(false, true, false));
        assert_eq!(access_of(FI_REMOTE_WRITE), access(true, false, true));
        assert_eq!(access_of(FI_REMOTE_READ | FI_REMOTE_WRITE), Access::ALL);
    }

    #[test]
    fn keys_say_where_memory_is() {
        for (handle, base, serial) in [
            (1, 64, 0),
            (0xffd, (1 << 48) - 64, 511),
            (77, 0x7fff_0000_0040, 513),
        ] {
            let reach = Reach { handle, base };
            assert_eq!(Reach::of_key(reach.key(serial)), Some(reach));
            assert_ne!(reach.key(serial), reach.key(serial + 1));
            assert_ne!(reach.key(serial), u64::MAX, "FI_KEY_NOTAVAIL");
        }
        assert_eq!(Reach::of_key(1 << 62), None);
    }
}
