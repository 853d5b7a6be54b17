//! The block transfer engine: long transfers between local and remote memory.
//!
//! XC white paper, "Remote Memory Access": descriptors of up to 4 GB are queued and executed
//! asynchronously, as puts and gets at a target address or as sends to a receive posted there. Four
//! channels work concurrently.
//!
//! A transfer is cut at multiples of 64 bytes at the target, so that all pieces but the first and
//! the last are full packets. A channel starts its next transfer when the last piece is sent, not
//! when its response arrives, so that short transfers do not cost a round trip each. A send leaves
//! its channel after its announcement; once the target accepts it, its data takes turns with the
//! channels. Transfers complete in any order, even on one channel, unless fenced. When a channel's
//! transfer may send nothing more to its [target](super::transfer_targets) for now, the channel
//! continues with a transfer to another target. If a target does not respond for a whole timeout,
//! the transfers queued for it fail.

mod failing;

use std::collections::{BTreeSet, VecDeque};

use phitwire_framing::aries::flit::NodeId;
use phitwire_framing::aries::packet::{MAX_DATA, Status};

use super::amo_cache::CachedMemory;
use super::block_transfer::{
    Active, BlockError, BlockOperation, BlockTransfer, MAX_TRANSFER_BYTES, Queued, Stage,
};
use super::completion::Failure;
use super::domain::MAX_DOMAIN_BYTES;
use super::outstanding::{Pending, RequestOrigin, Share, TransferStep};
use super::receive::{ANNOUNCE, MAX_ARRIVING};
use super::requester::{Ask, Requester};
use super::transaction::Transactions;
use super::transfer_slots::Slots;
use super::transfer_targets::Targets;
use phitwire::nic::memory::Memory;
use phitwire::time::{Duration, Time};

/// Concurrent block transfers (XC white paper, "Remote Memory Access").
pub const CHANNELS: usize = 4;
pub const MAX_QUEUED_TRANSFERS: usize = 256;
/// Maximum number of open sends. A target has room for `MAX_ARRIVING` messages, including those
/// from other nodes.
const MAX_SENDS: usize = MAX_ARRIVING * 3 / 4;
/// Maximum number of sends of one owner without a receive, so that others have room even if these
/// receives are never posted.
const MAX_UNTAKEN_OF_ONE: u8 = 16;
/// The same limit while no send waits to be announced again: all announcements are still in flight.
const MAX_ANNOUNCED_OF_ONE: u8 = 32;
/// Participants of the round robin: the channels, and the sends that have left theirs.
const LANES: usize = CHANNELS + 1;
/// Transfers queue no packets while this many requests wait for the link, so that single requests
/// do not wait behind a megabyte.
const QUEUE_AHEAD: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferOwner {
    /// A client, or the node itself (0), which gets a completion.
    User(u8),
    Run,
}

