//! The block transfer engine: long transfers between local and remote memory.
//!
//! White paper, "Remote Memory Access": descriptors of up to 4 GB are queued and carried out
//! asynchronously, as puts and gets with an address at the target, or as sends to a receive posted
//! there; four channels work at once. A transfer is cut at the target's multiples of 64 bytes, so
//! that all pieces but the first and the last are whole packets. Transfers complete in any order,
//! unless one is fenced.

use std::collections::VecDeque;

use phitwire_framing::aries::flit::NodeId;
use phitwire_framing::aries::packet::{MAX_DATA, Status};

use super::amo_cache::CachedMemory;
use super::block_transfer::{
    Active, BlockError, BlockOperation, BlockTransfer, MAX_TRANSFER_BYTES, Queued, Stage,
};
use super::completion::Failure;
use super::domain::MAX_DOMAIN_BYTES;
use super::outstanding::{Asker, Pending, Share, TransferStep};
use super::receive::ANNOUNCE;
use super::requester::{Ask, Requester};
use super::transaction::Transactions;
use crate::time::{Duration, Time};

/// Concurrent block transfers (white paper, "Remote Memory Access").
pub const CHANNELS: usize = 4;
/// Transfers that wait on one channel.
pub const MAX_QUEUED_TRANSFERS: usize = 256;
/// Requests in front of the link above which transfers add none, so that single requests do not
/// wait behind a megabyte.
const QUEUE_AHEAD: usize = 64;

/// Whose transfer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferOwner {
    /// Its owner gets a completion.
    User,
    /// A traffic run's.
    Run,
}

/// A transfer that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransferEnded {
    pub owner: TransferOwner,
    pub transfer: BlockTransfer,
    pub channel: u8,
    pub queued: Time,
    pub bytes: u64,
    pub failure: Option<Failure>,
}

#[derive(Debug, Default)]
struct Channel {
    queue: VecDeque<Queued>,
    active: Option<Active>,
}

/// The engine of one network interface.
#[derive(Debug)]
pub(crate) struct BlockTransferEngine {
    channels: [Channel; CHANNELS],
    turn: usize,
    serial: u64,
    in_flight: u32,
    /// Transfers queued or under way.
    open: usize,
    /// Packets that transfers may have outstanding; the rest is left to single requests.
    window: u32,
    first_wait: Duration,
    attempts: u32,
    ended: VecDeque<TransferEnded>,
}

impl BlockTransferEngine {
    pub(crate) fn new(max_outstanding: u32, first_wait: Duration, attempts: u32) -> Self {
        Self {
            channels: Default::default(),
            turn: 0,
            serial: 0,
            in_flight: 0,
            open: 0,
            window: (max_outstanding - max_outstanding / 4).max(1),
            first_wait,
            attempts,
            ended: VecDeque::new(),
        }
    }

