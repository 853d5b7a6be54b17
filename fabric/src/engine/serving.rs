//! Atomic operations: the NIC's equivalents of libfabric's, and how to carry out those that it
//! lacks.
//!
//! Words of opened memory are changed only by the NIC at which they were registered. What it cannot
//! do becomes a request to the program there, which computes the new value and has its own NIC swap
//! it for the old one, and retries if the word changed in between. So both kinds may be mixed.

use std::collections::VecDeque;

use phitwire_client::door::Remote;

use super::access::Target;
use super::endpoint::Endpoint;
use super::peers::{End, Parcel};
use super::reach::Reach;
use super::service::Service;
use super::shared::Shared;
use super::wire::{Head, Kind, Purpose};
use crate::memory::Bytes;

impl Endpoint {
    /// Carries out a request on memory that NICs reach too.
    pub(super) fn serve(
        &mut self,
        shared: &mut Shared,
        service: Service,
        (memory, reach): (&Bytes, Reach),
    ) {
        let at = Remote {
            processor: self.core.address.processor,
            handle: reach.handle,
            offset: memory.address() - reach.base,
        };
        self.serving.insert(service.peer(), VecDeque::new());
        let target = Target {
            peer: self.core.peers.own(),
            key: service.head().key,
            at,
        };
        self.one_sided
            .serve(&mut self.core, shared, target, service);
    }

    /// A request was carried out, or failed.
    pub(super) fn served(&mut self, shared: &mut Shared, service: Service, failed: bool) {
        let (peer, head) = (service.peer(), *service.head());
        let waiting = self.serving.remove(&peer).unwrap_or_default();
        if failed || !head.fetch {
            self.answer(shared, peer, head.id, failed);
        } else {
            self.answer_with(shared, peer, head.id, service.into_old());
        }
        for (head, payload) in waiting {
            self.change(shared, peer, &head, &payload);
        }
    }

    fn answer_with(&mut self, shared: &mut Shared, peer: usize, id: u64, old: Vec<u8>) {
        let reply = Head {
            kind: Kind::Whole,
            purpose: Purpose::Reply,
            key: id,
            len: old.len() as u64,
            ..Head::default()
        };
        let parcel = Parcel {
            head: reply,
            payload: old,
            end: End::Nothing,
        };
        self.post(shared, peer, parcel);
    }
}
