//! New handles for opened memory, after which late puts are rejected.
//!
//! A put that timed out may still be in flight, and would overwrite what is written later. Its
//! sender requests that the program there closes the memory and opens it again: NICs reject what
//! arrives with the old handle, and the put is repeated with the new one. All others whose commands
//! are then rejected learn the new handle in the same way; keys stay as they are. Handles of NICs are
//! reused as late as possible, so that a late put does not find another memory under its handle.

use std::collections::HashMap;

use phitwire_client::door::Status;

use super::direct::Act;
use super::endpoint::Endpoint;
use super::outbox::Outgoing;
use super::reach::{Reach, access_of, lines};
use super::shared::{Failure, Shared};
use super::wire::{Head, Kind};

/// Marks the names of commands that renew a handle; the number of the renewal follows.
pub const RENEWAL: u64 = 1 << 33;

/// The state of all renewals of an endpoint.
#[derive(Debug, Default)]
pub struct Renewals {
    /// Handles of peers' memory, by peer and key, where they are no longer those in the key.
    handles: HashMap<(usize, u64), u16>,
    /// Pieces that wait for a handle, by peer and key.
    parked: HashMap<(usize, u64), Vec<usize>>,
    /// Own memory that is being renewed, by number: its key, and the peers that wait.
    under_way: HashMap<u64, (u64, Vec<usize>)>,
    next: u64,
}

impl Endpoint {
    /// Whether a piece that ended so is repeated with another handle.
    pub(super) fn needs_renewal(&self, slot: usize, status: Status) -> bool {
        let Some(piece) = self.direct.pieces.get(slot) else {
            return false;
        };
        match status {
            Status::TimedOut | Status::Aborted => {
                matches!(piece.act, Act::Put(_) | Act::BlockPut(..))
            }
            // The owner says whether the memory is still there.
            Status::NoHandle => true,
            _ => false,
        }
    }

    /// Keeps a piece until there is a handle with which it can be repeated.
    pub(super) fn park(&mut self, shared: &mut Shared, slot: usize) {
        let Some((peer, key, used)) = self.access_of_piece(slot) else {
            return;
        };
        let current = self.handle_of(shared, peer, key);
        if current.is_some_and(|current| current != used) {
            // What used the old handle cannot arrive any more.
            self.address_anew_with(slot, current);
            return self.core.outbox.push(Outgoing::Direct(slot));
        }
        let parked = self.renewals.parked.entry((peer, key)).or_default();
        parked.push(slot);
        if parked.len() > 1 {
            return;
        }
        let head = Head {
            kind: Kind::Renew,
            key,
            handle: used,
            ..Head::default()
        };
        match self.core.peers.all[peer].is_self {
            true => self.renew(shared, peer, &head),
            false => self.tell(shared, peer, head),
        }
    }

    /// Owner, key and handle of the memory that a piece accesses.
    fn access_of_piece(&self, slot: usize) -> Option<(usize, u64, u16)> {
        let piece = self.direct.pieces.get(slot)?;
        let whole = self.direct.wholes.get(piece.whole)?;
        Some((whole.peer, whole.key, piece.at.handle))
    }

    /// The handle of opened memory as far as it is known here.
    fn handle_of(&self, shared: &Shared, peer: usize, key: u64) -> Option<u16> {
        if self.core.peers.all[peer].is_self {
            let region = shared.regions.get(&key)?;
            return Some(region.reach?.0.handle);
        }
        let known = self.renewals.handles.get(&(peer, key)).copied();
        known.or_else(|| Some(Reach::of_key(key)?.handle))
    }

    /// Has a piece use the current handle, before it is issued.
    pub(super) fn address_anew(&mut self, slot: usize) {
        let Some((peer, key, _)) = self.access_of_piece(slot) else {
            return;
        };
        let known = self.renewals.handles.get(&(peer, key)).copied();
        self.address_anew_with(slot, known);
    }

    fn address_anew_with(&mut self, slot: usize, handle: Option<u16>) {
        if let Some(piece) = self.direct.pieces.get_mut(slot)
            && let Some(handle) = handle
        {
            piece.at.handle = handle;
        }
    }

