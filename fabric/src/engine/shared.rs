//! State shared by the endpoints of a domain: completion queues, counters, address vectors,
//! registered memory.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use super::reach::{NO_HANDLE, Reach, SERIALS};
use super::slots::Slab;
use super::wire::{Address, Head, Kind};
use crate::flags::{FI_ADDR_NOTAVAIL, FI_READ, FI_RECV, FI_REMOTE_WRITE, FI_SEND, FI_WRITE};
use crate::memory::Bytes;

/// Maximum number of objects of a kind in a domain.
pub const MOST_OBJECTS: usize = 65_536;

/// A failure: libfabric's error number, and our own reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    pub errno: i32,
    pub why: Why,
}

/// The reason for a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Why {
    /// No details beyond libfabric's error number.
    Plain = 0,
    /// The peer cannot be reached; the operation was not carried out.
    Unreachable,
    /// The peer can no longer be reached; the operation may have been carried out.
    Unknown,
    /// The peer has no such memory, or has not opened it for that access.
    Refused,
    /// The peer's program has ended.
    Departed = 5,
    /// A peer that may have been the sender can no longer be reached.
    SomeoneLost,
    /// Memory of this program no longer exists.
    OwnMemory,
}

impl Why {
    pub const fn text(number: i32) -> &'static std::ffi::CStr {
        match number {
            1 => c"the peer cannot be reached; the operation was not carried out",
            2 => c"the peer cannot be reached; the operation may have been carried out, or not",
            3 => c"the peer has no such registered memory, or does not allow this access",
            5 => c"the peer's program has ended",
            6 => c"a peer that might have sent a message can no longer be reached",
            7 => c"memory of this program is no longer mapped, or does not allow this access",
            _ => c"see the error number",
        }
    }
}

/// A completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The operation's context, a pointer of the program.
    pub context: usize,
    /// libfabric's flags of the operation.
    pub flags: u64,
    /// Length in bytes.
    pub len: usize,
    /// Address of the message within a multi-receive buffer.
    pub buf: u64,
    /// The sender's data.
    pub data: u64,
    pub tag: u64,
}

/// A completion queue.
#[derive(Debug, Default)]
pub struct Queue {
    /// Completions, and their sources.
    pub entries: VecDeque<(Entry, u64)>,
    /// Failures, each with the bytes of the message that did not fit.
    pub errors: VecDeque<(Entry, Failure, usize)>,
    /// Whether the next waiting read returns immediately.
    pub is_signalled: bool,
}

impl Queue {
    /// Whether a waiting read would return.
    pub fn has_news(&self) -> bool {
        self.is_signalled || !self.entries.is_empty() || !self.errors.is_empty()
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Counter {
    /// Number of completions.
    pub value: u64,
    /// Number of failures.
    pub errors: u64,
    /// Both values, as the program last read them.
    seen: (u64, u64),
}

impl Counter {
    /// Reads the counter for the program.
    pub const fn read(&mut self) -> Self {
        self.seen = (self.value, self.errors);
        *self
    }

    /// Whether the counter has changed since the program last read it.
    pub const fn has_news(&self) -> bool {
        self.seen.0 != self.value || self.seen.1 != self.errors
    }
}

/// An address vector.
#[derive(Debug, Default)]
pub struct Vector {
    all: Vec<Option<Address>>,
    numbers: HashMap<Address, u64>,
}

impl Vector {
    /// Adds an address and returns its number.
    pub fn insert(&mut self, address: Address) -> u64 {
        let number = self.all.len() as u64;
        self.all.push(Some(address));
        self.numbers.entry(address).or_insert(number);
        debug_assert!(
            self.numbers.len() <= self.all.len(),
            "an address has one number"
        );
        number
    }

    pub fn remove(&mut self, number: u64) {
        let slot = self.all.get_mut(number as usize);
        if let Some(address) = slot.and_then(Option::take)
            && self.numbers.get(&address) == Some(&number)
        {
            self.numbers.remove(&address);
        }
    }

    pub fn get(&self, number: u64) -> Option<Address> {
        *self.all.get(usize::try_from(number).ok()?)?
    }

    /// The number of an address; `FI_ADDR_NOTAVAIL` if it has none.
    pub fn number(&self, address: &Address) -> u64 {
        self.numbers
            .get(address)
            .copied()
            .unwrap_or(FI_ADDR_NOTAVAIL)
    }

    pub fn numbers(&self) -> u64 {
        self.all.len() as u64
    }

    pub fn len(&self) -> usize {
        self.numbers.len()
    }
}

/// Registered memory.
#[derive(Clone, Debug)]
pub struct Region {
    pub bytes: Bytes,
    pub access: u64,
    /// The remote address of the first byte.
    pub base: u64,
    /// How NICs reach the memory, if they do.
    pub open: Option<Open>,
    /// Counters of peers' operations on the memory, each with its flag: `FI_REMOTE_READ` or
    /// `FI_REMOTE_WRITE`.
    pub counters: Vec<(u64, usize)>,
}

/// Memory that is open to NICs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Its handle and base.
    pub reach: Reach,
    /// The endpoint that opened the memory, the only one that can close it; `None` once that
    /// endpoint has closed, which also closes the memory.
    pub by: Option<Address>,
}

/// A request from one endpoint of a domain to another, about memory that the other has opened, or
/// the reply.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    pub to: Address,
    pub from: Address,
    /// The peer for which the endpoint makes the request.
    pub peer: usize,
    pub head: Head,
}

