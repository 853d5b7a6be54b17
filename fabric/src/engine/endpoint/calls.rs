//! The program's calls: each becomes an operation of the part that carries it out.

use phitwire_client::door::Status;
#[cfg(test)]
use phitwire_client::door::{Access, Local};

use super::super::access::{Change, Far, MOST_ELEMENT_BYTES};
use super::super::landing::Source;
use super::super::matching::Posted;
use super::super::one_sided::OneSided;
use super::super::parcel::{End, Parcel};
use super::super::shared::{Op, Shared};
use super::super::wire::{Head, Kind, MOST_EAGER, Purpose};
use super::super::{amo, elements};
use super::{Endpoint, MOST_OPERATIONS};
use crate::memory::{Bytes, Pieces};

impl Endpoint {
    /// Returns the peer with this number in the address vector, if there is room for an operation.
    fn peer_of(&mut self, shared: &Shared, number: u64, op: &Op) -> Result<usize, i32> {
        let core = &mut self.core;
        let vector = core.binds.vector.and_then(|slot| shared.vectors.get(slot));
        let vector = vector.ok_or(libc::EINVAL)?;
        let address = vector.get(number).ok_or(libc::EINVAL)?;
        self.session.share_among(vector.len() + 1);
        if core.is_gone {
            return Err(libc::ENETDOWN);
        }
        let operations =
            self.session.queued() + self.requests.len() + self.offers.len() + self.one_sided.len();
        if operations >= MOST_OPERATIONS || !self.one_sided.has_room() {
            return Err(libc::EAGAIN);
        }
        let peer = core.peers.number(address);
        match core.peers[peer].failed {
            // Fail now: an injected message cannot report a failure later.
            Some(failure) if op.is_injected() => Err(failure.errno),
            _ => Ok(peer),
        }
    }

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
            self.offers
                .offer(&mut self.core, peer, head, from, Source::Program(op));
        } else {
            let parcel = Parcel::new(head, from.to_vec(0, len), End::Op(op, len));
            self.session.post(&mut self.core, shared, peer, parcel);
        }
        self.route(shared);
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
        let (core, len) = (&mut self.core, from.len());
        if data.is_none()
            && !core.peers[peer].is_self
            && let Some(at) = OneSided::reach_of(core, peer, &far, len)
        {
            self.one_sided.put(core, shared, at, (&from, op));
            self.route(shared);
            return Ok(());
        }
        let head = Head {
            kind: Kind::Whole,
            purpose: Purpose::Write,
            has_data: data.is_some(),
            tag: far.address,
            key: far.key,
            data: data.unwrap_or(0),
            len: len as u64,
            id: core.new_id(),
            ..Head::default()
        };
        if len > MOST_EAGER {
            self.offers
                .offer(core, peer, head, from, Source::Program(op));
        } else {
            let message = (head, from.to_vec(0, len));
            self.requests.ask(core, peer, message, (op, None), false);
        }
        self.route(shared);
        Ok(())
    }

    /// Reads another program's memory.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub fn read(&mut self, shared: &mut Shared, far: Far, into: Pieces, op: Op) -> Result<(), i32> {
        let peer = self.peer_of(shared, far.number, &op)?;
        let core = &mut self.core;
        if !core.peers[peer].is_self
            && let Some(at) = OneSided::reach_of(core, peer, &far, into.len())
        {
            self.one_sided.get(core, shared, at, (&into, op));
            self.route(shared);
            return Ok(());
        }
        let head = Head {
            kind: Kind::Read,
            tag: far.address,
            key: far.key,
            len: into.len() as u64,
            id: core.new_id(),
            ..Head::default()
        };
        let message = (head, Vec::new());
        self.requests
            .ask(core, peer, message, (op, Some(into)), false);
        self.route(shared);
        Ok(())
    }

    /// Changes elements of another program's memory.
    ///
    /// # Errors
    /// As for [`send`](Self::send); `EINVAL` for no elements, `EMSGSIZE` for too many.
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
        if change.count == 0 {
            return Err(libc::EINVAL);
        }
        if bytes > MOST_ELEMENT_BYTES {
            return Err(libc::EMSGSIZE);
        }
        let peer = self.peer_of(shared, far.number, &op)?;
        let core = &mut self.core;
        let at = OneSided::reach_of(core, peer, &far, bytes);
        let is_direct = at.is_some() && amo::is_amo(change.datatype, change.op);
        // Defer: operations by NIC and by request must not overlap, to keep their order.
        let others = match is_direct {
            true => self.requests.changes(peer),
            false => self.one_sided.changes(peer),
        };
        if at.is_some() && others > 0 {
            return Err(libc::EAGAIN);
        }
        if let Some(at) = at.filter(|_| is_direct) {
            let with = [operands, compare, into];
            self.one_sided.change(core, shared, (at, &change), with, op);
            self.route(shared);
            return Ok(());
        }
        let mut payload = Vec::new();
        for part in [operands, compare].into_iter().flatten() {
            payload.extend(part.to_vec(0, bytes));
        }
        let head = Head {
            kind: Kind::Atomic,
            fetch: change.form != elements::Form::Write,
            datatype: change.datatype,
            op: change.op,
            count: change.count as u32,
            tag: far.address,
            key: far.key,
            len: bytes as u64,
            id: core.new_id(),
            ..Head::default()
        };
        let message = (head, payload);
        self.requests
            .ask(core, peer, message, (op, into), at.is_some());
        self.route(shared);
        Ok(())
    }

    pub fn receive(&mut self, shared: &mut Shared, tagged: bool, posted: Posted, multi: bool) {
        let core = &mut self.core;
        self.matching.receive(core, shared, tagged, (posted, multi));
        self.route(shared);
    }

    /// Looks for a message with a tag, and claims or discards it as `flags` request; completes
    /// `Op`, or fails it if there is none.
    pub fn peek(&mut self, shared: &mut Shared, wanted: &Posted, flags: u64) {
        self.matching.peek(&mut self.core, shared, wanted, flags);
        self.route(shared);
    }

    /// Receives or discards the message that was claimed with the same context; false if none was.
    pub fn claim(&mut self, shared: &mut Shared, posted: Posted, flags: u64) -> bool {
        let claimed = self.matching.claim(&mut self.core, shared, posted, flags);
        self.route(shared);
        claimed
    }

    /// Cancels the receive with this context, which fails; false if there is none.
    pub fn cancel(&mut self, shared: &mut Shared, context: usize) -> bool {
        self.matching.cancel(&self.core, shared, context)
    }

    /// Begins to open memory to peers and returns the address of its first byte there; `None` if
    /// NICs cannot reach it. [`Self::ended_registration`] returns the handle.
    pub fn begin_opening(&mut self, bytes: &Bytes, access: u64) -> Option<u64> {
        self.registration.open(&mut self.core, bytes, access)
    }

    /// Begins a registration; the previous one is given up.
    #[cfg(test)]
    pub(in super::super) fn begin_registration(&mut self, part: Local, access: Access) {
        self.registration.begin(&mut self.core, part, access);
    }

    /// Begins to close opened memory; no peer reaches it once [`Self::ended_registration`] reports
    /// the outcome.
    pub fn begin_closing(&mut self, handle: u16) {
        self.registration.close(&mut self.core, handle);
    }

    /// Closes registered memory for the program: transfers from and to it end. NICs no longer
    /// access it once [`Self::is_using`] is false.
    pub fn region_closed(&mut self, shared: &mut Shared, key: u64) {
        let core = &mut self.core;
        self.offers.region_closed(core, key);
        self.pulls.region_closed(core, key);
        self.route(shared);
    }

    /// Whether NICs may still access registered memory that was closed, because a renewal or a
    /// transfer has not ended.
    pub fn is_using(&self, key: u64) -> bool {
        self.pulls.lands_in(key) || self.offers.reads(key) || self.renewal.renews(key)
    }

    /// Closes the endpoint. When a peer requests a handle of memory that this endpoint has opened,
    /// another endpoint of the domain opens that memory again.
    pub fn close(&mut self, shared: &mut Shared) {
        self.renewal.close(&self.core, shared);
    }

    /// The outcome of the last registration or closing that was begun, and its handle.
    pub const fn ended_registration(&self) -> Option<(Status, u64)> {
        self.registration.ended()
    }

    /// Stops waiting for the last registration, which is undone if it succeeds later.
    pub const fn leave_registration(&mut self) {
        self.registration.leave();
    }
}
