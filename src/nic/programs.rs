//! Local programs at NICs whose requests carry addresses instead of domains and keys.
//!
//! The address of registered memory has bit 47 set, followed by a key of the program's job, the
//! handle and the offset.
//!
//! ```text
//! bit  47  46 .. 35  34 .. 28  27 .. 0
//!       1    key      handle   offset
//! ```
//!
//! The requester's NIC inserts the key and the target's NIC compares it, so that a program can
//! access only memory that its own job has registered. Other machines have such keys in their
//! packets; on the machines without them, software achieved the same with page tables.

use std::collections::{BTreeMap, VecDeque};

use phitwire_framing::door::hello::{ANY_MEMBER, Entry, Operations};
use phitwire_framing::door::{
    Access, AtomicOp, Command, Completion, Local, Remote, Request, Status, Width,
};

use super::local::{Client, LocalPort, Taken, key_of, member_of};
use super::memory::{MAX_WINDOWS, Window};
use crate::time::Time;

/// Bit that marks addresses of registered memory.
const MARK: u64 = 1 << 47;
const KEY_SHIFT: u32 = 35;
const KEY_BITS: u32 = 47 - KEY_SHIFT;
const HANDLE_SHIFT: u32 = 28;
const HANDLES: usize = 1 << (KEY_SHIFT - HANDLE_SHIFT);
/// Largest registration, in bytes.
const MOST_BYTES: u64 = 1 << HANDLE_SHIFT;
const MOST_HANDLES: usize = HANDLES / 4;
/// Registrations begin at multiples of this value, so that offsets and addresses have the same
/// cache lines.
const LINE: u64 = 64;
/// The outstanding requests are shared between the programs and one more user (IP or the next
/// program). Each program can have at least this many.
const LEAST_REQUESTS: u32 = 16;

const _: () = assert!(
    MAX_WINDOWS < u8::MAX as usize,
    "a client number is a byte, and not zero"
);

