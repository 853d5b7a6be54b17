//! Endpoints: state machines between a program's calls and the commands and completions of a NIC.
//!
//! An endpoint does no I/O. Its owner ([`crate::driver`], or a test) hands in the segment's memory,
//! completions and the time, and takes commands out:
//!
//! 1. [`Endpoint::handle_completion`] for each completion, then [`Endpoint::advance`];
//! 2. [`Endpoint::handle_timeout`] when all completions so far have been handled;
//! 3. [`Endpoint::poll_command`] and [`Endpoint::command_taken`] while the NIC takes commands, also
//!    after every call of the program.

mod commands;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

#[cfg(test)]
use phitwire_client::door::{Access, Local};
use phitwire_client::door::{Completion, Status};

use super::action::Action;
use super::core::{Core, Segment};
use super::liveness::Liveness;
use super::matching::{Matching, Posted};
use super::one_sided::OneSided;
use super::outbox::{Outgoing, names};
use super::peers::Parcel;
use super::ranges::Ranges;
use super::registration::Registration;
use super::renewal::Renewal;
use super::requests::Request;
use super::shared::{Binds, Shared};
use super::slots::{self, FETCHES, RECEIVES, SENDS, Slab};
use super::transfers::{Fetch, Offer, Pull};
use super::transmit::Sending;
use super::wire::{Address, HEAD, Head, SLOT};
use crate::memory::Bytes;

/// An endpoint.
#[derive(Debug)]
pub struct Endpoint {
    pub(super) core: Core,
    /// The requested capabilities.
    pub caps: u64,
    /// Default flags of operations: sends, receives.
    pub op_flags: [u64; 2],
    /// Messages to itself.
    pub(super) to_self: VecDeque<Parcel>,
    pub(super) sends: Slab<Sending>,
    pub(super) waiting: Vec<usize>,
    /// Peers that may be owed an acknowledgement.
    pub(super) owed: Vec<usize>,
    pub(super) queued: usize,
    pub(super) window: u64,
    pub(super) matching: Matching,
    pub(super) offers: HashMap<u64, Offer>,
    pub(super) hungry: VecDeque<u64>,
    pub(super) pulls: HashMap<(usize, u64), Pull>,
    pub(super) fetches: Slab<Fetch>,
    pub(super) unfetched: VecDeque<Fetch>,
    pub(super) requests: HashMap<u64, Request>,
    pub(super) one_sided: OneSided,
    /// Peers whose atomic request is being carried out, and their next ones.
    pub(super) serving: HashMap<usize, VecDeque<(Head, Vec<u8>)>>,
    pub(super) ranges: Ranges,
    registration: Registration,
    pub(super) renewal: Renewal,
    pub(super) liveness: Liveness,
    /// Slots of receives that the NIC rejected because other programs hold them all.
    refused: Vec<usize>,
}

impl Endpoint {
    /// An endpoint with this address. `segment` holds its slots, of which the NIC has opened the
    /// stages to peers under the address's handle; `reaches_own` says whether the NIC also reaches
    /// the program's own memory.
    pub fn new(address: Address, segment: Box<dyn Segment>, reaches_own: bool) -> Self {
        let mut endpoint = Self {
            core: Core::new(address, segment, reaches_own),
            caps: 0,
            op_flags: [0; 2],
            to_self: VecDeque::new(),
            sends: Slab::new(SENDS),
            waiting: Vec::new(),
            owed: Vec::new(),
            queued: 0,
            window: 2,
            matching: Matching::default(),
            offers: HashMap::new(),
            hungry: VecDeque::new(),
            pulls: HashMap::new(),
            fetches: Slab::new(FETCHES),
            unfetched: VecDeque::new(),
            requests: HashMap::new(),
            one_sided: OneSided::default(),
            serving: HashMap::new(),
            ranges: Ranges::default(),
            registration: Registration::default(),
            renewal: Renewal::default(),
            liveness: Liveness::default(),
            refused: Vec::new(),
        };
        for slot in 0..RECEIVES {
            endpoint.core.outbox.push(Outgoing::Receive(slot));
        }
        endpoint
    }

