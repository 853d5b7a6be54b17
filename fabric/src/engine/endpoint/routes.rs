//! Passes completions, messages and timeouts to the parts that handle them, and requests from part
//! to part.

use std::collections::BTreeSet;
use std::time::Duration;

use phitwire_client::door::{Completion, Status};

use super::super::action::Action;
use super::super::landing::Destination;
use super::super::outbox::names;
use super::super::parcel::Parcel;
use super::super::pulls;
use super::super::renewal::Waiter;
use super::super::session;
use super::super::shared::{Failure, Note, Shared, Why};
use super::super::wire::{Head, Kind, Purpose};
use super::Endpoint;

impl Endpoint {
    /// Continues all work that completions and calls have made possible. Returns whether anything
    /// moved.
    pub fn advance(&mut self, shared: &mut Shared) -> bool {
        let mut moved = false;
        while let Some(note) = shared.take_note(self.core.address) {
            self.noted(shared, &note);
            moved = true;
        }
        while self.session.take_own(&mut self.core) {
            self.route(shared);
            moved = true;
        }
        self.session.send_waiting(&mut self.core, shared);
        self.session.pay_owed(&mut self.core);
        self.route(shared);
        moved
    }

    /// Handles a note from another endpoint of the domain.
    fn noted(&mut self, shared: &mut Shared, note: &Note) {
        let core = &mut self.core;
        let (peer, head) = (note.peer, note.head);
        if head.kind == Kind::Renew {
            let endpoint = note.from;
            let waiter = Waiter { endpoint, peer };
            self.renewal.renew(core, shared, waiter, &head);
        } else {
            core.actions.push_back(match core.peers[peer].is_self {
                true => Action::Renewed(peer, head),
                false => Action::Send(peer, head),
            });
        }
        self.route(shared);
    }

    pub fn handle_completion(&mut self, shared: &mut Shared, completion: &Completion) {
        let core = &mut self.core;
        match *completion {
            Completion::Received {
                name,
                status,
                processor,
                bytes,
            } => {
                let slot = (name & !names::KINDS) as usize;
                let bytes = (status == Status::Done).then_some(bytes as usize);
                self.session.received(core, slot, (processor, bytes));
            }
            Completion::End {
                name, status, word, ..
            } => {
                let number = name & !names::KINDS;
                let (slot, ended) = (number as usize, (status, word));
                match name & names::KINDS {
                    names::SEND => self.session.completed(core, shared, slot, status),
                    names::FETCH => self.pulls.completed(core, shared, slot, status),
                    names::PROBE => self.liveness.answered(core, slot, status),
                    names::DIRECT => self.one_sided.completed(core, shared, slot, ended),
                    names::REGISTER => self.registered(shared, number, true, ended),
                    names::DEREGISTER => self.registered(shared, number, false, ended),
                    names::RECEIVE if status == Status::TooMany => {
                        self.session.receives.reject(slot);
                    }
                    names::CHECK => self.session.receives.end_check(),
                    _ => {}
                }
            }
            Completion::PutEvent { .. } | Completion::BlockEvent { .. } => {}
        }
        self.route(shared);
    }

    /// Handles the completion of a registration, or of a closing.
    fn registered(
        &mut self,
        shared: &mut Shared,
        number: u64,
        is_opened: bool,
        ended: (Status, u64),
    ) {
        let core = &mut self.core;
        if number & names::RENEWAL != 0 {
            let number = number & !names::RENEWAL;
            if is_opened && ended.0 == Status::TooMany {
                self.offers.spare_handle(core);
            }
            self.renewal
                .completed(core, shared, number, is_opened, ended);
        } else if number & names::AWAITED != 0 {
            self.registration.completed(core, number, is_opened, ended);
        } else if is_opened {
            self.offers.registered(core, number, ended);
        } else if number & names::RANGE != 0 {
            self.offers.range_closed(core, shared, number);
        }
    }

    /// Checks the awaited peers, if that is due; `now` is the time since an arbitrary fixed moment.
    /// Call it only when all completions so far have been handled, since they may be signs of life.
    pub fn handle_timeout(&mut self, shared: &mut Shared, now: Duration) {
        if now < self.deadline() {
            return;
        }
        let core = &mut self.core;
        self.liveness.begin_check(core, now);
        self.session.receives.post_rejected(core);
        self.renewal.retry(core, shared);
        self.check_peers(shared);
        self.route(shared);
        self.liveness.probe_lost(&mut self.core);
    }

