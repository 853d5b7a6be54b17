//! Messages to and from each peer: sequence numbers, acknowledgements, resends.
//!
//! A message is resent until it has arrived or its peer is lost. If a number never arrives, its
//! sender has therefore given up the receiver. A sender that is alive notifies the receiver. The
//! receiver awaits the sender of a missing number, so that it detects a dead sender.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use phitwire_client::door::{Local, Request, Status};

use super::action::Action;
use super::core::Core;
use super::outbox::Outgoing;
use super::parcel::{End, Parcel};
use super::peers::PerPeer;
use super::receives::Receives;
use super::shared::{Entry, Failure, Shared, Why};
use super::slots::{self, RECEIVES, SENDS, Slab};
use super::wire::{HEAD, Head, Kind, SLOT};

/// Maximum number of messages in flight to one endpoint.
const WIDEST: u64 = 16;

/// A message that the NIC holds.
#[derive(Debug)]
struct Sending {
    peer: usize,
    bytes: usize,
    end: End,
    /// Whether a try may have reached the peer.
    may_have_arrived: bool,
    /// Its sequence number, if it has one.
    seq: Option<u64>,
}

/// Messages to and from one peer.
#[derive(Debug, Default)]
struct Channel {
    /// Messages waiting to be sent.
    out: VecDeque<Parcel>,
    /// Sequence number of the next message.
    next: u64,
    /// Number of messages that the peer has acknowledged.
    acked: u64,
    /// Maximum number of messages in flight to the peer.
    window: u64,
    /// The next sequence number expected from it.
    expected: u64,
    /// Whether the peer requested an acknowledgement, or sent a duplicate and so may have missed
    /// one.
    wants_ack: bool,
    /// Messages that the peer's NIC has, and whose operations await its acknowledgement, by number.
    undelivered: BTreeMap<u64, End>,
    /// Messages that arrived early.
    held: BTreeMap<u64, (Head, Vec<u8>)>,
    /// Whether the peer is in `Session::waiting`.
    is_waiting: bool,
}

/// The messages of an endpoint.
#[derive(Debug)]
pub struct Session {
    channels: PerPeer<Channel>,
    /// Messages to the endpoint itself.
    to_self: VecDeque<Parcel>,
    sends: Slab<Sending>,
    /// Peers to which messages could not be sent yet.
    waiting: Vec<usize>,
    /// Peers that may be owed an acknowledgement.
    owed: Vec<usize>,
    /// Messages waiting to be sent, to all peers.
    queued: usize,
    /// Maximum number of messages in flight to a peer, from its next message on.
    window: u64,
    pub(super) receives: Receives,
}

impl Session {
    /// No messages yet; all receives are posted.
    pub(super) fn new(core: &mut Core, receives: usize) -> Self {
        Self {
            receives: Receives::new(core, receives),
            channels: PerPeer::default(),
            to_self: VecDeque::new(),
            sends: Slab::new(SENDS),
            waiting: Vec::new(),
            owed: Vec::new(),
            queued: 0,
            window: 2,
        }
    }

    /// Shares the receives of each peer among this many programs.
    pub(super) fn share_among(&mut self, programs: usize) {
        self.window = ((self.receives.count() / programs) as u64).clamp(2, WIDEST);
    }

    /// Number of messages waiting to be sent.
    pub(super) const fn queued(&self) -> usize {
        self.queued
    }

    /// Adds the peers that messages have not reached.
    pub(super) fn await_unreached(&self, awaited: &mut BTreeSet<usize>) {
        awaited.extend(self.sends.iter().map(|sending| sending.peer));
        awaited.extend(&self.waiting);
    }

    /// Adds the peers that messages have not reached, those from which a message is missing, and
    /// those that owe an acknowledgement.
    pub(super) fn await_peers(&self, awaited: &mut BTreeSet<usize>) {
        self.await_unreached(awaited);
        let channels = self.channels.iter().enumerate();
        let missing = channels
            .filter(|(_, channel)| !(channel.held.is_empty() && channel.undelivered.is_empty()));
        awaited.extend(missing.map(|(peer, _)| peer));
    }

    /// Whether all messages have arrived, except those to lost peers.
    pub(super) fn is_drained(&self, core: &Core) -> bool {
        let is_lost = |sending: &Sending| core.peers[sending.peer].failed.is_some();
        self.queued == 0 && self.to_self.is_empty() && self.sends.iter().all(is_lost)
    }

