//! Requests that await their response, by packet id.
//!
//! A packet id has 12 bits, as is publicly known of the registers, and a NIC has up to 1,024
//! packets outstanding (XC white paper, "Aries Performance"), so at least three of four ids are
//! free. Every id is a [slot](phitwire::nic::slab). The upper half of the ids serves the hashed
//! modes, by the hash of the cache line, and the lower half the ordered modes; adaptive packets use
//! both halves. A response must carry the id and the [period](phitwire::nic::periods) in which the
//! request was posted: the echo, whose five bits distinguish 32 periods.

use phitwire_framing::aries::flit::{Lines, NodeId, Routing};
use phitwire_framing::aries::packet::{Command, ECHO_BITS};

use phitwire::nic::RunRequest;
use phitwire::nic::periods::Periods;
use phitwire::nic::slab::{Entry, Slab};
use phitwire::time::Time;

const IDS: u16 = 1 << 12;
/// Maximum number of outstanding packets (XC white paper, "Aries Performance").
pub const MAX_OUTSTANDING: u32 = 1024;
/// Maximum number of outstanding packets beyond the limit of all others. They let the collective
/// engine and transaction events progress on a NIC busy with puts.
pub(crate) const RESERVED: u32 = 64;
/// Number of these packets that users' requests may use, so that a traffic run or block transfer
/// that uses all others does not block users.
pub(crate) const RESERVED_FOR_USERS: u32 = 16;

/// Regions of ids: one for modes without a hash, then one for each hash value.
const REGIONS: usize = 1 + Lines::HASHES as usize;

/// Length of the cycle in which adaptive requests take ids from all regions, in proportion to their
/// sizes.
const TURNS: usize = 2 * Lines::HASHES as usize;

const fn region_of(id: u32) -> usize {
    match Lines::of(id as u16) {
        None => 0,
        Some(hash) => 1 + hash as usize,
    }
}

/// The share of the outstanding packets that a request may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// A traffic run or a block transfer: only within the limit.
    Bulk,
    /// A user: a few beyond the limit, while users have few outstanding.
    User,
    /// The collective engine, or the event of a transaction: the whole reserve.
    Reserve,
}

/// A packet id of 12 bits, which identifies one outstanding request of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketId(u16);

impl PacketId {
    /// The id with these 12 bits; higher bits are ignored.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & (IDS - 1))
    }

    pub const fn bits(self) -> u16 {
        self.0
    }

    const fn index(self) -> u32 {
        self.0 as u32
    }
}

/// The identity of a request, repeated in its response: id and echo.
pub(crate) type RequestName = (PacketId, u8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferStep {
    Chunk,
    Open,
    /// The last packet, sent after the responses to all others.
    End,
}

/// The part of the NIC that gets the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOrigin {
    /// The caller that posted, with the value that the completion repeats.
    User(u64),
    Transaction(u16),
    TransactionEvent(u16),
    Traffic(RunRequest),
    /// A transfer of the block transfer engine, by its slot.
    Transfer(u8, TransferStep),
    /// The collective engine, with its request number.
    Collective(u32),
    Probe(u64),
}

/// The destination of a response's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Landing {
    /// Unwanted bytes at the front, because gets read whole words.
    pub skip: u8,
    /// Wanted bytes after those; for a block transfer, also the number of bytes sent.
    pub take: u8,
    /// Local address for the wanted bytes; `None` for the completion.
    pub local: Option<u64>,
    /// Address and value of a flag to write after the data.
    pub flag: Option<(u64, u64)>,
}

impl Landing {
    /// No data is expected.
    pub(crate) const NONE: Self = Self {
        skip: 0,
        take: 0,
        local: None,
        flag: None,
    };
}

/// State of a request until its response arrives.
///
/// The parts are as in the [`Outstanding`] table, so that the answer path copies whole words. A
/// field-wise copy would be read back before it reaches the cache, and the read would wait for all
/// older stores, including those to other requests' slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    entry: PendingEntry,
    target: LocalTarget,
}

impl core::ops::Deref for Pending {
    type Target = PendingEntry;

    #[inline]
    fn deref(&self) -> &PendingEntry {
        &self.entry
    }
}

impl RequestOrigin {
    const fn is_user(self) -> bool {
        matches!(self, Self::User(_) | Self::Transaction(_))
    }
}

