//! Long transfers: announced by the sender, fetched by the receiver. Where NICs reach both
//! memories, data go from one straight into the other. Otherwise they are staged in parts, and
//! fetched into slots of the segment.

use std::time::Duration;

use phitwire_client::door::{Local, Remote, Status};

use super::endpoint::Endpoint;
use super::landing::Destination;
use super::outbox::Outgoing;
use super::peers::{End, Parcel};
use super::ranges::Opened;
use super::shared::{Entry, Failure, Op, Shared, Why};
use super::slots::{self, STAGES, STAGES_AT};
use super::wire::{Head, Kind, PART};
use crate::flags::FI_REMOTE_WRITE;
use crate::memory::{Bytes, Pieces};

/// Part number of a transfer that is fetched in place, as a whole.
const IN_PLACE: u32 = u32::MAX;
/// Maximum number of staged parts of one matched transfer.
const STAGED: usize = 4;
/// Tries of a fetch.
const TRIES: u32 = 6;

/// A transfer that this endpoint has announced.
#[derive(Debug)]
pub struct Offer {
    pub(super) peer: usize,
    from: Pieces,
    head: Head,
    next_part: u32,
    /// Part and stage.
    staged: Vec<(u32, usize)>,
    taken: u64,
    is_matched: bool,
    is_hungry: bool,
    /// The range from which peers fetch it without stages.
    range: Option<usize>,
    done: Option<Op>,
}

/// A transfer that this endpoint fetches.
#[derive(Debug)]
pub struct Pull {
    head: Head,
    into: Destination,
    got: u64,
    /// Bytes to fetch.
    wanted: u64,
    /// Unfinished fetches straight into the program's memory, which is in use until they end.
    landing: u32,
    failure: Option<Failure>,
}

/// A fetch of one part.
#[derive(Debug)]
pub struct Fetch {
    peer: usize,
    id: u64,
    part: u32,
    pub(super) from: Remote,
    pub(super) bytes: usize,
    /// Destination of the part, unless that is the slot.
    pub(super) into: Option<Local>,
    tries: u32,
    since: Duration,
}

impl Endpoint {
    /// Announces a transfer; `done` completes when all of it was taken.
    pub(super) fn offer(
        &mut self,
        shared: &mut Shared,
        peer: usize,
        head: Head,
        from: Pieces,
        done: Option<Op>,
    ) {
        let id = match head.id {
            // Writes use the number of their request.
            0 => self.core.new_id(),
            id => id,
        };
        let mut offer = Offer {
            peer,
            from,
            head: Head {
                kind: Kind::Ready,
                id,
                ..head
            },
            next_part: 0,
            staged: Vec::new(),
            taken: 0,
            is_matched: false,
            is_hungry: false,
            range: None,
            done,
        };
        if let Pieces::One(bytes) = &offer.from
            && !self.core.peers.all[peer].is_self
        {
            offer.range = self.ranges.open(&mut self.core, bytes);
        }
        let first = match offer.range {
            Some(_) => offer.head,
            None => self.stage_first(&mut offer),
        };
        self.offers.insert(id, offer);
        let parcel = Parcel {
            head: first,
            payload: Vec::new(),
            end: End::Offer(id),
        };
        self.post(shared, peer, parcel);
    }

    fn stage_first(&mut self, offer: &mut Offer) -> Head {
        // Unmatched transfers, which may wait long, take no more than half of the stages.
        match self.core.stages.room() > STAGES / 2 {
            true => self.stage(offer).unwrap_or(offer.head),
            false => offer.head,
        }
    }

    /// Whether a transfer can be announced already.
    pub(super) fn is_announceable(&self, id: u64) -> bool {
        let range = self.offers.get(&id).and_then(|offer| offer.range);
        range.is_none_or(|range| self.ranges.state(range) != Opened::Soon)
    }