    /// Unfinished messages, by kind.
    #[cfg(test)]
    pub(super) fn left(&self) -> [(&'static str, usize); 5] {
        let held = self.channels.iter().map(|channel| channel.held.len()).sum();
        let channels = self.channels.iter();
        let undelivered = channels.map(|channel| channel.undelivered.len()).sum();
        [
            ("undelivered", undelivered),
            ("sends", self.sends.len()),
            ("queued", self.queued + self.to_self.len()),
            ("held", held),
            ("owed", self.owed.len()),
        ]
    }

    /// Checks the invariants between the fields.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let queued = self.channels.iter().map(|channel| channel.out.len()).sum();
        assert_eq!(self.queued, queued, "each queued message is counted");
        let waiting = self.channels.iter().filter(|channel| channel.is_waiting);
        assert_eq!(self.waiting.len(), waiting.count(), "a peer waits once");
        self.receives.check();
        for channel in self.channels.iter() {
            assert!(
                channel.acked <= channel.next,
                "acknowledged messages were sent"
            );
            assert!(channel.window <= WIDEST, "a peer has receives for it");
            assert!(
                (channel.held.len() as u64) < WIDEST,
                "few messages are held"
            );
            let first = channel.held.keys().next();
            assert!(
                first.is_none_or(|first| *first > channel.expected),
                "only early messages are held"
            );
        }
    }

    /// Sends a message as soon as the window and a free slot allow.
    pub(super) fn post(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        peer: usize,
        parcel: Parcel,
    ) {
        if let Some(failure) = core.peers[peer].failed {
            return never_sent(core, shared, parcel.end, failure);
        }
        self.channels.of(peer).out.push_back(parcel);
        self.queued += 1;
        self.send_on(core, shared, peer);
    }

    /// Completes the announcement of a transfer, so that it can be sent.
    pub(super) fn announce(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        peer: usize,
        head: Head,
    ) {
        let mut out = self.channels.of(peer).out.iter_mut();
        let is_its = |parcel: &&mut Parcel| matches!(parcel.end, End::Offer(id) if id == head.id);
        if let Some(parcel) = out.find(is_its) {
            debug_assert!(!parcel.is_ready, "a transfer is announced once");
            parcel.head = head;
            parcel.is_ready = true;
        }
        self.send_on(core, shared, peer);
    }

    fn send_on(&mut self, core: &mut Core, shared: &mut Shared, peer: usize) {
        let is_self = core.peers[peer].is_self;
        loop {
            let to = self.channels.of(peer);
            debug_assert!(to.acked <= to.next, "acknowledged messages were sent");
            let in_flight = to.next - to.acked;
            // Shrink only when one of the next messages requests an acknowledgement.
            if to.window <= self.window || in_flight <= self.window / 2 {
                to.window = self.window;
            }
            let Some(first) = to.out.front() else {
                return;
            };
            let is_open = is_self || in_flight < to.window;
            if !is_open || self.sends.room() == 0 || !first.is_ready {
                if !to.is_waiting {
                    to.is_waiting = true;
                    self.waiting.push(peer);
                }
                return;
            }
            let Some(parcel) = to.out.pop_front() else {
                return;
            };
            debug_assert!(self.queued > 0, "it was counted");
            self.queued -= 1;
            if is_self {
                let end = parcel.end;
                self.to_self.push_back(parcel);
                if !end.awaits_delivery() {
                    has_arrived(core, shared, end);
                }
                continue;
            }
            let head = Head {
                seq: to.next,
                wants_ack: in_flight >= to.window / 2 || parcel.end.awaits_delivery(),
                ..parcel.head
            };
            to.next += 1;
            self.launch(core, peer, head, &parcel.payload, parcel.end);
        }
    }

    /// Writes a message into a free slot and sends it.
    fn launch(&mut self, core: &mut Core, peer: usize, head: Head, payload: &[u8], end: End) {
        debug_assert!(HEAD + payload.len() <= SLOT, "a message fits its slot");
        let to = self.channels.of(peer);
        let head = Head {
            from: core.address,
            to_incarnation: core.peers[peer].address.incarnation,
            ack: to.expected,
            ..head
        };
        to.wants_ack = false;
        let sending = Sending {
            peer,
            bytes: HEAD + payload.len(),
            end,
            may_have_arrived: false,
            seq: (!matches!(head.kind, Kind::Credit | Kind::Lost)).then_some(head.seq),
        };
        let slot = self
            .sends
            .insert(sending)
            .expect("there is room: the caller checked");
        let at = slots::send_at(slot);
        core.segment.write(at, &head.emit());
        core.segment.write(at + HEAD as u64, payload);
        core.outbox.push(Outgoing::Send(slot));
    }

