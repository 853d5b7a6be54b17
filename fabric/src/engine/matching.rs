//! Receives, and the messages that wait for one.

use std::collections::{BTreeSet, VecDeque};

use super::endpoint::Endpoint;
use super::shared::{Binds, Entry, Failure, Op, Shared, Why};
use super::slots::Slab;
use super::transfers::Into;
use super::wire::{Address, Head, Kind, Purpose};
use crate::flags::{FI_CLAIM, FI_DISCARD, FI_MULTI_RECV, FI_REMOTE_CQ_DATA};
use crate::memory::Pieces;

const FI_ETRUNC: i32 = 265;

/// A posted receive.
#[derive(Debug)]
pub struct Posted {
    /// Completion attributes of the receive.
    pub op: Op,
    /// Memory for messages.
    pub into: Pieces,
    /// The tag.
    pub tag: u64,
    /// Bits of the tag that are ignored.
    pub ignore: u64,
    /// The only accepted source, if any.
    pub from: Option<Address>,
    /// The multi-receive state, if it takes several messages.
    pub multi: Option<usize>,
}

/// State of a multi-receive buffer.
#[derive(Debug)]
pub struct Multi {
    used: usize,
    /// Messages whose bytes have not arrived yet.
    coming: usize,
    is_full: bool,
}

/// A matched message.
#[derive(Clone, Debug)]
pub struct Landing {
    op: Op,
    into: Pieces,
    /// Offset and room in `into`.
    offset: usize,
    room: usize,
    multi: Option<usize>,
}

/// An unexpected message.
#[derive(Debug)]
struct Unexpected {
    peer: usize,
    head: Head,
    payload: Vec<u8>,
    /// Context of the only receive that may take it.
    claim: Option<usize>,
}

/// Receives and messages: untagged, and tagged.
#[derive(Debug)]
pub struct Receives {
    posted: [VecDeque<Posted>; 2],
    unexpected: [VecDeque<Unexpected>; 2],
    multis: Slab<Multi>,
}

impl Default for Receives {
    fn default() -> Self {
        Self {
            posted: Default::default(),
            unexpected: Default::default(),
            multis: Slab::new(usize::MAX),
        }
    }
}

impl Receives {
    /// The sources that receives name, and whether any receive is from any source.
    pub(super) fn wanted(&self) -> (BTreeSet<Address>, bool) {
        let posted = || self.posted.iter().flatten();
        let from = posted().filter_map(|posted| posted.from).collect();
        (from, posted().any(Posted::is_for_anyone))
    }
}

impl Posted {
    pub(super) const fn is_for_anyone(&self) -> bool {
        self.from.is_none()
    }

    /// A multi-receive buffer for any source, which stays posted when one of its messages fails.
    const fn is_pool(&self) -> bool {
        self.from.is_none() && self.multi.is_some()
    }

    fn wants(&self, head: &Head, from: Address) -> bool {
        (self.tag ^ head.tag) & !self.ignore == 0 && self.from.is_none_or(|wanted| wanted == from)
    }
}

impl Endpoint {
    /// Posts a receive.
    pub fn receive(&mut self, shared: &mut Shared, tagged: bool, mut posted: Posted, multi: bool) {
        if multi {
            let multi = Multi {
                used: 0,
                coming: 0,
                is_full: false,
            };
            posted.multi = self.receives.multis.insert(multi);
        }
        let list = usize::from(tagged);
        loop {
            let waiting = &self.receives.unexpected[list];
            let found = waiting.iter().position(|message| {
                let from = self.core.peers.all[message.peer].address;
                message.claim.is_none() && posted.wants(&message.head, from)
            });
            let Some(at) = found else {
                break;
            };
            let Some(message) = self.receives.unexpected[list].remove(at) else {
                break;
            };
            let landing = self.land(&posted, &message.head);
            let is_used_up = self.is_used_up(&posted);
            self.matched(shared, message.peer, message.head, message.payload, landing);
            if is_used_up {
                return;
            }
        }
        let failure = self.hopeless(&posted);
        if let Some(failure) = failure {
            fail(shared, &self.core.binds, &posted, failure);
        }
        if failure.is_none() || posted.is_pool() {
            self.receives.posted[list].push_back(posted);
        }
    }

