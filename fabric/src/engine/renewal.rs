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
use super::reach::{NO_HANDLE, Reach, access_of, lines};
use super::shared::{Region, Shared};
use super::wire::{Head, Kind};

/// Own memory that is being closed and opened again. Meanwhile its handle is [`NO_HANDLE`]: the NIC
/// may assign the old one to other memory.
#[derive(Debug)]
struct Renewing {
    key: u64,
    old_handle: u16,
    /// The peers that wait.
    waiting: Vec<usize>,
    /// Whether all handles were in use, so that opening it must be tried again.
    is_full: bool,
}

/// Renewals by number.
#[derive(Debug, Default)]
pub struct Renewal {
    under_way: HashMap<u64, Renewing>,
    next: u64,
}

impl Renewal {
    /// Renewals under way.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Carries out a peer's request for a new handle, or this endpoint's own.
    pub(super) fn renew(&mut self, core: &mut Core, shared: &mut Shared, peer: usize, head: &Head) {
        let mut under_way = self.under_way.values_mut();
        if let Some(renewing) = under_way.find(|renewing| renewing.key == head.key) {
            if !renewing.waiting.contains(&peer) {
                renewing.waiting.push(peer);
            }
            return;
        }
        let region = shared.regions.get_mut(&head.key);
        let Some((reach, _)) = region.and_then(|region| region.reach.as_mut()) else {
            return reply(core, peer, head.key, None);
        };
        if reach.handle != head.handle {
            return reply(core, peer, head.key, Some(reach.handle));
        }
        let old_handle = std::mem::replace(&mut reach.handle, NO_HANDLE);
        let number = self.next;
        self.next += 1;
        let renewing = Renewing {
            key: head.key,
            old_handle,
            waiting: vec![peer],
            is_full: false,
        };
        let old = self.under_way.insert(number, renewing);
        debug_assert!(old.is_none(), "each renewal has a number of its own");
        core.outbox
            .push(Outgoing::Deregister(names::RENEWAL | number, old_handle));
    }

    /// The NIC has closed or opened memory that is being renewed, or has not.
    pub(super) fn completed(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        number: u64,
        is_opened: bool,
        (status, word): (Status, u64),
    ) {
        let Some(renewing) = self.under_way.get_mut(&number) else {
            return;
        };
        let handle = u16::try_from(word).ok().filter(|_| status == Status::Done);
        let current = match (closed(shared, renewing.key), handle) {
            (Some(region), Some(_)) if !is_opened => return register(core, number, region),
            (Some(Region { reach, .. }), None) if !is_opened => {
                set_handle(reach, renewing.old_handle);
                None
            }
            (Some(_), None) if status == Status::TooMany => {
                renewing.is_full = true;
                return;
            }
            // The NIC does not reach this memory any more.
            (Some(region), None) => {
                region.reach = None;
                None
            }
            (Some(Region { reach, .. }), Some(handle)) => {
                set_handle(reach, handle);
                Some(handle)
            }
            (None, Some(handle)) if is_opened => {
                // The program has closed the memory in between.
                core.outbox.push(Outgoing::Deregister(0, handle));
                None
            }
            (None, _) => None,
        };
        self.end(core, number, current);
    }

    /// Tries again to open memory for which there was no handle.
    pub(super) fn retry(&mut self, core: &mut Core, shared: &mut Shared) {
        let full = self.under_way.iter_mut().filter(|(_, one)| one.is_full);
        let mut full: Vec<_> = full
            .map(|(&number, one)| {
                one.is_full = false;
                (number, one.key)
            })
            .collect();
        full.sort_unstable();
        for (number, key) in full {
            match closed(shared, key) {
                Some(region) => register(core, number, region),
                None => self.end(core, number, None),
            }
        }
    }

    fn end(&mut self, core: &mut Core, number: u64, current: Option<u16>) {
        let Some(renewing) = self.under_way.remove(&number) else {
            return;
        };
        for peer in renewing.waiting {
            reply(core, peer, renewing.key, current);
        }
    }

    /// A peer is lost: it waits no more.
    pub(super) fn lose(&mut self, peer: usize) {
        for renewing in self.under_way.values_mut() {
            renewing.waiting.retain(|&waiting| waiting != peer);
        }
    }
}

/// The memory with this key, if it is closed for its renewal.
fn closed(shared: &mut Shared, key: u64) -> Option<&mut Region> {
    let region = shared.regions.get_mut(&key)?;
    let (reach, _) = region.reach?;
    (reach.handle == NO_HANDLE).then_some(region)
}

fn set_handle(reach: &mut Option<(Reach, usize)>, handle: u16) {
    if let Some((reach, _)) = reach {
        reach.handle = handle;
    }
}

fn register(core: &mut Core, number: u64, region: &Region) {
    let part = lines(&region.bytes);
    debug_assert!(part.is_some(), "it was registered before");
    if let Some(part) = part {
        let access = access_of(region.access);
        core.outbox
            .push(Outgoing::Register(names::RENEWAL | number, part, access));
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
