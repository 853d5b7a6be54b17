//! Opening and closing of memory, for which the program waits.

use phitwire_client::door::{Access, Local, Status};

use super::core::Core;
use super::outbox::{Outgoing, names};
use super::reach::{access_of, lines};
use crate::memory::Bytes;

/// The registration or closing that the program waits for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Registration {
    /// Number of the registration: an abandoned one may complete while the program waits for the
    /// next.
    number: u32,
    ended: Option<(Status, u64)>,
}

impl Registration {
    /// Command name of the registration.
    const fn name(self) -> u64 {
        names::AWAITED | self.number as u64
    }

    /// Abandons the previous request and returns the name for the next.
    const fn next(&mut self) -> u64 {
        self.number = self.number.wrapping_add(1);
        self.ended = None;
        self.name()
    }

    /// Begins to open memory to peers and returns the address of its first byte there; `None` if
    /// NICs cannot reach it.
    pub(super) fn open(&mut self, core: &mut Core, bytes: &Bytes, access: u64) -> Option<u64> {
        if !core.reaches_own || bytes.is_empty() {
            return None;
        }
        let part = lines(bytes)?;
        self.begin(core, part, access_of(access));
        part.own_address()
    }

    /// Begins a registration and abandons the previous one.
    pub(super) fn begin(&mut self, core: &mut Core, part: Local, access: Access) {
        let number = self.next();
        core.outbox.push(Outgoing::Register(number, part, access));
    }

    /// Begins to close opened memory.
    pub(super) fn close(&mut self, core: &mut Core, handle: u16) {
        let number = self.next();
        core.outbox.push(Outgoing::Deregister(number, handle));
    }

    /// The outcome of the last registration or closing, and its handle.
    pub(super) const fn ended(&self) -> Option<(Status, u64)> {
        self.ended
    }

    /// Stops waiting for the last registration, which is undone if it succeeds later.
    pub(super) const fn leave(&mut self) {
        self.next();
    }

    /// Handles the completion of a registration or closing.
    pub(super) fn completed(
        &mut self,
        core: &mut Core,
        number: u64,
        is_opened: bool,
        (status, word): (Status, u64),
    ) {
        debug_assert!(
            number & names::AWAITED != 0,
            "the program waits only for awaited numbers"
        );
        if number == self.name() {
            self.ended = Some((status, word));
        } else if is_opened
            && status == Status::Done
            && let Ok(handle) = u16::try_from(word)
        {
            // Deregister: the requester of this registration gave up.
            core.outbox.push(Outgoing::Deregister(0, handle));
        }
    }
}
