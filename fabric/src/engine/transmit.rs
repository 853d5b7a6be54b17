//! Messages in flight: sequence numbers, acknowledgements, resends.

use std::time::Duration;

use phitwire_client::door::Status;

use super::endpoint::Endpoint;
use super::outbox::Outgoing;
use super::peers::{End, Parcel};
use super::shared::{Entry, Failure, Op, Shared, Why};
use super::slots::{self, RECEIVES};
use super::wire::{HEAD, Head, Kind};

/// Maximum number of messages in flight to one endpoint.
const WIDEST: u64 = 16;
/// Time limit for retries of a message for which the peer has no receive, if silent peers are not
/// given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Tries without a reply, and more while patience lasts: while routes change, a network drops
/// what is in flight.
const TRIES: u32 = 6;
/// Maximum number of messages held until earlier ones arrive.
const MOST_HELD: usize = 1024;
/// Maximum number of operations that wait or are in flight.
pub const MOST_OPERATIONS: usize = 1024;

/// A message that the NIC holds.
#[derive(Debug)]
pub struct Sending {
    pub(super) peer: usize,
    pub(super) bytes: usize,
    end: End,
    since: Duration,
    tries: u32,
}

impl Endpoint {
    /// The peer with this number in the address vector.
    pub(super) fn peer_of(&mut self, shared: &Shared, number: u64, op: &Op) -> Result<usize, i32> {
        let vector = self
            .core
            .binds
            .vector
            .and_then(|slot| shared.vectors.get(slot));
        let vector = vector.ok_or(libc::EINVAL)?;
        let address = vector.get(number).ok_or(libc::EINVAL)?;
        let share = RECEIVES / (vector.len() + 1);
        self.window = (share as u64).clamp(2, WIDEST);
        if self.core.is_gone {
            return Err(libc::ENETDOWN);
        }
        if self.queued + self.requests.len() + self.offers.len() + self.one_sided.len()
            >= MOST_OPERATIONS
        {
            return Err(libc::EAGAIN);
        }
        let peer = self.core.peers.number(address);
        match self.core.peers.all[peer].failed {
            // Fail now: an injected message cannot report a failure later.
            Some(failure) if op.is_injected() => Err(failure.errno),
            _ => Ok(peer),
        }
    }

    /// Sends a message as soon as the window and a free slot allow.
    pub(super) fn post(&mut self, shared: &mut Shared, peer: usize, parcel: Parcel) {
        let to = &mut self.core.peers.all[peer];
        if let Some(failure) = to.failed {
            return self.never_sent(shared, parcel.end, failure);
        }
        to.out.push_back(parcel);
        self.queued += 1;
        self.send_on(shared, peer);
    }

    /// Sends a message without data whose end needs no action.
    pub(super) fn tell(&mut self, shared: &mut Shared, peer: usize, head: Head) {
        let parcel = Parcel {
            head,
            payload: Vec::new(),
            end: End::Nothing,
        };
        self.post(shared, peer, parcel);
    }

    fn send_on(&mut self, shared: &mut Shared, peer: usize) {
        loop {
            let to = &mut self.core.peers.all[peer];
            let on_their_way = to.next - to.acked;
            // Shrink only where one of the next messages requests an acknowledgement.
            if to.window <= self.window || on_their_way <= self.window / 2 {
                to.window = self.window;
            }
            let is_open = to.is_self || on_their_way < to.window;
            if to.out.is_empty() {
                return;
            }
            if !is_open || self.sends.room() == 0 {
                if !to.is_waiting {
                    to.is_waiting = true;
                    self.waiting.push(peer);
                }
                return;
            }
            let offer = to.out.front().and_then(|parcel| match parcel.end {
                End::Offer(id) => Some(id),
                _ => None,
            });
            if offer.is_some_and(|id| !self.is_announceable(id)) {
                let to = &mut self.core.peers.all[peer];
                if !to.is_waiting {
                    to.is_waiting = true;
                    self.waiting.push(peer);
                }
                return;
            }
            let to = &mut self.core.peers.all[peer];
            let Some(mut parcel) = to.out.pop_front() else {
                return;
            };
            self.queued -= 1;
            let (is_self, next, window) = (to.is_self, to.next, to.window);
            if let End::Offer(id) = parcel.end {
                parcel.head = self.announcement(id).unwrap_or(parcel.head);
            }
            if is_self {
                let end = parcel.end;
                self.to_self.push_back(parcel);
                self.has_arrived(shared, end);
                continue;
            }
            let head = Head {
                seq: next,
                wants_ack: on_their_way >= window / 2,
                ..parcel.head
            };
            self.core.peers.all[peer].next += 1;
            self.launch(peer, head, &parcel.payload, parcel.end);
        }
    }