    /// The request of a message; `None` if it has ended.
    pub(super) fn request(&self, core: &Core, slot: usize) -> Option<Request<'static>> {
        let sending = self.sends.get(slot)?;
        let to = core.peers[sending.peer].address;
        let from = Local {
            offset: slots::send_at(slot),
            bytes: sending.bytes as u64,
        };
        Some(Request::Send {
            processor: to.processor,
            member: to.member,
            from,
        })
    }

    /// Processes the endpoint's messages to itself. Returns whether there were any.
    pub(super) fn take_own(&mut self, core: &mut Core) -> bool {
        if self.to_self.is_empty() {
            return false;
        }
        let own = core.peers.own();
        for parcel in self.to_self.drain(..) {
            let arrived = Action::Arrived(own, parcel.head, parcel.payload);
            core.actions.push_back(arrived);
            if parcel.end.awaits_delivery() {
                core.actions.push_back(Action::Delivered(parcel.end));
            }
        }
        true
    }

    /// Sends waiting messages that can be sent now.
    pub(super) fn send_waiting(&mut self, core: &mut Core, shared: &mut Shared) {
        for peer in std::mem::take(&mut self.waiting) {
            self.channels.of(peer).is_waiting = false;
            self.send_on(core, shared, peer);
        }
    }

    /// Acknowledges messages before their senders have to wait.
    pub(super) fn pay_owed(&mut self, core: &mut Core) {
        let mut owed = std::mem::take(&mut self.owed);
        owed.retain(|&peer| {
            if !self.channels.of(peer).wants_ack || core.peers[peer].failed.is_some() {
                return false;
            }
            if self.sends.room() == 0 {
                return true;
            }
            self.launch(core, peer, Head::default(), &[], End::Nothing);
            false
        });
        debug_assert!(self.owed.is_empty(), "acknowledgements owe none");
        self.owed = owed;
    }

    /// Notifies a lost peer that is alive.
    pub(super) fn notify(&mut self, core: &mut Core, peer: usize) {
        let is_under_way = |sending: &Sending| matches!(sending.end, End::Notice(to) if to == peer);
        if self.sends.room() > 0 && !self.sends.iter().any(is_under_way) {
            let head = Head {
                kind: Kind::Lost,
                ..Head::default()
            };
            self.launch(core, peer, head, &[], End::Notice(peer));
        }
    }

    /// Handles the completion of a message.
    pub(super) fn completed(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        slot: usize,
        status: Status,
    ) {
        let Some(sending) = self.sends.get_mut(slot) else {
            return;
        };
        let (peer, end, seq) = (sending.peer, sending.end, sending.seq);
        let to = self.channels.of(peer);
        let is_acked = to.has_acked(seq);
        if status == Status::Done || is_acked {
            if status == Status::Done {
                core.peers.heard(peer);
            }
            self.sends.remove(slot);
            if let Some(seq) = seq.filter(|_| end.awaits_delivery() && !is_acked) {
                to.undelivered.insert(seq, end);
                return;
            }
            return has_arrived(core, shared, end);
        }
        sending.may_have_arrived |= status.is_unknown();
        let may_have_arrived = sending.may_have_arrived;
        // The peer ignores duplicates, so any message may be resent; probes detect whether it is
        // alive. `NoHandle` means that the peer's program ended, or gave up, when half of the
        // message had arrived. Its earlier messages are valid, and may be unread here.
        let again = matches!(
            status,
            Status::NoReceive
                | Status::Busy
                | Status::NoHandle
                | Status::Damaged
                | Status::Aborted
                | Status::TimedOut
                | Status::DamagedAnswer
        );
        if again && core.peers[peer].failed.is_none() {
            return core.outbox.push(Outgoing::Send(slot));
        }
        self.sends.remove(slot);
        let why = match may_have_arrived {
            true => Why::Unknown,
            false => Why::Unreachable,
        };
        let errno = match why {
            Why::Unknown => libc::ETIMEDOUT,
            _ => libc::EHOSTUNREACH,
        };
        let failure = Failure { errno, why };
        never_sent(core, shared, end, failure);
        core.actions.push_back(Action::Lose(peer, failure));
    }

    /// Handles the loss of a peer: messages to it fail, except those that it has acknowledged.
    /// Those in flight may have arrived.
    pub(super) fn lose(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        peer: usize,
        (lost, unknown): (Failure, Failure),
    ) {
        let channel = self.channels.of(peer);
        channel.held.clear();
        let unsent = std::mem::take(&mut channel.out);
        debug_assert!(self.queued >= unsent.len(), "they were counted");
        self.queued -= unsent.len();
        for parcel in unsent {
            never_sent(core, shared, parcel.end, lost);
        }
        for end in std::mem::take(&mut channel.undelivered).into_values() {
            never_sent(core, shared, end, unknown);
        }
        // Keep the slots: the NIC holds the messages, or will take their commands later.
        for sending in self.sends.iter_mut().filter(|sending| sending.peer == peer) {
            let end = std::mem::replace(&mut sending.end, End::Nothing);
            match channel.has_acked(sending.seq) {
                true => has_arrived(core, shared, end),
                false => never_sent(core, shared, end, unknown),
            }
        }
    }

    /// Handles the end of the NIC: messages in flight fail, except those that were acknowledged.
    pub(super) fn end_all(&mut self, core: &mut Core, shared: &mut Shared, failure: Failure) {
        debug_assert!(core.is_gone, "messages may still arrive");
        let sends = std::mem::replace(&mut self.sends, Slab::new(SENDS));
        for sending in sends.into_all() {
            match self.channels.of(sending.peer).has_acked(sending.seq) {
                true => has_arrived(core, shared, sending.end),
                false => never_sent(core, shared, sending.end, failure),
            }
        }
    }

    /// Handles a receive that the NIC has filled, or rejected.
    pub(super) fn received(
        &mut self,
        core: &mut Core,
        slot: usize,
        (processor, bytes): (u16, Option<usize>),
    ) {
        debug_assert!(slot < RECEIVES, "the NIC returns our names");
        if let Some(len) = bytes.and_then(|bytes| bytes.checked_sub(HEAD)) {
            let at = slots::receive_at(slot);
            let mut head = [0; HEAD];
            let mut payload = vec![0; len.min(SLOT - HEAD)];
            core.segment.read(at, &mut head);
            core.segment.read(at + HEAD as u64, &mut payload);
            if let Some(head) = Head::parse(&head) {
                self.message(core, processor, head, payload);
            }
        }
        core.outbox.push(Outgoing::Receive(slot));
    }

    /// Handles a message that, according to the NIC, comes from this processor.
    pub(super) fn message(
        &mut self,
        core: &mut Core,
        processor: u16,
        head: Head,
        payload: Vec<u8>,
    ) {
        let is_forged = head.from.processor != processor || head.from == core.address;
        if is_forged || head.to_incarnation != core.address.incarnation {
            return;
        }
        let Some(peer) = core.peers.number_of_sender(head.from) else {
            return;
        };
        core.peers.heard(peer);
        let is_lost = core.peers[peer].failed.is_some();
        let from = self.channels.of(peer);
        if head.ack <= from.next {
            from.acked = from.acked.max(head.ack);
            while let Some(first) = from.undelivered.first_entry()
                && *first.key() < from.acked
            {
                core.actions.push_back(Action::Delivered(first.remove()));
            }
        }
        match head.kind {
            Kind::Credit => return,
            Kind::Lost => return core.actions.push_back(Action::LostBy(peer)),
            _ if is_lost => core.actions.push_back(Action::LostLives(peer)),
            _ => {}
        }
        if head.seq > from.expected {
            // Messages from a lost peer may have a gap that is never filled.
            if head.seq - from.expected < WIDEST && !is_lost {
                from.held.insert(head.seq, (head, payload));
            }
            return;
        }
        if head.seq < from.expected {
            from.wants_ack = true;
        } else {
            from.take_in(core, peer, head, payload);
            while let Some((head, payload)) = from.held.remove(&from.expected) {
                from.take_in(core, peer, head, payload);
            }
        }
        if !self.owed.contains(&peer) {
            self.owed.push(peer);
        }
    }
}