    fn check_peers(&mut self, shared: &Shared) {
        let core = &mut self.core;
        let mut awaited = BTreeSet::new();
        let waits = self.matching.await_peers(core, &mut awaited);
        self.liveness.patrol(core, shared, waits, &mut awaited);
        self.requests.await_peers(&mut awaited);
        self.one_sided.await_peers(&mut awaited);
        self.offers.await_peers(&mut awaited);
        self.pulls.await_peers(&mut awaited);
        self.session.await_peers(&mut awaited);
        self.liveness.check(core, awaited);
    }

    /// Immediately probes the peers that messages have not reached: see `Liveness::probe_all`.
    pub fn probe_unreached(&mut self) {
        let mut unreached = BTreeSet::new();
        self.session.await_unreached(&mut unreached);
        self.liveness.probe_all(&mut self.core, unreached);
    }

    /// Handles the end of the NIC: everything fails.
    pub fn handle_end(&mut self, shared: &mut Shared) {
        let core = &mut self.core;
        core.is_gone = true;
        let failure = Failure {
            errno: libc::ENETDOWN,
            why: Why::Unknown,
        };
        self.session.end_all(core, shared, failure);
        self.one_sided.end_all(core, shared, failure);
        self.renewal.close(core, shared);
        for (peer, failed) in core.peers.iter().map(|peer| peer.failed).enumerate() {
            core.actions.push_back(match failed {
                None => Action::Lose(peer, failure),
                // The peer was already lost, but fetches from it were awaited: they will not end
                // now.
                Some(lost) => Action::Forget(peer, lost, failure),
            });
        }
        self.route(shared);
        let why = Why::Plain;
        self.matching
            .end(&self.core, shared, Failure { why, ..failure });
    }

    /// Passes actions, in order, to the parts that carry them out, and gives free stages to the
    /// transfers that wait for them. Actions that follow from one are handled before the next: of
    /// two messages that arrive together, the first may begin a transfer that the second ends.
    pub(super) fn route(&mut self, shared: &mut Shared) {
        loop {
            while let Some(action) = self.core.actions.pop_front() {
                if self.core.actions.is_empty() {
                    self.carry_out(shared, action);
                    continue;
                }
                let mut later = std::mem::take(&mut self.core.actions);
                self.carry_out(shared, action);
                while let Some(first) = self.core.actions.pop_back() {
                    later.push_front(first);
                }
                self.core.actions = later;
            }
            if !self.offers.feed(&mut self.core) {
                return;
            }
        }
    }

    fn carry_out(&mut self, shared: &mut Shared, action: Action) {
        let core = &mut self.core;
        match action {
            Action::Post(peer, parcel) => self.session.post(core, shared, peer, parcel),
            Action::Send(peer, head) => {
                self.session.post(core, shared, peer, Parcel::bare(head));
            }
            Action::Announce(peer, head) => self.session.announce(core, shared, peer, head),
            Action::Notify(peer) => self.session.notify(core, peer),
            Action::Arrived(peer, head, payload) => self.arrived(shared, peer, head, payload),
            Action::RequestFailed(id, why) => self.requests.fail(core, shared, id, why),
            Action::OfferFailed(id, why) => self.offers.fail(core, shared, id, why),
            Action::Offer(peer, head, from, source) => {
                self.offers.offer(core, peer, head, from, source);
            }
            Action::Pull(peer, head, into) => self.pulls.pull(core, shared, peer, head, into),
            Action::Discard(peer, head, failed) => pulls::discard(core, peer, &head, failed),
            Action::Pulled(peer, head, into, failure) => {
                self.pulled(shared, (peer, &head), into, failure);
            }
            Action::Renew(peer, head) => self.renew(shared, peer, &head),
            Action::Renewed(peer, head) => self.one_sided.renewed(core, shared, peer, &head),
            Action::Serve(target, service) => {
                self.one_sided.serve(core, shared, target, service);
            }
            Action::Served(service, failed) => {
                self.serving.served(core, shared, service, failed);
            }
            Action::Delivered(end) => session::has_arrived(core, shared, end),
            Action::LostLives(peer) => self.liveness.lost_lives(core, peer),
            Action::LostBy(peer) => self.liveness.lost_by(core, peer),
            Action::Notified(peer) => {
                core.peers.notified(peer);
                self.offers.release(core, peer);
            }
            Action::Lose(peer, failure) => self.lose(shared, peer, failure),
            Action::Forget(peer, lost, unknown) => self.forget(shared, peer, lost, unknown),
        }
    }

