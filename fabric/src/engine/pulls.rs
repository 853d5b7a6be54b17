//! Long transfers that this endpoint fetches: directly into the program's memory if its NIC reaches
//! that, otherwise through slots of the segment.

use std::collections::{BTreeSet, HashMap, VecDeque};

use phitwire_client::door::{Local, Remote, Request, Status};

use super::action::Action;
use super::core::Core;
use super::landing::Destination;
use super::outbox::Outgoing;
use super::shared::{Failure, Shared, Why};
use super::slots::{self, FETCHES, STAGES, STAGES_AT, Slab};
use super::wire::{Head, IN_PLACE, Kind, PART};
use crate::flags::FI_REMOTE_WRITE;
use crate::memory::{Bytes, Pieces};

/// The peer has closed the memory.
const REFUSED: Failure = Failure {
    errno: libc::EREMOTEIO,
    why: Why::Refused,
};

/// A transfer that this endpoint fetches.
#[derive(Debug)]
struct Pull {
    head: Head,
    into: Destination,
    got: u64,
    /// Bytes to fetch.
    wanted: u64,
    /// Number of unfinished fetches directly into the program's memory, which is in use until they
    /// end.
    landing: u32,
    failure: Option<Failure>,
}

/// A fetch of one part.
#[derive(Debug)]
struct Fetch {
    peer: usize,
    id: u64,
    part: u32,
    from: Remote,
    bytes: usize,
    /// Destination of the part, unless that is the slot.
    into: Option<Local>,
}

/// The transfers that an endpoint fetches.
#[derive(Debug)]
pub struct Pulls {
    /// By peer and the peer's number of the transfer.
    all: HashMap<(usize, u64), Pull>,
    fetches: Slab<Fetch>,
    /// Fetches that wait for a slot.
    unfetched: VecDeque<Fetch>,
}

impl Default for Pulls {
    fn default() -> Self {
        Self {
            all: HashMap::new(),
            fetches: Slab::new(FETCHES),
            unfetched: VecDeque::new(),
        }
    }
}

impl Pulls {
    /// Adds the peers that transfers await.
    pub(super) fn await_peers(&self, awaited: &mut BTreeSet<usize>) {
        awaited.extend(self.all.keys().map(|(peer, _)| *peer));
    }

    /// Unfinished transfers, by kind.
    #[cfg(test)]
    pub(super) fn left(&self) -> [(&'static str, usize); 2] {
        let fetches = self.fetches.len() + self.unfetched.len();
        [("pulls", self.all.len()), ("fetches", fetches)]
    }

    /// Checks the invariants between the fields.
    #[cfg(test)]
    pub(super) fn check(&self) {
        for (key, pull) in &self.all {
            let its = self.fetches_of(*key);
            let landing = its.filter(|fetch| fetch.into.is_some()).count();
            assert_eq!(pull.landing as usize, landing, "each fetch lands once");
            assert!(pull.got <= pull.wanted, "each byte is fetched once");
        }
        let has_room = self.fetches.room() > 0;
        assert!(
            !has_room || self.unfetched.is_empty(),
            "nothing waits for a free slot"
        );
    }

    fn fetches_of(&self, key: (usize, u64)) -> impl Iterator<Item = &Fetch> {
        let all = self.fetches.iter().chain(&self.unfetched);
        all.filter(move |fetch| (fetch.peer, fetch.id) == key)
    }

    /// The request of a fetch; `None` if it has ended.
    pub(super) fn request(&self, slot: usize) -> Option<Request<'static>> {
        let fetch = self.fetches.get(slot)?;
        let into = fetch.into.unwrap_or(Local {
            offset: slots::fetch_at(slot),
            bytes: fetch.bytes as u64,
        });
        Some(Request::BlockGet {
            from: fetch.from,
            into,
            fence: false,
        })
    }