impl TransferOwner {
    /// An index for sends; runs have none.
    const fn index(self) -> usize {
        match self {
            Self::User(number) => number as usize,
            Self::Run => 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransferEnded {
    pub owner: TransferOwner,
    pub transfer: BlockTransfer,
    pub channel: u8,
    pub queued: Time,
    pub bytes: u64,
    pub failure: Option<Failure>,
    /// Whether no packet of the transfer was sent.
    pub unsent: bool,
}

#[derive(Debug, Default)]
struct Channel {
    queue: VecDeque<Queued>,
    /// Slot of the transfer being sent. If it fails, the channel waits for its end.
    sending: Option<u8>,
}

#[derive(Debug)]
pub(crate) struct BlockTransferEngine {
    channels: [Channel; CHANNELS],
    slots: Slots,
    /// Slots with only the last packet left to send, because all other packets have their
    /// responses.
    ending: VecDeque<u8>,
    /// Slots of sends that have left their channel and have data to send, in turn order.
    taken: VecDeque<u8>,
    /// Slots of sends that will be announced again.
    waiting: Vec<u8>,
    /// Slots that left their channel until their target has room.
    parked: Vec<u8>,
    /// Slots whose source bytes can no longer be read.
    unread: Vec<u8>,
    sends: usize,
    /// Number of open sends without a receive, by owner.
    untaken_of: [u8; 1 << u8::BITS],
    turn: usize,
    serial: u64,
    /// Targets of queued and open transfers. They share the part of the outstanding packets that
    /// transfers may use; the rest is reserved for single requests.
    targets: Targets,
    /// Serial numbers of queued and open transfers.
    open: BTreeSet<u64>,
    first_wait: Duration,
    attempts: u32,
    ended: VecDeque<TransferEnded>,
    /// When the host passes the next transfer to an idle channel.
    begins: Option<Time>,
}

impl BlockTransferEngine {
    pub(crate) fn new(max_outstanding: u32, first_wait: Duration, attempts: u32) -> Self {
        Self {
            channels: Default::default(),
            slots: Slots::default(),
            ending: VecDeque::new(),
            taken: VecDeque::new(),
            waiting: Vec::new(),
            parked: Vec::new(),
            unread: Vec::new(),
            sends: 0,
            untaken_of: [0; 1 << u8::BITS],
            turn: 0,
            serial: 0,
            targets: Targets::new(
                (max_outstanding - max_outstanding.div_ceil(8)).max(1),
                max_outstanding / 16,
            ),
            open: BTreeSet::new(),
            first_wait,
            attempts,
            ended: VecDeque::new(),
            begins: None,
        }
    }

    pub(crate) fn queue(
        &mut self,
        now: Time,
        (owner, channel): (TransferOwner, usize),
        transfer: BlockTransfer,
        node: NodeId,
        memory: &Memory,
    ) -> Result<(), BlockError> {
        let queue = &mut self
            .channels
            .get_mut(channel)
            .ok_or(BlockError::Channel(channel))?
            .queue;
        if queue.len() == MAX_QUEUED_TRANSFERS {
            return Err(BlockError::QueueFull);
        }
        let BlockTransfer { local, length, .. } = transfer;
        if length > MAX_TRANSFER_BYTES {
            return Err(BlockError::Length(length));
        }
        if !memory.contains(local, length) {
            return Err(BlockError::LocalBounds);
        }
        if let BlockOperation::Put { offset, .. } | BlockOperation::Get { offset, .. } =
            transfer.operation
            && offset.saturating_add(length) > MAX_DOMAIN_BYTES
        {
            return Err(BlockError::Offset);
        }
        self.serial += 1;
        queue.push_back(Queued {
            owner,
            transfer,
            node,
            target: self.targets.enter(node),
            serial: self.serial,
            queued: now,
            begins: now,
        });
        self.open.insert(self.serial);
        Ok(())
    }

    /// Delays the transfer that was queued last, on `channel`: the host passes it at `begins`.
    pub(crate) fn delay_last(&mut self, channel: usize, begins: Time) {
        if let Some(last) = self.channels[channel].queue.back_mut() {
            last.begins = begins;
        }
    }

    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        let has_room = |channel: &Channel| channel.queue.len() < MAX_QUEUED_TRANSFERS;
        self.channels.iter().any(has_room)
    }

    /// The channel with the shortest queue, if that has room.
    pub(crate) fn idlest(&self) -> Option<usize> {
        let queued = |&channel: &usize| self.channels[channel].queue.len();
        let idlest = (0..CHANNELS).min_by_key(queued)?;
        (queued(&idlest) < MAX_QUEUED_TRANSFERS).then_some(idlest)
    }

    pub(crate) fn open(&self) -> usize {
        self.open.len()
    }

    #[cfg(test)]
    pub(crate) fn under_way(&self) -> usize {
        self.slots.find(|_| true).len()
    }

    /// The next ended transfer: of users, or with `runs` of any owner.
    #[inline]
    pub(crate) fn next_ended(&mut self, runs: bool) -> Option<TransferEnded> {
        let may = |ended: &&TransferEnded| runs || ended.owner != TransferOwner::Run;
        self.ended.front().filter(may)?;
        self.ended.pop_front()
    }

    /// When the next send is announced again, or the host passes the next transfer.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.waiting
            .iter()
            .filter_map(|&slot| self.slots.announces_at(slot))
            .chain(self.begins)
            .min()
    }

    /// Starts transfers and sends their packets, first the last packets of transfers, then packets
    /// of the channels in turn. Returns whether anything was sent.
    pub(crate) fn issue(
        &mut self,
        now: Time,
        requester: &mut Requester,
        memory: &mut CachedMemory,
        transactions: &mut Transactions,
    ) -> bool {
        if self.open.is_empty() {
            self.begins = None;
            return false;
        }
        if !self.waiting.is_empty() {
            let slots = &self.slots;
            let is_due = |&mut slot: &mut u8| slots.announces_at(slot).is_none_or(|at| at <= now);
            self.taken.extend(self.waiting.extract_if(.., is_due));
        }
        let (mut sent, mut idle) = (false, 0);
        while idle < LANES || !self.ending.is_empty() {
            let room = requester.has_room(Share::Bulk) && requester.queued() < QUEUE_AHEAD;
            if !room || self.targets.is_full() {
                break;
            }
            if let Some(slot) = self.ending.pop_front() {
                sent |= self.step(now, slot, requester, memory);
                continue;
            }
            let index = self.turn;
            self.turn = (self.turn + 1) % LANES;
            if index == CHANNELS {
                let stepped = self.step_taken(now, requester, memory);
                sent |= stepped;
                idle = if stepped { 0 } else { idle + 1 };
                continue;
            }
            let started = self.start(now, index, transactions);
            let sending = self.channels[index].sending;
            let stepped = sending.is_some_and(|slot| self.step(now, slot, requester, memory));
            sent |= stepped;
            idle = if started || stepped { 0 } else { idle + 1 };
        }
        let fronts = self.channels.iter().filter_map(|one| one.queue.front());
        let later = fronts.map(|what| what.begins).filter(|&at| at > now);
        self.begins = later.min();
        for slot in core::mem::take(&mut self.unread) {
            self.proceed(slot, transactions);
        }
        sent
    }

    /// The first transfer that may begin on a channel, and its queue position. Skips sends that
    /// must wait for others and transfers whose target has no room, but never a fence.
    fn first_to_start(&self, now: Time, channel: usize) -> Option<(usize, Queued)> {
        let bounds = [MAX_UNTAKEN_OF_ONE, MAX_ANNOUNCED_OF_ONE];
        let most_untaken = bounds[usize::from(self.waiting.is_empty())];
        let mut full = None;
        for (at, what) in self.channels[channel].queue.iter().enumerate() {
            if what.begins > now {
                return None;
            }
            if what.transfer.fence {
                let is_alone = self.open.first() == Some(&what.serial);
                return is_alone.then_some((at, *what));
            }
            let untaken = self.untaken_of[what.owner.index()];
            if what.is_send() && (self.sends >= MAX_SENDS || untaken >= most_untaken) {
                continue;
            }
            if full == Some(what.target) {
                continue;
            }
            if self.targets.may_begin(now, what.target) {
                return Some((at, *what));
            }
            full = Some(what.target);
        }
        None
    }

    /// Whether a channel may begin another transfer: it sends none, or the present target has no
    /// room and there are other targets.
    fn is_free(&self, now: Time, index: usize) -> bool {
        self.channels[index].sending.is_none_or(|slot| {
            self.targets.are_several() && !self.targets.has_room(now, self.slots.target(slot))
        })
    }

    /// Begins the next transfer of a free channel unless a fence prevents it. Returns whether one
    /// began. A transfer without bytes and event also ends here.
    fn start(&mut self, now: Time, index: usize, transactions: &mut Transactions) -> bool {
        let mut started = false;
        while self.is_free(now, index)
            && self.slots.has_room()
            && let Some((at, what)) = self.first_to_start(now, index)
            && let Some(ssid) = transactions.reserve()
        {
            self.parked.extend(self.channels[index].sending.take());
            self.channels[index].queue.remove(at);
            let is_send = what.is_send();
            if is_send {
                self.sends += 1;
                self.untaken_of[what.owner.index()] += 1;
            }
            let stage = match is_send {
                true => Stage::Announcing(now),
                false => Stage::Streaming,
            };
            self.targets.begun(what.target);
            let slot = self.slots.insert(Active {
                what,
                channel: index as u8,
                ssid,
                stage,
                next: 0,
                outstanding: 0,
                acknowledged: 0,
                failure: None,
                handle: ANNOUNCE,
                attempts: 0,
                is_untaken: is_send,
                announces_block: Active::announces_block(what.owner, &what.transfer),
            });
            self.channels[index].sending = Some(slot);
            started = true;
            self.proceed(slot, transactions); // A transfer without bytes has nothing to wait for.
        }
        started
    }

    /// Sends a packet of the next send that has left its channel. Returns whether it sent one.
    fn step_taken(
        &mut self,
        now: Time,
        requester: &mut Requester,
        memory: &mut CachedMemory,
    ) -> bool {
        while let Some(slot) = self.taken.pop_front() {
            if !self.targets.has_room(now, self.slots.target(slot)) {
                self.parked.push(slot);
                continue;
            }
            if !self.slots.get(slot).finds_id(requester) {
                self.taken.push_front(slot);
                return false;
            }
            if !self.step(now, slot, requester, memory) {
                continue;
            }
            let active = self.slots.get(slot);
            if active.stage == Stage::Streaming && active.left() > 0 {
                self.taken.push_back(slot);
            }
            return true;
        }
        false
    }

    /// Sends one packet of a transfer, if it has any. After the last piece or the announcement, the
    /// channel is free.
    fn step(
        &mut self,
        now: Time,
        slot: u8,
        requester: &mut Requester,
        memory: &mut CachedMemory,
    ) -> bool {
        let active = self.slots.get(slot);
        let target = active.what.target;
        let has_room = active.stage == Stage::Ending || self.targets.has_room(now, target);
        if !has_room || !active.finds_id(requester) {
            return false;
        }
        let mut data = [0; MAX_DATA];
        let (step, piece) = match active.stage {
            Stage::Announcing(at) if at <= now => (TransferStep::Open, active.announcement()),
            Stage::Streaming if active.failure.is_none() && active.left() > 0 => {
                (TransferStep::Chunk, active.piece())
            }
            Stage::Ending => (TransferStep::End, active.end(&mut data)),
            _ => return false,
        };
        let sent = usize::from(piece.sent);
        if let Some(local) = piece.from
            && memory.read(local, &mut data[..sent]).is_err()
        {
            // The bytes were checked when the transfer was queued, but a program may have unmapped
            // its memory since.
            active.failure.get_or_insert(Failure::LocalMemory);
            if let Stage::Announcing(_) = active.stage {
                active.stage = Stage::Ended;
            }
            self.unread.push(slot);
            return false;
        }
        let ask = Ask {
            node: active.what.node,
            command: piece.command,
            handle: piece.handle,
            key: piece.key,
            ssid: active.ssid,
            address: piece.address | piece.ssid_bits(active.ssid),
            routing: active.what.transfer.routing,
            data: &data[..sent],
            answer_bytes: piece.answer_bytes,
            landing: piece.landing,
        };
        let origin = RequestOrigin::Transfer(slot, step);
        requester
            .issue(now, &ask, origin)
            .expect("a piece has at most 64 bytes, and a get at most 16 words");
        match step {
            TransferStep::Open => {
                active.stage = Stage::Announced;
                requester.counters.sends_retried += u64::from(active.attempts > 0);
                active.attempts += 1;
            }
            TransferStep::Chunk => active.next += u64::from(piece.landing.take),
            TransferStep::End => active.stage = Stage::Ended,
        }
        active.outstanding += 1;
        self.targets.sent(target);
        let has_left = match active.stage {
            Stage::Streaming => active.left() == 0,
            Stage::Announced => true,
            _ => false,
        };
        if has_left {
            self.leave_channel(slot);
        }
        true
    }

    /// Removes a transfer that has left its channel from the lists of slots with something to send.
    fn take_out(&mut self, slot: u8) {
        self.taken.retain(|&taken| taken != slot);
        self.parked.retain(|&parked| parked != slot);
    }

    /// Lets the channel continue without waiting for this transfer.
    fn leave_channel(&mut self, slot: u8) {
        let channel = usize::from(self.slots.get(slot).channel);
        let sending = &mut self.channels[channel].sending;
        if *sending == Some(slot) {
            *sending = None;
        }
    }

    /// Handles the end of a packet; `data` comes from the response.
    pub(crate) fn answered(
        &mut self,
        now: Time,
        slot: u8,
        step: TransferStep,
        pending: &Pending,
        answer: Result<&[u8], Failure>,
        transactions: &mut Transactions,
    ) {
        let (first_wait, most) = (self.first_wait, self.attempts);
        let target = self.slots.target(slot);
        let timed_out = answer == Err(Failure::TimedOut);
        let silence = self
            .targets
            .answered(now, target, pending.posted, timed_out);
        if !self.parked.is_empty() {
            let slots = &self.slots;
            let has_room = |&mut parked: &mut u8| slots.target(parked) == target;
            self.taken.extend(self.parked.extract_if(.., has_room));
        }
        let active = self.slots.get(slot);
        active.outstanding -= 1;
        match (step, answer) {
            (TransferStep::Open, Ok(data)) => active.accepted(pending, data),
            (TransferStep::Open, Err(Failure::Refused(Status::NotReady | Status::Busy))) => {
                active.refused(now, first_wait, most, answer)
            }
            (TransferStep::Chunk | TransferStep::End, Ok(_)) => {
                active.acknowledged += u64::from(pending.landing().take);
            }
            (_, Err(failure)) => {
                active.failure.get_or_insert(failure);
            }
        }
        if step == TransferStep::Open && active.failure.is_some() {
            match answer {
                // Do not notify the target: it has not accepted the send, or its own timeout ends
                // the message.
                Err(_) => active.stage = Stage::Ended,
                // The send succeeded: all data arrived, although this source had given up.
                Ok(_) if active.left() == 0 => active.failure = None,
                Ok(_) => {}
            }
        }
        match active.stage {
            Stage::Streaming if step == TransferStep::Open && active.left() > 0 => {
                self.taken.push_back(slot);
            }
            Stage::Announcing(_) => self.waiting.push(slot),
            _ => {}
        }
        self.proceed(slot, transactions);
        if let Some(silence) = silence {
            self.fail_silent(target, silence, transactions);
        }
    }

    /// Advances to the next stage, or ends the transfer, once nothing is outstanding or left to
    /// send.
    fn proceed(&mut self, slot: u8, transactions: &mut Transactions) {
        let active = self.slots.get(slot);
        if active.is_untaken && active.stage >= Stage::Streaming {
            active.is_untaken = false;
            self.untaken_of[active.what.owner.index()] -= 1;
        }
        if active.outstanding > 0 {
            return;
        }
        if active.stage == Stage::Streaming {
            if active.failure.is_none() && active.left() > 0 {
                return;
            }
            if active.has_ending() {
                active.stage = Stage::Ending;
                self.ending.push_back(slot);
            } else {
                active.stage = Stage::Ended;
            }
            self.leave_channel(slot);
            self.take_out(slot);
        }
        let active = *self.slots.get(slot);
        if active.stage == Stage::Ended {
            self.leave_channel(slot);
            transactions.release(active.ssid);
            self.sends -= usize::from(active.what.is_send());
            self.ended.push_back(TransferEnded {
                owner: active.what.owner,
                transfer: active.what.transfer,
                channel: active.channel,
                queued: active.what.queued,
                bytes: active.acknowledged,
                failure: active.failure,
                unsent: false,
            });
            self.slots.remove(slot);
            self.targets.ended(active.what.target);
            self.targets.leave(active.what.target);
            self.open.remove(&active.what.serial);
        }
    }
}