    /// The announcement of a transfer that peers fetch in place.
    pub(super) fn announcement(&mut self, id: u64) -> Option<Head> {
        let offer = self.offers.get(&id)?;
        let range = offer.range?;
        if let Opened::Open(reach) = self.ranges.state(range) {
            return Some(Head {
                handle: reach.handle,
                staged: offer.from.address() - reach.base,
                part: IN_PLACE,
                ..offer.head
            });
        }
        let mut offer = self.offers.remove(&id)?;
        self.leave(&mut offer);
        let head = self.stage_first(&mut offer);
        self.offers.insert(id, offer);
        Some(head)
    }

    fn leave(&mut self, offer: &mut Offer) {
        if let Some(range) = offer.range.take() {
            self.ranges.leave(range);
        }
    }

    /// Stages the next part; returns its announcement. `None`: no stage is free, or all was staged.
    fn stage(&mut self, offer: &mut Offer) -> Option<Head> {
        let offset = offer.next_part as usize * PART;
        let bytes = (offer.head.len as usize).saturating_sub(offset).min(PART);
        if bytes == 0 {
            return None;
        }
        let stage = self.core.stages.insert(())?;
        let at = STAGES_AT + slots::stage_at(stage);
        offer.from.visit(offset, bytes, |done, piece| {
            piece.with(|bytes| self.core.segment.write(at + done as u64, bytes));
        });
        let part = offer.next_part;
        offer.next_part += 1;
        offer.staged.push((part, stage));
        Some(Head {
            handle: self.core.address.handle(),
            staged: slots::stage_at(stage),
            part_bytes: bytes as u32,
            part,
            ..offer.head
        })
    }

    fn stage_more(&mut self, shared: &mut Shared, id: u64) {
        let Some(mut offer) = self.offers.remove(&id) else {
            return;
        };
        let mut heads = Vec::new();
        while offer.staged.len() < STAGED
            && let Some(head) = self.stage(&mut offer)
        {
            heads.push(Head {
                kind: Kind::Part,
                ..head
            });
        }
        let has_more = u64::from(offer.next_part) * (PART as u64) < offer.head.len;
        if has_more && offer.staged.len() < STAGED && !offer.is_hungry {
            offer.is_hungry = true;
            self.hungry.push_back(id);
        }
        let peer = offer.peer;
        self.offers.insert(id, offer);
        for head in heads {
            self.tell(shared, peer, head);
        }
    }

    fn free_stages(&mut self, offer: &mut Offer, of: impl Fn(u32) -> bool) {
        offer.staged.retain(|&(part, stage)| {
            let goes = of(part);
            if goes {
                self.core.stages.remove(stage);
            }
            !goes
        });
    }

    /// The peer matched a transfer, or took a part.
    pub(super) fn took(&mut self, shared: &mut Shared, peer: usize, head: &Head) {
        let Some(mut offer) = self.offers.remove(&head.id) else {
            return;
        };
        if offer.peer != peer {
            self.offers.insert(head.id, offer);
            return;
        }
        offer.is_matched = true;
        offer.taken += u64::from(head.part_bytes);
        let has_ended = head.failed || head.len != 0 || offer.taken >= offer.head.len;
        self.free_stages(&mut offer, |part| {
            has_ended || (head.part_bytes > 0 && part == head.part)
        });
        if has_ended {
            self.leave(&mut offer);
            self.offer_done(shared, &offer, head.failed);
        } else {
            self.offers.insert(head.id, offer);
            self.stage_more(shared, head.id);
        }
        self.feed(shared);
    }

    /// Hands free stages to the transfers that wait for some.
    fn feed(&mut self, shared: &mut Shared) {
        for _ in 0..self.hungry.len().min(self.core.stages.room()) {
            if let Some(id) = self.hungry.pop_front() {
                if let Some(offer) = self.offers.get_mut(&id) {
                    offer.is_hungry = false;
                }
                self.stage_more(shared, id);
            }
        }
    }