/// The part of [`Pending`] that most requests need: one cache line with the links of its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingEntry {
    pub posted: Time,
    pub origin: RequestOrigin,
    pub offset: u64,
    pub node: NodeId,
    pub command: Command,
    pub handle: u16,
    /// Data bytes of a successful response.
    pub answer_bytes: u8,
    /// `skip` and `take` are those of [`Landing`].
    pub skip: u8,
    pub take: u8,
    /// The request has a [`LocalTarget`].
    pub has_target: bool,
}

const _: () = assert!(
    size_of::<PendingEntry>() <= 48,
    "an entry fits into a cache line with the links of its slot"
);

/// Local address for a response's data, and the flag written after it.
pub(crate) type LocalTarget = (Option<u64>, Option<(u64, u64)>);

impl PendingEntry {
    pub(crate) const NONE: Self = Self {
        posted: Time::ZERO,
        origin: RequestOrigin::User(0),
        offset: 0,
        node: NodeId::from_bits(0),
        command: Command::Put { event: false },
        handle: 0,
        answer_bytes: 0,
        skip: 0,
        take: 0,
        has_target: false,
    };
}

impl Pending {
    /// A request whose response's data goes to `landing`.
    #[inline]
    pub(crate) const fn new(request: PendingEntry, landing: Landing) -> Self {
        let Landing {
            skip,
            take,
            local,
            flag,
        } = landing;
        let entry = PendingEntry {
            skip,
            take,
            has_target: local.is_some() || flag.is_some(),
            ..request
        };
        Self {
            entry,
            target: (local, flag),
        }
    }

    #[inline]
    pub(crate) const fn landing(&self) -> Landing {
        let (local, flag) = self.target;
        Landing {
            skip: self.entry.skip,
            take: self.entry.take,
            local,
            flag,
        }
    }
}