    /// Begins to fetch a transfer.
    pub(super) fn pull(
        &mut self,
        core: &mut Core,
        shared: &Shared,
        peer: usize,
        head: Head,
        into: Destination,
    ) {
        let pull = Pull {
            head,
            into,
            got: 0,
            wanted: head.len,
            landing: 0,
            failure: None,
        };
        if let Some(lost) = core.peers[peer].failed {
            return end(core, peer, pull, Some(lost));
        }
        // A fetch left over from an earlier transfer would count for this one.
        let is_in_use = self.fetches_of((peer, head.id)).next().is_some();
        if is_in_use || self.all.contains_key(&(peer, head.id)) {
            let (errno, why) = (libc::EPROTO, Why::Plain);
            return end(core, peer, pull, Some(Failure { errno, why }));
        }
        if head.part == IN_PLACE && core.peers[peer].is_self {
            let (errno, why) = (libc::EPROTO, Why::Plain);
            return end(core, peer, pull, Some(Failure { errno, why }));
        }
        if head.part == IN_PLACE {
            return self.pull_in_place(core, shared, peer, pull);
        }
        if head.len == 0 {
            return end(core, peer, pull, None);
        }
        self.all.insert((peer, head.id), pull);
        if head.len > u64::from(head.part_bytes) {
            core.actions
                .push_back(Action::Send(peer, took(&head, 0, 0)));
        }
        if head.part_bytes > 0 {
            self.part(core, shared, peer, &head);
        }
    }

    /// Fetches a transfer in place, from the peer's memory.
    fn pull_in_place(&mut self, core: &mut Core, shared: &Shared, peer: usize, mut pull: Pull) {
        let key = (peer, pull.head.id);
        let Some(parts) = pull.parts(core, shared, peer) else {
            self.all.insert(key, pull);
            return self.fail(core, key, libc::EKEYREJECTED);
        };
        pull.wanted = parts.iter().map(|part| part.bytes as u64).sum();
        debug_assert!(pull.wanted <= pull.head.len, "a part is fetched once");
        pull.landing = if core.reaches_own {
            parts.len() as u32
        } else {
            0
        };
        if parts.is_empty() {
            discard(core, peer, &pull.head, false);
            return end(core, peer, pull, None);
        }
        self.all.insert(key, pull);
        for fetch in parts {
            self.fetch(core, shared, fetch);
        }
    }

    /// Handles the announcement that a part is staged.
    pub(super) fn part(&mut self, core: &mut Core, shared: &Shared, peer: usize, head: &Head) {
        let key = (peer, head.id);
        let Some(pull) = self.all.get(&key) else {
            return;
        };
        if head.failed {
            return self.give_up(core, key, REFUSED);
        }
        let is_staged = pull.head.part != IN_PLACE;
        let bytes = head.part_bytes as usize;
        let begin = u64::from(head.part) * PART as u64;
        if !is_staged || bytes > PART || begin + bytes as u64 > pull.head.len {
            return self.fail(core, key, libc::EPROTO);
        }
        if self.fetches_of(key).any(|fetch| fetch.part == head.part) {
            return;
        }
        let from = Remote {
            processor: core.peers[peer].address.processor,
            handle: head.handle,
            offset: head.staged,
        };
        let fetch = Fetch {
            peer,
            id: head.id,
            part: head.part,
            from,
            bytes,
            into: None,
        };
        self.fetch(core, shared, fetch);
    }

    fn fetch(&mut self, core: &mut Core, shared: &Shared, fetch: Fetch) {
        debug_assert!(fetch.bytes <= PART, "a part fits its slot");
        if core.peers[fetch.peer].is_self {
            let offset = fetch.from.offset;
            let is_staged = offset <= ((STAGES - 1) * PART) as u64 && fetch.into.is_none();
            return match is_staged {
                true => self.landed(core, shared, &fetch, STAGES_AT + offset),
                false => self.fail(core, (fetch.peer, fetch.id), libc::EPROTO),
            };
        }
        if self.fetches.room() == 0 {
            return self.unfetched.push_back(fetch);
        }
        if let Some(slot) = self.fetches.insert(fetch) {
            core.outbox.push(Outgoing::Fetch(slot));
        }
    }

