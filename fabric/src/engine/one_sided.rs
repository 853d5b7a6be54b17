//! One-sided and atomic operations that NICs carry out: puts, gets, block transfers and atomic
//! operations on memory that peers have opened ([`Reach`]), without their programs.
//!
//! An operation is one or more pieces, each a command. While the peer lives, a piece is retried in
//! two cases: it is known not to have been carried out, or repeating it changes nothing. The latter
//! holds for gets, and for puts of one packet whose answer came damaged. A put without any answer,
//! or a failed one of several packets, may still be in flight and overwrite a later one, so the
//! memory gets a new handle before the put is repeated ([`parked`]). An atomic operation that may
//! have been carried out fails.

mod parked;

use std::collections::{BTreeSet, HashMap, VecDeque};

use phitwire_client::door::{Local, MOST_INLINE, Remote, Request, Status};

use super::access::{Change, Far, Target};
use super::action::Action;
use super::amo::{Amo, amo_of, width_of, word_at};
use super::core::Core;
use super::elements::{self, Form};
use super::outbox::Outgoing;
use super::peers::PerPeer;
use super::piece::{Act, Piece, behind, blocks, failure_of, perhaps_carried_out};
use super::reach::Reach;
use super::service::Service;
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
/// Number of requests that a NIC may have outstanding; each of `PROGRAMS` programs has an equal
/// share, and one share is unassigned. Beyond its own share, a program's probes would have to wait.
const OUTSTANDING: usize = 1024;
const PROGRAMS: usize = 4;
const _: () = assert!(MOST_SINGLES + 64 <= OUTSTANDING / (PROGRAMS + 1));
/// Maximum number of pieces. The program's operations use half of them, those of peers the rest.
const MOST_PIECES: usize = 1 << 20;

/// The owner of an operation.
#[derive(Debug)]
enum Owner {
    Program(Op),
    /// A peer, whose request is carried out here.
    Served(Service),
}

/// An operation, which has one or more pieces.
#[derive(Debug)]
struct Whole {
    peer: usize,
    key: u64,
    owner: Owner,
    len: usize,
    /// Whether it is one of the program's atomic operations.
    is_atomic: bool,
    /// Destination of the words that atomic operations return, and bytes of each.
    into: Option<(Pieces, usize)>,
    /// Pieces that have not ended.
    left: usize,
    /// Whether a piece may have changed the peer's memory.
    may_have_arrived: bool,
    failure: Option<Failure>,
}

/// The operations in flight.
#[derive(Debug)]
pub struct OneSided {
    wholes: Slab<Whole>,
    pieces: Slab<Piece>,
    /// Pieces that have been issued: block transfers, and others.
    blocks: usize,
    singles: usize,
    /// Pieces to be issued: others, and block transfers.
    waiting: [VecDeque<usize>; 2],
    /// Handles of peers' memory that differ from those in the keys, by peer and key.
    handles: HashMap<(usize, u64), u16>,
    /// Pieces that wait for a handle, by peer and key.
    parked: HashMap<(usize, u64), Vec<usize>>,
    /// Unfinished atomic operations of the program on each peer's memory.
    changes: PerPeer<usize>,
}

impl Default for OneSided {
    fn default() -> Self {
        Self {
            wholes: Slab::new(MOST_PIECES),
            pieces: Slab::new(MOST_PIECES),
            blocks: 0,
            singles: 0,
            waiting: Default::default(),
            handles: HashMap::new(),
            parked: HashMap::new(),
            changes: PerPeer::default(),
        }
    }
}

/// An operation that begins: its memory, its owner, and its length in bytes.
type Begun = (Target, Owner, usize);

impl OneSided {
    /// Number of operations in flight.
    pub(super) const fn len(&self) -> usize {
        self.wholes.len()
    }

    /// Whether the program may begin another operation.
    pub(super) fn has_room(&self) -> bool {
        self.pieces.room() > MOST_PIECES / 2
    }