    fn offer_done(&mut self, shared: &mut Shared, offer: &Offer, failed: bool) {
        let Some(op) = offer.done else {
            return;
        };
        let entry = Entry {
            len: offer.head.len as usize,
            tag: op.tag,
            ..Entry::default()
        };
        let failure = Failure {
            errno: libc::EREMOTEIO,
            why: Why::Refused,
        };
        match failed {
            false => shared.done(&self.core.binds, &op, Entry { tag: 0, ..entry }, 0),
            true => shared.failed(&self.core.binds, &op, entry, failure, 0),
        }
    }

    pub(super) fn offer_failed(&mut self, shared: &mut Shared, id: u64, failure: Failure) {
        let Some(mut offer) = self.offers.remove(&id) else {
            return;
        };
        self.free_stages(&mut offer, |_| true);
        self.leave(&mut offer);
        if let Some(op) = offer.done {
            let entry = Entry {
                tag: op.tag,
                ..Entry::default()
            };
            shared.failed(&self.core.binds, &op, entry, failure, 0);
        }
    }

    /// Begins to fetch a transfer.
    pub(super) fn pull(&mut self, shared: &mut Shared, peer: usize, head: Head, into: Destination) {
        let pull = Pull {
            head,
            into,
            got: 0,
            wanted: head.len,
            landing: 0,
            failure: None,
        };
        if let Some(lost) = self.core.peers.all[peer].failed {
            return self.pulled(shared, peer, &pull, Some(lost));
        }
        if head.part == IN_PLACE {
            return self.pull_from_place(shared, peer, pull);
        }
        self.pulls.insert((peer, head.id), pull);
        if head.len > u64::from(head.part_bytes) {
            self.tell(shared, peer, took(&head, 0, 0));
        }
        if head.part_bytes > 0 {
            self.part(shared, peer, &head);
        }
    }

    /// Fetches a transfer in place.
    fn pull_from_place(&mut self, shared: &mut Shared, peer: usize, mut pull: Pull) {
        let (head, mut parts) = (pull.head, Vec::new());
        let mut part = |begin: usize, bytes: usize, into| {
            parts.push(Fetch {
                peer,
                id: head.id,
                part: (begin / PART) as u32,
                from: Remote {
                    processor: self.core.peers.all[peer].address.processor,
                    handle: head.handle,
                    offset: head.staged + begin as u64,
                },
                bytes,
                into,
                tries: 0,
                since: self.core.clock.now(),
            });
        };
        let is_reached = self.core.reaches_own;
        let add = |begin: usize, piece: Bytes| {
            for at in (0..piece.len()).step_by(PART) {
                let bytes = PART.min(piece.len() - at);
                let into = Local::own(piece.address() + at as u64, bytes as u64);
                part(begin + at, bytes, Some(into));
            }
        };
        let len = head.len as usize;
        match &pull.into {
            _ if !is_reached => {
                for begin in (0..len).step_by(PART) {
                    part(begin, PART.min(len - begin), None);
                }
            }
            Destination::Receive(landing) => landing.visit(0, len, add),
            Destination::Memory => {
                match shared.region(head.key, head.tag, head.len, FI_REMOTE_WRITE) {
                    Some(memory) => Pieces::One(memory).visit(0, len, add),
                    None => {
                        self.pulls.insert((peer, head.id), pull);
                        return self.pull_failed(shared, (peer, head.id), libc::EKEYREJECTED);
                    }
                }
            }
            Destination::Reply(id) => {
                let request = self.requests.get(id);
                if let Some(into) = request.and_then(|request| request.into.as_ref()) {
                    into.visit(0, len, add);
                }
            }
        }
        pull.wanted = parts.iter().map(|part| part.bytes as u64).sum();
        pull.landing = if is_reached { parts.len() as u32 } else { 0 };
        if parts.is_empty() {
            self.took_all(shared, peer, &head, false);
            return self.pulled(shared, peer, &pull, None);
        }
        self.pulls.insert((peer, head.id), pull);
        for fetch in parts {
            self.fetch(shared, fetch);
        }
    }