    /// Whether a receive takes no more messages.
    fn is_used_up(&self, posted: &Posted) -> bool {
        let multi = posted.multi.and_then(|slot| self.receives.multis.get(slot));
        multi.is_none_or(|multi| multi.is_full)
    }

    /// Chooses where a receive puts a message.
    fn land(&mut self, posted: &Posted, head: &Head) -> Landing {
        let (mut offset, mut room) = (0, posted.into.len());
        if let Some(multi) = posted
            .multi
            .and_then(|slot| self.receives.multis.get_mut(slot))
        {
            (offset, room) = (multi.used, room - multi.used);
            multi.used += room.min(head.len as usize);
            multi.coming += 1;
            multi.is_full = posted.into.len() - multi.used < self.least_room.max(1);
        }
        Landing {
            op: posted.op,
            into: posted.into.clone(),
            offset,
            room,
            multi: posted.multi,
        }
    }

    /// A message arrived: match it, or let it wait.
    pub(super) fn match_message(
        &mut self,
        shared: &mut Shared,
        peer: usize,
        head: Head,
        payload: Vec<u8>,
    ) {
        self.lookout.received();
        let list = usize::from(head.purpose == Purpose::Tagged);
        let from = self.core.peers.all[peer].address;
        let posted = &self.receives.posted[list];
        let Some(at) = posted.iter().position(|posted| posted.wants(&head, from)) else {
            let claim = None;
            self.receives.unexpected[list].push_back(Unexpected {
                peer,
                head,
                payload,
                claim,
            });
            return;
        };
        let Some(posted) = self.receives.posted[list].remove(at) else {
            return;
        };
        let landing = self.land(&posted, &head);
        if !self.is_used_up(&posted) {
            self.receives.posted[list].insert(at, posted);
        }
        self.matched(shared, peer, head, payload, landing);
    }

    fn matched(
        &mut self,
        shared: &mut Shared,
        peer: usize,
        head: Head,
        payload: Vec<u8>,
        landing: Landing,
    ) {
        if head.kind == Kind::Ready {
            return self.pull(shared, peer, head, Into::Receive(landing));
        }
        let bytes = payload.len().min(landing.room);
        landing.into.fill(landing.offset, &payload[..bytes]);
        self.received(shared, peer, &head, &landing, None);
    }

    /// A message is complete, or will never be.
    pub(super) fn received(
        &mut self,
        shared: &mut Shared,
        peer: usize,
        head: &Head,
        landing: &Landing,
        failure: Option<Failure>,
    ) {
        let mut entry = entry_of(head);
        entry.len = landing.room.min(head.len as usize);
        if let Some(slot) = landing.multi
            && let Some(multi) = self.receives.multis.get_mut(slot)
        {
            multi.coming -= 1;
            entry.buf = landing.into.address() + landing.offset as u64;
            if multi.is_full && multi.coming == 0 {
                self.receives.multis.remove(slot);
                entry.flags |= FI_MULTI_RECV;
            }
        }
        let over = head.len as usize - entry.len;
        let truncated = Failure {
            errno: FI_ETRUNC,
            why: Why::Plain,
        };
        match failure.or((over > 0).then_some(truncated)) {
            None => {
                let source = self.core.source(shared, peer);
                let mut op = landing.op;
                // Always report the return of a buffer.
                op.tells |= entry.flags & FI_MULTI_RECV != 0;
                shared.done(&self.core.binds, &op, entry, source);
            }
            Some(failure) => shared.failed(&self.core.binds, &landing.op, entry, failure, over),
        }
    }

