//! Local programs (clients) of an Aries NIC.
//!
//! A client's window is a part of memory that block transfers, requests and receives can address. A
//! job has one protection key for memory, and one per member for messages ("Cray XC Network
//! Software Stack": communication domains). The NIC inserts the key into every request of its
//! clients, so a program cannot use another job's key.

use std::collections::{BTreeSet, VecDeque};

use phitwire_framing::aries::flit::NodeId;
use phitwire_framing::aries::packet::{MAX_DATA, Operands, Width as WordWidth};
use phitwire_framing::door::hello::{ANY_MEMBER, Entry, Operations};
use phitwire_framing::door::{
    Access, Command, Completion as DoorCompletion, Local, Remote, Request, Status, Width,
};

use super::bte::TransferOwner;
use super::client_collectives::Owners;
use super::client_words::{amo_of, client_of, refusal_of_block, refusal_of_post, routing, tagged};
use super::completion::TargetEvent;
use super::domain::{DOMAIN_ALIGNMENT, Domain, HANDLES, Permissions, RegisterError};
use super::interface::Owner;
use super::responder::Responder;
use super::traffic::RUN_DOMAIN;
use super::{AriesNic, BlockOperation, BlockTransfer, Operation, Post};
use super::{Receive, RemoteAddress, Target};
use phitwire::nic::local::{Client, LocalPort, MEMBERS, Taken, key_of, member_of};
use phitwire::nic::memory::{Memory, OWN_AT, Window};
use phitwire::time::Time;

const MOST_HANDLES: usize = 512;
const MOST_RECEIVES: u32 = 512;
const MOST_TRANSFERS: u32 = 128;
/// The outstanding packets for single requests are shared equally between the clients and one more
/// user (IP or the next client). A client's share is at least this.
const LEAST_REQUESTS: u32 = 16;

#[derive(Debug)]
pub(super) struct Slot {
    job: u64,
    member: u8,
    /// Protection key of the client's memory and of messages to the client.
    key: u16,
    port: u16,
    bytes: u64,
    /// Requests and transfers in progress.
    requests: u32,
    transfers: u32,
    pub(super) receives: u32,
    handles: BTreeSet<u16>,
    has_gone: bool,
}

#[derive(Debug, Default)]
pub(super) struct Clients {
    /// Indexed by window.
    slots: Vec<Option<Slot>>,
    /// The last assigned handle.
    handle: u16,
    /// Virtual numbers of nodes, sorted by node.
    pub(super) numbers: Vec<(NodeId, u16)>,
    pub(super) engines: Owners,
    /// Completions that cross the host interface, by arrival.
    pub(super) crossing: VecDeque<(Time, Client, DoorCompletion)>,
}

impl Clients {
    pub(super) fn slot(&mut self, client: Client) -> Option<&mut Slot> {
        let index = usize::from(client.0).checked_sub(1)?;
        let slot = self.slots.get_mut(index)?.as_mut();
        slot.filter(|slot| !slot.has_gone)
    }

    /// Whether a program has ever attached.
    pub(super) fn are_in_use(&self) -> bool {
        !self.slots.is_empty()
    }

    fn live(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().flatten().filter(|slot| !slot.has_gone)
    }

    pub(super) fn owner(&self, handle: u16) -> Option<Client> {
        let has_it = |slot: &Option<Slot>| {
            let slot = slot.as_ref();
            slot.is_some_and(|slot| slot.handles.contains(&handle))
        };
        let index = self.slots.iter().position(has_it)?;
        Some(Client(index as u8 + 1))
    }

    /// The key of a client's job, and the size of its window.
    pub(super) fn key_and_bytes(&mut self, client: Client) -> Option<(u16, u64)> {
        self.slot(client).map(|slot| (slot.key, slot.bytes))
    }

    pub(super) fn has_engine(&self, engine: u8) -> bool {
        let owner = self.engines.get(usize::from(engine));
        owner.is_some_and(Option::is_some)
    }

    pub(super) fn number_of(&self, node: NodeId) -> u16 {
        let at = self
            .numbers
            .binary_search_by_key(&node.bits(), |(node, _)| node.bits());
        at.map_or(u16::MAX, |at| self.numbers[at].1)
    }

    /// Admits a program of a job, and returns its member number.
    fn admit(&self, job: u64, member: u8, own_key: Option<u16>) -> Result<u8, Entry> {
        let is_taken = |member| {
            self.live()
                .any(|slot| (slot.job, slot.member) == (job, member))
        };
        let member = member_of(member, is_taken)?;
        let keys = [key_of(job, ANY_MEMBER), key_of(job, member)];
        let others = self.live().filter(|slot| slot.job != job);
        let theirs = others.flat_map(|slot| [slot.key, slot.port]);
        let ports = self
            .live()
            .filter(|slot| slot.job == job)
            .map(|slot| slot.port);
        let collides = theirs.chain(own_key).any(|key| keys.contains(&key))
            || ports.chain([keys[0]]).any(|port| port == keys[1]);
        match collides {
            true => Err(Entry::KeyTaken),
            false => Ok(member),
        }
    }
}

