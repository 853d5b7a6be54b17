//! Requests to peers that they answer when they make progress: writes, reads and atomic operations
//! that NICs do not carry out.

use std::collections::{BTreeSet, HashMap};

use super::action::Action;
use super::core::Core;
use super::landing::Destination;
use super::parcel::{End, Parcel};
use super::peers::PerPeer;
use super::shared::{Entry, Failure, Op, Shared, Why};
use super::wire::Head;
use crate::memory::Pieces;

/// An unanswered request.
#[derive(Debug)]
struct Request {
    peer: usize,
    op: Op,
    len: usize,
    /// Whether the request changes elements that NICs also change.
    is_change: bool,
    /// Destination of the reply.
    into: Option<Pieces>,
    /// The peer's number of the transfer by which the reply is being fetched. Until that ends the
    /// NIC may write the destination, so only its end also ends the request.
    pulled: Option<u64>,
}

#[derive(Debug, Default)]
pub struct Requests {
    all: HashMap<u64, Request>,
    /// Number of unfinished atomic operations on each peer's opened memory.
    changes: PerPeer<usize>,
}

impl Requests {
    /// Number of unanswered requests.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Number of unfinished atomic operations on a peer's opened memory.
    pub(super) fn changes(&self, peer: usize) -> usize {
        self.changes.get(peer).copied().unwrap_or(0)
    }

    /// Unfinished requests, by kind.
    #[cfg(test)]
    pub(super) fn left(&self) -> [(&'static str, usize); 2] {
        let changes = self.changes.iter().sum();
        [
            ("requests", self.all.len()),
            ("changes by request", changes),
        ]
    }

    /// Checks the invariants between the fields.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let changes = self.all.values().filter(|request| request.is_change);
        let counted: usize = self.changes.iter().sum();
        assert_eq!(counted, changes.count(), "each change is counted");
    }

    /// Adds the peers that requests await.
    pub(super) fn await_peers(&self, awaited: &mut BTreeSet<usize>) {
        awaited.extend(self.all.values().map(|request| request.peer));
    }

    /// Sends a request to a peer; the reply's data go to `into`. `is_change` states whether the
    /// request changes elements that NICs also change.
    pub(super) fn ask(
        &mut self,
        core: &mut Core,
        peer: usize,
        (head, payload): (Head, Vec<u8>),
        (op, into): (Op, Option<Pieces>),
        is_change: bool,
    ) {
        *self.changes.of(peer) += usize::from(is_change);
        let request = Request {
            peer,
            op,
            len: head.len as usize,
            is_change,
            into,
            pulled: None,
        };
        let old = self.all.insert(head.id, request);
        debug_assert!(old.is_none(), "each request has a number of its own");
        let parcel = Parcel::new(head, payload, End::Request(head.id));
        core.actions.push_back(Action::Post(peer, parcel));
    }

    /// The request with this number, if this peer owes the answer.
    fn owed(&mut self, peer: usize, id: u64) -> Option<&mut Request> {
        let request = self.all.get_mut(&id)?;
        (request.peer == peer && request.pulled.is_none()).then_some(request)
    }

    /// Handles a peer's answer without data.
    pub(super) fn answered(&mut self, core: &Core, shared: &mut Shared, peer: usize, head: &Head) {
        let refused = Failure {
            errno: libc::EREMOTEIO,
            why: Why::Refused,
        };
        if self.owed(peer, head.id).is_some() {
            self.end(core, shared, head.id, head.failed.then_some(refused));
        }
    }

    /// Handles a peer's answer with its data.
    pub(super) fn replied(
        &mut self,
        core: &Core,
        shared: &mut Shared,
        peer: usize,
        (head, payload): (&Head, &[u8]),
    ) {
        if let Some(request) = self.owed(peer, head.key) {
            if let Some(into) = &request.into {
                into.fill(0, payload);
            }
            self.end(core, shared, head.key, None);
        }
    }

    /// Handles a peer's answer whose data are to be fetched, straight into the request's memory. It
    /// is rejected if the peer owes none.
    pub(super) fn reply_announced(&mut self, core: &mut Core, peer: usize, head: Head) {
        let Some(request) = self.owed(peer, head.key) else {
            return core.actions.push_back(Action::Discard(peer, head, true));
        };
        request.pulled = Some(head.id);
        let into = request.into.take();
        let into = Destination::Reply(into);
        core.actions.push_back(Action::Pull(peer, head, into));
    }

    /// Handles the end of a reply's transfer: the data have been fetched, or will not be.
    pub(super) fn pulled(
        &mut self,
        core: &Core,
        shared: &mut Shared,
        (peer, head): (usize, &Head),
        failure: Option<Failure>,
    ) {
        let request = self.all.get(&head.key);
        if request.is_some_and(|request| request.peer == peer && request.pulled == Some(head.id)) {
            self.end(core, shared, head.key, failure);
        }
    }

    /// Handles a request whose message never arrived.
    pub(super) fn fail(&mut self, core: &Core, shared: &mut Shared, id: u64, failure: Failure) {
        if self
            .all
            .get(&id)
            .is_some_and(|request| request.pulled.is_none())
        {
            self.end(core, shared, id, Some(failure));
        }
    }

    fn end(&mut self, core: &Core, shared: &mut Shared, id: u64, failure: Option<Failure>) {
        let Some(request) = self.all.remove(&id) else {
            return;
        };
        let changes = self.changes.of(request.peer);
        debug_assert!(*changes >= usize::from(request.is_change));
        *changes -= usize::from(request.is_change);
        let entry = Entry {
            len: request.len,
            ..Entry::default()
        };
        match failure {
            None => shared.done(&core.binds, &request.op, entry, 0),
            Some(failure) => {
                shared.failed(&core.binds, &request.op, Entry::default(), failure, 0);
            }
        }
    }

    /// Handles the loss of a peer: requests to it fail, except those whose replies are being
    /// fetched, which end with the fetch.
    pub(super) fn lose(&mut self, core: &Core, shared: &mut Shared, peer: usize, failure: Failure) {
        let lost = self.all.iter();
        let lost = lost.filter(|(_, request)| request.peer == peer && request.pulled.is_none());
        let mut ids: Vec<_> = lost.map(|(id, _)| *id).collect();
        ids.sort_unstable();
        for id in ids {
            self.end(core, shared, id, Some(failure));
        }
    }
}