    /// Handles the completion of a fetch.
    pub(super) fn completed(
        &mut self,
        core: &mut Core,
        shared: &Shared,
        slot: usize,
        status: Status,
    ) {
        let Some(fetch) = self.fetches.get(slot) else {
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
        if status == Status::Done {
            core.peers.heard(fetch.peer);
        }
        let pull = self.all.get(&(fetch.peer, fetch.id));
        let is_wanted = pull.is_some_and(|pull| pull.failure.is_none());
        let is_reply = pull.is_some_and(|pull| matches!(pull.into, Destination::Reply(_)));
        if again && is_wanted && core.peers[fetch.peer].failed.is_none() {
            return core.outbox.push(Outgoing::Fetch(slot));
        }
        let Some(fetch) = self.fetches.remove(slot) else {
            return;
        };
        let key = (fetch.peer, fetch.id);
        if fetch.into.is_some()
            && let Some(pull) = self.all.get_mut(&key)
        {
            debug_assert!(pull.landing > 0, "each fetch ends once");
            pull.landing -= 1;
        }
        match status {
            Status::Done => self.landed(core, shared, &fetch, slots::fetch_at(slot)),
            Status::Unreachable => self.fail(core, key, libc::EFAULT),
            Status::NoHandle if is_reply => self.give_up(core, key, REFUSED),
            _ => self.fail(core, key, libc::EIO),
        }
        if let Some(next) = self.unfetched.pop_front() {
            self.fetch(core, shared, next);
        }
    }

    /// Handles the arrival of a part: in the segment at `at`, or in its destination.
    fn landed(&mut self, core: &mut Core, shared: &Shared, fetch: &Fetch, at: u64) {
        let key = (fetch.peer, fetch.id);
        let Some(pull) = self.all.get_mut(&key) else {
            return;
        };
        if let Some(failure) = pull.failure {
            return self.give_up(core, key, failure);
        }
        if fetch.into.is_none() && !pull.copy_in(core, shared, fetch, at) {
            return self.fail(core, key, libc::EKEYREJECTED);
        }
        pull.got += fetch.bytes as u64;
        let is_all = pull.got >= pull.wanted;
        let head = pull.head;
        if head.part != IN_PLACE {
            let head = took(&head, fetch.part, fetch.bytes as u32);
            core.actions.push_back(Action::Send(fetch.peer, head));
        } else if is_all {
            discard(core, fetch.peer, &head, false);
        }
        if is_all && let Some(pull) = self.all.remove(&key) {
            debug_assert_eq!(pull.landing, 0, "no part of the transfer is in flight");
            end(core, fetch.peer, pull, None);
        }
    }

    fn fail(&mut self, core: &mut Core, key: (usize, u64), errno: i32) {
        let why = match errno {
            libc::EFAULT => Why::OwnMemory,
            _ => Why::Plain,
        };
        self.give_up(core, key, Failure { errno, why });
    }

    /// Ends a transfer once no part of it can land in the program's memory.
    fn give_up(&mut self, core: &mut Core, key: (usize, u64), failure: Failure) {
        let Some(pull) = self.all.get_mut(&key) else {
            return;
        };
        let failure = *pull.failure.get_or_insert(failure);
        let landing = &mut pull.landing;
        self.unfetched.retain(|fetch| {
            let is_its = (fetch.peer, fetch.id) == key;
            let lands = u32::from(is_its && fetch.into.is_some());
            debug_assert!(*landing >= lands, "each fetch lands once");
            *landing -= lands;
            !is_its
        });
        if *landing > 0 && !core.is_gone {
            return;
        }
        if let Some(pull) = self.all.remove(&key) {
            discard(core, key.0, &pull.head, true);
            end(core, key.0, pull, Some(failure));
        }
    }

    /// Handles the closing of a key's memory: transfers into it fail.
    pub(super) fn region_closed(&mut self, core: &mut Core, key: u64) {
        let pulls = self.all.iter().filter(|(_, pull)| pull.is_into(key));
        let mut keys: Vec<_> = pulls.map(|(key, _)| *key).collect();
        keys.sort_unstable();
        for key in keys {
            self.fail(core, key, libc::EKEYREJECTED);
        }
    }

    /// Whether the NIC may write the memory of a key.
    pub(super) fn lands_in(&self, key: u64) -> bool {
        let mut pulls = self.all.values();
        pulls.any(|pull| pull.is_into(key) && pull.landing > 0)
    }

    /// Handles the loss of a peer: transfers from it fail.
    pub(super) fn lose(&mut self, core: &mut Core, peer: usize, failure: Failure) {
        let keys = self.all.keys().filter(|key| key.0 == peer);
        let mut keys: Vec<_> = keys.copied().collect();
        keys.sort_unstable();
        for key in keys {
            self.give_up(core, key, failure);
        }
        self.unfetched.retain(|fetch| fetch.peer != peer);
    }
}

impl Pull {
    const fn is_into(&self, key: u64) -> bool {
        matches!(self.into, Destination::Memory) && self.head.key == key
    }

