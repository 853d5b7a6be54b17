//! Requests of peers: writes, reads and atomic operations on this program's memory.
//!
//! Words of opened memory are changed only by the NIC at which they were registered. An atomic
//! operation that a NIC lacks becomes a request to the program there, which computes the new value
//! and has its own NIC swap it for the old one, and retries if the word changed in between. So both
//! kinds may be mixed.

use std::collections::{HashMap, VecDeque};

use phitwire_client::door::Remote;

use super::access::{MOST_ELEMENT_BYTES, Target};
use super::action::Action;
use super::core::Core;
use super::elements;
use super::landing::{Destination, Source};
use super::parcel::{End, Parcel};
use super::reach::Reach;
use super::service::Service;
use super::shared::{Entry, Op, Shared};
use super::wire::{Head, Kind, MOST_EAGER, Purpose};
use crate::flags::{FI_REMOTE_CQ_DATA, FI_REMOTE_READ, FI_REMOTE_WRITE, FI_RMA};
use crate::memory::{Bytes, Pieces};

/// Requests of peers under way.
#[derive(Debug, Default)]
pub struct Serving {
    /// Peers whose atomic request the NIC is carrying out, and their next ones, in order.
    under_way: HashMap<usize, VecDeque<(Head, Vec<u8>)>>,
}

impl Serving {
    /// Number of peers that are being served.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Handles a peer's write: a short message, or a long one that is to be fetched.
    pub(super) fn write(
        &self,
        core: &mut Core,
        shared: &mut Shared,
        peer: usize,
        (head, payload): (Head, &[u8]),
    ) {
        let memory = shared.region(head.key, head.tag, head.len, FI_REMOTE_WRITE);
        match (memory, head.kind) {
            (Some(_), Kind::Ready) => {
                let pull = Action::Pull(peer, head, Destination::Memory);
                core.actions.push_back(pull);
            }
            (None, Kind::Ready) => core.actions.push_back(Action::Discard(peer, head, true)),
            (Some(memory), _) => {
                Pieces::One(memory).fill(0, payload);
                self.written(core, shared, peer, &head);
                answer(core, peer, head.id, false);
            }
            (None, _) => answer(core, peer, head.id, true),
        }
    }

    /// Counts a peer's completed write into this program's memory, and reports it if the peer
    /// requests that.
    pub(super) fn written(&self, core: &Core, shared: &mut Shared, peer: usize, head: &Head) {
        shared.accessed(&core.binds, head.key, FI_REMOTE_WRITE);
        if head.has_data {
            let op = Op {
                context: 0,
                flags: FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
                reports_success: true,
                is_delivery: false,
                tag: 0,
            };
            let entry = Entry {
                len: head.len as usize,
                data: head.data,
                ..Entry::default()
            };
            let source = core.source(shared, peer);
            shared.done(&core.binds, &op, entry, source);
        }
    }

    /// Handles a peer's read.
    pub(super) fn read(&self, core: &mut Core, shared: &mut Shared, peer: usize, head: &Head) {
        match shared.region(head.key, head.tag, head.len, FI_REMOTE_READ) {
            None => answer(core, peer, head.id, true),
            Some(memory) if memory.len() > MOST_EAGER => {
                let reply = reply_to(head.id, memory.len());
                let offer =
                    Action::Offer(peer, reply, Pieces::One(memory), Source::Region(head.key));
                core.actions.push_back(offer);
            }
            Some(memory) => {
                shared.accessed(&core.binds, head.key, FI_REMOTE_READ);
                answer_with(core, peer, head.id, memory.with(<[u8]>::to_vec));
            }
        }
    }