impl Slot {
    const fn is_idle(&self) -> bool {
        self.requests == 0 && self.transfers == 0
    }

    /// Address of a part of the client's window or of its own memory.
    fn address_of(&self, window: usize, part: Local) -> Result<u64, Status> {
        address_of(window, self.bytes, part)
    }
}

/// Address of a part of a window of `bytes` bytes, or of the program's own memory.
pub(super) fn address_of(window: usize, bytes: u64, part: Local) -> Result<u64, Status> {
    if let Some(address) = part.own_address() {
        return Ok(Memory::window_base(window) + OWN_AT + address);
    }
    match part.offset.checked_add(part.bytes) {
        Some(end) if end <= bytes => Ok(Memory::window_base(window) + part.offset),
        _ => Err(Status::NotInSegment),
    }
}

/// Whether both ends of a domain are readable now.
fn is_there(memory: &Memory, domain: &Domain) -> bool {
    let last = domain.length.saturating_sub(4);
    let is_there = |offset| memory.read(domain.base + offset, &mut [0; 4]).is_ok();
    is_there(0) && is_there(last)
}

fn taken<E>(result: Result<(), E>, refusal: impl FnOnce(&E) -> Option<Status>) -> Taken {
    match result {
        Ok(()) => Taken::UnderWay,
        Err(error) => refusal(&error).map_or(Taken::Later, Taken::refused),
    }
}

impl AriesNic {
    fn post_of_client(
        &mut self,
        now: Time,
        (client, name): (Client, u64),
        (at, key): (Remote, u16),
        operation: Operation<'_>,
        ordered: bool,
    ) -> Taken {
        let post = Post {
            at: RemoteAddress {
                target: Target::Virtual(at.processor.into()),
                handle: at.handle,
                key,
                offset: at.offset,
            },
            operation,
            routing: routing(ordered),
        };
        let owner = Owner::User(tagged(client, name));
        taken(self.interface.post(now, owner, &post), refusal_of_post)
    }

    fn transfer_of_client(
        &mut self,
        now: Time,
        (client, name): (Client, u64),
        target: u16,
        operation: BlockOperation,
        (local, length): (u64, u64),
        event: Option<u64>,
    ) -> Taken {
        let transfer = BlockTransfer {
            target: Target::Virtual(target.into()),
            operation,
            local,
            length,
            routing: routing(false),
            fence: false,
            event,
            user: tagged(client, name),
        };
        let Some(channel) = self.interface.transfers.idlest() else {
            return Taken::Later;
        };
        taken(
            self.interface.transfer(now, channel, transfer),
            refusal_of_block,
        )
    }

    /// Starts requests and transfers, which complete later.
    fn ask_for(
        &mut self,
        now: Time,
        (client, name): (Client, u64),
        request: &Request<'_>,
    ) -> Result<Taken, Status> {
        let who = (client, name);
        let slot = self.clients.slot(client).ok_or(Status::NotYours)?;
        let (key, job, bytes) = (slot.key, slot.job, slot.bytes);
        let window = usize::from(client.0) - 1;
        let address_of = |part| address_of(window, bytes, part);
        Ok(match *request {
            Request::Put {
                to,
                data,
                event,
                ordered,
            } => {
                let operation = Operation::Put { data, event };
                self.post_of_client(now, who, (to, key), operation, ordered)
            }
            Request::Get {
                from,
                into,
                ordered,
            } => {
                let len = u8::try_from(into.bytes).map_err(|_| Status::Length)?;
                let operation = Operation::Get {
                    len,
                    into: Some(address_of(into)?),
                    flag: None,
                };
                self.post_of_client(now, who, (from, key), operation, ordered)
            }
            Request::Atomic {
                at,
                op,
                width,
                operands: [first, second],
                fetch,
                ordered,
            } => {
                let operation = Operation::Atomic {
                    op: amo_of(op),
                    width: match width {
                        Width::Bits64 => WordWidth::Bits64,
                        Width::Bits32 => WordWidth::Bits32,
                    },
                    operands: Operands { first, second },
                    fetch,
                    into: None,
                };
                self.post_of_client(now, who, (at, key), operation, ordered)
            }
            Request::BlockPut {
                to, from, event, ..
            } => {
                let (handle, offset) = (handle_of(to)?, to.offset);
                let operation = BlockOperation::Put {
                    handle,
                    key,
                    offset,
                };
                let local = (address_of(from)?, from.bytes);
                self.transfer_of_client(now, who, to.processor, operation, local, event)
            }
            Request::BlockGet { from, into, .. } => {
                let (handle, offset) = (handle_of(from)?, from.offset);
                let operation = BlockOperation::Get {
                    handle,
                    key,
                    offset,
                };
                let local = (address_of(into)?, into.bytes);
                self.transfer_of_client(now, who, from.processor, operation, local, None)
            }
            Request::Send {
                processor,
                member,
                from,
            } if member < MEMBERS => {
                let key = key_of(job, member);
                let operation = BlockOperation::Send { key };
                let local = (address_of(from)?, from.bytes);
                self.transfer_of_client(now, who, processor, operation, local, None)
            }
            _ => Taken::refused(Status::Unsupported),
        })
    }

