//! One-sided and atomic operations that NICs carry out: puts, gets, block transfers and atomic
//! operations on memory that peers have opened ([`Reach`]), without their programs.
//!
//! An operation is one or more pieces, each a command. A piece is retried if it is known not to
//! have been carried out, or if repeating it changes nothing: gets, and puts whose answer came
//! damaged. A put without any answer may still be in flight and overwrite a later one, so the memory
//! gets a new handle before it is repeated ([`super::renewal`]). An atomic operation that may have
//! been carried out fails.

use std::collections::VecDeque;
use std::time::Duration;

use phitwire_client::door::{AtomicOp, Local, MOST_INLINE, Remote, Request, Status, Width};

use super::endpoint::Endpoint;
use super::outbox::Outgoing;
use super::peers::Peers;
use super::reach::Reach;
use super::requests::Far;
use super::serving::Service;
use super::shared::{Entry, Failure, Op, Shared, Why};
use super::slots::{self, STAGES_AT, Slab};
use crate::memory::Pieces;

/// Maximum number of bytes sent as single puts, which are copied at once.
const MOST_SINGLE: usize = 2 * MOST_INLINE;
/// Maximum number of bytes copied into the segment, for programs that reuse memory at once.
pub const MOST_COPIED: usize = 4096;
/// Maximum number of block transfers that the NIC holds.
const MOST_BLOCKS: usize = 24;
/// Maximum number of other pieces that the NIC holds. With block transfers, messages and parts of
/// long transfers they stay below its limit.
const MOST_SINGLES: usize = 128;
/// Requests that a NIC has outstanding; each of `PROGRAMS` programs has an equal share, and one
/// share is unassigned. Beyond its own share, a program's probes would have to wait.
const OUTSTANDING: usize = 1024;
const PROGRAMS: usize = 4;
const _: () = assert!(MOST_SINGLES + 64 <= OUTSTANDING / (PROGRAMS + 1));
/// Maximum number of bytes of a block transfer; a NIC allows up to 4 GB.
const MOST_BLOCK: usize = 1 << 30;
/// Tries of a piece.
const TRIES: u32 = 6;
/// Maximum number of pieces.
const MOST_PIECES: usize = 1 << 20;

/// The action of a piece.
#[derive(Clone, Debug)]
pub enum Act {
    /// Writes a few bytes.
    Put(Vec<u8>),
    /// Reads a few words.
    Get(Local),
    /// Writes from memory of the program, or from the stage with this number.
    BlockPut(Local, Option<usize>),
    /// Reads into memory of the program.
    BlockGet(Local),
    /// Changes a word.
    Atomic(Amo),
}

/// An atomic operation of the NIC.
#[derive(Clone, Copy, Debug)]
pub struct Amo {
    /// The operation.
    pub op: AtomicOp,
    /// The width of the word.
    pub width: Width,
    /// Operands of the operation.
    pub operands: [u64; 2],
    /// Whether the old word is wanted.
    pub fetch: bool,
    /// Index of the element within the operation.
    pub element: usize,
}

/// One command of an operation.
#[derive(Debug)]
pub struct Piece {
    pub(super) whole: usize,
    pub(super) at: Remote,
    pub(super) act: Act,
    tries: u32,
    since: Duration,
}

/// The owner of an operation.
#[derive(Debug)]
pub enum Whose {
    /// The program.
    Program(Op),
    /// A peer, whose request is carried out here.
    Served(Service),
}

/// The memory that an operation accesses.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its owner.
    pub peer: usize,
    /// Its key.
    pub key: u64,
    /// The address of its first byte.
    pub at: Remote,
}

/// An operation.
#[derive(Debug)]
pub struct Whole {
    pub(super) peer: usize,
    pub(super) key: u64,
    whose: Whose,
    len: usize,
    is_atomic: bool,
    /// Destination of the words that atomic operations return, and bytes of each.
    into: Option<(Pieces, usize)>,
    left: usize,
    failure: Option<Failure>,
}

/// Operations in flight.
#[derive(Debug)]
pub struct Direct {
    pub(super) wholes: Slab<Whole>,
    pub(super) pieces: Slab<Piece>,
    blocks: usize,
    singles: usize,
    waiting: [VecDeque<usize>; 2],
}