/// An object of a domain, by slot, that endpoints and memory are bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    Queue(usize),
    Counter(usize),
    Vector(usize),
}

/// The objects that an endpoint is bound to.
#[derive(Clone, Debug, Default)]
pub struct Binds {
    pub vector: Option<usize>,
    /// Queue of sends and one-sided operations, and whether they complete there only on request.
    pub transmit: Option<(usize, bool)>,
    /// Likewise for receives.
    pub receive: Option<(usize, bool)>,
    /// Counters by flag.
    pub counters: BTreeMap<u64, usize>,
}

impl Binds {
    /// Whether the endpoint is bound to an object.
    pub fn has(&self, object: Object) -> bool {
        match object {
            Object::Queue(slot) => [self.transmit, self.receive]
                .into_iter()
                .flatten()
                .any(|(bound, _)| bound == slot),
            Object::Counter(slot) => self.counters.values().any(|&bound| bound == slot),
            Object::Vector(slot) => self.vector == Some(slot),
        }
    }
}

/// The completion attributes of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    pub context: usize,
    /// `FI_SEND`, `FI_RECV`, `FI_READ` or `FI_WRITE`, with `FI_MSG` and so on.
    pub flags: u64,
    /// Whether success is reported to the queue.
    pub reports_success: bool,
    /// Whether a message completes only when the peer's program has received it, not already when
    /// the peer's NIC has. All other operations complete only when they are done at the peer.
    pub is_delivery: bool,
    /// The tag, for failures.
    pub tag: u64,
}

impl Op {
    const fn is_receive(&self) -> bool {
        self.flags & (FI_RECV | FI_REMOTE_WRITE) != 0
    }

    /// Whether this is an injected message, whose completion no program waits for. Programs do wait
    /// for all their writes to remote memory.
    pub(super) const fn is_injected(&self) -> bool {
        self.context == 0 && !self.reports_success && self.flags & FI_SEND != 0
    }

    const fn direction(&self) -> u64 {
        self.flags & (FI_SEND | FI_RECV | FI_READ | FI_WRITE)
    }
}

/// State shared by the endpoints of a domain.
#[derive(Debug)]
pub struct Shared {
    pub queues: Slab<Queue>,
    pub counters: Slab<Counter>,
    pub vectors: Slab<Vector>,
    /// Whether operations of peers are counted (`FI_RMA_EVENT`). NICs do not report them, so the
    /// program carries them out: its memory is not opened to NICs.
    pub counts: bool,
    /// Registered memory by key.
    pub regions: HashMap<u64, Region>,
    next_key: u64,
    /// Keys whose memory has a different handle than the key contains. They are not assigned again:
    /// peers may still hold that handle, which may stand for other memory by then.
    renewed: HashSet<u64>,
    /// Notes that have not been taken.
    notes: VecDeque<Note>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            queues: Slab::new(MOST_OBJECTS),
            counters: Slab::new(MOST_OBJECTS),
            vectors: Slab::new(MOST_OBJECTS),
            counts: false,
            regions: HashMap::new(),
            next_key: 1,
            renewed: HashSet::new(),
            notes: VecDeque::new(),
        }
    }
}

impl Shared {
    fn queue(&mut self, binds: &Binds, op: &Op) -> Option<&mut Queue> {
        let queue = match op.is_receive() {
            true => binds.receive,
            false => binds.transmit,
        };
        self.queues.get_mut(queue?.0)
    }

    fn counter(&mut self, binds: &Binds, op: &Op) -> Option<&mut Counter> {
        let counter = *binds.counters.get(&op.direction())?;
        self.counters.get_mut(counter)
    }

    /// Completes an operation.
    pub fn done(&mut self, binds: &Binds, op: &Op, entry: Entry, source: u64) {
        if let Some(counter) = self.counter(binds, op) {
            counter.value += 1;
        }
        if op.reports_success
            && let Some(queue) = self.queue(binds, op)
        {
            let flags = entry.flags | op.flags;
            let context = op.context;
            let entry = Entry {
                context,
                flags,
                ..entry
            };
            queue.entries.push_back((entry, source));
        }
    }