    /// Maximum number of outstanding single requests of a client.
    fn share(&self) -> u32 {
        let shares = 1 + self.clients.live().count() as u32;
        (self.config().max_outstanding() / shares).max(LEAST_REQUESTS)
    }

    fn register_for(
        &mut self,
        client: Client,
        window: usize,
        part: Local,
        access: Access,
    ) -> Result<u64, Status> {
        let Some(slot) = self.clients.slot(client) else {
            return Err(Status::NotYours);
        };
        if slot.handles.len() == MOST_HANDLES {
            return Err(Status::TooMany);
        }
        let base = slot.address_of(window, part)?;
        if !base.is_multiple_of(DOMAIN_ALIGNMENT) {
            return Err(Status::Offset);
        }
        let domain = Domain {
            base,
            length: part.bytes,
            key: slot.key,
            permissions: Permissions {
                put: access.put,
                get: access.get,
                atomic: access.atomic,
            },
        };
        let Responder {
            domains, memory, ..
        } = &mut self.interface.responder;
        let memory = memory.memory();
        if part.own_address().is_some() && !is_there(memory, &domain) {
            return Err(Status::Unreachable);
        }
        // Search from the last handle on, so that handles are reused as late as possible.
        let last = self.clients.handle;
        let next = |step| (last + step) % HANDLES;
        let mut handles = (1..=HANDLES)
            .map(next)
            .filter(|&handle| handle != RUN_DOMAIN);
        let free = handles.find(|&handle| domains.get(handle).is_none());
        let handle = free.ok_or(Status::TooMany)?;
        domains
            .register(handle, domain, memory)
            .map_err(|error| match error {
                RegisterError::Alignment | RegisterError::Bounds { length: 0, .. } => {
                    Status::Length
                }
                RegisterError::Bounds { .. } => Status::NotInSegment,
                RegisterError::Handle(_) | RegisterError::InUse(_) => Status::TooMany,
            })?;
        self.clients.handle = handle;
        if let Some(slot) = self.clients.slot(client) {
            slot.handles.insert(handle);
        }
        Ok(handle.into())
    }

    fn receive_for(&mut self, client: Client, name: u64, local: u64, length: u64) -> Taken {
        let Some(slot) = self.clients.slot(client) else {
            return Taken::refused(Status::NotYours);
        };
        let receive = Receive {
            local,
            length,
            key: slot.port,
            user: tagged(client, name),
        };
        if slot.receives == MOST_RECEIVES || !self.interface.responder.receives.post(receive) {
            return Taken::refused(Status::TooMany);
        }
        slot.receives += 1;
        Taken::UnderWay
    }

    fn take_back(&mut self, client: Client, name: u64) -> Taken {
        let found = self
            .interface
            .responder
            .receives
            .take_back(tagged(client, name));
        if found && let Some(slot) = self.clients.slot(client) {
            slot.receives -= 1;
        }
        Taken::Ended(Status::Done, found.into())
    }

    /// Records the end of a client's request or transfer. Returns whether the client is still
    /// attached.
    pub(super) fn has_ended(&mut self, client: Client, is_transfer: bool) -> bool {
        let window = usize::from(client.0) - 1;
        let Some(slot) = self.clients.slots.get_mut(window).and_then(Option::as_mut) else {
            debug_assert!(false, "a slot stays until all its requests have ended");
            return false;
        };
        match is_transfer {
            true => slot.transfers -= 1,
            false => slot.requests -= 1,
        }
        if slot.has_gone {
            self.forget_gone(client);
            return false;
        }
        true
    }

    /// Forgets an exited client once none of its operations is open.
    fn forget_gone(&mut self, client: Client) {
        let window = usize::from(client.0) - 1;
        let slot = &mut self.clients.slots[window];
        if slot
            .as_ref()
            .is_some_and(|slot| slot.has_gone && slot.is_idle())
        {
            *slot = None;
            self.interface.responder.memory.windows_mut().detach(window);
        }
    }
}

/// Handles have 12 bits; larger ones are rejected.
fn handle_of(remote: Remote) -> Result<u16, Status> {
    match remote.handle {
        handle if handle < HANDLES => Ok(handle),
        _ => Err(Status::NoHandle),
    }
}