    /// Looks for a message with a tag, and claims or discards it as `flags` ask; completes `Op`, or
    /// fails it if there is none.
    pub fn peek(&mut self, shared: &mut Shared, wanted: &Posted, flags: u64) {
        let waiting = &self.receives.unexpected[1];
        let found = waiting.iter().position(|message| {
            let from = self.core.peers.all[message.peer].address;
            message.claim.is_none() && wanted.wants(&message.head, from)
        });
        let Some(at) = found else {
            let none = Failure {
                errno: libc::ENOMSG,
                why: Why::Plain,
            };
            let failure = self.peeked_in_vain(wanted).unwrap_or(none);
            return fail(shared, &self.core.binds, wanted, failure);
        };
        let message = &mut self.receives.unexpected[1][at];
        let (peer, head) = (message.peer, message.head);
        if flags & FI_DISCARD != 0 {
            self.receives.unexpected[1].remove(at);
            self.discard(shared, peer, &head);
        } else if flags & FI_CLAIM != 0 {
            message.claim = Some(wanted.op.context);
        }
        let mut entry = entry_of(&head);
        entry.len = head.len as usize;
        let source = self.core.source(shared, peer);
        let mut op = wanted.op;
        op.tells = true;
        shared.done(&self.core.binds, &op, entry, source);
    }

    /// Receives or discards the message that was claimed with the same context; false if none was.
    pub fn claim(&mut self, shared: &mut Shared, posted: Posted, flags: u64) -> bool {
        let waiting = &mut self.receives.unexpected[1];
        let context = Some(posted.op.context);
        let at = waiting.iter().position(|message| message.claim == context);
        let Some(message) = at.and_then(|at| waiting.remove(at)) else {
            return false;
        };
        if flags & FI_DISCARD != 0 {
            self.discard(shared, message.peer, &message.head);
            let source = self.core.source(shared, message.peer);
            shared.done(
                &self.core.binds,
                &posted.op,
                entry_of(&message.head),
                source,
            );
            return true;
        }
        let landing = self.land(&posted, &message.head);
        self.matched(shared, message.peer, message.head, message.payload, landing);
        true
    }

    fn discard(&mut self, shared: &mut Shared, peer: usize, head: &Head) {
        if head.kind == Kind::Ready {
            self.took_all(shared, peer, head, false);
        }
    }

    /// Fails receives that will get no more messages, and returns how many. A pool only reports
    /// that one of its messages will not come, unless the endpoint itself is gone.
    pub(super) fn fail_receives(
        &mut self,
        shared: &mut Shared,
        failure: Failure,
        which: impl Fn(&Posted) -> bool,
    ) -> usize {
        let mut failed = 0;
        for list in &mut self.receives.posted {
            list.retain(|posted| {
                let goes = which(posted);
                if goes {
                    fail(shared, &self.core.binds, posted, failure);
                    failed += 1;
                }
                !goes || (posted.is_pool() && !self.core.is_gone)
            });
        }
        failed
    }

    /// Cancels the receive with this context, which fails; false if there is none.
    pub fn cancel(&mut self, shared: &mut Shared, context: usize) -> bool {
        for list in &mut self.receives.posted {
            let at = list.iter().position(|posted| posted.op.context == context);
            let Some(posted) = at.and_then(|at| list.remove(at)) else {
                continue;
            };
            let failure = Failure {
                errno: libc::ECANCELED,
                why: Why::Plain,
            };
            fail(shared, &self.core.binds, &posted, failure);
            return true;
        }
        false
    }
}

impl Landing {
    /// Calls `visit` with the memory of `len` bytes of the message from `at` on.
    pub(super) fn visit(
        &self,
        at: usize,
        len: usize,
        visit: impl FnMut(usize, crate::memory::Bytes),
    ) {
        let len = len.min(self.room.saturating_sub(at));
        self.into.visit(self.offset + at, len, visit);
    }
}

fn fail(shared: &mut Shared, binds: &Binds, posted: &Posted, failure: Failure) {
    let entry = Entry {
        tag: posted.tag,
        ..Entry::default()
    };
    shared.failed(binds, &posted.op, entry, failure, 0);
}

fn entry_of(head: &Head) -> Entry {
    Entry {
        flags: if head.has_data { FI_REMOTE_CQ_DATA } else { 0 },
        data: head.data,
        tag: head.tag,
        ..Entry::default()
    }
}