    /// A part is staged.
    pub(super) fn part(&mut self, shared: &mut Shared, peer: usize, head: &Head) {
        let Some(pull) = self.pulls.get(&(peer, head.id)) else {
            return;
        };
        let bytes = head.part_bytes as usize;
        let begin = u64::from(head.part) * PART as u64;
        let is_right = bytes <= PART && begin + bytes as u64 <= pull.head.len;
        let fetch = Fetch {
            peer,
            id: head.id,
            part: head.part,
            from: Remote {
                processor: self.core.peers.all[peer].address.processor,
                handle: head.handle,
                offset: head.staged,
            },
            bytes,
            into: None,
            tries: 0,
            since: self.core.clock.now(),
        };
        match is_right {
            true => self.fetch(shared, fetch),
            false => self.pull_failed(shared, (peer, head.id), libc::EPROTO),
        }
    }

    fn fetch(&mut self, shared: &mut Shared, fetch: Fetch) {
        if self.core.peers.all[fetch.peer].is_self {
            let at = STAGES_AT + fetch.from.offset;
            return self.landed(shared, &fetch, at);
        }
        if self.fetches.room() == 0 {
            return self.unfetched.push_back(fetch);
        }
        if let Some(slot) = self.fetches.insert(fetch) {
            self.core.outbox.push(Outgoing::Fetch(slot));
        }
    }

    /// Handles the completion of a fetch.
    pub(super) fn fetched(&mut self, shared: &mut Shared, slot: usize, status: Status) {
        let Some(fetch) = self.fetches.get_mut(slot) else {
            return;
        };
        let again = matches!(
            status,
            Status::Busy
                | Status::Damaged
                | Status::Aborted
                | Status::TimedOut
                | Status::DamagedAnswer
        );
        fetch.tries += 1;
        let peer = &mut self.core.peers.all[fetch.peer];
        if status == Status::Done {
            peer.is_heard = true;
        }
        let is_tried = fetch.tries < TRIES || self.core.clock.is_patient(fetch.since);
        if again && is_tried && peer.failed.is_none() {
            return self.core.outbox.push(Outgoing::Fetch(slot));
        }
        let Some(fetch) = self.fetches.remove(slot) else {
            return;
        };
        let key = (fetch.peer, fetch.id);
        if fetch.into.is_some()
            && let Some(pull) = self.pulls.get_mut(&key)
        {
            pull.landing -= 1;
        }
        match status {
            Status::Done => self.landed(shared, &fetch, slots::fetch_at(slot)),
            Status::Unreachable => self.pull_failed(shared, key, libc::EFAULT),
            _ => self.pull_failed(shared, key, libc::EIO),
        }
        if let Some(next) = self.unfetched.pop_front() {
            self.fetch(shared, next);
        }
    }

    /// A part is in the segment, at `at`.
    fn landed(&mut self, shared: &mut Shared, fetch: &Fetch, at: u64) {
        let key = (fetch.peer, fetch.id);
        let Some(pull) = self.pulls.get_mut(&key) else {
            return;
        };
        if let Some(failure) = pull.failure {
            return self.pull_given_up(shared, key, failure);
        }
        let begin = fetch.part as usize * PART;
        let segment = &self.core.segment;
        let copy = |done: usize, piece: Bytes| {
            piece.with_mut(|bytes| segment.read(at + done as u64, bytes));
        };
        match &pull.into {
            _ if fetch.into.is_some() => {}
            Destination::Receive(landing) => landing.visit(begin, fetch.bytes, copy),
            Destination::Memory => {
                let head = &pull.head;
                let far = shared.region(head.key, head.tag, head.len, FI_REMOTE_WRITE);
                let Some(memory) = far else {
                    return self.pull_failed(shared, key, libc::EKEYREJECTED);
                };
                Pieces::One(memory).visit(begin, fetch.bytes, copy);
            }
            Destination::Reply(id) => {
                let into = self
                    .requests
                    .get(id)
                    .and_then(|request| request.into.as_ref());
                if let Some(into) = into {
                    into.visit(begin, fetch.bytes, copy);
                }
            }
        }
        pull.got += fetch.bytes as u64;
        let is_all = pull.got >= pull.wanted;
        let head = pull.head;
        if head.part != IN_PLACE {
            let said = took(&head, fetch.part, fetch.bytes as u32);
            self.tell(shared, fetch.peer, said);
        } else if is_all {
            self.took_all(shared, fetch.peer, &head, false);
        }
        if is_all && let Some(pull) = self.pulls.remove(&key) {
            self.pulled(shared, fetch.peer, &pull, None);
        }
    }

