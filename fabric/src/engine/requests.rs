//! Requests to peers, and serving theirs: sends, one-sided and atomic operations.

use super::access::{Change, Far, MOST_ELEMENT_BYTES};
use super::amo;
use super::elements::{self, Form};
use super::endpoint::Endpoint;
use super::landing::Destination;
use super::one_sided::OneSided;
use super::peers::{End, Parcel};
use super::service::Service;
use super::shared::{Entry, Failure, Op, Shared, Why};
use super::wire::{Head, Kind, MOST_EAGER, Purpose};
use crate::flags::{FI_REMOTE_CQ_DATA, FI_REMOTE_READ, FI_REMOTE_WRITE, FI_RMA};
use crate::memory::{Bytes, Pieces};

/// An unanswered request.
#[derive(Debug)]
pub struct Request {
    pub(super) peer: usize,
    op: Op,
    len: usize,
    /// Whether the request changes elements that NICs also change.
    is_change: bool,
    /// Destination of the reply.
    pub(super) into: Option<Pieces>,
}

impl Endpoint {
    /// Sends a message.
    ///
    /// # Errors
    /// `EAGAIN`, `EINVAL` for a number that the vector does not have, `ENETDOWN`.
    pub fn send(
        &mut self,
        shared: &mut Shared,
        number: u64,
        from: Pieces,
        (tag, data): (Option<u64>, Option<u64>),
        op: Op,
    ) -> Result<(), i32> {
        let peer = self.peer_of(shared, number, &op)?;
        let len = from.len();
        let head = Head {
            kind: Kind::Whole,
            purpose: match tag {
                Some(_) => Purpose::Tagged,
                None => Purpose::Message,
            },
            has_data: data.is_some(),
            tag: tag.unwrap_or(0),
            data: data.unwrap_or(0),
            len: len as u64,
            ..Head::default()
        };
        if len > MOST_EAGER {
            self.offer(shared, peer, head, from, Some(op));
        } else {
            let parcel = Parcel {
                head,
                payload: from.to_vec(0, len),
                end: End::Op(op, len),
            };
            self.post(shared, peer, parcel);
        }
        Ok(())
    }

