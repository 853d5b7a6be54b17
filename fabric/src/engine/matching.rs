//! Receives, and the messages that wait for one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::action::Action;
use super::core::Core;
use super::landing::{Destination, Landing};
use super::shared::{Binds, Entry, Failure, Op, Shared, Why};
use super::slots::Slab;
use super::wire::{Address, Head, Kind, Purpose};
use crate::flags::{FI_CLAIM, FI_DISCARD, FI_MULTI_RECV, FI_REMOTE_CQ_DATA};
use crate::memory::Pieces;

const FI_ETRUNC: i32 = 265;

/// Checks for which a peer stays awaited after a peek for its message: programs peek repeatedly.
const PEEK_CHECKS: u32 = 8;

#[derive(Debug)]
pub struct Posted {
    /// Completion attributes of the receive.
    pub op: Op,
    /// Memory for messages.
    pub into: Pieces,
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
    /// Why the buffer fails after the last of these messages, if it is no longer posted though not
    /// full.
    ended: Option<Failure>,
}

#[derive(Debug)]
struct Unexpected {
    peer: usize,
    from: Address,
    head: Head,
    payload: Vec<u8>,
    /// Context of the only receive that may take it.
    claim: Option<usize>,
}

/// Receives, and messages without one.
#[derive(Debug)]
pub struct Matching {
    /// Receives: untagged, and tagged.
    posted: [VecDeque<Posted>; 2],
    /// Messages without a receive: untagged, and tagged.
    unexpected: [VecDeque<Unexpected>; 2],
    multis: Slab<Multi>,
    /// Bytes of room below which a multi-receive buffer is full.
    least_room: usize,
    /// Whether a message arrived since the last check.
    has_received: bool,
    /// Checks for which a peeked peer is still awaited.
    peeked: BTreeMap<usize, u32>,
    /// Checks for which any source is still awaited after a peek.
    peeked_anyone: u32,
    /// A peer was lost, and no receive from any source has failed for it yet.
    is_unreported: bool,
}

impl Default for Matching {
    fn default() -> Self {
        Self {
            posted: Default::default(),
            unexpected: Default::default(),
            multis: Slab::new(usize::MAX),
            least_room: 64,
            has_received: false,
            peeked: BTreeMap::new(),
            peeked_anyone: 0,
            is_unreported: false,
        }
    }
}