impl Channel {
    /// Whether the peer has acknowledged the message with this number: it has processed the
    /// message, whatever the NIC reports.
    fn has_acked(&self, seq: Option<u64>) -> bool {
        seq.is_some_and(|seq| seq < self.acked)
    }

    /// Accepts the next message.
    fn take_in(&mut self, core: &mut Core, peer: usize, head: Head, payload: Vec<u8>) {
        debug_assert_eq!(head.seq, self.expected, "messages are accepted in order");
        self.expected += 1;
        self.wants_ack |= head.wants_ack;
        core.actions.push_back(Action::Arrived(peer, head, payload));
    }
}

/// Ends the operation of a message that has arrived.
pub(super) fn has_arrived(core: &mut Core, shared: &mut Shared, end: End) {
    match end {
        End::Op(op, len) => {
            let entry = Entry {
                len,
                ..Entry::default()
            };
            shared.done(&core.binds, &op, entry, 0);
        }
        End::Notice(peer) => core.actions.push_back(Action::Notified(peer)),
        End::Nothing | End::Request(_) | End::Offer(_) => {}
    }
}

fn never_sent(core: &mut Core, shared: &mut Shared, end: End, failure: Failure) {
    match end {
        End::Nothing => {}
        End::Op(op, len) => {
            let entry = Entry {
                len,
                tag: op.tag,
                ..Entry::default()
            };
            shared.failed(&core.binds, &op, entry, failure, 0);
        }
        End::Request(id) => core.actions.push_back(Action::RequestFailed(id, failure)),
        End::Offer(id) => core.actions.push_back(Action::OfferFailed(id, failure)),
        // The next probe that is answered sends another notice.
        End::Notice(_) => {}
    }
}