    /// The program's unfinished atomic operations on a peer's memory.
    pub(super) fn changes(&self, peer: usize) -> usize {
        self.changes.get(peer).copied().unwrap_or(0)
    }

    /// Adds the peers that operations await.
    pub(super) fn await_peers(&self, awaited: &mut BTreeSet<usize>) {
        awaited.extend(self.wholes.iter().map(|whole| whole.peer));
    }

    /// Unfinished operations, by kind.
    #[cfg(test)]
    pub(super) fn left(&self) -> [(&'static str, usize); 3] {
        let parked = self.parked.values().map(Vec::len).sum();
        [
            (
                "one-sided operations",
                self.wholes.len() + self.pieces.len(),
            ),
            ("parked pieces", parked),
            ("changes by NIC", self.changes.iter().sum()),
        ]
    }

    /// Number of handles received from peers.
    #[cfg(test)]
    pub(super) fn learned(&self) -> usize {
        self.handles.len()
    }

    /// Checks the invariants between the fields. Returns the stages in use.
    #[cfg(test)]
    pub(super) fn check(&self) -> usize {
        let left: usize = self.wholes.iter().map(|whole| whole.left).sum();
        assert_eq!(
            left,
            self.pieces.len(),
            "an operation ends with its last piece"
        );
        let changes = self.wholes.iter().filter(|whole| whole.is_atomic);
        let counted: usize = self.changes.iter().sum();
        assert_eq!(counted, changes.count(), "each change is counted");
        assert!(self.singles <= MOST_SINGLES && self.blocks <= MOST_BLOCKS);
        let blocks = self
            .pieces
            .iter()
            .filter(|piece| piece.act.is_block())
            .count();
        assert_eq!(
            self.blocks + self.waiting[1].len(),
            blocks,
            "a block is issued or waits"
        );
        let singles = self.pieces.len() - blocks;
        assert_eq!(
            self.singles + self.waiting[0].len(),
            singles,
            "so are others"
        );
        let mut parked = self.parked.values().flatten();
        assert!(
            parked.all(|&slot| self.pieces.get(slot).is_some()),
            "parked, not ended"
        );
        let is_staged = |piece: &&Piece| matches!(piece.act, Act::BlockPut(_, Some(_)));
        self.pieces.iter().filter(is_staged).count()
    }

    /// The request of a piece; `None` if its operation has ended.
    pub(super) fn request(&self, slot: usize) -> Option<Request<'_>> {
        Some(self.pieces.get(slot)?.request())
    }

    fn begin(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        (Target { peer, key, .. }, owner, len): Begun,
        into: Option<(Pieces, usize)>,
        acts: Vec<(Remote, Act)>,
    ) {
        let (errno, why) = (libc::EAGAIN, Why::Plain);
        let no_room = (self.pieces.room() < acts.len()).then_some(Failure { errno, why });
        let is_change = |(_, act): &(Remote, Act)| matches!(act, Act::Atomic(_));
        let is_atomic = acts.iter().any(is_change) && matches!(owner, Owner::Program(_));
        *self.changes.of(peer) += usize::from(is_atomic);
        let whole = Whole {
            peer,
            key,
            owner,
            is_atomic,
            len,
            into,
            left: acts.len(),
            may_have_arrived: false,
            failure: core.peers[peer].failed.or(no_room),
        };
        let has_failed = whole.failure.is_some();
        let Some(number) = self.wholes.insert(whole) else {
            debug_assert!(false, "programs have fewer operations");
            return;
        };
        if has_failed || acts.is_empty() {
            for (_, act) in acts {
                free_stage(core, &act);
            }
            return self.end(core, shared, number);
        }
        for (at, act) in acts {
            self.add_piece(number, at, act);
        }
        self.issue(core);
    }

    fn add_piece(&mut self, whole: usize, at: Remote, act: Act) {
        let kind = usize::from(act.is_block());
        let piece = Piece {
            whole,
            at,
            act,
            may_have_arrived: false,
        };
        let slot = self.pieces.insert(piece);
        debug_assert!(slot.is_some(), "there is room for all pieces");
        self.waiting[kind].extend(slot);
    }