    /// Continues what completions and calls have made possible. Returns whether anything moved.
    pub fn advance(&mut self, shared: &mut Shared) -> bool {
        let mut moved = false;
        while let Some(parcel) = self.to_self.pop_front() {
            let own = self.core.peers.own();
            self.take_in(shared, own, parcel.head, parcel.payload);
            moved = true;
        }
        self.send_waiting(shared);
        self.pay_owed();
        self.route(shared);
        moved
    }

    /// Handles a completion of the NIC.
    pub fn handle_completion(&mut self, shared: &mut Shared, completion: &Completion) {
        match *completion {
            Completion::Received {
                name,
                status,
                bytes,
                ..
            } => {
                let slot = (name & !names::KINDS) as usize;
                if status == Status::Done {
                    self.arrived(shared, slot, bytes as usize);
                }
                self.core.outbox.push(Outgoing::Receive(slot));
            }
            Completion::End {
                name, status, word, ..
            } => {
                let slot = (name & !names::KINDS) as usize;
                match name & names::KINDS {
                    names::SEND => self.sent(shared, slot, status),
                    names::FETCH => self.fetched(shared, slot, status),
                    names::PROBE => self.liveness.answered(&mut self.core, slot, status),
                    names::DIRECT => {
                        self.one_sided
                            .completed(&mut self.core, shared, slot, (status, word))
                    }
                    kind @ (names::REGISTER | names::DEREGISTER) => {
                        let is_opened = kind == names::REGISTER;
                        let number = name & !names::KINDS;
                        self.registered(shared, number, is_opened, (status, word));
                    }
                    names::RECEIVE if status == Status::TooMany => self.refused.push(slot),
                    _ => {}
                }
            }
            Completion::Landed { .. } | Completion::Told { .. } => {}
        }
        self.route(shared);
    }

    /// Hands what parts want of each other to the parts that carry it out, in order.
    pub(super) fn route(&mut self, shared: &mut Shared) {
        while let Some(action) = self.core.actions.pop_front() {
            match action {
                Action::Pull(peer, head, into) => self.pull(shared, peer, head, into),
                Action::Lose(peer, failure) => self.lose(shared, peer, failure),
                Action::Tell(peer, head) => self.tell(shared, peer, head),
                Action::Renew(peer, head) => {
                    self.renewal.renew(&mut self.core, shared, peer, &head)
                }
                Action::Renewed(peer, head) => {
                    self.one_sided.renewed(&mut self.core, shared, peer, &head);
                }
                Action::Served(service, failed) => self.served(shared, service, failed),
                Action::Notify(peer) => self.notify(peer),
                Action::Discard(peer, head) => self.took_all(shared, peer, &head, false),
            }
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn deadline(&self) -> Duration {
        self.liveness.deadline()
    }

    /// Checks the awaited peers, if that is due; `now` is the time since any fixed moment. Call it
    /// only when all completions so far have been handled: they may be signs of life.
    pub fn handle_timeout(&mut self, shared: &mut Shared, now: Duration) {
        if now < self.deadline() {
            return;
        }
        self.liveness.begin_check(&mut self.core, now);
        self.post_refused();
        if !self.core.clock.gives_up() {
            return;
        }
        let awaited = self.awaited(shared);
        self.liveness.check(&mut self.core, awaited);
        self.route(shared);
        self.liveness.probe_lost(&mut self.core);
    }

    /// The peers that anything waits for.
    fn awaited(&mut self, shared: &Shared) -> BTreeSet<usize> {
        let (core, mut awaited) = (&mut self.core, BTreeSet::new());
        let is_quiet = self.matching.await_peers(core, &mut awaited);
        self.liveness.patrol(core, shared, is_quiet, &mut awaited);
        awaited.extend(self.requests.values().map(|request| request.peer));
        self.one_sided.await_peers(&mut awaited);
        awaited.extend(self.offers.values().map(|offer| offer.peer));
        awaited.extend(self.pulls.keys().map(|(peer, _)| *peer));
        awaited.extend(self.sends.iter().map(|sending| sending.peer));
        awaited.extend(&self.waiting);
        awaited
    }

    /// Probes at once the peers that messages have not reached, unless a probe is in flight. A live
    /// peer stays awaited; one that has ended is lost when the reply arrives.
    pub fn probe_unreached(&mut self) {
        let sending = self.sends.iter().map(|sending| sending.peer);
        let unreached: BTreeSet<_> = sending.chain(self.waiting.iter().copied()).collect();
        self.liveness.probe_all(&mut self.core, unreached);
    }

    /// Posts a receive.
    pub fn receive(&mut self, shared: &mut Shared, tagged: bool, posted: Posted, multi: bool) {
        let core = &mut self.core;
        self.matching.receive(core, shared, tagged, (posted, multi));
        self.route(shared);
    }

    /// Looks for a message with a tag, and claims or discards it as `flags` ask; completes `Op`, or
    /// fails it if there is none.
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

    /// Bytes of room below which a multi-receive buffer is full.
    pub const fn least_room(&self) -> usize {
        self.matching.least_room()
    }

    /// Sets the bytes of room below which a multi-receive buffer is full.
    pub const fn set_least_room(&mut self, bytes: usize) {
        self.matching.set_least_room(bytes);
    }

    /// Handles the completion of a registration or closing.
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
            self.renewal
                .completed(core, shared, number, is_opened, ended);
        } else if number & names::AWAITED != 0 {
            self.registration.completed(core, number, is_opened, ended);
        } else if is_opened {
            self.ranges.registered(number, ended);
        }
    }