/// A program's request for remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteRequest<'a> {
    Put(&'a [u8]),
    Get(u8),
    /// Update a word with these operands.
    Atomic(AtomicOp, [u64; 2]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// Completed, with the bytes read or the old word.
    Done(&'a [u8]),
    Refused,
    /// The request arrived damaged and was not carried out.
    Damaged,
    /// The request may or may not have been carried out.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The request must wait; offer it again later.
    Later,
    /// The request can never be posted, for this reason.
    For(Status),
}

/// A NIC that supports puts and gets for programs, and optionally atomic operations.
pub trait RemoteMemory {
    /// The NIC's processor number, if it has one.
    fn known_as(&self) -> Option<u16>;

    fn most_bytes(&self) -> u16;

    fn has_atomics(&self) -> bool;

    fn most_requests(&self) -> u32;

    fn programs(&mut self) -> &mut Programs;

    /// Posts a request to processor `to`, and returns the number by which [`Programs::ended`]
    /// reports its completion.
    ///
    /// # Errors
    /// See [`Refused`].
    fn ask(
        &mut self,
        now: Time,
        to: u16,
        address: u64,
        asked: RemoteRequest<'_>,
        ordered: bool,
    ) -> Result<u64, Refused>;
}

#[derive(Debug)]
struct Slot {
    job: u64,
    member: u8,
    key: u64,
    window: Box<dyn Window>,
    requests: u32,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    client: Client,
    part: Local,
    access: Access,
}

#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    /// `None` after the program has exited.
    client: Option<Client>,
    name: u64,
    /// For a get: the offset in the program's data for the bytes read.
    into: Option<u64>,
    fetch: bool,
}

/// The local programs of one NIC: their memory, registrations and requests.
#[derive(Debug, Default)]
pub struct Programs {
    slots: Vec<Option<Slot>>,
    parts: Vec<Option<Part>>,
    /// The last assigned handle.
    handle: usize,
    under_way: BTreeMap<u64, PendingRequest>,
    ended: VecDeque<(Client, Completion)>,
}

fn key_in_address(job: u64) -> u64 {
    (u64::from(key_of(job, ANY_MEMBER)) & ((1 << KEY_BITS) - 1)).max(1)
}

#[inline]
pub const fn is_registered(address: u64) -> bool {
    // Exclude the mark itself, the address of run announcements.
    address > MARK && address < MARK << 1
}

impl Programs {
    fn slot(&mut self, client: Client) -> Option<&mut Slot> {
        let index = usize::from(client.0).checked_sub(1)?;
        self.slots.get_mut(index)?.as_mut()
    }

    fn live(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().flatten()
    }

    fn attach(
        &mut self,
        job: u64,
        member: u8,
        window: Box<dyn Window>,
    ) -> Result<(Client, u8), Entry> {
        let is_taken = |member| {
            self.live()
                .any(|slot| (slot.job, slot.member) == (job, member))
        };
        let member = member_of(member, is_taken)?;
        let key = key_in_address(job);
        if self.live().any(|slot| (slot.job != job) && slot.key == key) {
            return Err(Entry::KeyTaken);
        }
        if self.slots.is_empty() {
            self.slots.resize_with(MAX_WINDOWS, || None);
            self.parts.resize(HANDLES, None);
        }
        debug_assert_eq!(
            (self.slots.len(), self.parts.len()),
            (MAX_WINDOWS, HANDLES),
            "every client and every handle has a slot"
        );
        let free = self.slots.iter().position(Option::is_none);
        let index = free.ok_or(Entry::Full)?;
        self.slots[index] = Some(Slot {
            job,
            member,
            key,
            window,
            requests: 0,
        });
        Ok((Client(index as u8 + 1), member))
    }

    /// Removes a program; its requests finish without an owner.
    fn detach(&mut self, client: Client) {
        let Some(slot) = self.slots.get_mut(usize::from(client.0).wrapping_sub(1)) else {
            return;
        };
        *slot = None;
        for part in &mut self.parts {
            part.take_if(|part| part.client == client);
        }
        let its = self.under_way.values_mut();
        for request in its.filter(|request| request.client == Some(client)) {
            request.client = None;
        }
        self.ended.retain(|(whose, _)| *whose != client);
    }

    fn register(&mut self, client: Client, part: Local, access: Access) -> Result<u64, Status> {
        let bytes = self.slot(client).ok_or(Status::NotYours)?.window.size();
        inside(bytes, part)?;
        if !part.offset.is_multiple_of(LINE) {
            return Err(Status::Offset);
        }
        if !(1..=MOST_BYTES).contains(&part.bytes) {
            return Err(Status::Length);
        }
        let its = self.parts.iter().flatten();
        if its.filter(|part| part.client == client).count() == MOST_HANDLES {
            return Err(Status::TooMany);
        }
        // Reuse freed handles as late as possible.
        let mut handles = (1..=HANDLES).map(|step| (self.handle + step) % HANDLES);
        let free = handles.find(|&handle| self.parts[handle].is_none());
        let handle = free.ok_or(Status::TooMany)?;
        self.parts[handle] = Some(Part {
            client,
            part,
            access,
        });
        self.handle = handle;
        Ok(handle as u64)
    }

    fn deregister(&mut self, client: Client, handle: u16) -> Result<u64, Status> {
        let part = self.parts.get_mut(usize::from(handle));
        let its = part.and_then(|part| part.take_if(|part| part.client == client));
        its.map(|_| 0).ok_or(Status::NotYours)
    }

    /// The program whose registered memory contains the `len` bytes at an address, and their offset
    /// in its data, if the access is allowed.
    fn find(&self, address: u64, len: usize, may: fn(Access) -> bool) -> Option<(usize, u64)> {
        let handle = (address >> HANDLE_SHIFT) as usize % HANDLES;
        let Part {
            client,
            part,
            access,
        } = (*self.parts.get(handle)?)?;
        let index = usize::from(client.0) - 1;
        let slot = self.slots[index].as_ref()?;
        let offset = address % MOST_BYTES;
        let is_inside = offset + len as u64 <= part.bytes;
        let is_its = (address & (MARK - 1)) >> KEY_SHIFT == slot.key;
        (is_inside && is_its && may(access)).then_some((index, part.offset + offset))
    }

    /// Writes to registered memory; `false` if that is not allowed.
    pub fn write(&mut self, address: u64, data: &[u8]) -> bool {
        let found = self.find(address, data.len(), |access| access.put);
        let Some((index, offset)) = found else {
            return false;
        };
        if let Some(slot) = &mut self.slots[index] {
            slot.window.write(offset, data);
        }
        true
    }

    /// Reads registered memory; `false` if that is not allowed.
    pub fn read(&self, address: u64, out: &mut [u8]) -> bool {
        let found = self.find(address, out.len(), |access| access.get);
        let Some((index, offset)) = found else {
            return false;
        };
        if let Some(slot) = &self.slots[index] {
            slot.window.read(offset, out);
        }
        true
    }

    /// Updates a word of registered memory atomically for its program, and returns the old value;
    /// `None` if that is not allowed.
    pub(crate) fn update(&mut self, address: u64, change: &dyn Fn(u64) -> u64) -> Option<u64> {
        let (index, offset) = self.find(address, 8, |access| access.atomic)?;
        let slot = self.slots[index].as_mut()?;
        let is_aligned = offset.is_multiple_of(8);
        is_aligned.then(|| slot.window.update(offset, change))
    }

    pub fn ended(&mut self, name: u64, answer: Answer<'_>) {
        let Some(request) = self.under_way.remove(&name) else {
            debug_assert!(false, "a program's request is kept until it ends");
            return;
        };
        let Some(client) = request.client else {
            return;
        };
        let Some(slot) = self.slot(client) else {
            return;
        };
        debug_assert!(slot.requests > 0, "each request of a program ends once");
        slot.requests -= 1;
        let (status, word) = match answer {
            Answer::Done(data) => {
                if let Some(offset) = request.into {
                    slot.window.write(offset, data);
                }
                let word = data.first_chunk().filter(|_| request.fetch);
                (
                    Status::Done,
                    word.map_or(0, |&word| u64::from_le_bytes(word)),
                )
            }
            // A rejection carries no reason; report an access out of bounds.
            Answer::Refused => (Status::OutOfBounds, 0),
            Answer::Damaged => (Status::Damaged, 0),
            Answer::Unknown => (Status::TimedOut, 0),
        };
        let completion = Completion::End {
            name: request.name,
            status,
            word,
            bytes: 0,
        };
        self.ended.push_back((client, completion));
    }
}

/// Checks that a range lies in a program's data.
fn inside(bytes: u64, part: Local) -> Result<(), Status> {
    match part.offset.checked_add(part.bytes) {
        Some(end) if end <= bytes => Ok(()),
        _ => Err(Status::NotInSegment),
    }
}

/// The address of `remote` for programs of the job with that key.
fn address_of(key: u64, remote: Remote, len: u64) -> Result<u64, Status> {
    let handle = u64::from(remote.handle);
    if handle >= HANDLES as u64 {
        return Err(Status::NoHandle);
    }
    match remote.offset.checked_add(len) {
        Some(end) if end <= MOST_BYTES => {
            debug_assert!(0 < key && key < 1 << KEY_BITS, "the key fits its field");
            let address = MARK | key << KEY_SHIFT | handle << HANDLE_SHIFT | remote.offset;
            debug_assert!(is_registered(address), "targets look for it in programs");
            Ok(address)
        }
        _ => Err(Status::Offset),
    }
}

/// A command's request to another NIC.
struct Wanted<'a> {
    at: Remote,
    asked: RemoteRequest<'a>,
    ordered: bool,
    into: Option<Local>,
    fetch: bool,
}