impl Entry for PendingEntry {
    #[inline]
    fn posted(&self) -> Time {
        self.posted
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Outstanding {
    pub slab: Slab<PendingEntry>,
    /// Local targets by packet id; valid only if [`PendingEntry::has_target`] is set.
    local_targets: Vec<LocalTarget>,
    capacity: u32,
    /// Number of outstanding requests of users.
    users: u32,
    turn: usize,
}

const fn echo_of(period: u32) -> u8 {
    period as u8 & ((1 << ECHO_BITS) - 1)
}

impl Outstanding {
    /// Room for `capacity` requests and the [`RESERVED`] ones, starting in the current period of
    /// `periods`.
    ///
    /// # Panics
    /// If `capacity` is zero or above [`MAX_OUTSTANDING`]; the configuration is checked earlier.
    pub(crate) fn new(capacity: u32, periods: Periods) -> Self {
        assert!(
            (1..=MAX_OUTSTANDING).contains(&capacity),
            "the configuration limits the capacity"
        );
        Self {
            slab: Slab::in_regions(
                IDS.into(),
                PendingEntry::NONE,
                periods,
                (REGIONS, region_of),
            ),
            local_targets: Vec::new(),
            capacity,
            users: 0,
            turn: 0,
        }
    }

    /// The region for the id of a request with the given mode and address; `None` if no id is free.
    #[inline]
    fn region(&self, routing: Routing, address: u64) -> Option<usize> {
        let has = |region: &usize| self.slab.has_slot_in(*region);
        if routing.is_hashed() {
            return Some(1 + usize::from(Lines::hash(address))).filter(has);
        }
        if routing.is_deterministic() {
            return Some(0).filter(has);
        }
        // The id of an adaptive packet does not affect its path, so the regions take turns.
        let region = (self.turn % TURNS).saturating_sub(TURNS - REGIONS);
        Some(region).filter(has).or_else(|| (0..REGIONS).find(has))
    }

    /// Whether an id is free for a request with the given mode and address, provided that there is
    /// [room](Self::has_room).
    #[inline]
    pub(crate) fn has_id(&self, routing: Routing, address: u64) -> bool {
        self.region(routing, address).is_some()
    }

    #[inline]
    pub(crate) fn has_room(&self, share: Share) -> bool {
        let reserve = match share {
            Share::Reserve => RESERVED,
            Share::User if self.users < RESERVED_FOR_USERS.min(self.capacity) => RESERVED,
            Share::User | Share::Bulk => 0,
        };
        self.slab.used() < self.capacity + reserve && self.has_id(Routing::default(), 0)
    }

    /// Whether the echo matches the period in which the id was last used.
    #[inline]
    pub(crate) fn is_recent(&self, id: PacketId, echo: u8) -> bool {
        self.slab.period(id.index()).map(echo_of) == Some(echo)
    }

    /// Begins a request and returns its id and echo.
    ///
    /// `pending.posted` must not be earlier than that of any request begun before.
    ///
    /// # Panics
    /// If there is no room even in the reserve, or no free id. Check [`has_room`](Self::has_room)
    /// first, and [`has_id`](Self::has_id) for a deterministic mode.
    // Inlined so that `pending` stays in registers: a copy would stall on its stores.
    #[inline(always)]
    pub(crate) fn begin(&mut self, pending: Pending, routing: Routing) -> (PacketId, u8) {
        assert!(self.has_room(Share::Reserve), "the caller checked for room");
        let region = self.region(routing, pending.offset);
        let Pending { entry, target } = pending;
        let begun = region.and_then(|region| self.slab.begin_in(region, entry));
        let (index, period) = begun.expect("the caller checked for a free id");
        if entry.has_target {
            self.set_local_target(index, target);
        }
        self.turn = self.turn.wrapping_add(1);
        self.users += u32::from(pending.origin.is_user());
        (PacketId(index as u16), echo_of(period))
    }

    fn set_local_target(&mut self, index: u32, target: LocalTarget) {
        let index = index as usize;
        if self.local_targets.len() <= index {
            self.local_targets.resize(index + 1, (None, None));
        }
        self.local_targets[index] = target;
    }

    /// Assembles the full state of a request.
    #[inline]
    fn pending(&self, id: PacketId, entry: &PendingEntry) -> Pending {
        let target = if entry.has_target {
            self.local_targets[id.index() as usize]
        } else {
            (None, None)
        };
        Pending {
            entry: *entry,
            target,
        }
    }

    /// Whether a request with `id` and `echo` awaits its response.
    #[inline]
    pub(crate) fn waits(&self, id: PacketId, echo: u8) -> bool {
        self.slab.get(id.index()).is_some() && self.is_recent(id, echo)
    }

    /// The outstanding request with `id` and `echo`, if any.
    #[inline]
    pub(crate) fn answered_by(&self, id: PacketId, echo: u8) -> Option<Pending> {
        let entry = self.slab.get(id.index());
        entry
            .filter(|_| self.is_recent(id, echo))
            .map(|entry| self.pending(id, entry))
    }

    #[cfg(test)]
    pub(crate) fn get(&self, id: PacketId) -> Option<Pending> {
        let entry = self.slab.get(id.index())?;
        Some(self.pending(id, entry))
    }

    /// Ends a request whose response has arrived.
    ///
    /// # Panics
    /// If `id` is not outstanding; check [`answered_by`](Self::answered_by) first.
    #[inline]
    pub(crate) fn finish(&mut self, id: PacketId) {
        let ended = self.slab.finish(id.index());
        self.users -= u32::from(ended.origin.is_user());
    }

    /// Ends a request whose response may still arrive.
    ///
    /// # Panics
    /// If `id` is not outstanding; check [`answered_by`](Self::answered_by) first.
    pub(crate) fn give_up(&mut self, id: PacketId) {
        let ended = self.slab.give_up(id.index());
        self.users -= u32::from(ended.origin.is_user());
    }

    /// Records that no response will arrive for `id` any more: the late response is here, or the
    /// request was never sent. Returns true if that ends a quarantine.
    pub(crate) fn release(&mut self, id: PacketId) -> bool {
        self.slab.release(id.index())
    }

    /// Times out the oldest request if it was posted at `limit` or earlier.
    #[inline]
    pub(crate) fn expire(&mut self, limit: Time) -> Option<(PacketId, Pending)> {
        let (index, entry) = self.slab.expire(limit)?;
        self.users -= u32::from(entry.origin.is_user());
        let id = PacketId(index as u16);
        Some((id, self.pending(id, &entry)))
    }
}

#[cfg(test)]
#[path = "outstanding_tests.rs"]
mod tests;
