//! Commands on their way to the NIC, in order.

use std::collections::VecDeque;

use phitwire_client::door::{Access, Local};

/// Names of commands: the kind is in the upper bits, and a number in the lower 40.
pub mod names {
    pub const RECEIVE: u64 = 1 << 40;
    pub const SEND: u64 = 2 << 40;
    pub const FETCH: u64 = 3 << 40;
    pub const REGISTER: u64 = 4 << 40;
    pub const PROBE: u64 = 5 << 40;
    pub const DIRECT: u64 = 6 << 40;
    pub const DEREGISTER: u64 = 7 << 40;
    pub const CHECK: u64 = 8 << 40;
    pub const KINDS: u64 = !0 << 40;
    /// Marks a registration that an operation waits for; those of ranges have no mark.
    pub const AWAITED: u64 = 1 << 32;
    /// Marks the number of a renewal.
    pub const RENEWAL: u64 = 1 << 33;
    /// Marks the number of a range that is closed.
    pub const RANGE: u64 = 1 << 34;
}

/// A command that the NIC has not taken yet. A command refers to a slot, whose contents are encoded
/// when the NIC takes it; if the slot is free by then, the command is dropped. Messages to a lost
/// peer, and fetches from one, keep their slots and are still sent.
#[derive(Clone, Copy, Debug)]
pub enum Outgoing {
    /// A receive, by slot.
    Receive(usize),
    /// Takes back a receive that does not exist: when it completes, all receives before it are
    /// posted or rejected.
    Check,
    /// A message, by slot.
    Send(usize),
    /// A fetch, by slot.
    Fetch(usize),
    /// A piece of a one-sided operation, by slot.
    Direct(usize),
    /// A probe of a peer.
    Probe(usize),
    /// Opens memory to other NICs; with the number in the command's name.
    Register(u64, Local, Access),
    /// Closes opened memory; with the number in the command's name, and the handle.
    Deregister(u64, u16),
}

/// The queue of an endpoint's commands.
#[derive(Debug, Default)]
pub struct Outbox {
    queue: VecDeque<Outgoing>,
}

impl Outbox {
    /// Number of commands that the NIC has not taken.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn push(&mut self, command: Outgoing) {
        self.queue.push_back(command);
    }

    pub(super) fn front(&self) -> Option<Outgoing> {
        self.queue.front().copied()
    }

    pub(super) fn pop(&mut self) {
        let taken = self.queue.pop_front();
        debug_assert!(taken.is_some(), "a command is polled before it is taken");
    }
}