impl Default for Direct {
    fn default() -> Self {
        Self {
            wholes: Slab::new(MOST_PIECES),
            pieces: Slab::new(MOST_PIECES),
            blocks: 0,
            singles: 0,
            waiting: Default::default(),
        }
    }
}

impl Act {
    const fn is_block(&self) -> bool {
        matches!(self, Self::BlockPut(..) | Self::BlockGet(_))
    }

    /// Whether repeating the piece is harmless even if the first try was carried out.
    const fn is_repeatable(&self, status: Status) -> bool {
        match self {
            Self::Get(_) | Self::BlockGet(_) => true,
            Self::Put(_) | Self::BlockPut(..) => matches!(status, Status::DamagedAnswer),
            // An OR with 0 changes nothing.
            Self::Atomic(amo) => matches!((amo.op, amo.operands[0]), (AtomicOp::Or, 0)),
        }
    }
}

impl Endpoint {
    /// Begins an operation on `peer`'s memory.
    pub(super) fn begin_direct(
        &mut self,
        shared: &mut Shared,
        (Target { peer, key, .. }, whose): (Target, Whose),
        len: usize,
        into: Option<(Pieces, usize)>,
        acts: Vec<(Remote, Act)>,
    ) {
        let is_change = |(_, act): &(Remote, Act)| matches!(act, Act::Atomic(_));
        let is_atomic = acts.iter().any(is_change) && matches!(whose, Whose::Program(_));
        self.core.peers.all[peer].changes[0] += usize::from(is_atomic);
        let whole = Whole {
            peer,
            key,
            whose,
            is_atomic,
            len,
            into,
            left: acts.len(),
            failure: self.core.peers.all[peer].failed,
        };
        let has_failed = whole.failure.is_some();
        let Some(number) = self.direct.wholes.insert(whole) else {
            return;
        };
        if has_failed || acts.is_empty() {
            for (_, act) in acts {
                self.free_stage(&act);
            }
            return self.end_direct(shared, number);
        }
        for (at, act) in acts {
            let kind = usize::from(act.is_block());
            let piece = Piece {
                whole: number,
                at,
                act,
                tries: 0,
                since: self.core.clock.now(),
            };
            if let Some(slot) = self.direct.pieces.insert(piece) {
                self.direct.waiting[kind].push_back(slot);
            }
        }
        self.issue_direct();
    }

    /// Issues waiting pieces, up to the NIC's limits.
    fn issue_direct(&mut self) {
        while self.direct.singles < MOST_SINGLES
            && let Some(slot) = self.direct.waiting[0].pop_front()
        {
            self.direct.singles += 1;
            self.address_anew(slot);
            self.core.outbox.push(Outgoing::Direct(slot));
        }
        while self.direct.blocks < MOST_BLOCKS
            && let Some(slot) = self.direct.waiting[1].pop_front()
        {
            self.direct.blocks += 1;
            self.address_anew(slot);
            self.core.outbox.push(Outgoing::Direct(slot));
        }
    }

