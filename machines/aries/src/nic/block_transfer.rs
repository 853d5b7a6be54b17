//! A block transfer: its descriptor, its state and its packets.

use phitwire_framing::aries::flit::{NodeId, Routing};
use phitwire_framing::aries::packet::{Command, MAX_DATA, Status};
use thiserror::Error;

use super::bte::TransferOwner;
use super::completion::Failure;
use super::outstanding::{Landing, Pending};
use super::receive::{ANNOUNCE, HANDLE_BYTES};
use super::requester::Requester;
use super::responder::{EVENT_BYTES, EVENT_CODE};
use super::traffic::RUN_BLOCK_CODE;
use super::transaction::high_ssid;
use super::transfer_targets::TargetIndex;
use super::virtual_node::Target;
use phitwire::nic::NUMBERED_BYTES;
use phitwire::time::{Duration, Time};

/// Longest transfer, in bytes: 4 GB (XC white paper, "Remote Memory Access").
pub const MAX_TRANSFER_BYTES: u64 = 1 << 32;
/// A send that found no receive waits before its next announcement; the wait doubles up to this
/// limit.
const LONGEST_WAIT: Duration = Duration::from_ms(10);
/// Bytes of a piece of a transfer.
const PIECE: u64 = MAX_DATA as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOperation {
    /// Writes local memory to the target's memory.
    Put {
        handle: u16,
        key: u16,
        /// First byte in the target's domain.
        offset: u64,
    },
    /// Reads the target's memory into local memory.
    Get {
        handle: u16,
        key: u16,
        /// First byte in the target's domain.
        offset: u64,
    },
    /// Sends local memory to a receive posted by the target.
    Send { key: u16 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockTransfer {
    pub target: Target,
    pub operation: BlockOperation,
    /// First byte in local memory.
    pub local: u64,
    /// Length in bytes, up to [`MAX_TRANSFER_BYTES`].
    pub length: u64,
    pub routing: Routing,
    /// Whether to wait until all transfers queued earlier, on any channel, have ended.
    pub fence: bool,
    /// Payload of the event that the target gets once all bytes of a put are in its memory; `None`
    /// for no event.
    pub event: Option<u64>,
    /// Value repeated in the completion.
    pub user: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BlockError {
    #[error("channel {0} does not exist")]
    Channel(usize),
    #[error("the channel or the completion queue is full")]
    QueueFull,
    /// The transfer is longer than [`MAX_TRANSFER_BYTES`].
    #[error("a transfer of {0} bytes: at most 4 GB are allowed")]
    Length(u64),
    #[error("the bytes are outside the local memory")]
    LocalBounds,
    #[error("virtual node {0} does not exist")]
    VirtualNode(u32),
    #[error("the offset exceeds 40 bits")]
    Offset,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub(super) owner: TransferOwner,
    pub(super) transfer: BlockTransfer,
    pub(super) node: NodeId,
    pub(super) target: TargetIndex,
    pub(super) serial: u64,
    pub(super) queued: Time,
    /// When the host has passed it to the engine.
    pub(super) begins: Time,
}

/// Stages of a transfer, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// A send will be announced at this time.
    Announcing(Time),
    /// The announcement of a send is in flight.
    Announced,
    /// Pieces are being sent and acknowledged.
    Streaming,
    /// The last packet must be sent: the event of a put, or the end of a failed send.
    Ending,
    Ended,
}

impl Queued {
    pub(super) const fn is_send(&self) -> bool {
        matches!(self.transfer.operation, BlockOperation::Send { .. })
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    pub(super) what: Queued,
    pub(super) channel: u8,
    pub(super) ssid: u16,
    pub(super) stage: Stage,
    /// First byte that has not been requested yet.
    pub(super) next: u64,
    pub(super) outstanding: u32,
    pub(super) acknowledged: u64,
    pub(super) failure: Option<Failure>,
    /// For a send: the handle that the target assigned.
    pub(super) handle: u16,
    pub(super) attempts: u32,
    /// Whether this is a send without a receive so far.
    pub(super) is_untaken: bool,
    /// Whether the last piece announces the complete block: see [`Active::announces_block`].
    pub(super) announces_block: bool,
}

/// A packet of a transfer, without its data.
pub(super) struct Piece {
    pub(super) command: Command,
    pub(super) handle: u16,
    pub(super) key: u16,
    pub(super) address: u64,
    /// Number of data bytes in the packet, and their address in local memory, if that is their
    /// source.
    pub(super) sent: u8,
    pub(super) from: Option<u64>,
    pub(super) answer_bytes: u8,
    pub(super) landing: Landing,
}

impl Active {
    pub(super) fn left(&self) -> u64 {
        self.what.transfer.length - self.next
    }

    /// Whether the last piece of a block of a traffic run announces the complete block. That piece
    /// must be long enough to identify the block. It need not wait for the responses to the others,
    /// since the target counts pieces.
    pub(super) fn announces_block(owner: TransferOwner, transfer: &BlockTransfer) -> bool {
        let BlockOperation::Put { offset, .. } = transfer.operation else {
            return false;
        };
        let end = offset + transfer.length;
        let last = end.wrapping_sub(1) % PIECE + 1;
        transfer.event.is_some()
            && owner == TransferOwner::Run
            && (u64::from(NUMBERED_BYTES)..transfer.length).contains(&last)
    }

    /// Whether a last packet follows when all pieces have ended.
    pub(super) fn has_ending(&self) -> bool {
        let BlockTransfer {
            operation, event, ..
        } = self.what.transfer;
        match (operation, self.failure) {
            (BlockOperation::Put { .. }, None) => event.is_some() && !self.announces_block,
            (BlockOperation::Send { .. }, failure) => failure.is_some(),
            _ => false,
        }
    }

    pub(super) fn announcement(&self) -> Piece {
        let BlockTransfer {
            operation,
            local,
            length,
            ..
        } = self.what.transfer;
        let first = length.min(PIECE) as u8;
        let whole = length == u64::from(first);
        let BlockOperation::Send { key } = operation else {
            unreachable!("only sends are announced");
        };
        Piece {
            command: Command::Message { last: whole },
            handle: ANNOUNCE,
            key,
            address: length,
            sent: first,
            from: Some(local),
            answer_bytes: if whole { 0 } else { HANDLE_BYTES as u8 },
            landing: Landing {
                take: first,
                ..Landing::NONE
            },
        }
    }

    /// Whether a packet id is free for the next packet. Adaptive packets find an id whenever there
    /// is room.
    pub(super) fn finds_id(&self, requester: &Requester) -> bool {
        let routing = self.what.transfer.routing;
        let piece = match self.stage {
            _ if !routing.is_deterministic() => return true,
            Stage::Announcing(_) => self.announcement(),
            Stage::Streaming if self.left() > 0 => self.piece(),
            Stage::Ending => self.end(&mut [0; MAX_DATA]),
            _ => return true,
        };
        requester.has_id(routing, piece.address | piece.ssid_bits(self.ssid))
    }

    #[inline(always)] // Most packets are pieces, and a result passed through memory would stall.
    pub(super) fn piece(&self) -> Piece {
        let transfer = &self.what.transfer;
        let local = transfer.local + self.next;
        let (BlockOperation::Put { offset, .. } | BlockOperation::Get { offset, .. }) =
            transfer.operation
        else {
            return self.message_piece(local);
        };
        let address = offset + self.next;
        let take = (PIECE - address % PIECE).min(self.left()) as u8;
        match transfer.operation {
            BlockOperation::Get { handle, key, .. } => {
                let skip = (address % 4) as u8;
                let words = (skip + take).div_ceil(4);
                Piece {
                    command: Command::Get { words },
                    handle,
                    key,
                    address: address - u64::from(skip),
                    sent: 0,
                    from: None,
                    answer_bytes: 4 * words,
                    landing: Landing {
                        skip,
                        take,
                        local: Some(local),
                        flag: None,
                    },
                }
            }
            BlockOperation::Put { handle, key, .. } => {
                let event = self.announces_block && u64::from(take) == self.left();
                let command = Command::Put { event };
                Piece::of_data(command, handle, key, address, take, local)
            }
            BlockOperation::Send { .. } => unreachable!("sends have no offset"),
        }
    }

    #[inline]
    pub(super) fn message_piece(&self, local: u64) -> Piece {
        let take = self.left().min(PIECE) as u8;
        let command = Command::Message { last: false };
        Piece::of_data(command, self.handle, self.key(), self.next, take, local)
    }

    pub(super) fn key(&self) -> u16 {
        match self.what.transfer.operation {
            BlockOperation::Put { key, .. }
            | BlockOperation::Get { key, .. }
            | BlockOperation::Send { key } => key,
        }
    }

    /// The last packet: the event of a put, or the end of a failed send.
    pub(super) fn end(&self, data: &mut [u8; MAX_DATA]) -> Piece {
        let (command, handle, sent) = match self.what.transfer.operation {
            BlockOperation::Put { handle, .. } | BlockOperation::Get { handle, .. } => {
                let word = self.what.transfer.event.unwrap_or(0).to_be_bytes();
                data[..EVENT_BYTES].copy_from_slice(&word);
                let code = match self.what.owner {
                    TransferOwner::User(_) => EVENT_CODE,
                    TransferOwner::Run => RUN_BLOCK_CODE,
                };
                (Command::Control { code }, handle, EVENT_BYTES)
            }
            BlockOperation::Send { .. } => (Command::Message { last: true }, self.handle, 0),
        };
        Piece {
            command,
            handle,
            key: self.key(),
            address: 0,
            sent: sent as u8,
            from: None,
            answer_bytes: 0,
            landing: Landing::NONE,
        }
    }

    /// Handles the response of a target that has a receive for this send.
    pub(super) fn accepted(&mut self, pending: &Pending, data: &[u8]) {
        let first = u64::from(pending.landing().take);
        self.acknowledged += first;
        self.next = first;
        if let Some(word) = data.first_chunk::<HANDLE_BYTES>() {
            self.handle = u32::from_be_bytes(*word) as u16 & 0xfff;
        }
        self.stage = Stage::Streaming;
    }

    /// Handles the response of a target without a receive. The send waits, longer each time, until
    /// its attempts are used up.
    pub(super) fn refused<T>(
        &mut self,
        now: Time,
        first_wait: Duration,
        most: u32,
        answer: Result<T, Failure>,
    ) {
        if self.failure.is_some() {
            return;
        }
        if self.attempts >= most {
            self.failure = match answer {
                Err(busy @ Failure::Refused(Status::Busy)) => Some(busy),
                _ => Some(Failure::NoReceive),
            };
            return;
        }
        let doubled = first_wait.times(1 << (self.attempts - 1).min(20));
        self.stage = Stage::Announcing(now + doubled.min(LONGEST_WAIT));
    }
}

impl Piece {
    /// The upper bits of the SSID, for the address field of packets with room for them.
    pub(super) fn ssid_bits(&self, ssid: u16) -> u64 {
        match self.command {
            Command::Message { .. } | Command::Control { code: EVENT_CODE } => high_ssid(ssid),
            _ => 0,
        }
    }

    #[inline(always)]
    pub(super) fn of_data(
        command: Command,
        handle: u16,
        key: u16,
        address: u64,
        take: u8,
        local: u64,
    ) -> Self {
        Self {
            command,
            handle,
            key,
            address,
            sent: take,
            from: Some(local),
            answer_bytes: 0,
            landing: Landing {
                take,
                ..Landing::NONE
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_bench::{block_get, block_put, transfer};
    use super::*;

    #[test]
    fn the_last_pieces_of_four_gigabytes_are_where_they_belong() {
        for (offset, put) in [(3, true), (3, false), (1 << 39, true), (64, false)] {
            let operation = [block_get, block_put][usize::from(put)](offset);
            let transfer = transfer(operation, 1 << 33, MAX_TRANSFER_BYTES);
            let mut active = Active {
                what: Queued {
                    owner: TransferOwner::User(0),
                    transfer,
                    node: NodeId::from_bits(0),
                    target: TargetIndex::default(),
                    serial: 0,
                    queued: Time::ZERO,
                    begins: Time::ZERO,
                },
                channel: 0,
                ssid: 1,
                stage: Stage::Streaming,
                next: MAX_TRANSFER_BYTES - 150,
                outstanding: 0,
                acknowledged: 0,
                failure: None,
                handle: ANNOUNCE,
                attempts: 0,
                is_untaken: false,
                announces_block: false,
            };
            while active.left() > 0 {
                let piece = active.piece();
                let first = piece.address + u64::from(piece.landing.skip);
                assert_eq!(first, offset + active.next);
                let local = piece.from.or(piece.landing.local);
                assert_eq!(local, Some((1 << 33) + active.next));
                active.next += u64::from(piece.landing.take);
                let whole = (offset + active.next).is_multiple_of(PIECE);
                assert!(
                    whole || active.left() == 0,
                    "pieces are cut at lines of the target"
                );
            }
            assert_eq!(active.next, 1 << 32);
        }
    }
}
