//! Long transfers that this endpoint has announced. Where NICs reach the memory, the peer fetches
//! from it in place. Otherwise parts are staged in the segment, from which the peer fetches them.

use std::collections::{BTreeSet, HashMap, VecDeque};

use phitwire_client::door::Status;

use super::action::Action;
use super::core::Core;
use super::landing::Source;
use super::outbox::names;
use super::parcel::{End, Parcel};
use super::ranges::{Opened, Ranges, Readers};
use super::shared::{Entry, Failure, Shared, Why};
use super::slots::{self, STAGES, STAGES_AT};
use super::wire::{Head, IN_PLACE, Kind, PART};
use crate::flags::FI_REMOTE_READ;
use crate::memory::Pieces;

/// Maximum number of staged parts of one matched transfer.
const STAGED: usize = 4;
/// Maximum number of stages kept for lost peers that may still fetch them.
const MOST_KEPT: usize = STAGES / 4;

/// A transfer that this endpoint has announced.
#[derive(Debug)]
struct Offer {
    peer: usize,
    from: Pieces,
    head: Head,
    next_part: u32,
    /// Number and stage of each staged part.
    staged: Vec<(u32, usize)>,
    taken: u64,
    /// Whether the announcement may have reached the peer.
    is_announced: bool,
    /// Whether it waits for a stage.
    is_hungry: bool,
    /// The range from which peers fetch it without stages.
    range: Option<usize>,
    source: Source,
    /// Whether its memory has been closed. The peer then ends it.
    is_closed: bool,
    /// Why it fails as soon as its range is closed.
    failure: Option<Failure>,
}

#[derive(Debug, Default)]
pub struct Offers {
    all: HashMap<u64, Offer>,
    /// Transfers that wait for a stage.
    hungry: VecDeque<u64>,
    ranges: Ranges,
    /// Peers and stages of failed transfers. Such a peer may be alive without having been notified
    /// that it is lost, and if the stage were reused, it would fetch another transfer's data.
    kept: VecDeque<(usize, usize)>,
}

impl Offers {
    /// Number of unfinished transfers.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds the peers that transfers await.
    pub(super) fn await_peers(&self, awaited: &mut BTreeSet<usize>) {
        awaited.extend(self.all.values().map(|offer| offer.peer));
    }

    /// Checks the invariants between the fields. Returns the stages in use.
    #[cfg(test)]
    pub(super) fn check(&self, core: &Core) -> usize {
        assert!(
            self.hungry.is_empty() || core.stages.room() == 0,
            "no stage is free while a transfer waits for one"
        );
        for (id, offer) in &self.all {
            assert!(offer.staged.len() <= STAGED, "few parts are staged");
            assert!(
                !offer.is_hungry || self.hungry.contains(id),
                "a transfer without a stage waits for one"
            );
            assert!(
                offer.range.is_none() || offer.staged.is_empty(),
                "a transfer is announced in one way"
            );
        }
        let users = self.all.values().filter(|offer| offer.range.is_some());
        assert_eq!(self.ranges.users(), users.count(), "each user leaves once");
        let staged: usize = self.all.values().map(|offer| offer.staged.len()).sum();
        staged + self.kept.len()
    }

    /// Stages of failed transfers.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Announces a transfer, whose operation completes when the peer has fetched all of it.
    pub(super) fn offer(
        &mut self,
        core: &mut Core,
        peer: usize,
        head: Head,
        from: Pieces,
        source: Source,
    ) {
        let id = match head.id {
            // Writes use the number of their request.
            0 => core.new_id(),
            id => id,
        };
        let kind = Kind::Ready;
        let mut offer = Offer {
            peer,
            from,
            head: Head { kind, id, ..head },
            next_part: 0,
            staged: Vec::new(),
            taken: 0,
            is_announced: false,
            is_hungry: false,
            range: None,
            source,
            is_closed: false,
            failure: None,
        };
        if let Pieces::One(bytes) = &offer.from
            && !core.peers[peer].is_self
        {
            let readers = match source {
                Source::Program(_) => Readers::Peer(peer),
                Source::Region(key) => Readers::Region(key),
            };
            offer.range = self.ranges.open(core, bytes, readers);
        }
        let is_soon = |range: &usize| self.ranges.state(*range) == Opened::Soon;
        let mut parcel = Parcel::new(offer.head, Vec::new(), End::Offer(id));
        if let Some(range) = offer.range.filter(is_soon) {
            parcel.is_ready = false;
            self.ranges.wait(range, id);
        } else {
            parcel.head = self.announcement(core, &mut offer);
        }
        let old = self.all.insert(id, offer);
        debug_assert!(old.is_none(), "each transfer has a number of its own");
        core.actions.push_back(Action::Post(peer, parcel));
    }