    fn pulled(&mut self, shared: &mut Shared, peer: usize, pull: &Pull, failure: Option<Failure>) {
        match &pull.into {
            Destination::Receive(landing) => {
                let (core, head) = (&self.core, &pull.head);
                self.matching
                    .received(core, shared, peer, head, landing, failure);
            }
            Destination::Memory => {
                if failure.is_none() {
                    self.written(shared, peer, &pull.head);
                }
            }
            Destination::Reply(id) => match failure {
                None => self.request_done(shared, peer, *id),
                Some(failure) => self.request_failed(shared, *id, failure),
            },
        }
    }

    fn pull_failed(&mut self, shared: &mut Shared, key: (usize, u64), errno: i32) {
        let why = match errno {
            libc::EFAULT => Why::OwnMemory,
            _ => Why::Plain,
        };
        self.pull_given_up(shared, key, Failure { errno, why });
    }

    /// Ends a transfer once no part of it can land in the program's memory.
    fn pull_given_up(&mut self, shared: &mut Shared, key: (usize, u64), failure: Failure) {
        let Some(pull) = self.pulls.get_mut(&key) else {
            return;
        };
        let failure = *pull.failure.get_or_insert(failure);
        let (landing, is_gone) = (&mut pull.landing, self.core.is_gone);
        self.unfetched.retain(|fetch| {
            let is_its = (fetch.peer, fetch.id) == key;
            *landing -= u32::from(is_its && fetch.into.is_some());
            !is_its
        });
        if *landing > 0 && !is_gone {
            return;
        }
        if let Some(pull) = self.pulls.remove(&key) {
            self.took_all(shared, key.0, &pull.head, true);
            self.pulled(shared, key.0, &pull, Some(failure));
        }
    }

    /// Tells the peer that no more of a transfer is wanted.
    pub(super) fn took_all(&mut self, shared: &mut Shared, peer: usize, head: &Head, failed: bool) {
        let head = Head {
            failed,
            len: 1,
            ..took(head, 0, 0)
        };
        self.tell(shared, peer, head);
    }

    pub(super) fn lose_transfers(&mut self, shared: &mut Shared, peer: usize, failure: Failure) {
        let offers: Vec<_> = self
            .offers
            .iter()
            .filter(|(_, offer)| offer.peer == peer)
            .collect();
        let ids: Vec<_> = offers.into_iter().map(|(id, _)| *id).collect();
        for id in ids {
            self.offer_failed(shared, id, failure);
        }
        let keys: Vec<_> = self
            .pulls
            .keys()
            .filter(|key| key.0 == peer)
            .copied()
            .collect();
        for key in keys {
            self.pull_given_up(shared, key, failure);
        }
        // Drop its waiting fetches and the messages held for order.
        self.unfetched.retain(|fetch| fetch.peer != peer);
        self.core.peers.all[peer].held.clear();
        self.feed(shared);
    }
}

const fn took(head: &Head, part: u32, part_bytes: u32) -> Head {
    Head {
        kind: Kind::Took,
        has_data: false,
        failed: false,
        fetch: false,
        part,
        part_bytes,
        len: 0,
        handle: 0,
        staged: 0,
        ..*head
    }
}
