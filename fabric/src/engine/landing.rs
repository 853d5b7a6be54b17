//! The memory in which a matched message lands.

use super::shared::Op;
use crate::memory::{Bytes, Pieces};

/// A matched message: the receive that completes with it, and the memory for its bytes.
#[derive(Clone, Debug)]
pub struct Landing {
    pub(super) op: Op,
    into: Pieces,
    /// Offset and room in `into`.
    offset: usize,
    room: usize,
    /// The number of the multi-receive buffer.
    pub(super) multi: Option<usize>,
}

impl Landing {
    /// `room` bytes of `into`, from `offset` on.
    pub(super) fn new(
        op: Op,
        into: Pieces,
        (offset, room): (usize, usize),
        multi: Option<usize>,
    ) -> Self {
        debug_assert!(
            offset + room <= into.len(),
            "a message lands in its receive"
        );
        Self {
            op,
            into,
            offset,
            room,
            multi,
        }
    }

    /// Bytes that fit.
    pub(super) const fn room(&self) -> usize {
        self.room
    }

    /// Address of the first byte.
    pub(super) fn address(&self) -> u64 {
        self.into.address() + self.offset as u64
    }

    /// Copies in the bytes of a whole message, as many as fit.
    pub(super) fn fill(&self, payload: &[u8]) {
        let bytes = payload.len().min(self.room);
        self.into.fill(self.offset, &payload[..bytes]);
    }

    /// Calls `visit` with the memory of `len` bytes of the message from `at` on.
    pub(super) fn visit(&self, at: usize, len: usize, visit: impl FnMut(usize, Bytes)) {
        let len = len.min(self.room.saturating_sub(at));
        self.into.visit(self.offset + at, len, visit);
    }
}

/// The source of an announced transfer.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// Memory of this operation of the program.
    Program(Op),
    /// Registered memory with this key, which may be closed before the transfer ends.
    Region(u64),
}

#[derive(Debug)]
pub enum Destination {
    Receive(Landing),
    /// Registered memory, which may be closed before the transfer ends: looked up for each part
    /// that is copied in. Closing it waits for parts that the NIC writes in place.
    Memory,
    /// The reply to a request, with the memory that the request provides.
    Reply(Option<Pieces>),
}