fn wanted<'a>(request: &Request<'a>) -> Result<Wanted<'a>, Status> {
    Ok(match *request {
        Request::Put {
            to,
            data,
            event: false,
            ordered,
        } => Wanted {
            at: to,
            asked: RemoteRequest::Put(data),
            ordered,
            into: None,
            fetch: false,
        },
        Request::Get {
            from,
            into,
            ordered,
        } => Wanted {
            at: from,
            asked: RemoteRequest::Get(u8::try_from(into.bytes).map_err(|_| Status::Length)?),
            ordered,
            into: Some(into),
            fetch: false,
        },
        Request::Atomic {
            at,
            op,
            width: Width::Bits64,
            operands,
            fetch,
            ordered,
        } => Wanted {
            at,
            asked: RemoteRequest::Atomic(op, operands),
            ordered,
            into: None,
            fetch,
        },
        _ => return Err(Status::Unsupported),
    })
}

/// Posts a client's request if it is allowed.
fn begin(
    nic: &mut impl RemoteMemory,
    now: Time,
    client: Client,
    command: &Command<'_>,
) -> Result<(), Refused> {
    let wanted = wanted(&command.request).map_err(Refused::For)?;
    let most = nic.most_requests();
    let longest = u64::from(nic.most_bytes());
    let programs = nic.programs();
    let shares = 1 + programs.live().count() as u32;
    let slot = programs.slot(client);
    let slot = slot.ok_or(Refused::For(Status::NotYours))?;
    let len = match wanted.asked {
        RemoteRequest::Put(data) => data.len() as u64,
        RemoteRequest::Get(len) => len.into(),
        RemoteRequest::Atomic(..) => 8,
    };
    if !(1..=longest).contains(&len) {
        return Err(Refused::For(Status::Length));
    }
    if let Some(into) = wanted.into {
        inside(slot.window.size(), into).map_err(Refused::For)?;
    }
    let address = address_of(slot.key, wanted.at, len).map_err(Refused::For)?;
    let is_at_its_share = slot.requests >= (most / shares).max(LEAST_REQUESTS);
    // Include requests of exited programs until they complete.
    let all = programs.under_way.len() as u32;
    if is_at_its_share || all >= (most - most / shares).max(1) {
        return Err(Refused::Later);
    }
    let name = nic.ask(
        now,
        wanted.at.processor,
        address,
        wanted.asked,
        wanted.ordered,
    )?;
    let programs = nic.programs();
    let request = PendingRequest {
        client: Some(client),
        name: command.name,
        into: wanted.into.map(|into| into.offset),
        fetch: wanted.fetch,
    };
    let before = programs.under_way.insert(name, request);
    debug_assert!(before.is_none(), "the name is still in use");
    if let Some(slot) = programs.slot(client) {
        slot.requests += 1;
    }
    debug_assert!(
        programs
            .live()
            .map(|slot| slot.requests as usize)
            .sum::<usize>()
            <= programs.under_way.len(),
        "requests of programs are under way"
    );
    Ok(())
}

