//! What stands behind command class 7: the collective engine.

use phitwire_framing::packet48::{Request, Status};

use super::amo_cache::CachedMemory;
use super::completion::Failure;
use super::counters::AriesNicCounters;
use super::requester::Requester;
use crate::time::Time;

/// Takes the control requests of other nodes and sends its own, without any processor: nothing here is
/// called by a user. It refuses everything so far.
#[derive(Debug, Default)]
pub(crate) struct CollectiveUnit;

impl CollectiveUnit {
    /// Carries out the control request `code` (0 to 12) with its data, which may be filled up with zero
    /// bytes, and answers how it went. A request that cannot be taken now is [`Status::Busy`].
    pub(crate) fn serve(
        &mut self,
        _now: Time,
        _request: &Request,
        _code: u8,
        _data: &[u8],
    ) -> Status {
        Status::Unsupported
    }

    /// The end of a request that it issued for [`Asker::Collective`](super::outstanding::Asker) `.0`.
    pub(crate) fn answered(&mut self, _now: Time, _number: u32, _failure: Option<Failure>) {}

    /// Sends what it has to send while the requester has room (reserve included), and writes results to
    /// the memory.
    pub(crate) fn issue(
        &mut self,
        _now: Time,
        _requester: &mut Requester,
        _memory: &mut CachedMemory,
        _counters: &mut AriesNicCounters,
    ) {
    }

    /// When [`issue`](Self::issue) has something to do even if nothing arrives.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        None
    }
}