    /// The fetches of a transfer in place; `None` if the memory for it has been closed.
    fn parts(&self, core: &Core, shared: &Shared, peer: usize) -> Option<Vec<Fetch>> {
        let (head, mut parts) = (self.head, Vec::new());
        let mut part = |begin: usize, bytes: usize, into| {
            parts.push(Fetch {
                peer,
                id: head.id,
                part: (begin / PART) as u32,
                from: Remote {
                    processor: core.peers[peer].address.processor,
                    handle: head.handle,
                    offset: head.staged.wrapping_add(begin as u64),
                },
                bytes,
                into,
            });
        };
        let room = match &self.into {
            Destination::Receive(landing) => landing.room(),
            Destination::Memory => memory_of(shared, &head)?.len(),
            Destination::Reply(into) => into.as_ref().map_or(0, Pieces::len),
        };
        let len = room.min(head.len as usize);
        if !core.reaches_own {
            for begin in (0..len).step_by(PART) {
                part(begin, PART.min(len - begin), None);
            }
            return Some(parts);
        }
        let add = |begin: usize, piece: Bytes| {
            for at in (0..piece.len()).step_by(PART) {
                let bytes = PART.min(piece.len() - at);
                let into = Local::own(piece.address() + at as u64, bytes as u64);
                part(begin + at, bytes, Some(into));
            }
        };
        match &self.into {
            Destination::Receive(landing) => landing.visit(0, len, add),
            Destination::Memory => Pieces::One(memory_of(shared, &head)?).visit(0, len, add),
            Destination::Reply(Some(into)) => into.visit(0, len, add),
            Destination::Reply(None) => {}
        }
        Some(parts)
    }

    /// Copies a part out of the segment; false if the memory for it has been closed.
    fn copy_in(&self, core: &Core, shared: &Shared, fetch: &Fetch, at: u64) -> bool {
        let (begin, len) = (fetch.part as usize * PART, fetch.bytes);
        let copy = |done: usize, piece: Bytes| {
            piece.with_mut(|bytes| core.segment.read(at + done as u64, bytes));
        };
        match &self.into {
            Destination::Receive(landing) => landing.visit(begin, len, copy),
            Destination::Memory => match memory_of(shared, &self.head) {
                Some(memory) => Pieces::One(memory).visit(begin, len, copy),
                None => return false,
            },
            Destination::Reply(Some(into)) => into.visit(begin, len, copy),
            Destination::Reply(None) => {}
        }
        true
    }
}

/// The registered memory that a peer writes.
fn memory_of(shared: &Shared, head: &Head) -> Option<Bytes> {
    shared.region(head.key, head.tag, head.len, FI_REMOTE_WRITE)
}

/// Passes a transfer that has ended to the owner of its destination.
fn end(core: &mut Core, peer: usize, pull: Pull, failure: Option<Failure>) {
    let pulled = Action::Pulled(peer, pull.head, pull.into, failure);
    core.actions.push_back(pulled);
}

/// Tells the peer that no more of a transfer is wanted.
pub(super) fn discard(core: &mut Core, peer: usize, head: &Head, failed: bool) {
    let head = Head {
        failed,
        len: 1,
        ..took(head, 0, 0)
    };
    core.actions.push_back(Action::Send(peer, head));
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