    /// Handles a peer's atomic request. Those of one peer are carried out in order.
    pub(super) fn change(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        peer: usize,
        (head, payload): (Head, Vec<u8>),
    ) {
        if let Some(queue) = self.under_way.get_mut(&peer) {
            return queue.push_back((head, payload));
        }
        let access = match (head.op == elements::READ, head.fetch) {
            (true, _) => FI_REMOTE_READ,
            (false, true) => FI_REMOTE_READ | FI_REMOTE_WRITE,
            (false, false) => FI_REMOTE_WRITE,
        };
        let size = elements::size_of_type(head.datatype).unwrap_or(0);
        let bytes = head.count as usize * size;
        let far = shared.region(head.key, head.tag, bytes as u64, access);
        let Some(memory) = far.filter(|_| bytes > 0 && bytes <= MOST_ELEMENT_BYTES) else {
            return answer(core, peer, head.id, true);
        };
        let (operands, compare) = payload.split_at(bytes.min(payload.len()));
        let reach = shared.reach(head.key);
        if head.op == elements::READ && (size < 4 || reach.is_none()) {
            // A read needs no swap, which read-only memory would refuse.
            return changed(core, shared, peer, &head, memory.with(<[u8]>::to_vec));
        }
        if let Some(reach) = reach {
            return match Service::new(peer, &head, &memory, operands, compare) {
                Some(service) => self.begin(core, service, (&memory, reach)),
                None => answer(core, peer, head.id, true),
            };
        }
        let old = elements::change(&memory, head.datatype, head.op, operands, compare);
        debug_assert_eq!(old.len(), bytes, "as many old elements as new ones");
        changed(core, shared, peer, &head, old);
    }

    /// Has the NIC carry out a request on memory that NICs reach too.
    fn begin(&mut self, core: &mut Core, service: Service, (memory, reach): (&Bytes, Reach)) {
        let at = Remote {
            processor: core.address.processor,
            handle: reach.handle,
            offset: memory.address() - reach.base - service.shift() as u64,
        };
        let target = Target {
            peer: core.peers.own(),
            key: service.head().key,
            at,
        };
        let old = self.under_way.insert(service.peer(), VecDeque::new());
        debug_assert!(old.is_none(), "one request of a peer at a time");
        core.actions.push_back(Action::Serve(target, service));
    }

    /// Handles the end of a request that the NIC carried out, or that failed.
    pub(super) fn served(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        service: Service,
        failed: bool,
    ) {
        let (peer, head) = (service.peer(), *service.head());
        let waiting = self.under_way.remove(&peer);
        debug_assert!(waiting.is_some(), "a request is served once");
        match failed {
            true => answer(core, peer, head.id, true),
            false => changed(core, shared, peer, &head, service.into_old()),
        }
        for request in waiting.unwrap_or_default() {
            self.change(core, shared, peer, request);
        }
    }
}

/// Counts and answers an atomic request that has been carried out. One that fetches and changes
/// counts as both, because OpenSHMEM detects changes with counters of writes.
fn changed(core: &mut Core, shared: &mut Shared, peer: usize, head: &Head, old: Vec<u8>) {
    let flags = match (head.fetch, head.op == elements::READ) {
        (true, true) => FI_REMOTE_READ,
        (true, false) => FI_REMOTE_READ | FI_REMOTE_WRITE,
        (false, _) => FI_REMOTE_WRITE,
    };
    shared.accessed(&core.binds, head.key, flags);
    match head.fetch {
        true => answer_with(core, peer, head.id, old),
        false => answer(core, peer, head.id, false),
    }
}

fn answer(core: &mut Core, peer: usize, id: u64, failed: bool) {
    let head = Head {
        kind: Kind::Done,
        failed,
        id,
        ..Head::default()
    };
    core.actions.push_back(Action::Send(peer, head));
}

fn reply_to(id: u64, bytes: usize) -> Head {
    Head {
        kind: Kind::Whole,
        purpose: Purpose::Reply,
        key: id,
        len: bytes as u64,
        ..Head::default()
    }
}

fn answer_with(core: &mut Core, peer: usize, id: u64, data: Vec<u8>) {
    debug_assert!(data.len() <= MOST_EAGER, "longer replies are offered");
    let head = reply_to(id, data.len());
    let parcel = Parcel::new(head, data, End::Nothing);
    core.actions.push_back(Action::Post(peer, parcel));
}