    /// The request of a piece; `None` if its operation has ended.
    pub(super) fn direct_request(&self, slot: usize) -> Option<Request<'_>> {
        let Piece { at, act, .. } = self.direct.pieces.get(slot)?;
        let (at, ordered) = (*at, false);
        Some(match act {
            Act::Put(data) => Request::Put {
                to: at,
                data,
                event: false,
                ordered,
            },
            Act::Get(into) => Request::Get {
                from: at,
                into: *into,
                ordered,
            },
            Act::BlockPut(from, _) => Request::BlockPut {
                to: at,
                from: *from,
                event: None,
                fence: false,
            },
            Act::BlockGet(into) => Request::BlockGet {
                from: at,
                into: *into,
                fence: false,
            },
            Act::Atomic(amo) => Request::Atomic {
                at,
                op: amo.op,
                width: amo.width,
                operands: amo.operands,
                fetch: amo.fetch,
                ordered: true,
            },
        })
    }

    /// Handles the completion of a piece.
    pub(super) fn ended_directly(
        &mut self,
        shared: &mut Shared,
        slot: usize,
        (status, word): (Status, u64),
    ) {
        let Some(piece) = self.direct.pieces.get_mut(slot) else {
            return;
        };
        piece.tries += 1;
        let number = piece.whole;
        let may_again = match status {
            Status::Damaged | Status::Busy => true,
            status => status.is_unknown() && piece.act.is_repeatable(status),
        };
        let tried = (piece.tries, piece.since);
        let Some(whole) = self.direct.wholes.get_mut(number) else {
            return;
        };
        let to = &mut self.core.peers.all[whole.peer];
        if !status.is_unknown() && status != Status::Unreachable {
            to.is_heard = true;
        }
        let is_tried = tried.0 < TRIES || self.core.clock.is_patient(tried.1);
        if to.failed.is_none() {
            if may_again && is_tried {
                return self.core.outbox.push(Outgoing::Direct(slot));
            }
            if self.needs_renewal(slot, status) {
                return self.park(shared, slot);
            }
        }
        self.end_piece(shared, slot, (status, word));
    }

    /// A piece will not be tried again.
    pub(super) fn end_piece(
        &mut self,
        shared: &mut Shared,
        slot: usize,
        (status, word): (Status, u64),
    ) {
        let Some(piece) = self.direct.pieces.remove(slot) else {
            return;
        };
        match piece.act.is_block() {
            true => self.direct.blocks -= 1,
            false => self.direct.singles -= 1,
        }
        self.free_stage(&piece.act);
        let (number, at) = (piece.whole, piece.at);
        let Some(whole) = self.direct.wholes.get_mut(number) else {
            return;
        };
        match (status, piece.act) {
            (Status::Done, Act::Atomic(amo)) => {
                if let Whose::Served(service) = &mut whole.whose {
                    // Swap again if the word was not the expected one.
                    let again = service.found(amo, word);
                    if let Some(amo) = again
                        && let Some(slot) = self.direct.pieces.insert(Piece {
                            act: Act::Atomic(amo),
                            whole: number,
                            at,
                            tries: 0,
                            since: self.core.clock.now(),
                        })
                    {
                        self.direct.waiting[0].push_back(slot);
                        return self.issue_direct();
                    }
                } else if let Some((into, size)) = &whole.into {
                    into.fill(amo.element * size, &word.to_le_bytes()[..*size]);
                }
            }
            (Status::Done, _) => {}
            (status, _) => {
                whole.failure.get_or_insert(failure_of(status));
            }
        }
        whole.left -= 1;
        if whole.left == 0 {
            self.end_direct(shared, number);
        }
        self.issue_direct();
    }

    fn free_stage(&mut self, act: &Act) {
        if let Act::BlockPut(_, Some(stage)) = act {
            self.core.stages.remove(*stage);
        }
    }

    fn end_direct(&mut self, shared: &mut Shared, number: usize) {
        let Some(whole) = self.direct.wholes.remove(number) else {
            return;
        };
        self.core.peers.all[whole.peer].changes[0] -= usize::from(whole.is_atomic);
        match (whole.whose, whole.failure) {
            (Whose::Program(op), None) => {
                let entry = Entry {
                    len: whole.len,
                    ..Entry::default()
                };
                shared.done(&self.core.binds, &op, entry, 0);
            }
            (Whose::Program(op), Some(failure)) => {
                shared.failed(&self.core.binds, &op, Entry::default(), failure, 0);
            }
            (Whose::Served(service), failure) => {
                self.served(shared, service, failure.is_some());
            }
        }
    }

    /// The NIC is gone: all operations fail.
    pub(super) fn lose_direct(&mut self, shared: &mut Shared, failure: Failure) {
        self.direct.pieces = Slab::new(MOST_PIECES);
        self.direct.waiting = Default::default();
        (self.direct.blocks, self.direct.singles) = (0, 0);
        let wholes = std::mem::replace(&mut self.direct.wholes, Slab::new(MOST_PIECES));
        for whole in wholes.into_all() {
            if let Whose::Program(op) = whole.whose {
                shared.failed(&self.core.binds, &op, Entry::default(), failure, 0);
            }
        }
    }

    /// The remote address for the NIC, if NICs reach that memory.
    pub(super) fn reach_of(&self, peer: usize, far: &Far, len: usize) -> Option<Target> {
        let reach = Reach::of_key(far.key).filter(|_| self.core.reaches_own)?;
        let offset = far.address.checked_sub(reach.base);
        // Replace an invalid address by an offset that is out of range for every NIC.
        let offset = offset.filter(|offset| offset.checked_add(len as u64).is_some());
        Some(Target {
            peer,
            key: far.key,
            at: remote(
                &self.core.peers,
                peer,
                reach.handle,
                offset.unwrap_or(1 << 40),
            ),
        })
    }

    /// Writes into another program's memory.
    pub(super) fn put_directly(&mut self, shared: &mut Shared, to: Target, from: &Pieces, op: Op) {
        let at = to.at;
        let len = from.len();
        let mut acts = Vec::new();
        let stage = match (MOST_SINGLE + 1..=MOST_COPIED).contains(&len) {
            true => self.core.stages.insert(()),
            false => None,
        };
        if let Some(stage) = stage {
            let offset = STAGES_AT + slots::stage_at(stage);
            self.core.segment.write(offset, &from.to_vec(0, len));
            let bytes = len as u64;
            acts.push((at, Act::BlockPut(Local { offset, bytes }, Some(stage))));
        } else if len <= MOST_COPIED {
            for begin in (0..len).step_by(MOST_INLINE) {
                let data = from.to_vec(begin, MOST_INLINE.min(len - begin));
                acts.push((behind(at, begin), Act::Put(data)));
            }
        } else {
            from.visit(0, len, |begin, piece| {
                for (skip, local) in blocks(piece.address(), piece.len()) {
                    acts.push((behind(at, begin + skip), Act::BlockPut(local, None)));
                }
            });
        }
        self.begin_direct(shared, (to, Whose::Program(op)), len, None, acts);
    }

    /// Reads another program's memory.
    pub(super) fn get_directly(
        &mut self,
        shared: &mut Shared,
        from: Target,
        into: &Pieces,
        op: Op,
    ) {
        let len = into.len();
        let mut acts = Vec::new();
        into.visit(0, len, |begin, piece| {
            for (skip, local) in blocks(piece.address(), piece.len()) {
                let at = behind(from.at, begin + skip);
                let is_words = local.bytes <= MOST_INLINE as u64
                    && local.bytes.is_multiple_of(4)
                    && at.offset.is_multiple_of(4);
                let act = match is_words {
                    true => Act::Get(local),
                    false => Act::BlockGet(local),
                };
                acts.push((at, act));
            }
        });
        self.begin_direct(shared, (from, Whose::Program(op)), len, None, acts);
    }
}