    /// Writes into another program's memory.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn write(
        &mut self,
        shared: &mut Shared,
        far: Far,
        from: Pieces,
        data: Option<u64>,
        op: Op,
    ) -> Result<(), i32> {
        let peer = self.peer_of(shared, far.number, &op)?;
        if data.is_none()
            && !self.core.peers.all[peer].is_self
            && let Some(at) = OneSided::reach_of(&self.core, peer, &far, from.len())
        {
            let (core, from) = (&mut self.core, (&from, op));
            self.one_sided.put(core, shared, at, from);
            self.route(shared);
            return Ok(());
        }
        let (id, len) = (self.core.new_id(), from.len());
        let head = Head {
            kind: Kind::Whole,
            purpose: Purpose::Write,
            has_data: data.is_some(),
            tag: far.address,
            key: far.key,
            data: data.unwrap_or(0),
            len: len as u64,
            id,
            ..Head::default()
        };
        if len > MOST_EAGER {
            self.offer(shared, peer, head, from, Some(op));
        } else {
            let payload = from.to_vec(0, len);
            self.ask(shared, peer, (head, payload), op, None);
        }
        Ok(())
    }

    /// Reads another program's memory.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn read(&mut self, shared: &mut Shared, far: Far, into: Pieces, op: Op) -> Result<(), i32> {
        let peer = self.peer_of(shared, far.number, &op)?;
        if !self.core.peers.all[peer].is_self
            && let Some(at) = OneSided::reach_of(&self.core, peer, &far, into.len())
        {
            let (core, into) = (&mut self.core, (&into, op));
            self.one_sided.get(core, shared, at, into);
            self.route(shared);
            return Ok(());
        }
        let head = Head {
            kind: Kind::Read,
            tag: far.address,
            key: far.key,
            len: into.len() as u64,
            id: self.core.new_id(),
            ..Head::default()
        };
        self.ask(shared, peer, (head, Vec::new()), op, Some(into));
        Ok(())
    }

    /// Changes elements of another program's memory.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn atomic(
        &mut self,
        shared: &mut Shared,
        far: Far,
        change: Change,
        [operands, compare, into]: [Option<Pieces>; 3],
        op: Op,
    ) -> Result<(), i32> {
        let size = elements::size_of_type(change.datatype).ok_or(libc::EOPNOTSUPP)?;
        let bytes = change.count.saturating_mul(size);
        if change.count == 0 || bytes > MOST_ELEMENT_BYTES {
            return Err(libc::EINVAL);
        }
        let peer = self.peer_of(shared, far.number, &op)?;
        let at = OneSided::reach_of(&self.core, peer, &far, bytes);
        let is_change = at.is_some();
        if let Some(at) = at {
            let is_direct = amo::is_amo(change.datatype, change.op);
            // Defer: operations by NIC and by request must not overlap, to keep their order.
            let others = match is_direct {
                true => self.core.peers.all[peer].changes,
                false => self.one_sided.changes(peer),
            };
            if others > 0 {
                return Err(libc::EAGAIN);
            }
            if is_direct {
                let (core, with) = (&mut self.core, [operands, compare, into]);
                self.one_sided.change(core, shared, (at, &change), with, op);
                self.route(shared);
                return Ok(());
            }
        }
        let mut payload = Vec::new();
        for part in [operands, compare].into_iter().flatten() {
            payload.extend(part.to_vec(0, bytes));
        }
        let head = Head {
            kind: Kind::Atomic,
            fetch: change.form != Form::Write,
            datatype: change.datatype,
            op: change.op,
            count: change.count as u32,
            tag: far.address,
            key: far.key,
            len: bytes as u64,
            id: self.core.new_id(),
            ..Head::default()
        };
        self.ask(shared, peer, (head, payload), op, into);
        if is_change && let Some(request) = self.requests.get_mut(&head.id) {
            request.is_change = true;
            self.core.peers.all[peer].changes += 1;
        }
        Ok(())
    }

    fn ask(
        &mut self,
        shared: &mut Shared,
        peer: usize,
        (head, payload): (Head, Vec<u8>),
        op: Op,
        into: Option<Pieces>,
    ) {
        let len = head.len as usize;
        let request = Request {
            peer,
            op,
            len,
            is_change: false,
            into,
        };
        self.requests.insert(head.id, request);
        let end = End::Request(head.id);
        self.post(shared, peer, Parcel { head, payload, end });
    }

    pub(super) fn request_done(&mut self, shared: &mut Shared, peer: usize, id: u64) {
        let is_theirs = self
            .requests
            .get(&id)
            .is_some_and(|request| request.peer == peer);
        if is_theirs && let Some(request) = self.requests.remove(&id) {
            self.core.peers.all[peer].changes -= usize::from(request.is_change);
            let entry = Entry {
                len: request.len,
                ..Entry::default()
            };
            shared.done(&self.core.binds, &request.op, entry, 0);
        }
    }

    pub(super) fn request_failed(&mut self, shared: &mut Shared, id: u64, failure: Failure) {
        if let Some(request) = self.requests.remove(&id) {
            self.core.peers.all[request.peer].changes -= usize::from(request.is_change);
            shared.failed(&self.core.binds, &request.op, Entry::default(), failure, 0);
        }
    }

    pub(super) fn lose_requests(&mut self, shared: &mut Shared, peer: usize, failure: Failure) {
        let lost = self
            .requests
            .iter()
            .filter(|(_, request)| request.peer == peer);
        let ids: Vec<_> = lost.map(|(id, _)| *id).collect();
        for id in ids {
            self.request_failed(shared, id, failure);
        }
    }

    /// Carries out the request in a message.
    pub(super) fn take_in(
        &mut self,
        shared: &mut Shared,
        peer: usize,
        head: Head,
        payload: Vec<u8>,
    ) {
        if head.kind == Kind::Whole && head.len != payload.len() as u64 {
            return;
        }
        match (head.kind, head.purpose) {
            (Kind::Whole | Kind::Ready, Purpose::Message | Purpose::Tagged) => {
                let core = &mut self.core;
                self.matching.arrived(core, shared, peer, head, payload);
            }
            (Kind::Whole | Kind::Ready, Purpose::Write) => {
                let far = shared.region(head.key, head.tag, head.len, FI_REMOTE_WRITE);
                match (far, head.kind) {
                    (Some(_), Kind::Ready) => self.pull(shared, peer, head, Destination::Memory),
                    (None, Kind::Ready) => self.took_all(shared, peer, &head, true),
                    (Some(memory), _) => {
                        Pieces::One(memory).fill(0, &payload);
                        self.written(shared, peer, &head);
                        self.answer(shared, peer, head.id, false);
                    }
                    (None, _) => self.answer(shared, peer, head.id, true),
                }
            }
            (Kind::Whole, Purpose::Reply) => {
                let request = self.requests.get(&head.key);
                if let Some(into) = request.and_then(|request| request.into.as_ref()) {
                    into.fill(0, &payload);
                }
                self.request_done(shared, peer, head.key);
            }
            (Kind::Ready, Purpose::Reply) => {
                self.pull(shared, peer, head, Destination::Reply(head.key));
            }
            (Kind::Part, _) => self.part(shared, peer, &head),
            (Kind::Took, _) => self.took(shared, peer, &head),
            (Kind::Done, _) => match head.failed {
                false => self.request_done(shared, peer, head.id),
                true => {
                    let failure = Failure {
                        errno: libc::EREMOTEIO,
                        why: Why::Refused,
                    };
                    self.request_failed(shared, head.id, failure);
                }
            },
            (Kind::Read, _) => match shared.region(head.key, head.tag, head.len, FI_REMOTE_READ) {
                Some(memory) => self.reply(shared, peer, head.id, memory),
                None => self.answer(shared, peer, head.id, true),
            },
            (Kind::Atomic, _) => self.change(shared, peer, &head, &payload),
            (Kind::Renew, _) => self.renewal.renew(&mut self.core, shared, peer, &head),
            (Kind::Renewed, _) => {
                self.one_sided.renewed(&mut self.core, shared, peer, &head);
            }
            (Kind::Credit | Kind::Lost, _) => {}
        }
    }

    /// A peer wrote into this program's memory.
    pub(super) fn written(&self, shared: &mut Shared, peer: usize, head: &Head) {
        if head.has_data {
            let op = Op {
                context: 0,
                flags: FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
                tells: true,
                tag: 0,
            };
            let entry = Entry {
                len: head.len as usize,
                data: head.data,
                ..Entry::default()
            };
            let source = self.core.source(shared, peer);
            shared.done(&self.core.binds, &op, entry, source);
        }
    }

    pub(super) fn answer(&mut self, shared: &mut Shared, peer: usize, id: u64, failed: bool) {
        let head = Head {
            kind: Kind::Done,
            failed,
            id,
            ..Head::default()
        };
        self.tell(shared, peer, head);
    }

    fn reply(&mut self, shared: &mut Shared, peer: usize, id: u64, memory: Bytes) {
        let head = Head {
            kind: Kind::Whole,
            purpose: Purpose::Reply,
            key: id,
            len: memory.len() as u64,
            ..Head::default()
        };
        if memory.len() > MOST_EAGER {
            return self.offer(shared, peer, head, Pieces::One(memory), None);
        }
        let parcel = Parcel {
            head,
            payload: memory.with(<[u8]>::to_vec),
            end: End::Nothing,
        };
        self.post(shared, peer, parcel);
    }

    pub(super) fn change(&mut self, shared: &mut Shared, peer: usize, head: &Head, payload: &[u8]) {
        // Atomic requests of one peer are carried out in order.
        if let Some(queue) = self.serving.get_mut(&peer) {
            return queue.push_back((*head, payload.to_vec()));
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
            return self.answer(shared, peer, head.id, true);
        };
        let (operands, compare) = payload.split_at(bytes.min(payload.len()));
        if let Some(reach) = shared.reach(head.key) {
            let service = Service::new(peer, head, &memory, operands, compare);
            return self.serve(shared, service, (&memory, reach));
        }
        let old = elements::change(&memory, head.datatype, head.op, operands, compare);
        if !head.fetch {
            return self.answer(shared, peer, head.id, false);
        }
        let reply = Head {
            kind: Kind::Whole,
            purpose: Purpose::Reply,
            key: head.id,
            len: old.len() as u64,
            ..Head::default()
        };
        let end = End::Nothing;
        let parcel = Parcel {
            head: reply,
            payload: old,
            end,
        };
        self.post(shared, peer, parcel);
    }
}
