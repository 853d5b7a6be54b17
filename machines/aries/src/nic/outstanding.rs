//! Requests that wait for their response, by packet id.
//!
//! A packet id has 12 bits, as is publicly known of the registers, and a NIC has up to 1,024
//! packets outstanding (white paper, "Aries Performance"), so three of four ids are free. Every id
//! is a [slot](phitwire::nic::slab). The upper half serves the hashed modes, by the hash of the cache
//! line; the lower half the ordered modes; adaptive packets use both. A response must name the id
//! and the [period](phitwire::nic::periods) in which the request was posted: the echo, of five bits,
//! tells 32 of them apart.

use phitwire_framing::aries::flit::{Lines, NodeId, Routing};
use phitwire_framing::aries::packet::{Command, ECHO_BITS};

use phitwire::nic::RunRequest;
use phitwire::nic::periods::Periods;
use phitwire::nic::slab::{Entry, Slab};
use phitwire::time::Time;

/// Ids that a packet can carry.
const IDS: u16 = 1 << 12;
/// Most packets that may be outstanding (white paper, "Aries Performance").
pub const MAX_OUTSTANDING: u32 = 1024;
/// Packets that the collective engine and the events of transactions may have outstanding beyond
/// the limit of all others, so that a NIC busy with puts still makes progress with them.
pub(crate) const RESERVED: u32 = 64;
/// Of these, packets that may be requests of users: a traffic run or block transfer that uses all
/// others does not hold them up.
pub(crate) const RESERVED_FOR_USERS: u32 = 16;

/// The regions of the ids: those without a hash, then one for each hash.
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

/// On whose behalf a request is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// A traffic run or a block transfer: what the limit allows.
    Bulk,
    /// A user: some beyond it, as long as users have few.
    User,
    /// The collective engine, or the event of a transaction: the whole reserve.
    Reserve,
}

/// The id of a packet: names one outstanding request of one network interface. 12 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketId(u16);

impl PacketId {
    /// The id of these 12 bits; higher bits are ignored.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & (IDS - 1))
    }

    /// The 12 bits.
    pub const fn bits(self) -> u16 {
        self.0
    }

    const fn index(self) -> u32 {
        self.0 as u32
    }
}

/// The name of a request, which its response repeats: its id, and what it echoes.
pub(crate) type RequestName = (PacketId, u8);

/// What a packet of a block transfer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferStep {
    /// A piece of the data.
    Chunk,
    /// The announcement of a send.
    Open,
    /// The last packet, when all others have been answered.
    End,
}

/// Who asked, and is told the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The caller that posted, with the data of its own that the completion repeats.
    User(u64),
    /// The transaction with this SSID.
    Transaction(u16),
    /// The transaction with this SSID: the event for its target.
    TransactionEvent(u16),
    /// A traffic run.
    Traffic(RunRequest),
    /// A transfer of the block transfer engine, by its slot.
    Transfer(u8, TransferStep),
    /// The collective engine, with a number of its own.
    Collective(u32),
    /// A probe of that number.
    Probe(u64),
}

/// What becomes of the data of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Landing {
    /// Bytes at the front that nobody wants: gets have whole words.
    pub skip: u8,
    /// Bytes behind them that are wanted. Of a block transfer, also those that were sent.
    pub take: u8,
    /// Where in the local memory they go, if not into the completion.
    pub local: Option<u64>,
    /// A flag to be written behind them: its address and its value.
    pub flag: Option<(u64, u64)>,
}

impl Landing {
    /// No data are expected.
    pub(crate) const NONE: Self = Self {
        skip: 0,
        take: 0,
        local: None,
        flag: None,
    };
}

/// What is remembered of a request until its response comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub posted: Time,
    pub asker: Asker,
    pub node: NodeId,
    pub command: Command,
    pub handle: u16,
    pub offset: u64,
    /// Bytes of data that the response brings when all is well.
    pub answer_bytes: u8,
    pub landing: Landing,
}

impl Asker {
    const fn is_user(self) -> bool {
        matches!(self, Self::User(_) | Self::Transaction(_))
    }
}

impl Pending {
    const NONE: Self = Self {
        posted: Time::ZERO,
        asker: Asker::User(0),
        node: NodeId::from_bits(0),
        command: Command::Put { event: false },
        handle: 0,
        offset: 0,
        answer_bytes: 0,
        landing: Landing::NONE,
    };
}

