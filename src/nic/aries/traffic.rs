//! The traffic driver: synthetic requests that check themselves.

use super::amo_cache::CachedMemory;
use super::counters::AriesNicCounters;
use super::requester::{Answer, Requester};
use super::virtual_node::VirtualNodes;
use crate::time::Time;

/// Issues requests of its own and accounts for each of them. It does nothing so far.
#[derive(Debug, Default)]
pub(crate) struct TrafficDriver;

impl TrafficDriver {
    /// The end of a request that it issued for [`Asker::Traffic`](super::outstanding::Asker) `.0`; `data`
    /// is what the response brought.
    pub(crate) fn answered(&mut self, _now: Time, _number: u32, _answer: &Answer, _data: &[u8]) {}

    /// Issues requests while the requester has room.
    pub(crate) fn issue(
        &mut self,
        _now: Time,
        _requester: &mut Requester,
        _memory: &mut CachedMemory,
        _nodes: &VirtualNodes,
        _counters: &mut AriesNicCounters,
    ) {
    }

    /// When [`issue`](Self::issue) has something to do even if nothing arrives.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        None
    }
}
