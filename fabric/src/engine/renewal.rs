//! New handles for opened memory, after which late puts are rejected.
//!
//! A put that timed out may still be in flight, and would overwrite what is written later. Its
//! sender requests that the program there closes the memory and opens it again: NICs reject what
//! arrives with the old handle, and the put is repeated with the new one. All others whose commands
//! are then rejected learn the new handle in the same way; keys stay as they are. Handles of NICs
//! are reused as late as possible, so that a late put does not find another memory under its
//! handle. This is the owner's part.

use std::collections::HashMap;

use phitwire_client::door::Status;

use super::action::Action;
use super::core::Core;
use super::outbox::{Outgoing, names};
use super::reach::{access_of, lines};
use super::shared::Shared;
use super::wire::{Head, Kind};

/// Own memory that is being closed and opened again.
#[derive(Debug, Default)]
pub struct Renewal {
    /// By number: the key, and the peers that wait.
    under_way: HashMap<u64, (u64, Vec<usize>)>,
    next: u64,
}

impl Renewal {
    /// Carries out a peer's request for a new handle, or this endpoint's own.
    pub(super) fn renew(&mut self, core: &mut Core, shared: &Shared, peer: usize, head: &Head) {
        let mut under_way = self.under_way.values_mut();
        if let Some((_, waiting)) = under_way.find(|(key, _)| *key == head.key) {
            return waiting.push(peer);
        }
        let Some(reach) = shared.reach(head.key) else {
            return reply(core, peer, head.key, None);
        };
        if reach.handle != head.handle {
            return reply(core, peer, head.key, Some(reach.handle));
        }
        let number = self.next;
        self.next += 1;
        let old = self.under_way.insert(number, (head.key, vec![peer]));
        debug_assert!(old.is_none(), "each renewal has a number of its own");
        core.outbox
            .push(Outgoing::Deregister(names::RENEWAL | number, reach.handle));
    }

    /// The NIC has closed or opened memory that is being renewed.
    pub(super) fn completed(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        number: u64,
        is_opened: bool,
        (status, word): (Status, u64),
    ) {
        let Some((key, _)) = self.under_way.get(&number) else {
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
                    let name = names::RENEWAL | number;
                    let register = Outgoing::Register(name, part, access_of(access));
                    return core.outbox.push(register);
                }
                None
            }
            (Some((_, _, reach)), Some(handle)) => {
                reach.0.handle = handle;
                Some(handle)
            }
            (None, Some(handle)) if is_opened => {
                // The program has closed the memory in between.
                core.outbox.push(Outgoing::Deregister(0, handle));
                None
            }
            _ => None,
        };
        let (_, waiting) = self.under_way.remove(&number).unwrap_or_default();
        for peer in waiting {
            reply(core, peer, key, current);
        }
    }

    /// A peer is lost: it waits no more.
    pub(super) fn lose(&mut self, peer: usize) {
        for (_, waiting) in self.under_way.values_mut() {
            waiting.retain(|&waiting| waiting != peer);
        }
    }
}

fn reply(core: &mut Core, peer: usize, key: u64, handle: Option<u16>) {
    let head = Head {
        kind: Kind::Renewed,
        key,
        failed: handle.is_none(),
        handle: handle.unwrap_or(0),
        ..Head::default()
    };
    core.actions.push_back(match core.peers[peer].is_self {
        true => Action::Renewed(peer, head),
        false => Action::Tell(peer, head),
    });
}