/// What most requests need of [`Pending`]: a cache line together with the links of its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingEntry {
    posted: Time,
    asker: Asker,
    offset: u64,
    node: NodeId,
    command: Command,
    handle: u16,
    answer_bytes: u8,
    skip: u8,
    take: u8,
    /// The rest of what becomes of its data is in [`Outstanding::local_targets`].
    has_target: bool,
}

const _: () = assert!(
    size_of::<PendingEntry>() <= 48,
    "a line less the links of a slot"
);

/// Where the data of a response go in the local memory, and the flag behind them.
type LocalTarget = (Option<u64>, Option<(u64, u64)>);

impl PendingEntry {
    #[inline]
    fn of(pending: &Pending) -> Self {
        let Landing {
            skip,
            take,
            local,
            flag,
        } = pending.landing;
        Self {
            posted: pending.posted,
            asker: pending.asker,
            offset: pending.offset,
            node: pending.node,
            command: pending.command,
            handle: pending.handle,
            answer_bytes: pending.answer_bytes,
            skip,
            take,
            has_target: local.is_some() || flag.is_some(),
        }
    }

    #[inline]
    fn with_target(&self, (local, flag): LocalTarget) -> Pending {
        Pending {
            posted: self.posted,
            asker: self.asker,
            node: self.node,
            command: self.command,
            handle: self.handle,
            offset: self.offset,
            answer_bytes: self.answer_bytes,
            landing: Landing {
                skip: self.skip,
                take: self.take,
                local,
                flag,
            },
        }
    }
}

impl Entry for PendingEntry {
    #[inline]
    fn posted(&self) -> Time {
        self.posted
    }
}

/// The outstanding requests of one network interface.
#[derive(Clone, Debug)]
pub(crate) struct Outstanding {
    pub slab: Slab<PendingEntry>,
    /// By packet id; valid only while [`PendingEntry::has_target`] says so.
    local_targets: Vec<LocalTarget>,
    capacity: u32,
    /// Waiting requests of users.
    users: u32,
    turn: usize,
}

/// The echo of a period.
const fn echo_of(period: u32) -> u8 {
    period as u8 & ((1 << ECHO_BITS) - 1)
}

impl Outstanding {
    /// Room for `capacity` requests at once, and for [`RESERVED`] more, from the present one of
    /// `periods` on.
    ///
    /// # Panics
    /// If `capacity` is zero or above [`MAX_OUTSTANDING`]; the configuration checks it before.
    pub(crate) fn new(capacity: u32, periods: Periods) -> Self {
        assert!(
            (1..=MAX_OUTSTANDING).contains(&capacity),
            "the configuration bounds it"
        );
        Self {
            slab: Slab::in_regions(
                IDS.into(),
                PendingEntry::of(&Pending::NONE),
                periods,
                (REGIONS, region_of),
            ),
            local_targets: Vec::new(),
            capacity,
            users: 0,
            turn: 0,
        }
    }

    /// The region for the id of a request with that mode and address; `None` if it has no free id.
    #[inline]
    fn region(&self, routing: Routing, address: u64) -> Option<usize> {
        let has = |region: &usize| self.slab.has_slot_in(*region);
        if routing.is_hashed() {
            return Some(1 + usize::from(Lines::hash(address))).filter(has);
        }
        if routing.is_deterministic() {
            return Some(0).filter(has);
        }
        // The id of an adaptive packet does not affect its path: regions take turns.
        let region = (self.turn % TURNS).saturating_sub(TURNS - REGIONS);
        Some(region).filter(has).or_else(|| (0..REGIONS).find(has))
    }

    /// Whether an id is free for a request with that mode and address, given that
    /// [`has_room`](Self::has_room) holds.
    #[inline]
    pub(crate) fn has_id(&self, routing: Routing, address: u64) -> bool {
        self.region(routing, address).is_some()
    }

    /// Whether another request may begin.
    #[inline]
    pub(crate) fn has_room(&self, share: Share) -> bool {
        let reserve = match share {
            Share::Reserve => RESERVED,
            Share::User if self.users < RESERVED_FOR_USERS.min(self.capacity) => RESERVED,
            Share::User | Share::Bulk => 0,
        };
        self.slab.used() < self.capacity + reserve && self.has_id(Routing::default(), 0)
    }

