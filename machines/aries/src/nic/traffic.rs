//! Traffic runs: synthetic self-checking requests, and the control request that announces them.

use phitwire_framing::aries::flit::{NodeId, Routing};
use phitwire_framing::aries::packet::{AmoOp, Command, Operands, Status, Width};

use super::amo_cache::CachedMemory;
use super::block_transfer::{BlockOperation, BlockTransfer};
use super::bte::{BlockTransferEngine, TransferEnded, TransferOwner};
use super::completion::Failure;
use super::outstanding::{Landing, RequestOrigin, Share};
use super::request::word_of;
use super::requester::{Answer, Ask, Requester};
use super::virtual_node::{Target, VirtualNodes};
use phitwire::nic::block_lines::block_found;
use phitwire::nic::checker::Announced;
use phitwire::nic::runs::Runs;
use phitwire::nic::stamp::{LINE, read_line};
use phitwire::nic::{Answered, Block, Issuer, Message, RoutingMode, RunRequest};
use phitwire::time::Time;

/// The memory domain of traffic runs at all nodes. It starts at address 0 and has the same key
/// everywhere.
pub const RUN_DOMAIN: u16 = 0;

/// Code of the control request that announces a run.
pub(crate) const RUN_CODE: u8 = 13;
/// Code of the control request that reports a run's block in memory.
pub(crate) const RUN_BLOCK_CODE: u8 = 12;

/// Bytes of blocks that a run may write and check in one turn, exceeded by at most one block.
/// During a turn the NIC acknowledges nothing, and the other end of the link resends everything
/// after 4 ms without an acknowledgement.
const WORK_OF_A_TURN: u64 = 1 << 20;

/// The rest of [`WORK_OF_A_TURN`] in this turn.
#[derive(Debug)]
pub(crate) struct BlockWork {
    left: u64,
    begun: Time,
}

impl BlockWork {
    /// A full allowance for the turn that begins at `now`.
    pub(crate) const fn begin(now: Time) -> Self {
        Self {
            left: WORK_OF_A_TURN,
            begun: now,
        }
    }

    #[inline]
    pub(crate) const fn is_left(&self) -> bool {
        self.left > 0
    }

    pub(crate) const fn take(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
    }

    /// When the next turn is due: at once if this one used up its allowance.
    pub(crate) fn deadline(&self) -> Option<Time> {
        (!self.is_left()).then_some(self.begun)
    }
}

/// Issues a run's requests through the requester.
pub(crate) struct PacketIssuer<'a> {
    pub now: Time,
    pub requester: &'a mut Requester,
    pub transfers: &'a mut BlockTransferEngine,
    pub memory: &'a mut CachedMemory,
    pub work: &'a mut BlockWork,
    pub nodes: &'a VirtualNodes,
    pub key: u16,
    pub routing: Routing,
}

impl Issuer for PacketIssuer<'_> {
    #[inline]
    fn can_go(&self, _address: u64) -> bool {
        self.requester.has_room(Share::Bulk)
            && self.transfers.has_room()
            && self.work.is_left()
            && self.requester.may_issue(self.now)
    }

    fn has_alternative_paths(&self) -> bool {
        false
    }

    #[inline]
    fn issue(&mut self, processor: u16, request: RunRequest, message: &Message<'_>) -> bool {
        let Some(node) = self.nodes.get(processor.into()) else {
            unreachable!(
                "the start of the run resolved the node, and virtual nodes are never removed"
            );
        };
        if !self.requester.has_room(Share::Bulk) {
            return false;
        }
        let operands;
        let mut answer_bytes = 0;
        let (command, address, data) = match *message {
            Message::Announce(data) => (Command::Control { code: RUN_CODE }, 0, data.as_slice()),
            Message::Block(ref block) => return self.issue_block(processor, node, request, block),
            Message::Put { address, data } => (Command::Put { event: false }, address, data),
            Message::Get { address, len } => {
                answer_bytes = len;
                (Command::Get { words: len / 4 }, address, [].as_slice())
            }
            Message::Add { address } => {
                let (op, width) = (AmoOp::Add, Width::Bits64);
                let one = Operands {
                    first: 1,
                    second: 0,
                };
                let (bytes, len) = one.to_bytes(op, width);
                operands = bytes;
                answer_bytes = 8;
                let command = Command::Amo {
                    op,
                    width,
                    fetch: true,
                };
                (command, address, &operands[..len])
            }
        };
        if !self.requester.has_id(self.routing, address) {
            return false;
        }
        let ask = Ask {
            node,
            command,
            handle: RUN_DOMAIN,
            key: self.key,
            ssid: 0,
            address,
            routing: self.routing,
            data,
            answer_bytes,
            landing: Landing {
                take: answer_bytes,
                ..Landing::NONE
            },
        };
        self.requester
            .issue(self.now, &ask, RequestOrigin::Traffic(request))
            .is_ok()
    }
}