impl Posted {
    const fn is_for_anyone(&self) -> bool {
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

impl Matching {
    /// Bytes of room below which a multi-receive buffer is full.
    pub const fn least_room(&self) -> usize {
        self.least_room
    }

    /// Sets the bytes of room below which a multi-receive buffer is full.
    pub const fn set_least_room(&mut self, bytes: usize) {
        self.least_room = bytes;
    }

    /// Multi-receive buffers that have not ended and are not posted.
    #[cfg(test)]
    pub(super) fn left(&self) -> (&'static str, usize) {
        let posted = self.posted.iter().flatten();
        let posted = posted.filter(|posted| posted.multi.is_some());
        ("buffers", self.multis.len() - posted.count())
    }

    /// Checks the invariants between the fields.
    #[cfg(test)]
    pub(super) fn check(&self) {
        for posted in self.posted.iter().flatten() {
            let multi = posted.multi.map(|slot| self.multis.get(slot));
            assert!(
                multi.is_none_or(|multi| multi.is_some()),
                "the state of a posted buffer exists"
            );
            if let Some(multi) = multi.flatten() {
                assert!(!multi.is_full, "a full buffer is not posted");
                assert!(multi.used <= posted.into.len(), "messages fit");
            }
        }
    }

    pub fn receive(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        tagged: bool,
        (mut posted, multi): (Posted, bool),
    ) {
        debug_assert!(posted.multi.is_none(), "the number is assigned here");
        if multi {
            let multi = Multi {
                used: 0,
                coming: 0,
                is_full: false,
                ended: None,
            };
            posted.multi = self.multis.insert(multi);
        }
        let list = usize::from(tagged);
        loop {
            let waiting = &self.unexpected[list];
            let found = waiting.iter().position(|message| {
                let from = message.from;
                message.claim.is_none() && posted.wants(&message.head, from)
            });
            let Some(at) = found else {
                break;
            };
            let Some(message) = self.unexpected[list].remove(at) else {
                break;
            };
            let landing = self.land(&posted, &message.head);
            let is_used_up = self.is_used_up(&posted);
            self.matched(
                core,
                shared,
                message.peer,
                message.head,
                message.payload,
                landing,
            );
            if is_used_up {
                return;
            }
        }
        match self.hopeless(core, &posted) {
            None => self.posted[list].push_back(posted),
            Some(failure) if posted.is_pool() => {
                fail(shared, &core.binds, &posted, failure);
                self.posted[list].push_back(posted);
            }
            Some(failure) => end(&mut self.multis, shared, &core.binds, &posted, failure),
        }
    }

    /// Whether a receive takes no more messages.
    fn is_used_up(&self, posted: &Posted) -> bool {
        let multi = posted.multi.and_then(|slot| self.multis.get(slot));
        multi.is_none_or(|multi| multi.is_full)
    }

    /// Chooses where a receive puts a message.
    fn land(&mut self, posted: &Posted, head: &Head) -> Landing {
        let (mut offset, mut room) = (0, posted.into.len());
        if let Some(multi) = posted.multi.and_then(|slot| self.multis.get_mut(slot)) {
            (offset, room) = (multi.used, room - multi.used);
            debug_assert!(!multi.is_full, "a full buffer takes no message");
            debug_assert!(multi.used <= posted.into.len(), "messages fit");
            multi.used += room.min(head.len as usize);
            multi.coming += 1;
            multi.is_full = posted.into.len() - multi.used < self.least_room.max(1);
        }
        let at = (offset, room);
        Landing::new(posted.op, posted.into.clone(), at, posted.multi)
    }

    /// Handles an arrived message: matches it, or keeps it until a receive does.
    pub(super) fn arrived(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        peer: usize,
        head: Head,
        payload: Vec<u8>,
    ) {
        self.has_received = true;
        let list = usize::from(head.purpose == Purpose::Tagged);
        let from = core.peers[peer].address;
        let posted = &self.posted[list];
        let Some(at) = posted.iter().position(|posted| posted.wants(&head, from)) else {
            let claim = None;
            self.unexpected[list].push_back(Unexpected {
                peer,
                from,
                head,
                payload,
                claim,
            });
            return;
        };
        let Some(posted) = self.posted[list].remove(at) else {
            return;
        };
        let landing = self.land(&posted, &head);
        if !self.is_used_up(&posted) {
            self.posted[list].insert(at, posted);
        }
        self.matched(core, shared, peer, head, payload, landing);
    }

    fn matched(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        peer: usize,
        head: Head,
        payload: Vec<u8>,
        landing: Landing,
    ) {
        if head.kind == Kind::Ready {
            let into = Destination::Receive(landing);
            return core.actions.push_back(Action::Pull(peer, head, into));
        }
        landing.fill(&payload);
        self.received(core, shared, peer, &head, (&landing, None));
    }

    /// Handles the end of a message: it is complete, or never will be.
    pub(super) fn received(
        &mut self,
        core: &Core,
        shared: &mut Shared,
        peer: usize,
        head: &Head,
        (landing, failure): (&Landing, Option<Failure>),
    ) {
        let mut entry = entry_of(head);
        entry.len = landing.room().min(head.len as usize);
        let mut ended = None;
        if let Some(slot) = landing.multi
            && let Some(multi) = self.multis.get_mut(slot)
        {
            debug_assert!(multi.coming > 0, "each message ends once");
            multi.coming -= 1;
            entry.buf = landing.address();
            if multi.coming == 0 && (multi.is_full || multi.ended.is_some()) {
                ended = multi.ended;
                self.multis.remove(slot);
                if ended.is_none() {
                    entry.flags |= FI_MULTI_RECV;
                }
            }
        }
        let over = head.len as usize - entry.len;
        let truncated = Failure {
            errno: FI_ETRUNC,
            why: Why::Plain,
        };
        match failure.or((over > 0).then_some(truncated)) {
            None => {
                let source = core.source(shared, peer);
                let mut op = landing.op;
                // Always report the return of a buffer.
                op.reports_success |= entry.flags & FI_MULTI_RECV != 0;
                shared.done(&core.binds, &op, entry, source);
            }
            Some(failure) => shared.failed(&core.binds, &landing.op, entry, failure, over),
        }
        if let Some(failure) = ended {
            let entry = Entry {
                tag: landing.op.tag,
                ..Entry::default()
            };
            shared.failed(&core.binds, &landing.op, entry, failure, 0);
        }
    }

    /// Looks for a message with a tag, and claims or discards it as `flags` request; completes
    /// `Op`, or fails it if there is none.
    pub fn peek(&mut self, core: &mut Core, shared: &mut Shared, wanted: &Posted, flags: u64) {
        let waiting = &self.unexpected[1];
        let found = waiting.iter().position(|message| {
            let from = message.from;
            message.claim.is_none() && wanted.wants(&message.head, from)
        });
        let Some(at) = found else {
            let none = Failure {
                errno: libc::ENOMSG,
                why: Why::Plain,
            };
            let failure = self.peeked_nothing(core, wanted).unwrap_or(none);
            return fail(shared, &core.binds, wanted, failure);
        };
        let message = &mut self.unexpected[1][at];
        let (peer, head) = (message.peer, message.head);
        if flags & FI_DISCARD != 0 {
            self.unexpected[1].remove(at);
            discard(core, peer, head);
        } else if flags & FI_CLAIM != 0 {
            message.claim = Some(wanted.op.context);
        }
        let mut entry = entry_of(&head);
        entry.len = head.len as usize;
        let source = core.source(shared, peer);
        let mut op = wanted.op;
        op.reports_success = true;
        shared.done(&core.binds, &op, entry, source);
    }

    /// Receives or discards the message that was claimed with the same context; false if none was.
    pub fn claim(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        posted: Posted,
        flags: u64,
    ) -> bool {
        let waiting = &mut self.unexpected[1];
        let context = Some(posted.op.context);
        let at = waiting.iter().position(|message| message.claim == context);
        let Some(message) = at.and_then(|at| waiting.remove(at)) else {
            return false;
        };
        if flags & FI_DISCARD != 0 {
            discard(core, message.peer, message.head);
            let source = core.source(shared, message.peer);
            shared.done(&core.binds, &posted.op, entry_of(&message.head), source);
            return true;
        }
        let landing = self.land(&posted, &message.head);
        self.matched(
            core,
            shared,
            message.peer,
            message.head,
            message.payload,
            landing,
        );
        true
    }

    /// Fails receives that will get no more messages, and returns how many. A pool only reports
    /// that one of its messages will not come, unless the endpoint itself is gone.
    fn fail_receives(
        &mut self,
        core: &Core,
        shared: &mut Shared,
        failure: Failure,
        which: impl Fn(&Posted) -> bool,
    ) -> usize {
        let (mut failed, multis) = (0, &mut self.multis);
        for list in &mut self.posted {
            list.retain(|posted| {
                if !which(posted) {
                    return true;
                }
                failed += 1;
                let stays = posted.is_pool() && !core.is_gone;
                match stays {
                    true => fail(shared, &core.binds, posted, failure),
                    false => end(multis, shared, &core.binds, posted, failure),
                }
                stays
            });
        }
        failed
    }

    /// Cancels the receive with this context, so that it fails; false if there is none. A buffer in
    /// which messages are landing fails after them.
    pub fn cancel(&mut self, core: &Core, shared: &mut Shared, context: usize) -> bool {
        for list in &mut self.posted {
            let at = list.iter().position(|posted| posted.op.context == context);
            let Some(posted) = at.and_then(|at| list.remove(at)) else {
                continue;
            };
            let failure = Failure {
                errno: libc::ECANCELED,
                why: Why::Plain,
            };
            end(&mut self.multis, shared, &core.binds, &posted, failure);
            return true;
        }
        false
    }

    /// Handles the loss of a peer: receives from it fail. Receives from any source fail too, unless
    /// the peer's program may have ended in order.
    pub(super) fn lose(&mut self, core: &Core, shared: &mut Shared, peer: usize, lost: Failure) {
        if core.is_gone {
            // All receives fail anyway.
            return;
        }
        let address = core.peers[peer].address;
        self.fail_receives(core, shared, lost, |posted| posted.from == Some(address));
        if lost.why != Why::Departed {
            let failed = self.fail_receives(core, shared, SOMEONE_LOST, Posted::is_for_anyone);
            self.is_unreported |= failed == 0;
        }
    }

    /// Handles the end of the NIC: all receives fail.
    pub(super) fn end(&mut self, core: &Core, shared: &mut Shared, failure: Failure) {
        self.fail_receives(core, shared, failure, |_| true);
        debug_assert!(self.posted.iter().all(VecDeque::is_empty));
    }

    /// Why a receive will get no message. A lost peer fails a receive from any source only once: a
    /// program that posts it again has been notified.
    fn hopeless(&mut self, core: &Core, posted: &Posted) -> Option<Failure> {
        match posted.from {
            Some(address) => core.peers.failure(&address),
            None => std::mem::take(&mut self.is_unreported).then_some(SOMEONE_LOST),
        }
    }

    /// Handles a peek that found no message: awaits its sender. Returns why the message will not
    /// come, if that is known.
    fn peeked_nothing(&mut self, core: &mut Core, wanted: &Posted) -> Option<Failure> {
        match wanted.from {
            Some(address) => {
                let peer = core.peers.number(address);
                self.peeked.insert(peer, PEEK_CHECKS);
            }
            None => self.peeked_anyone = PEEK_CHECKS,
        }
        self.hopeless(core, wanted)
    }

    /// Adds the peers that receives and peeks await, at a check. Returns whether any source is
    /// awaited, and whether a message has arrived since the last check.
    pub(super) fn await_peers(
        &mut self,
        core: &mut Core,
        awaited: &mut BTreeSet<usize>,
    ) -> (bool, bool) {
        awaited.extend(self.peeked.keys());
        self.peeked.retain(|_, checks| {
            debug_assert!(*checks > 0, "a peek that is no longer awaited is removed");
            *checks -= 1;
            *checks > 0
        });
        let mut is_for_anyone = self.peeked_anyone > 0;
        self.peeked_anyone = self.peeked_anyone.saturating_sub(1);
        for posted in self.posted.iter().flatten() {
            match posted.from {
                Some(address) => {
                    awaited.insert(core.peers.number(address));
                }
                None => is_for_anyone = true,
            }
        }
        let has_received = std::mem::take(&mut self.has_received);
        (is_for_anyone, has_received)
    }
}

const SOMEONE_LOST: Failure = Failure {
    errno: libc::EHOSTUNREACH,
    why: Why::SomeoneLost,
};

fn discard(core: &mut Core, peer: usize, head: Head) {
    if head.kind == Kind::Ready {
        core.actions.push_back(Action::Discard(peer, head, false));
    }
}

fn fail(shared: &mut Shared, binds: &Binds, posted: &Posted, failure: Failure) {
    let entry = Entry {
        tag: posted.tag,
        ..Entry::default()
    };
    shared.failed(binds, &posted.op, entry, failure, 0);
}

/// Fails a receive that is no longer posted: now, or after the messages that are landing in it.
fn end(
    multis: &mut Slab<Multi>,
    shared: &mut Shared,
    binds: &Binds,
    posted: &Posted,
    failure: Failure,
) {
    if let Some(slot) = posted.multi
        && let Some(multi) = multis.get_mut(slot)
    {
        if multi.coming > 0 {
            multi.ended = Some(failure);
            return;
        }
        multis.remove(slot);
    }
    fail(shared, binds, posted, failure);
}

fn entry_of(head: &Head) -> Entry {
    Entry {
        flags: if head.has_data { FI_REMOTE_CQ_DATA } else { 0 },
        data: head.data,
        tag: head.tag,
        ..Entry::default()
    }
}
