//! State that all parts of an endpoint use: its memory, commands, peers, and clock.

use std::collections::VecDeque;

use super::action::Action;
use super::clock::Clock;
use super::outbox::Outbox;
use super::peers::Peers;
use super::shared::{Binds, Shared};
use super::slots::{STAGES, Slab};
use super::wire::Address;
use crate::flags::FI_ADDR_NOTAVAIL;

/// The memory of the segment, in which the slots lie: [`super::slots::SEGMENT`] bytes.
pub trait Segment: std::fmt::Debug + Send {
    /// Copies bytes out of a slot.
    fn read(&self, offset: u64, out: &mut [u8]);
    /// Copies bytes into a slot.
    fn write(&self, offset: u64, data: &[u8]);
}

/// State that all parts of an endpoint use.
#[derive(Debug)]
pub struct Core {
    pub(super) address: Address,
    pub(super) segment: Box<dyn Segment>,
    pub(super) outbox: Outbox,
    /// The objects that the endpoint is bound to.
    pub(super) binds: Binds,
    pub(super) peers: Peers,
    pub(super) clock: Clock,
    /// The stages in use: they hold parts that wait to be fetched, and copies of short puts.
    pub(super) stages: Slab<()>,
    /// Whether the NIC can access the program's own memory.
    pub(super) reaches_own: bool,
    /// Whether the NIC has ended.
    pub(super) is_gone: bool,
    /// Requests from part to part, which the endpoint handles before it returns to its caller.
    pub(super) actions: VecDeque<Action>,
    next_id: u64,
}

impl Core {
    pub(super) fn new(address: Address, segment: Box<dyn Segment>, reaches_own: bool) -> Self {
        Self {
            address,
            segment,
            outbox: Outbox::default(),
            binds: Binds::default(),
            peers: Peers::new(address),
            clock: Clock::default(),
            stages: Slab::new(STAGES),
            reaches_own,
            is_gone: false,
            actions: VecDeque::new(),
            next_id: 1,
        }
    }

    pub(super) const fn new_id(&mut self) -> u64 {
        let id = self.next_id;
        debug_assert!(id > 0, "0 is no operation");
        self.next_id += 1;
        id
    }

    /// A peer's number in the address vector.
    pub(super) fn source(&self, shared: &Shared, peer: usize) -> u64 {
        let vector = self.binds.vector.and_then(|slot| shared.vectors.get(slot));
        let address = &self.peers[peer].address;
        vector.map_or(FI_ADDR_NOTAVAIL, |vector| vector.number(address))
    }
}