    /// Handles the completion of a range's registration: transfers that wait for it are announced.
    pub(super) fn registered(&mut self, core: &mut Core, number: u64, ended: (Status, u64)) {
        for id in self.ranges.registered(core, number, ended) {
            if let Some(mut offer) = self.all.remove(&id) {
                let head = self.announcement(core, &mut offer);
                core.actions.push_back(Action::Announce(offer.peer, head));
                if offer.is_closed {
                    offer.notify_closed(core);
                }
                self.all.insert(id, offer);
            }
        }
    }

    /// The announcement of a transfer, whose range is open or could not be opened.
    fn announcement(&mut self, core: &mut Core, offer: &mut Offer) -> Head {
        let state = offer.range.map(|range| self.ranges.state(range));
        debug_assert_ne!(
            state,
            Some(Opened::Soon),
            "the range of an announced transfer is open or has failed"
        );
        debug_assert!(!offer.is_announced, "a transfer is announced once");
        offer.is_announced = true;
        if let Some(Opened::Open(reach)) = state {
            return Head {
                handle: reach.handle,
                staged: offer.from.address() - reach.base,
                part: IN_PLACE,
                ..offer.head
            };
        }
        self.leave_range(offer);
        // Unmatched transfers, which may wait long, take no more than half of the stages.
        match core.stages.room() > STAGES / 2 {
            true => stage(core, offer).unwrap_or(offer.head),
            false => offer.head,
        }
    }

    fn leave_range(&mut self, offer: &mut Offer) {
        if let Some(range) = offer.range.take() {
            self.ranges.leave(range);
        }
    }

    fn stage_more(&mut self, core: &mut Core, id: u64) {
        let Some(offer) = self.all.get_mut(&id) else {
            return;
        };
        while offer.staged.len() < STAGED
            && let Some(head) = stage(core, offer)
        {
            let kind = Kind::Part;
            let action = Action::Send(offer.peer, Head { kind, ..head });
            core.actions.push_back(action);
        }
        let has_more =
            !offer.is_closed && u64::from(offer.next_part) * (PART as u64) < offer.head.len;
        if has_more && offer.staged.len() < STAGED && !offer.is_hungry {
            debug_assert_eq!(core.stages.room(), 0, "only a stage is missing");
            offer.is_hungry = true;
            self.hungry.push_back(id);
        }
    }

    /// Handles a peer's report that it has matched a transfer, or fetched a part.
    pub(super) fn took(&mut self, core: &mut Core, shared: &mut Shared, peer: usize, head: &Head) {
        let theirs = self.all.get_mut(&head.id);
        let Some(offer) = theirs.filter(|offer| offer.peer == peer && offer.is_announced) else {
            return;
        };
        offer.taken = offer.taken.saturating_add(u64::from(head.part_bytes));
        let has_ended = head.failed || head.len != 0 || offer.taken >= offer.head.len;
        free_stages(core, offer, |part| {
            has_ended || (head.part_bytes > 0 && part == head.part)
        });
        if !has_ended {
            self.stage_more(core, head.id);
        } else if let Some(mut offer) = self.all.remove(&head.id) {
            self.leave_range(&mut offer);
            offer.complete(core, shared, head.failed);
        }
    }

    /// Assigns free stages to the transfers that wait for one. Returns whether there was a stage
    /// for any.
    pub(super) fn feed(&mut self, core: &mut Core) -> bool {
        let count = self.hungry.len().min(core.stages.room());
        for _ in 0..count {
            if let Some(id) = self.hungry.pop_front() {
                if let Some(offer) = self.all.get_mut(&id) {
                    debug_assert!(offer.is_hungry, "a transfer is queued for a stage once");
                    offer.is_hungry = false;
                }
                self.stage_more(core, id);
            }
        }
        count > 0
    }

    /// Handles the completion of a range's closing: transfers that wait for that fail.
    pub(super) fn range_closed(&mut self, core: &mut Core, shared: &mut Shared, number: u64) {
        let slot = (number & !names::RANGE) as usize;
        self.ranges.closed(slot);
        let all = self.all.iter().filter_map(|(&id, offer)| {
            let failure = offer.failure.filter(|_| offer.range == Some(slot))?;
            Some((id, failure))
        });
        let mut failed: Vec<_> = all.collect();
        failed.sort_unstable_by_key(|(id, _)| *id);
        for (id, failure) in failed {
            self.fail(core, shared, id, failure);
        }
    }

    /// Frees a handle, since other memory needs one and all are in use.
    pub(super) fn spare_handle(&mut self, core: &mut Core) {
        self.ranges.close_idle(core);
    }

    /// Whether NICs may still read registered memory that has been closed.
    pub(super) fn reads(&self, key: u64) -> bool {
        self.ranges.is_closing(Readers::Region(key))
    }

    /// Handles the closing of the memory with this key: no more of it is staged or open, and the
    /// peers end their transfers.
    pub(super) fn region_closed(&mut self, core: &mut Core, key: u64) {
        let is_its = |offer: &Offer| matches!(offer.source, Source::Region(its) if its == key);
        let mut closed: Vec<_> = self
            .all
            .iter_mut()
            .filter(|(_, offer)| is_its(offer))
            .collect();
        closed.sort_unstable_by_key(|(id, _)| **id);
        for (_, offer) in closed {
            let was_closed = std::mem::replace(&mut offer.is_closed, true);
            if offer.is_announced && !was_closed {
                offer.notify_closed(core);
            }
        }
        self.ranges.close_all(core, Readers::Region(key));
    }