    /// Writes a message into a free slot and sends it.
    pub(super) fn launch(&mut self, peer: usize, head: Head, payload: &[u8], end: End) {
        let to = &mut self.core.peers.all[peer];
        let head = Head {
            from: self.core.address,
            to_incarnation: to.address.incarnation,
            ack: to.expected,
            ..head
        };
        to.wants_ack = false;
        let sending = Sending {
            peer,
            bytes: HEAD + payload.len(),
            end,
            since: self.core.clock.now(),
            tries: 0,
        };
        let slot = self
            .sends
            .insert(sending)
            .expect("there is room: looked at before");
        let at = slots::send_at(slot);
        self.core.segment.write(at, &head.emit());
        self.core.segment.write(at + HEAD as u64, payload);
        self.core.outbox.push(Outgoing::Send(slot));
    }

    pub(super) fn send_waiting(&mut self, shared: &mut Shared) {
        for peer in std::mem::take(&mut self.waiting) {
            self.core.peers.all[peer].is_waiting = false;
            self.send_on(shared, peer);
        }
    }

    /// Acknowledges messages before their senders have to wait.
    pub(super) fn pay_owed(&mut self) {
        let mut owed = std::mem::take(&mut self.owed);
        owed.retain(|&peer| {
            let to = &self.core.peers.all[peer];
            if !to.wants_ack || to.failed.is_some() {
                return false;
            }
            if self.sends.room() == 0 {
                return true;
            }
            self.launch(peer, Head::default(), &[], End::Nothing);
            false
        });
        self.owed.append(&mut owed);
    }

    /// Handles the completion of a message.
    pub(super) fn sent(&mut self, shared: &mut Shared, slot: usize, status: Status) {
        let Some(sending) = self.sends.get_mut(slot) else {
            return;
        };
        let (peer, end) = (sending.peer, sending.end);
        if status == Status::Done {
            self.core.peers.heard(peer);
            self.sends.remove(slot);
            return self.has_arrived(shared, end);
        }
        // The peer ignores duplicates, so any message may be resent.
        let again = match status {
            // NoHandle: the program there ended, or gave up, when half of the message had arrived.
            // Its earlier messages count, and may be unread here; a probe detects whether it ended.
            // A live peer may take long to post receives; probes tell it from an ended one.
            Status::NoReceive | Status::Busy | Status::NoHandle => {
                self.core.clock.gives_up() || self.core.clock.now() - sending.since < PATIENCE
            }
            Status::Damaged | Status::Aborted | Status::TimedOut | Status::DamagedAnswer => {
                sending.tries += 1;
                sending.tries < TRIES || self.core.clock.is_patient(sending.since)
            }
            _ => false,
        };
        if again && self.core.peers.all[peer].failed.is_none() {
            return self.core.outbox.push(Outgoing::Send(slot));
        }
        self.sends.remove(slot);
        let why = match status.is_unknown() {
            true => Why::Unknown,
            false => Why::Unreachable,
        };
        let errno = match why {
            Why::Unknown => libc::ETIMEDOUT,
            _ => libc::EHOSTUNREACH,
        };
        let failure = Failure { errno, why };
        self.never_sent(shared, end, failure);
        self.lose(shared, peer, failure);
    }

    fn has_arrived(&mut self, shared: &mut Shared, end: End) {
        match end {
            End::Op(op, len) => {
                let entry = Entry {
                    len,
                    ..Entry::default()
                };
                shared.done(&self.core.binds, &op, entry, 0);
            }
            End::Notice(peer) => self.liveness.notified(peer),
            End::Nothing | End::Request(_) | End::Offer(_) => {}
        }
    }