    /// Issues waiting pieces, up to the NIC's limits.
    fn issue(&mut self, core: &mut Core) {
        while self.singles < MOST_SINGLES
            && let Some(slot) = self.waiting[0].pop_front()
        {
            self.singles += 1;
            self.readdress(slot);
            core.outbox.push(Outgoing::Direct(slot));
        }
        while self.blocks < MOST_BLOCKS
            && let Some(slot) = self.waiting[1].pop_front()
        {
            self.blocks += 1;
            self.readdress(slot);
            core.outbox.push(Outgoing::Direct(slot));
        }
        debug_assert!(
            self.singles + self.blocks + self.waiting.iter().map(VecDeque::len).sum::<usize>()
                == self.pieces.len(),
            "each piece is issued or waits"
        );
    }

    /// Handles the completion of a piece.
    pub(super) fn completed(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        slot: usize,
        (status, word): (Status, u64),
    ) {
        let Some(piece) = self.pieces.get_mut(slot) else {
            return;
        };
        piece.may_have_arrived |= piece.act.may_have_arrived(status);
        let may_again = piece.act.is_repeatable(status);
        let needs_renewal = piece.act.needs_renewal(status);
        let Some(whole) = self.wholes.get(piece.whole) else {
            debug_assert!(false, "an operation outlives its pieces");
            return;
        };
        let peer = whole.peer;
        if !status.is_unknown() && status != Status::Unreachable {
            core.peers.heard(peer);
        }
        if core.peers[peer].failed.is_none() {
            if may_again {
                return core.outbox.push(Outgoing::Direct(slot));
            }
            if needs_renewal {
                return self.park(core, shared, slot);
            }
        }
        self.end_piece(core, shared, slot, (status, word));
        self.issue(core);
    }