    /// Fails a transfer as soon as its peer, which may be alive, can no longer fetch it.
    pub(super) fn fail(&mut self, core: &mut Core, shared: &mut Shared, id: u64, failure: Failure) {
        let Some(offer) = self.all.get_mut(&id) else {
            return;
        };
        let failure = *offer.failure.get_or_insert(failure);
        let peer = &core.peers[offer.peer];
        let is_lost = peer.failed.is_some_and(|lost| lost.why != Why::Departed);
        if is_lost && !peer.is_notified && !core.is_gone {
            let staged = offer.staged.drain(..);
            self.kept
                .extend(staged.map(|(_, stage)| (offer.peer, stage)));
            while self.kept.len() > MOST_KEPT
                && let Some((_, stage)) = self.kept.pop_front()
            {
                free(core, stage);
            }
        }
        free_stages(core, offer, |_| true);
        if let Some(range) = offer.range
            && matches!(offer.source, Source::Program(_))
            && !core.is_gone
        {
            self.ranges.close(core, range);
            if self.ranges.state(range) == Opened::Closing {
                return;
            }
        }
        let Some(mut offer) = self.all.remove(&id) else {
            return;
        };
        self.leave_range(&mut offer);
        if let Source::Program(op) = offer.source {
            let entry = Entry {
                tag: op.tag,
                ..Entry::default()
            };
            shared.failed(&core.binds, &op, entry, failure, 0);
        }
    }

    /// Frees the stages kept for a lost peer, which fetches no more.
    pub(super) fn release(&mut self, core: &mut Core, peer: usize) {
        self.kept.retain(|&(its, stage)| {
            if its == peer {
                free(core, stage);
            }
            its != peer
        });
    }

    /// Handles the loss of a peer: transfers announced to it fail.
    pub(super) fn lose(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        peer: usize,
        failure: Failure,
    ) {
        let offers = self.all.iter().filter(|(_, offer)| offer.peer == peer);
        let mut ids: Vec<_> = offers.map(|(id, _)| *id).collect();
        ids.sort_unstable();
        for id in ids {
            self.fail(core, shared, id, failure);
        }
        if !core.is_gone {
            self.ranges.close_all(core, Readers::Peer(peer));
        }
    }
}

impl Offer {
    /// Tells the peer to end the transfer, since no further part will come.
    fn notify_closed(&self, core: &mut Core) {
        let (kind, failed) = (Kind::Part, true);
        let head = Head {
            kind,
            failed,
            ..self.head
        };
        core.actions.push_back(Action::Send(self.peer, head));
    }

    fn complete(&self, core: &Core, shared: &mut Shared, failed: bool) {
        let op = match self.source {
            Source::Program(op) => op,
            Source::Region(key) if !failed => {
                return shared.accessed(&core.binds, key, FI_REMOTE_READ);
            }
            Source::Region(_) => return,
        };
        let entry = Entry {
            len: self.head.len as usize,
            ..Entry::default()
        };
        let failure = Failure {
            errno: libc::EREMOTEIO,
            why: Why::Refused,
        };
        let tag = op.tag;
        match failed {
            false => shared.done(&core.binds, &op, entry, 0),
            true => shared.failed(&core.binds, &op, Entry { tag, ..entry }, failure, 0),
        }
    }
}

/// Stages the next part; returns its announcement. `None`: no stage is free, or all parts have been
/// staged.
fn stage(core: &mut Core, offer: &mut Offer) -> Option<Head> {
    let offset = offer.next_part as usize * PART;
    let bytes = (offer.head.len as usize).saturating_sub(offset).min(PART);
    if bytes == 0 || offer.is_closed {
        return None;
    }
    let stage = core.stages.insert(())?;
    let at = STAGES_AT + slots::stage_at(stage);
    offer.from.visit(offset, bytes, |done, piece| {
        piece.with(|bytes| core.segment.write(at + done as u64, bytes));
    });
    let part = offer.next_part;
    offer.next_part += 1;
    offer.staged.push((part, stage));
    debug_assert!(offer.staged.len() <= STAGED);
    Some(Head {
        handle: core.address.handle(),
        staged: slots::stage_at(stage),
        part_bytes: bytes as u32,
        part,
        ..offer.head
    })
}

fn free(core: &mut Core, stage: usize) {
    let freed = core.stages.remove(stage);
    debug_assert!(freed.is_some(), "a stage is freed once");
}

fn free_stages(core: &mut Core, offer: &mut Offer, of: impl Fn(u32) -> bool) {
    offer.staged.retain(|&(part, stage)| {
        let goes = of(part);
        if goes {
            free(core, stage);
        }
        !goes
    });
}
