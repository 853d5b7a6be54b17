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

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use phitwire_client::door::{Completion, Status};

use super::action::Action;
use super::core::{Core, Segment};
use super::direct::Direct;
use super::liveness::Lookout;
use super::matching::{Matching, Posted};
use super::outbox::{Outgoing, names};
use super::peers::Parcel;
use super::reach::{Awaited, Ranges};
use super::renewal::Renewals;
use super::requests::Request;
use super::shared::{Binds, Shared};
use super::slots::{self, FETCHES, RECEIVES, SENDS, Slab};
use super::transfers::{Fetch, Offer, Pull};
use super::transmit::Sending;
use super::wire::{Address, HEAD, Head, SLOT};

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
    pub(super) direct: Direct,
    /// Peers whose atomic request is being carried out, and their next ones.
    pub(super) serving: HashMap<usize, VecDeque<(Head, Vec<u8>)>>,
    pub(super) ranges: Ranges,
    pub(super) awaited: Awaited,
    pub(super) renewals: Renewals,
    pub(super) lookout: Lookout,
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
            direct: Direct::default(),
            serving: HashMap::new(),
            ranges: Ranges::default(),
            awaited: Awaited::default(),
            renewals: Renewals::default(),
            lookout: Lookout::default(),
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
                    names::PROBE => self.answered(shared, slot, status),
                    names::DIRECT => self.ended_directly(shared, slot, (status, word)),
                    names::REGISTER | names::DEREGISTER => self.registered(shared, completion),
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
                Action::Discard(peer, head) => self.took_all(shared, peer, &head, false),
            }
        }
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
            && self.direct.wholes.is_empty()
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
