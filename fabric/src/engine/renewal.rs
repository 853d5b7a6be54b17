//! New handles for opened memory, after which late puts are rejected.
//!
//! A put that timed out may still be in flight, and would overwrite what is written later. Its
//! sender requests that the program there close the memory and open it again. NICs then reject
//! commands with the old handle, and the put is repeated with the new one. Other peers whose
//! commands are rejected get the new handle in the same way; keys do not change. NICs reuse handles
//! as late as possible, so that a late put does not reach other memory under its handle. This
//! module is the owner's side.
//!
//! Only the endpoint that opened memory can close it. If a peer sends its request to another
//! endpoint of the domain, that endpoint passes it on as a [`Note`]. If the first endpoint has
//! closed, the one with the request opens the memory.
//!
//! When a peer that may be alive is lost, all memory that it may write gets a new handle. The peer
//! does not get that handle, so nothing from it arrives after that.

use std::collections::HashMap;

use phitwire_client::door::Status;

use super::action::Action;
use super::core::Core;
use super::outbox::{Outgoing, names};
use super::reach::{NO_HANDLE, access_of, lines};
use super::shared::{Note, Open, Region, Shared};
use super::wire::{Address, Head, Kind};
use crate::flags::FI_REMOTE_WRITE;

/// Local memory that is being closed and opened again. Until then its handle is [`NO_HANDLE`], as
/// the NIC may assign the old one to other memory.
#[derive(Debug)]
struct Renewing {
    key: u64,
    old_handle: u16,
    waiting: Vec<Waiter>,
    /// Whether all handles were in use, so that opening the memory must be tried again.
    is_full: bool,
}

/// A peer that waits for a handle, and the endpoint of this domain that has its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    pub endpoint: Address,
    pub peer: usize,
}

/// Renewals by number.
#[derive(Debug, Default)]
pub struct Renewal {
    under_way: HashMap<u64, Renewing>,
    next: u64,
}

impl Renewal {
    /// Number of renewals in progress.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Whether memory of a key is being closed or opened, perhaps after the program has closed it.
    pub(super) fn renews(&self, key: u64) -> bool {
        self.under_way.values().any(|renewing| renewing.key == key)
    }

    /// Carries out a request for a new handle, or passes it to the endpoint that opened the memory.
    pub(super) fn renew(
        &mut self,
        core: &mut Core,
        shared: &mut Shared,
        waiter: Waiter,
        head: &Head,
    ) {
        let mut under_way = self.under_way.values_mut();
        if let Some(renewing) = under_way.find(|renewing| renewing.key == head.key) {
            if !renewing.waiting.contains(&waiter) {
                renewing.waiting.push(waiter);
            }
            return;
        }
        let region = shared.regions.get_mut(&head.key);
        let Some(Open { reach, by }) = region.and_then(|region| region.open.as_mut()) else {
            return reply(core, shared, waiter, head.key, None);
        };
        if let Some(to) = by.filter(|by| *by != core.address) {
            let Waiter { endpoint, peer } = waiter;
            return shared.leave_note(Note {
                to,
                from: endpoint,
                peer,
                head: *head,
            });
        }
        let is_open = by.replace(core.address).is_some();
        if is_open && reach.handle != head.handle {
            let handle = Some(reach.handle);
            return reply(core, shared, waiter, head.key, handle);
        }
        let old_handle = std::mem::replace(&mut reach.handle, NO_HANDLE);
        let number = self.next;
        self.next += 1;
        let renewing = Renewing {
            key: head.key,
            old_handle,
            waiting: vec![waiter],
            is_full: false,
        };
        let old = self.under_way.insert(number, renewing);
        debug_assert!(old.is_none(), "each renewal has a number of its own");
        match closed(shared, head.key).filter(|_| !is_open) {
            Some(region) => register(core, number, region),
            None => close(core, number, old_handle),
        }
    }