    /// Begins to open memory to peers and returns the address of its first byte there; `None` if
    /// NICs cannot reach it. [`Self::ended_registration`] has the handle.
    pub fn begin_opening(&mut self, bytes: &Bytes, access: u64) -> Option<u64> {
        self.registration.open(&mut self.core, bytes, access)
    }

    /// Begins a registration; the previous one is given up.
    #[cfg(test)]
    pub(super) fn begin_registration(&mut self, part: Local, access: Access) {
        self.registration.begin(&mut self.core, part, access);
    }

    /// Begins to close opened memory; no peer reaches it once [`Self::ended_registration`] is
    /// there.
    pub fn begin_closing(&mut self, handle: u16) {
        self.registration.close(&mut self.core, handle);
    }

    /// The outcome of the last registration or closing that was begun, and its handle.
    pub const fn ended_registration(&self) -> Option<(Status, u64)> {
        self.registration.ended()
    }

    /// The last registration is no longer waited for: if it succeeds later, it is undone.
    pub const fn leave_registration(&mut self) {
        self.registration.leave();
    }

    fn arrived(&mut self, shared: &mut Shared, slot: usize, bytes: usize) {
        let Some(len) = bytes.checked_sub(HEAD) else {
            return;
        };
        let at = slots::receive_at(slot);
        let mut head = [0; HEAD];
        let mut payload = vec![0; len.min(SLOT - HEAD)];
        self.core.segment.read(at, &mut head);
        self.core.segment.read(at + HEAD as u64, &mut payload);
        if let Some(head) = Head::parse(&head) {
            self.message(shared, head, payload);
        }
    }

    /// Posts rejected receives again: other programs may have left.
    pub(super) fn post_refused(&mut self) {
        for slot in std::mem::take(&mut self.refused) {
            self.core.outbox.push(Outgoing::Receive(slot));
        }
    }

    /// Whether nothing is left of what the program and its peers have asked for, except what is
    /// addressed to lost peers.
    pub fn is_drained(&self) -> bool {
        let peers = &self.core.peers.all;
        let mut sends = self.sends.iter();
        sends.all(|sending| peers[sending.peer].failed.is_some())
            && self.queued == 0
            && self.to_self.is_empty()
            && self.one_sided.len() == 0
    }

    /// Whether the NIC has ended.
    pub const fn is_gone(&self) -> bool {
        self.core.is_gone
    }

    /// Address of the endpoint.
    pub const fn address(&self) -> Address {
        self.core.address
    }

    /// The objects that it is bound to.
    pub const fn binds(&self) -> &Binds {
        &self.core.binds
    }

    /// The objects that it is bound to.
    pub const fn binds_mut(&mut self) -> &mut Binds {
        &mut self.core.binds
    }

    /// Sets how long a peer may leave probes unanswered; zero: for ever.
    pub const fn wait_for(&mut self, patience: Duration) {
        self.core.clock.wait_for(patience);
    }
}