/// Splits memory of the program into block transfers, each with its offset.
fn blocks(address: u64, bytes: usize) -> impl Iterator<Item = (usize, Local)> {
    (0..bytes).step_by(MOST_BLOCK).map(move |skip| {
        let bytes = MOST_BLOCK.min(bytes - skip);
        (skip, Local::own(address + skip as u64, bytes as u64))
    })
}

/// An address in a peer's memory.
pub(super) fn remote(peers: &Peers, peer: usize, handle: u16, offset: u64) -> Remote {
    Remote {
        processor: peers.all[peer].address.processor,
        handle,
        offset,
    }
}

/// The address `bytes` further on.
pub(super) const fn behind(at: Remote, bytes: usize) -> Remote {
    Remote {
        offset: at.offset + bytes as u64,
        ..at
    }
}

/// The failure of an operation whose piece ended with `status`.
const fn failure_of(status: Status) -> Failure {
    let (errno, why) = match status {
        Status::TimedOut | Status::DamagedAnswer => (libc::ETIMEDOUT, Why::Unknown),
        Status::Unreachable | Status::NotInSegment => (libc::EFAULT, Why::OwnMemory),
        Status::NoHandle
        | Status::WrongKey
        | Status::OutOfBounds
        | Status::Misaligned
        | Status::Forbidden
        | Status::Offset => (libc::EREMOTEIO, Why::Refused),
        _ => (libc::EHOSTUNREACH, Why::Unreachable),
    };
    Failure { errno, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_cut_into_blocks_that_a_network_interface_has() {
        for bytes in [1, MOST_BLOCK - 1, MOST_BLOCK, MOST_BLOCK + 1, 5 << 30] {
            let mut next = 0;
            for (skip, local) in blocks(4096, bytes) {
                assert_eq!(skip, next);
                assert_eq!(local.own_address(), Some(4096 + skip as u64));
                assert!((1..=MOST_BLOCK as u64).contains(&local.bytes));
                next += local.bytes as usize;
            }
            assert_eq!(next, bytes);
        }
        assert_eq!(blocks(4096, 0).count(), 0);
    }
}