    /// Passes a message to the part that handles it.
    fn arrived(&mut self, shared: &mut Shared, peer: usize, head: Head, payload: Vec<u8>) {
        let core = &mut self.core;
        if head.kind == Kind::Whole && head.len != payload.len() as u64 {
            return;
        }
        match (head.kind, head.purpose) {
            (Kind::Whole | Kind::Ready, Purpose::Message | Purpose::Tagged) => {
                self.matching.arrived(core, shared, peer, head, payload);
            }
            (Kind::Whole | Kind::Ready, Purpose::Write) => {
                self.serving.write(core, shared, peer, (head, &payload));
            }
            (Kind::Whole, Purpose::Reply) => {
                self.requests.replied(core, shared, peer, (&head, &payload));
            }
            (Kind::Ready, Purpose::Reply) => self.requests.reply_announced(core, peer, head),
            (Kind::Done, _) => self.requests.answered(core, shared, peer, &head),
            (Kind::Part, _) => self.pulls.part(core, shared, peer, &head),
            (Kind::Took, _) => self.offers.took(core, shared, peer, &head),
            (Kind::Read, _) => self.serving.read(core, shared, peer, &head),
            (Kind::Atomic, _) => self.serving.change(core, shared, peer, (head, payload)),
            (Kind::Renew, _) => self.renew(shared, peer, &head),
            (Kind::Renewed, _) => self.one_sided.renewed(core, shared, peer, &head),
            (Kind::Credit | Kind::Lost, _) => {}
        }
    }

    /// Handles a request, by a peer or this endpoint, for a new handle of local memory.
    fn renew(&mut self, shared: &mut Shared, peer: usize, head: &Head) {
        let core = &mut self.core;
        let endpoint = core.address;
        let waiter = Waiter { endpoint, peer };
        self.renewal.renew(core, shared, waiter, head);
    }

    /// Ends the operation of a transfer that has ended.
    fn pulled(
        &mut self,
        shared: &mut Shared,
        (peer, head): (usize, &Head),
        into: Destination,
        failure: Option<Failure>,
    ) {
        let core = &mut self.core;
        match into {
            Destination::Receive(landing) => {
                let landing = (&landing, failure);
                self.matching.received(core, shared, peer, head, landing);
            }
            Destination::Memory if failure.is_none() => {
                self.serving.written(core, shared, peer, head);
            }
            Destination::Memory => {}
            Destination::Reply(..) => self.requests.pulled(core, shared, (peer, head), failure),
        }
    }

    /// Marks a peer as lost: messages to it fail, then everything else that awaits it.
    fn lose(&mut self, shared: &mut Shared, peer: usize, failure: Failure) {
        let core = &mut self.core;
        if core.peers[peer].failed.is_some() {
            return;
        }
        let lost = Failure {
            errno: libc::EHOSTUNREACH,
            why: match failure.why {
                Why::Departed => Why::Departed,
                _ => Why::Unreachable,
            },
        };
        core.peers.lose(peer, lost);
        // Operations sent without a reply may have been carried out.
        let unknown = Failure {
            why: Why::Unknown,
            ..failure
        };
        self.session.lose(core, shared, peer, (lost, unknown));
        // Unsent requests must fail before, as they are known not to have been carried out.
        core.actions.push_back(Action::Forget(peer, lost, unknown));
    }

    fn forget(&mut self, shared: &mut Shared, peer: usize, lost: Failure, unknown: Failure) {
        let core = &mut self.core;
        debug_assert!(core.peers[peer].failed.is_some(), "it is lost");
        self.requests.lose(core, shared, peer, unknown);
        self.offers.lose(core, shared, peer, unknown);
        self.pulls.lose(core, peer, unknown);
        self.one_sided.lose(core, shared, peer);
        self.renewal.lose(core, peer);
        if lost.why != Why::Departed && !core.is_gone {
            self.renewal.renew_all(core, shared);
        }
        self.matching.lose(core, shared, peer, lost);
    }
}