    /// Queues a transfer to `node` on a channel.
    pub(crate) fn queue(
        &mut self,
        now: Time,
        (owner, channel): (TransferOwner, usize),
        transfer: BlockTransfer,
        node: NodeId,
        memory_bytes: u64,
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
        if local
            .checked_add(length)
            .is_none_or(|end| end > memory_bytes)
        {
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
            serial: self.serial,
            queued: now,
        });
        self.open += 1;
        Ok(())
    }

    /// Whether another transfer may be queued on some channel.
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

    /// Transfers queued or under way.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    /// The next transfer that has ended.
    #[inline]
    pub(crate) fn next_ended(&mut self) -> Option<TransferEnded> {
        self.ended.pop_front()
    }

    /// Ends all transfers of `owner`: those that wait at once, those under way when their
    /// outstanding packets have been answered or have timed out. No memory of theirs is touched
    /// after that.
    pub(crate) fn give_up(&mut self, owner: TransferOwner, transactions: &mut Transactions) {
        let failure = Failure::Aborted;
        for index in 0..CHANNELS {
            let channel = &mut self.channels[index];
            let ended = &mut self.ended;
            let before = channel.queue.len();
            channel.queue.retain(|queued| {
                if queued.owner == owner {
                    ended.push_back(TransferEnded {
                        owner,
                        transfer: queued.transfer,
                        channel: index as u8,
                        queued: queued.queued,
                        bytes: 0,
                        failure: Some(failure),
                    });
                }
                queued.owner != owner
            });
            self.open -= before - channel.queue.len();
            let active = channel.active.as_mut();
            if let Some(active) = active.filter(|active| active.what.owner == owner)
                && active.stage == Stage::Streaming
            {
                active.failure.get_or_insert(failure);
                self.proceed(index, transactions);
            }
        }
    }

    /// When a send tries again.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        if self.open == 0 {
            return None;
        }
        let at = |channel: &Channel| match channel.active.as_ref()?.stage {
            Stage::Announcing(at) => Some(at),
            _ => None,
        };
        self.channels.iter().filter_map(at).min()
    }

    /// Starts what may start and sends what may be sent, the channels taking turns packet by
    /// packet.
    pub(crate) fn issue(
        &mut self,
        now: Time,
        requester: &mut Requester,
        memory: &mut CachedMemory,
        transactions: &mut Transactions,
    ) {
        if self.open == 0 {
            return;
        }
        let mut idle = 0;
        while idle < CHANNELS {
            let room = requester.has_room(Share::Bulk) && requester.queued() < QUEUE_AHEAD;
            if !room || self.in_flight >= self.window {
                break;
            }
            let channel = self.turn;
            self.turn = (self.turn + 1) % CHANNELS;
            self.start(now, channel, transactions);
            if self.step(now, channel, requester, memory) {
                idle = 0;
            } else {
                idle += 1;
            }
        }
    }

    /// Makes the next transfer of a channel the active one, if there is none and no fence forbids
    /// it.
    fn start(&mut self, now: Time, index: usize, transactions: &mut Transactions) {
        while self.channels[index].active.is_none() {
            let Some(&what) = self.channels[index].queue.front() else {
                return;
            };
            if what.transfer.fence && self.oldest() != Some(what.serial) {
                return;
            }
            let Some(ssid) = transactions.reserve() else {
                return;
            };
            self.channels[index].queue.pop_front();
            let stage = match what.transfer.operation {
                BlockOperation::Send { .. } => Stage::Announcing(now),
                _ => Stage::Streaming,
            };
            self.channels[index].active = Some(Active {
                what,
                ssid,
                stage,
                next: 0,
                outstanding: 0,
                acknowledged: 0,
                failure: None,
                handle: ANNOUNCE,
                attempts: 0,
            });
            // One without bytes has nothing to wait for.
            self.proceed(index, transactions);
        }
    }

    /// The serial number of the oldest transfer that has not ended.
    fn oldest(&self) -> Option<u64> {
        let of = |channel: &Channel| {
            let active = channel.active.map(|active| active.what.serial);
            active.or(channel.queue.front().map(|queued| queued.serial))
        };
        self.channels.iter().filter_map(of).min()
    }

    /// Sends one packet of a channel, if there is one to send.
    fn step(
        &mut self,
        now: Time,
        index: usize,
        requester: &mut Requester,
        memory: &mut CachedMemory,
    ) -> bool {
        let Some(active) = &mut self.channels[index].active else {
            return false;
        };
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
            debug_assert!(false, "the bytes were looked for when it was queued");
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
        let asker = Asker::Transfer(index as u8, step);
        requester
            .issue(now, &ask, asker)
            .expect("pieces have at most 64 bytes, and gets at most 16 words");
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
        self.in_flight += 1;
        true
    }

    /// Takes the end of a packet; `data` is what its response brought.
    pub(crate) fn answered(
        &mut self,
        now: Time,
        index: u8,
        step: TransferStep,
        pending: &Pending,
        answer: Result<&[u8], Failure>,
        transactions: &mut Transactions,
    ) {
        let (first_wait, most) = (self.first_wait, self.attempts);
        self.in_flight -= 1;
        let Some(active) = &mut self.channels[usize::from(index)].active else {
            unreachable!("a transfer stays until all its packets have ended");
        };
        active.outstanding -= 1;
        match (step, answer) {
            (TransferStep::Open, Ok(data)) => active.accepted(pending, data),
            (TransferStep::Open, Err(Failure::Refused(Status::NotReady | Status::Busy))) => {
                active.refused(now, first_wait, most)
            }
            (TransferStep::Chunk, Ok(_)) => {
                active.acknowledged += u64::from(pending.landing.take);
            }
            (TransferStep::End, Ok(_)) => {}
            (_, Err(failure)) => {
                active.failure.get_or_insert(failure);
            }
        }
        if step == TransferStep::Open && active.failure.is_some() {
            // There is nobody to tell: the target has not taken it, or gives up by itself.
            active.stage = Stage::Ended;
        }
        self.proceed(usize::from(index), transactions);
    }

    /// Goes to the next stage, or ends the transfer, when nothing is outstanding and nothing left.
    fn proceed(&mut self, index: usize, transactions: &mut Transactions) {
        let channel = &mut self.channels[index];
        let Some(active) = &mut channel.active else {
            return;
        };
        if active.outstanding > 0 {
            return;
        }
        if active.stage == Stage::Streaming {
            if active.failure.is_none() && active.left() > 0 {
                return;
            }
            active.stage = if active.has_ending() {
                Stage::Ending
            } else {
                Stage::Ended
            };
        }
        if active.stage == Stage::Ended {
            transactions.release(active.ssid);
            self.ended.push_back(TransferEnded {
                owner: active.what.owner,
                transfer: active.what.transfer,
                channel: index as u8,
                queued: active.what.queued,
                bytes: active.acknowledged,
                failure: active.failure,
            });
            channel.active = None;
            self.open -= 1;
        }
    }
}