    /// Ends a piece, which is not tried again.
    fn end_piece(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        slot: usize,
        (status, word): (Status, u64),
    ) {
        let Some(piece) = self.pieces.remove(slot) else {
            return;
        };
        let issued = match piece.act.is_block() {
            true => &mut self.blocks,
            false => &mut self.singles,
        };
        debug_assert!(*issued > 0, "a piece ends once, after it was issued");
        *issued -= 1;
        free_stage(core, &piece.act);
        let (number, at) = (piece.whole, piece.at);
        let may_have_arrived = piece.may_have_arrived;
        let Some(whole) = self.wholes.get_mut(number) else {
            debug_assert!(false, "an operation outlives its pieces");
            return;
        };
        whole.may_have_arrived |= may_have_arrived;
        match (status, piece.act) {
            (Status::Done, Act::Atomic(amo)) => {
                if let Owner::Served(service) = &mut whole.owner {
                    // Swap again if the word was not the expected one.
                    if let Some(amo) = service.found(amo, word) {
                        return self.add_piece(number, at, Act::Atomic(amo));
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
        debug_assert!(whole.left > 0, "each piece counts once");
        whole.left -= 1;
        if whole.left == 0 {
            self.end(core, shared, number);
        }
    }

    fn end(&mut self, core: &mut Core, shared: &mut Shared, number: usize) {
        let Some(whole) = self.wholes.remove(number) else {
            return;
        };
        let changes = self.changes.of(whole.peer);
        debug_assert!(*changes >= usize::from(whole.is_atomic));
        *changes -= usize::from(whole.is_atomic);
        let failure = match whole.may_have_arrived {
            true => whole.failure.map(perhaps_carried_out),
            false => whole.failure,
        };
        match (whole.owner, failure) {
            (Owner::Program(op), None) => {
                let entry = Entry {
                    len: whole.len,
                    ..Entry::default()
                };
                shared.done(&core.binds, &op, entry, 0);
            }
            (Owner::Program(op), Some(failure)) => {
                shared.failed(&core.binds, &op, Entry::default(), failure, 0);
            }
            (Owner::Served(service), failure) => {
                let served = Action::Served(service, failure.is_some());
                core.actions.push_back(served);
            }
        }
    }

    /// Handles the end of the NIC: all operations fail.
    pub(super) fn end_all(&mut self, core: &Core, shared: &mut Shared, failure: Failure) {
        debug_assert!(core.is_gone, "pieces may still be carried out");
        let all = std::mem::take(self);
        for whole in all.wholes.into_all() {
            if let Owner::Program(op) = whole.owner {
                shared.failed(&core.binds, &op, Entry::default(), failure, 0);
            }
        }
    }

    /// Returns the remote address in the NIC's terms, if NICs reach that memory.
    pub(super) fn reach_of(core: &Core, peer: usize, far: &Far, len: usize) -> Option<Target> {
        let reach = Reach::of_key(far.key).filter(|_| core.reaches_own)?;
        let offset = far.address.checked_sub(reach.base);
        // Replace an invalid address by an offset that is out of range for every NIC.
        let offset = offset.filter(|offset| offset.checked_add(len as u64).is_some());
        let at = Remote {
            processor: core.peers[peer].address.processor,
            handle: reach.handle,
            offset: offset.unwrap_or(1 << 40),
        };
        Some(Target {
            peer,
            key: far.key,
            at,
        })
    }

    /// Writes into another program's memory.
    pub(super) fn put(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        to: Target,
        (from, op): (&Pieces, Op),
    ) {
        let at = to.at;
        let len = from.len();
        let mut acts = Vec::new();
        let stage = match (MOST_SINGLE + 1..=MOST_COPIED).contains(&len) {
            true => core.stages.insert(()),
            false => None,
        };
        if let Some(stage) = stage {
            let offset = STAGES_AT + slots::stage_at(stage);
            core.segment.write(offset, &from.to_vec(0, len));
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
        self.begin(core, shared, (to, Owner::Program(op), len), None, acts);
    }

    /// Reads another program's memory.
    pub(super) fn get(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        from: Target,
        (into, op): (&Pieces, Op),
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
        self.begin(core, shared, (from, Owner::Program(op), len), None, acts);
    }

    /// Has the remote NIC change elements.
    pub(super) fn change(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        (to, change): (Target, &Change),
        [operands, compare, into]: [Option<Pieces>; 3],
        op: Op,
    ) {
        let size = elements::size_of_type(change.datatype).unwrap_or(8);
        let bytes = change.count * size;
        let read = |from: Option<Pieces>| from.map(|from| from.to_vec(0, bytes));
        let (operands, compare) = (read(operands), read(compare));
        let word = |from: &Option<Vec<u8>>, element| {
            from.as_ref().map_or(0, |from| word_at(from, element, size))
        };
        let mut acts = Vec::with_capacity(change.count);
        for element in 0..change.count {
            let with = (word(&operands, element), word(&compare, element));
            let found = amo_of(change.datatype, change.op, with.0, with.1);
            let Some((op, operands)) = found else {
                debug_assert!(false, "the caller checked the kind of operation");
                continue;
            };
            let amo = Amo {
                op,
                width: width_of(size),
                operands,
                fetch: change.form != Form::Write,
                element,
            };
            acts.push((behind(to.at, element * size), Act::Atomic(amo)));
        }
        let into = into.map(|into| (into, size));
        self.begin(core, shared, (to, Owner::Program(op), bytes), into, acts);
    }

    /// Has this endpoint's NIC carry out a peer's request.
    pub(super) fn serve(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        target: Target,
        service: Service,
    ) {
        let swaps = service.swaps();
        let acts = swaps.map(|(offset, amo)| (behind(target.at, offset), Act::Atomic(amo)));
        let acts = acts.collect();
        let begun = (target, Owner::Served(service), 0);
        self.begin(core, shared, begun, None, acts);
    }
}

fn free_stage(core: &mut Core, act: &Act) {
    if let Act::BlockPut(_, Some(stage)) = act {
        let freed = core.stages.remove(*stage);
        debug_assert!(freed.is_some(), "a stage is freed once");
    }
}