    /// Carries out a peer's request for a new handle, or this endpoint's own.
    pub(super) fn renew(&mut self, shared: &mut Shared, peer: usize, head: &Head) {
        let mut under_way = self.renewals.under_way.values_mut();
        if let Some((_, waiting)) = under_way.find(|(key, _)| *key == head.key) {
            return waiting.push(peer);
        }
        let region = shared.regions.get(&head.key);
        let Some((reach, _)) = region.and_then(|region| region.reach) else {
            return self.reply_renewed(shared, peer, head.key, None);
        };
        if reach.handle != head.handle {
            return self.reply_renewed(shared, peer, head.key, Some(reach.handle));
        }
        let number = self.renewals.next;
        self.renewals.next += 1;
        self.renewals
            .under_way
            .insert(number, (head.key, vec![peer]));
        self.core
            .outbox
            .push(Outgoing::Deregister(RENEWAL | number, reach.handle));
    }

    /// The NIC has closed or opened memory that is being renewed.
    pub(super) fn renewal_went_on(
        &mut self,
        shared: &mut Shared,
        number: u64,
        is_opened: bool,
        (status, word): (Status, u64),
    ) {
        let Some((key, _)) = self.renewals.under_way.get(&number) else {
            return;
        };
        let key = *key;
        let handle = u16::try_from(word).ok().filter(|_| status == Status::Done);
        let region = shared.regions.get_mut(&key);
        let reach =
            region.and_then(|region| Some((region.bytes, region.access, region.reach.as_mut()?)));
        let current = match (reach, handle) {
            (Some((bytes, access, _)), Some(_)) if !is_opened => {
                if let Some(part) = lines(&bytes) {
                    let access = access_of(access);
                    return self.core.outbox.push(Outgoing::Register(
                        RENEWAL | number,
                        part,
                        access,
                    ));
                }
                None
            }
            (Some((_, _, reach)), Some(handle)) => {
                reach.0.handle = handle;
                Some(handle)
            }
            (None, Some(handle)) if is_opened => {
                // The program has closed the memory in between.
                self.core.outbox.push(Outgoing::Deregister(0, handle));
                None
            }
            _ => None,
        };
        let (_, waiting) = self.renewals.under_way.remove(&number).unwrap_or_default();
        for peer in waiting {
            self.reply_renewed(shared, peer, key, current);
        }
    }

    fn reply_renewed(&mut self, shared: &mut Shared, peer: usize, key: u64, handle: Option<u16>) {
        let head = Head {
            kind: Kind::Renewed,
            key,
            failed: handle.is_none(),
            handle: handle.unwrap_or(0),
            ..Head::default()
        };
        match self.core.peers.all[peer].is_self {
            true => self.renewed(shared, peer, &head),
            false => self.tell(shared, peer, head),
        }
    }

    /// A peer has said under which handle its memory is open.
    pub(super) fn renewed(&mut self, shared: &mut Shared, peer: usize, head: &Head) {
        let key = (peer, head.key);
        if !head.failed && !self.core.peers.all[peer].is_self {
            self.renewals.handles.insert(key, head.handle);
        }
        for slot in self.renewals.parked.remove(&key).unwrap_or_default() {
            match head.failed {
                true => self.end_piece(shared, slot, (Status::NoHandle, 0)),
                false => {
                    self.address_anew_with(slot, Some(head.handle));
                    self.core.outbox.push(Outgoing::Direct(slot));
                }
            }
        }
    }

    /// A peer is lost: whether its memory has been written is not known.
    pub(super) fn lose_parked(&mut self, shared: &mut Shared, peer: usize, _: Failure) {
        let keys = self.renewals.parked.keys();
        let of_peer: Vec<_> = keys.filter(|key| key.0 == peer).copied().collect();
        for key in of_peer {
            for slot in self.renewals.parked.remove(&key).unwrap_or_default() {
                self.end_piece(shared, slot, (Status::TimedOut, 0));
            }
        }
        for (_, waiting) in self.renewals.under_way.values_mut() {
            waiting.retain(|&waiting| waiting != peer);
        }
    }
}