    /// Whether this id and echo are of the period in which the id served last.
    #[inline]
    pub(crate) fn is_recent(&self, id: PacketId, echo: u8) -> bool {
        self.slab.period(id.index()).map(echo_of) == Some(echo)
    }

    /// Begins a request and answers its id and what its response will echo.
    ///
    /// `pending.posted` must not be earlier than that of any request begun before.
    ///
    /// # Panics
    /// If there is no room even in the reserve, or no free id. Check [`has_room`](Self::has_room)
    /// first, and [`has_id`](Self::has_id) for a deterministic mode.
    // Inlined so that `pending` stays in registers: a copy of it would stall on its stores.
    #[inline(always)]
    pub(crate) fn begin(&mut self, pending: Pending, routing: Routing) -> (PacketId, u8) {
        assert!(self.has_room(Share::Reserve), "room was asked for");
        let region = self.region(routing, pending.offset);
        let entry = PendingEntry::of(&pending);
        let begun = region.and_then(|region| self.slab.begin_in(region, entry));
        let (index, period) = begun.expect("an id was asked for");
        if entry.has_target {
            self.set_local_target(index, (pending.landing.local, pending.landing.flag));
        }
        self.turn = self.turn.wrapping_add(1);
        self.users += u32::from(pending.asker.is_user());
        (PacketId(index as u16), echo_of(period))
    }

    fn set_local_target(&mut self, index: u32, target: LocalTarget) {
        let index = index as usize;
        if self.local_targets.len() <= index {
            self.local_targets.resize(index + 1, (None, None));
        }
        self.local_targets[index] = target;
    }

    /// All that is known of a request.
    #[inline]
    fn pending(&self, id: PacketId, entry: &PendingEntry) -> Pending {
        let target = if entry.has_target {
            self.local_targets[id.index() as usize]
        } else {
            (None, None)
        };
        entry.with_target(target)
    }

    /// Whether a request waits that a response with `id` and `echo` answers.
    #[inline]
    pub(crate) fn waits(&self, id: PacketId, echo: u8) -> bool {
        self.slab.get(id.index()).is_some() && self.is_recent(id, echo)
    }

    /// The request that a response with `id` and `echo` answers, if one waits for it.
    #[inline]
    pub(crate) fn answered_by(&self, id: PacketId, echo: u8) -> Option<Pending> {
        let entry = self.slab.get(id.index());
        entry
            .filter(|_| self.is_recent(id, echo))
            .map(|entry| self.pending(id, entry))
    }

    /// The request that `id` names, if it waits.
    #[cfg(test)]
    pub(crate) fn get(&self, id: PacketId) -> Option<Pending> {
        let entry = self.slab.get(id.index())?;
        Some(self.pending(id, entry))
    }

    /// Ends a request whose response has come.
    ///
    /// # Panics
    /// If `id` does not wait; [`answered_by`](Self::answered_by) has been asked before.
    #[inline]
    pub(crate) fn finish(&mut self, id: PacketId) {
        let ended = self.slab.finish(id.index());
        self.users -= u32::from(ended.asker.is_user());
    }

    /// Ends a request whose response may still come.
    ///
    /// # Panics
    /// If `id` does not wait; [`answered_by`](Self::answered_by) has been asked before.
    pub(crate) fn give_up(&mut self, id: PacketId) {
        let ended = self.slab.give_up(id.index());
        self.users -= u32::from(ended.asker.is_user());
    }

    /// Notes that nothing more will come for `id`: its late response is here, or it was never sent.
    /// True when `id` was in quarantine, which it leaves.
    pub(crate) fn release(&mut self, id: PacketId) -> bool {
        self.slab.release(id.index())
    }

    /// Times out the longest-waiting request if it was posted at `limit` or before.
    #[inline]
    pub(crate) fn expire(&mut self, limit: Time) -> Option<(PacketId, Pending)> {
        let (index, entry) = self.slab.expire(limit)?;
        self.users -= u32::from(entry.asker.is_user());
        let id = PacketId(index as u16);
        Some((id, self.pending(id, &entry)))
    }
}

#[cfg(test)]
#[path = "outstanding_tests.rs"]
mod tests;