impl PacketIssuer<'_> {
    /// Queues a block transfer. Its completion identifies the request, and its event at the target
    /// the block.
    fn issue_block(
        &mut self,
        processor: u16,
        node: NodeId,
        request: RunRequest,
        block: &Block,
    ) -> bool {
        let (Some(channel), RunRequest::Message(index)) = (self.transfers.idlest(), request) else {
            return false;
        };
        let Block {
            is_get,
            address: offset,
            local,
            ..
        } = *block;
        let (handle, key) = (RUN_DOMAIN, self.key);
        self.work.take(block.len.into());
        write_block(self.memory, block);
        let (operation, event) = if is_get {
            let get = BlockOperation::Get {
                handle,
                key,
                offset,
            };
            (get, None)
        } else {
            let event = u64::from(block.index) << 32 | u64::from(block.sequence);
            let put = BlockOperation::Put {
                handle,
                key,
                offset,
            };
            (put, Some(event))
        };
        let transfer = BlockTransfer {
            target: Target::Virtual(processor.into()),
            operation,
            local,
            length: block.len.into(),
            routing: self.routing,
            fence: false,
            event,
            user: index.into(),
        };
        let how = (TransferOwner::Run, channel);
        let memory = self.memory.memory();
        let queued = self.transfers.queue(self.now, how, transfer, node, memory);
        if queued.is_err() {
            return false;
        }
        if let Some(host) = &mut self.requester.host {
            let begins = host.block_begins(self.now, None, (transfer.length, is_get));
            self.transfers.delay_last(channel, begins);
        }
        true
    }
}

/// Writes a block's content to its source. For a get, also writes the complement of every byte to
/// its destination, so that no earlier block can be taken for it.
fn write_block(memory: &mut CachedMemory, block: &Block) {
    let mut lines = block.stamp.lines(block.address, block.sequence);
    for at in (0..u64::from(block.len)).step_by(LINE) {
        let len = (u64::from(block.len) - at).min(LINE as u64) as usize;
        let line = match block.is_get {
            true => read_line(block.address + at).map(|byte| !byte),
            false => lines.next_line(),
        };
        let written = memory.write(block.local + at, &line[..len]);
        debug_assert!(
            written.is_ok(),
            "the layout of the run is within the memory"
        );
    }
}

/// Passes the end of a block transfer to its run.
pub(crate) fn block_ended(
    runs: &mut Runs,
    now: Time,
    ended: &TransferEnded,
    memory: &mut CachedMemory,
) {
    let BlockTransfer {
        operation,
        local,
        length,
        user,
        ..
    } = ended.transfer;
    let (address, is_get) = match operation {
        BlockOperation::Put { offset, .. } => (offset, false),
        BlockOperation::Get { offset, .. } => (offset, true),
        BlockOperation::Send { .. } => unreachable!("runs do not send"),
    };
    let answered = match ended.failure {
        Some(Failure::Refused(_)) => Answered::Refused,
        Some(_) if ended.unsent => Answered::Unsent,
        Some(_) => Answered::Unknown,
        None if is_get => {
            let found = block_found(memory.memory(), local, address, length as u32);
            Answered::ReadBlock(found)
        }
        None => Answered::Written,
    };
    let request = (RunRequest::Message(user as u32), address);
    runs.answered(now, ended.queued, request, answered);
}

/// Passes the end of a request to its run; `data` is the response's data.
#[inline]
pub(crate) fn answered(
    runs: &mut Runs,
    now: Time,
    request: RunRequest,
    answer: &Answer,
    data: &[u8],
) {
    let Answer { pending, failure } = answer;
    let answered = match (failure, pending.command) {
        // A control request is resent if it or its response was damaged.
        (
            Some(Failure::Refused(Status::BadCrc | Status::Poisoned) | Failure::DamagedResponse),
            Command::Control { .. },
        ) => Answered::Damaged,
        (Some(Failure::Refused(_)), _) => Answered::Refused,
        (Some(_), _) => Answered::Unknown,
        (None, Command::Get { .. }) => Answered::Read(data),
        (None, Command::Amo { .. }) => Answered::Added(word_of(data)),
        (None, _) => Answered::Written,
    };
    runs.answered(now, pending.posted, (request, pending.offset), answered);
}

pub(super) const fn announcement_status(announced: Announced) -> Status {
    match announced {
        Announced::Accepted => Status::Done,
        Announced::OutOfRange => Status::OutOfBounds,
        Announced::Full | Announced::Outdated => Status::Busy,
        Announced::Unknown => Status::Unsupported,
    }
}

pub(super) const fn routing_of(ways: RoutingMode) -> Routing {
    Routing::ALL[ways as usize]
}
const _: () = assert!(Routing::ALL.len() == RoutingMode::ALL.len());
const _: () = assert!(routing_of(RoutingMode::NminHash) as u8 == Routing::NminHash as u8);
const _: () = assert!(routing_of(RoutingMode::Ordered) as u8 == Routing::Ordered as u8);
const _: () = assert!(routing_of(RoutingMode::Valiant) as u8 == Routing::Valiant as u8);