    fn never_sent(&mut self, shared: &mut Shared, end: End, failure: Failure) {
        match end {
            End::Nothing => {}
            End::Op(op, len) => {
                let entry = Entry {
                    len,
                    tag: op.tag,
                    ..Entry::default()
                };
                shared.failed(&self.core.binds, &op, entry, failure, 0);
            }
            End::Request(id) => self.request_failed(shared, id, failure),
            End::Offer(id) => self.offer_failed(shared, id, failure),
            // The next probe that is answered sends another one.
            End::Notice(_) => {}
        }
    }

    /// Tells a lost peer that lives that it is lost.
    pub(super) fn notify(&mut self, peer: usize) {
        if self.sends.room() > 0 {
            let head = Head {
                kind: Kind::Lost,
                ..Head::default()
            };
            self.launch(peer, head, &[], End::Notice(peer));
        }
    }

    /// Marks a peer as lost: everything that awaits it fails.
    pub(super) fn lose(&mut self, shared: &mut Shared, peer: usize, failure: Failure) {
        let to = &mut self.core.peers.all[peer];
        if to.failed.is_some() {
            return;
        }
        let lost = Failure {
            errno: libc::EHOSTUNREACH,
            why: match failure.why {
                Why::Departed => Why::Departed,
                _ => Why::Unreachable,
            },
        };
        to.failed = Some(lost);
        let unsent = std::mem::take(&mut to.out);
        self.queued -= unsent.len();
        for parcel in unsent {
            self.never_sent(shared, parcel.end, lost);
        }
        // Operations sent without a reply may have been carried out.
        let unknown = Failure {
            why: Why::Unknown,
            ..failure
        };
        for slot in 0..slots::SENDS {
            // Keep the slot: the NIC still holds the message.
            if let Some(sending) = self.sends.get_mut(slot)
                && sending.peer == peer
            {
                let end = std::mem::replace(&mut sending.end, End::Nothing);
                self.never_sent(shared, end, unknown);
            }
        }
        self.lose_requests(shared, peer, unknown);
        self.lose_transfers(shared, peer, unknown);
        self.one_sided.lose(&mut self.core, shared, peer);
        self.renewal.lose(peer);
        self.matching.lose(&self.core, shared, peer, lost);
    }

    /// The NIC has ended: everything fails.
    pub fn handle_end(&mut self, shared: &mut Shared) {
        self.core.is_gone = true;
        let failure = Failure {
            errno: libc::ENETDOWN,
            why: Why::Unknown,
        };
        for slot in 0..slots::SENDS {
            if let Some(sending) = self.sends.remove(slot) {
                self.never_sent(shared, sending.end, failure);
            }
        }
        self.one_sided.end_all(&self.core, shared, failure);
        for peer in 0..self.core.peers.all.len() {
            self.lose(shared, peer, failure);
        }
        let why = Why::Plain;
        let failure = Failure { why, ..failure };
        self.matching.end(&self.core, shared, failure);
        self.route(shared);
    }

    /// A message arrived.
    pub(super) fn message(&mut self, shared: &mut Shared, head: Head, payload: Vec<u8>) {
        if head.to_incarnation != self.core.address.incarnation {
            return;
        }
        let peer = self.core.peers.number(head.from);
        self.core.peers.heard(peer);
        let from = &mut self.core.peers.all[peer];
        if head.ack <= from.next {
            from.acked = from.acked.max(head.ack);
        }
        match head.kind {
            Kind::Credit => return,
            Kind::Lost => return self.liveness.lost_by(&mut self.core, peer),
            _ => {}
        }
        if self.core.peers.all[peer].failed.is_some() {
            self.liveness.lost_lives(&mut self.core, peer);
        }
        let from = &mut self.core.peers.all[peer];
        if head.seq < from.expected {
            from.wants_ack = true;
        } else if head.seq > from.expected {
            // What comes from a lost peer may have a gap for ever.
            if from.held.len() < MOST_HELD && from.failed.is_none() {
                from.held.insert(head.seq, (head, payload));
            }
            return;
        } else {
            from.expected += 1;
            from.wants_ack |= head.wants_ack;
            self.take_in(shared, peer, head, payload);
            loop {
                let from = &mut self.core.peers.all[peer];
                let Some((head, payload)) = from.held.remove(&from.expected) else {
                    break;
                };
                from.expected += 1;
                from.wants_ack |= head.wants_ack;
                self.take_in(shared, peer, head, payload);
            }
        }
        if !self.owed.contains(&peer) {
            self.owed.push(peer);
        }
    }
}