    /// Fails an operation. Failures are always reported, except of injected messages: programs
    /// would take the entry for one of their own operations.
    pub fn failed(&mut self, binds: &Binds, op: &Op, entry: Entry, failure: Failure, over: usize) {
        if let Some(counter) = self.counter(binds, op) {
            counter.errors += 1;
        }
        if !op.is_injected()
            && let Some(queue) = self.queue(binds, op)
        {
            let flags = entry.flags | op.flags;
            let context = op.context;
            let entry = Entry {
                context,
                flags,
                ..entry
            };
            queue.errors.push_back((entry, failure, over));
        }
    }

    /// Counts a peer's operation on the memory of a key, once for each counter: `flags` are
    /// `FI_REMOTE_READ`, `FI_REMOTE_WRITE` or both.
    pub(super) fn accessed(&mut self, binds: &Binds, key: u64, flags: u64) {
        let region = self.regions.get(&key);
        let of_region = region.into_iter().flat_map(|region| &region.counters);
        let of_endpoint = binds.counters.iter().map(|(&flag, &slot)| (flag, slot));
        let all = of_endpoint.chain(of_region.copied());
        let counting = all.filter(|(flag, _)| flag & flags != 0);
        let slots: BTreeSet<_> = counting.map(|(_, slot)| slot).collect();
        for slot in slots {
            if let Some(counter) = self.counters.get_mut(slot) {
                counter.value += 1;
            }
        }
    }

    /// Whether an object counts operations on registered memory.
    pub fn counts_by(&self, object: Object) -> bool {
        let mut counters = self.regions.values().flat_map(|region| &region.counters);
        counters.any(|&(_, slot)| object == Object::Counter(slot))
    }

    /// The handle and base of a key's memory, if NICs reach it.
    pub(super) fn reach(&self, key: u64) -> Option<Reach> {
        Some(self.regions.get(&key)?.open?.reach)
    }

    /// Exchanges the state of the domain with another program's.
    #[cfg(test)]
    pub(super) fn swap_domain(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.regions, &mut other.regions);
        std::mem::swap(&mut self.next_key, &mut other.next_key);
        std::mem::swap(&mut self.renewed, &mut other.renewed);
        std::mem::swap(&mut self.notes, &mut other.notes);
    }

    /// A new key, for memory that NICs do not reach.
    pub const fn new_key(&mut self) -> u64 {
        self.next_key += 1;
        self.next_key - 1
    }

    /// A new key for memory that NICs reach; `None` if no free key can contain the reach.
    pub fn new_key_of(&mut self, reach: Reach) -> Option<u64> {
        (0..SERIALS).find_map(|_| {
            let key = reach.key(self.new_key())?;
            let is_new = !self.renewed.contains(&key) && !self.regions.contains_key(&key);
            is_new.then_some(key)
        })
    }

    /// Records that the memory of a key has a different handle than the key contains.
    pub(super) fn mark_renewed(&mut self, key: u64) {
        self.renewed.insert(key);
    }

    /// Leaves a note for another endpoint.
    pub(super) fn leave_note(&mut self, note: Note) {
        self.notes.push_back(note);
    }

    /// Takes the oldest note for an endpoint.
    pub(super) fn take_note(&mut self, to: Address) -> Option<Note> {
        let at = self.notes.iter().position(|note| note.to == to)?;
        self.notes.remove(at)
    }

    /// Handles the closing of an endpoint, whose NIC has closed all memory that it had opened.
    /// Another endpoint opens that memory again when a peer requests its handle.
    pub(super) fn endpoint_closed(&mut self, address: Address) {
        let opened = self
            .regions
            .values_mut()
            .flat_map(|region| &mut region.open);
        for open in opened.filter(|open| open.by == Some(address)) {
            open.by = None;
            open.reach.handle = NO_HANDLE;
        }
        self.notes.retain_mut(|note| {
            let is_ours = note.to == address;
            let is_asked = is_ours && note.head.kind == Kind::Renew && note.from != address;
            if is_asked {
                note.to = note.from;
            }
            !is_ours || is_asked
        });
    }

    /// `len` bytes at `address` of registered memory, if it is open for `access`.
    pub fn region(&self, key: u64, address: u64, len: u64, access: u64) -> Option<Bytes> {
        let region = self.regions.get(&key)?;
        let offset = usize::try_from(address.checked_sub(region.base)?).ok()?;
        let part = region.bytes.part(offset, usize::try_from(len).ok()?)?;
        (region.access & access == access).then_some(part)
    }
}