    /// Handles the loss of a peer that may be alive: all memory that it may write gets a new
    /// handle.
    pub(super) fn renew_all(&mut self, core: &mut Core, shared: &mut Shared) {
        let all = shared.regions.iter().filter_map(|(&key, region)| {
            let handle = region.open?.reach.handle;
            let may_write = region.access & FI_REMOTE_WRITE != 0;
            (may_write && handle != NO_HANDLE).then_some((key, handle))
        });
        let mut all: Vec<_> = all.collect();
        all.sort_unstable();
        let waiter = Waiter {
            endpoint: core.address,
            peer: core.peers.own(),
        };
        for (key, handle) in all {
            let head = Head::renewal(key, handle);
            self.renew(core, shared, waiter, &head);
        }
    }

    /// Handles the completion of closing or opening memory that is being renewed.
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
        let key = renewing.key;
        let current = match (closed(shared, key), handle) {
            (Some(region), Some(_)) if !is_opened => return register(core, number, region),
            (Some(region), None) if !is_opened => {
                set_handle(region, renewing.old_handle);
                None
            }
            (Some(_), None) if status == Status::TooMany => {
                renewing.is_full = true;
                return;
            }
            // The NIC does not reach this memory any more.
            (Some(region), None) => {
                region.open = None;
                None
            }
            (Some(region), Some(handle)) => {
                set_handle(region, handle);
                shared.mark_renewed(key);
                Some(handle)
            }
            // The program has closed the memory since.
            (None, Some(handle)) if is_opened => return close(core, number, handle),
            (None, _) => None,
        };
        self.end(core, shared, number, current);
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
                None => self.end(core, shared, number, None),
            }
        }
    }

    fn end(&mut self, core: &mut Core, shared: &mut Shared, number: u64, current: Option<u16>) {
        let Some(renewing) = self.under_way.remove(&number) else {
            return;
        };
        for waiter in renewing.waiting {
            reply(core, shared, waiter, renewing.key, current);
        }
    }

    /// Handles the loss of a peer, which no longer waits for a handle.
    pub(super) fn lose(&mut self, core: &Core, peer: usize) {
        let endpoint = core.address;
        let lost = Waiter { endpoint, peer };
        for renewing in self.under_way.values_mut() {
            renewing.waiting.retain(|&waiting| waiting != lost);
        }
    }

    /// Closes the endpoint, and returns requests to the endpoints of its domain that passed them
    /// on.
    pub(super) fn close(&mut self, core: &Core, shared: &mut Shared) {
        let mut all: Vec<_> = self.under_way.drain().collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        for (_, renewing) in all {
            for Waiter { endpoint, peer } in renewing.waiting {
                shared.leave_note(Note {
                    to: core.address,
                    from: endpoint,
                    peer,
                    head: Head::renewal(renewing.key, renewing.old_handle),
                });
            }
        }
        shared.endpoint_closed(core.address);
    }
}

/// The memory with this key, if it is closed for its renewal.
fn closed(shared: &mut Shared, key: u64) -> Option<&mut Region> {
    let region = shared.regions.get_mut(&key)?;
    (region.open?.reach.handle == NO_HANDLE).then_some(region)
}

const fn set_handle(region: &mut Region, handle: u16) {
    if let Some(open) = &mut region.open {
        open.reach.handle = handle;
    }
}

fn close(core: &mut Core, number: u64, handle: u16) {
    core.outbox
        .push(Outgoing::Deregister(names::RENEWAL | number, handle));
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

fn reply(core: &mut Core, shared: &mut Shared, to: Waiter, key: u64, handle: Option<u16>) {
    let head = Head {
        kind: Kind::Renewed,
        key,
        failed: handle.is_none(),
        handle: handle.unwrap_or(0),
        ..Head::default()
    };
    let Waiter { endpoint, peer } = to;
    if endpoint != core.address {
        return shared.leave_note(Note {
            to: endpoint,
            from: core.address,
            peer,
            head,
        });
    }
    core.actions.push_back(match core.peers[peer].is_self {
        true => Action::Renewed(peer, head),
        false => Action::Send(peer, head),
    });
}