impl<N: RemoteMemory> LocalPort for N {
    fn processor(&self) -> Option<u16> {
        self.known_as()
    }

    fn longest_put(&self) -> u16 {
        self.most_bytes()
    }

    fn operations(&self) -> Operations {
        Operations {
            atomics: self.has_atomics(),
            ..Operations::NONE
        }
    }

    fn attach(
        &mut self,
        job: u64,
        member: u8,
        window: Box<dyn Window>,
    ) -> Result<(Client, u8), Entry> {
        self.known_as().ok_or(Entry::NoNumber)?;
        self.programs().attach(job, member, window)
    }

    fn detach(&mut self, _: Time, client: Client) {
        self.programs().detach(client);
    }

    fn command(&mut self, now: Time, client: Client, command: &Command<'_>) -> Taken {
        let done = match command.request {
            Request::Register { part, access } => self.programs().register(client, part, access),
            Request::Deregister { handle } => self.programs().deregister(client, handle),
            _ => match begin(self, now, client, command) {
                Ok(()) => return Taken::UnderWay,
                Err(Refused::Later) => return Taken::Later,
                Err(Refused::For(status)) => Err(status),
            },
        };
        match done {
            Ok(word) => Taken::Ended(Status::Done, word),
            Err(status) => Taken::refused(status),
        }
    }

    fn next_completion(&mut self) -> Option<(Client, Completion)> {
        self.programs().ended.pop_front()
    }
}