impl LocalPort for AriesNic {
    fn processor(&self) -> Option<u16> {
        self.virtual_number()
    }

    fn longest_put(&self) -> u16 {
        MAX_DATA as u16
    }

    fn operations(&self) -> Operations {
        Operations::ALL
    }

    fn attach(
        &mut self,
        job: u64,
        member: u8,
        window: Box<dyn Window>,
    ) -> Result<(Client, u8), Entry> {
        self.virtual_number().ok_or(Entry::NoNumber)?;
        let own_key = self.domain(RUN_DOMAIN).map(|domain| domain.key);
        let member = self.clients.admit(job, member, own_key)?;
        let bytes = window.size();
        let memory = self.interface.responder.memory.windows_mut();
        let index = memory.attach(window).ok_or(Entry::Full)?;
        let slots = &mut self.clients.slots;
        if slots.len() <= index {
            slots.resize_with(index + 1, || None);
        }
        slots[index] = Some(Slot {
            job,
            member,
            key: key_of(job, ANY_MEMBER),
            port: key_of(job, member),
            bytes,
            requests: 0,
            transfers: 0,
            receives: 0,
            handles: BTreeSet::new(),
            has_gone: false,
        });
        self.number_nodes();
        Ok((Client(index as u8 + 1), member))
    }

    fn detach(&mut self, now: Time, client: Client) {
        let Some(slot) = self.clients.slot(client) else {
            return;
        };
        slot.has_gone = true;
        for handle in core::mem::take(&mut slot.handles) {
            self.deregister(handle);
        }
        self.leave_engines(now, client);
        let responder = &mut self.interface.responder;
        responder.receives.forget(client);
        // Drop the client's events, which would otherwise be delivered to its successor.
        let is_its = |event: &TargetEvent| match *event {
            TargetEvent::Received { user, .. } => client_of(user) == Some(client),
            _ => false,
        };
        responder.events.retain(|event| !is_its(event));
        self.clients
            .crossing
            .retain(|&(_, whose, _)| whose != client);
        self.interface.give_up(now, TransferOwner::User(client.0));
        self.forget_gone(client);
    }

    fn command(&mut self, now: Time, client: Client, command: &Command<'_>) -> Taken {
        let name = command.name;
        let share = self.share();
        let Some(slot) = self.clients.slot(client) else {
            return Taken::refused(Status::NotYours);
        };
        let window = usize::from(client.0) - 1;
        let done = |result: Result<u64, Status>| match result {
            Ok(word) => Taken::Ended(Status::Done, word),
            Err(status) => Taken::refused(status),
        };
        let is_transfer = match command.request {
            Request::Register { part, access } => {
                return done(self.register_for(client, window, part, access));
            }
            Request::Deregister { handle } => {
                let had = slot.handles.remove(&handle);
                if had {
                    self.deregister(handle);
                }
                return done(if had { Ok(0) } else { Err(Status::NotYours) });
            }
            Request::Receive { into } => {
                return match slot.address_of(window, into) {
                    Ok(local) => self.receive_for(client, name, local, into.bytes),
                    Err(status) => Taken::refused(status),
                };
            }
            Request::CancelReceive => return self.take_back(client, name),
            Request::Collective(ref request) => {
                let taken = self.collective_of_client(now, (client, name), request);
                if let (Taken::UnderWay, Some(slot)) = (taken, self.clients.slot(client)) {
                    slot.requests += 1;
                }
                return taken;
            }
            Request::Put { .. } | Request::Get { .. } | Request::Atomic { .. } => false,
            Request::BlockPut { fence, .. } | Request::BlockGet { fence, .. } => {
                // A fence waits only for the client's own transfers.
                if fence && slot.transfers > 0 {
                    return Taken::Later;
                }
                true
            }
            Request::Send { .. } => true,
        };
        if slot.requests >= share || slot.transfers >= MOST_TRANSFERS {
            return Taken::Later;
        }
        let taken = self
            .ask_for(now, (client, name), &command.request)
            .unwrap_or_else(Taken::refused);
        if taken == Taken::UnderWay
            && let Some(slot) = self.clients.slot(client)
        {
            slot.requests += u32::from(!is_transfer);
            slot.transfers += u32::from(is_transfer);
        }
        taken
    }

    fn flush(&mut self) {
        self.interface.responder.memory.windows_mut().flush();
    }

    fn next_completion(&mut self) -> Option<(Client, DoorCompletion)> {
        let Some(host) = &self.interface.requester.host else {
            return self.next_ended();
        };
        let now = host.now();
        let crossing = &mut self.clients.crossing;
        crossing.front().filter(|(at, ..)| *at <= now)?;
        let (_, client, completion) = crossing.pop_front()?;
        Some((client, completion))
    }
}
