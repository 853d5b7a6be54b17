//! Pieces that wait for a new handle of the memory that they access.
//!
//! This endpoint requests a handle from the owner of the memory
//! ([`renewal`](super::super::renewal)); later pieces use it at once.

use phitwire_client::door::Status;

use super::super::action::Action;
use super::super::core::Core;
use super::super::outbox::Outgoing;
use super::super::reach::{NO_HANDLE, Reach};
use super::super::shared::Shared;
use super::super::wire::Head;
use super::OneSided;

impl OneSided {
    /// Keeps a piece until there is a handle with which it can be repeated.
    pub(super) fn park(&mut self, core: &mut Core, shared: &Shared, slot: usize) {
        let Some((peer, key, used)) = self.memory_of(slot) else {
            return;
        };
        let is_self = core.peers[peer].is_self;
        let current = match is_self {
            true => shared.reach(key),
            false => Reach::of_key(key),
        };
        let current = current.map(|reach| reach.handle);
        let current = self.handles.get(&(peer, key)).copied().or(current);
        let is_new = |&current: &u16| current != used && current != NO_HANDLE;
        if let Some(handle) = current.filter(is_new) {
            // No command with the old handle can take effect any more.
            self.readdress_with(slot, handle);
            return core.outbox.push(Outgoing::Direct(slot));
        }
        let parked = self.parked.entry((peer, key)).or_default();
        debug_assert!(!parked.contains(&slot), "a piece waits once");
        parked.push(slot);
        if parked.len() > 1 {
            return;
        }
        let head = Head::renewal(key, used);
        core.actions.push_back(match is_self {
            true => Action::Renew(peer, head),
            false => Action::Send(peer, head),
        });
    }

    /// Owner, key and handle of the memory that a piece accesses.
    fn memory_of(&self, slot: usize) -> Option<(usize, u64, u16)> {
        let piece = self.pieces.get(slot)?;
        let whole = self.wholes.get(piece.whole)?;
        Some((whole.peer, whole.key, piece.at.handle))
    }

    /// Sets the current handle in a piece, before it is issued.
    pub(super) fn readdress(&mut self, slot: usize) {
        if let Some((peer, key, _)) = self.memory_of(slot)
            && let Some(&handle) = self.handles.get(&(peer, key))
        {
            self.readdress_with(slot, handle);
        }
    }

    fn readdress_with(&mut self, slot: usize, handle: u16) {
        if let Some(piece) = self.pieces.get_mut(slot) {
            piece.at.handle = handle;
        }
    }

    /// Handles the owner's report of the current handle of its memory.
    pub(in super::super) fn renewed(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        peer: usize,
        head: &Head,
    ) {
        let key = (peer, head.key);
        let Some(parked) = self.parked.remove(&key) else {
            return;
        };
        if head.failed {
            self.handles.remove(&key);
        } else if !core.peers[peer].is_self {
            self.handles.insert(key, head.handle);
        }
        for slot in parked {
            match head.failed {
                true => self.end_piece(core, shared, slot, (Status::NoHandle, 0)),
                false => {
                    self.readdress_with(slot, head.handle);
                    core.outbox.push(Outgoing::Direct(slot));
                }
            }
        }
        self.issue(core);
    }

    /// Handles the loss of a peer, whose memory may have been written.
    pub(in super::super) fn lose(&mut self, core: &mut Core, shared: &mut Shared, peer: usize) {
        let keys = self.parked.keys();
        let of_peer: Vec<_> = keys.filter(|key| key.0 == peer).copied().collect();
        for key in of_peer {
            for slot in self.parked.remove(&key).unwrap_or_default() {
                self.end_piece(core, shared, slot, (Status::TimedOut, 0));
            }
        }
        self.handles.retain(|key, _| key.0 != peer);
        self.issue(core);
    }
}
