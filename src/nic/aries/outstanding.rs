//! Requests that wait for their response: packet ids, time-outs, quarantine.
//!
//! A packet id has 12 bits and a NIC has up to 1,024 packets outstanding (white paper, "Aries
//! Performance"), so that three ids of four rest. Every id is a slot of its own. What a response must name is the id
//! and the [period](crate::nic::periods) in which the request was posted: the echo, of five bits, tells 32 of them apart.
//!
//! Free ids are taken in the order in which they were given back, so each rests as long as it can. The id of a
//! request that timed out is quarantined: its response may still come, and must never complete another request. A
//! quarantined id serves again when its late response has come, when it is known that the request was never sent, or
//! in a later period when no other id is left, the one that has rested longest. Until then nothing can be asked: better late than wrong.
//!
//! All requests have the same time-out, so the order of posting is that of the deadlines: the waiting
//! form one doubly linked list, and expiry looks only at its front. Nothing allocates.

use phitwire_framing::flit48::NodeId;
use phitwire_framing::packet48::{Command, ECHO_BITS};

use crate::nic::periods::Periods;
use crate::nic::traffic::Errand;
use crate::time::Time;

/// Ids that a packet can carry.
const IDS: u16 = 1 << 12;
/// Most packets that may be outstanding (white paper, "Aries Performance").
pub const MAX_OUTSTANDING: u32 = 1024;
/// Packets that the collective engine and the events of transactions may have outstanding beyond the
/// limit of all others, so that a NIC busy with puts still makes progress with them.
pub(crate) const RESERVED: u32 = 64;
/// Of these, packets that may be requests of users: a traffic run or block transfer that uses all others does not hold
/// them up.
pub(crate) const RESERVED_FOR_USERS: u32 = 16;

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

const NONE: u16 = u16::MAX;

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

    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a packet of a block transfer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferStep {
    /// A piece of the data.
    Chunk,
    /// The announcement of a send.
    Open,
    /// The end of a send.
    End,
}

/// Who asked, and is told the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// Whoever posted, with the data of its own that the completion repeats.
    User(u64),
    /// The transaction with this SSID.
    Transaction(u16),
    /// The transaction with this SSID: the event for its target.
    TransactionEvent(u16),
    /// A traffic run.
    Traffic(Errand),
    /// A channel of the block transfer engine.
    Transfer(u8, TransferStep),
    /// The collective engine, with a number of its own.
    Collective(u32),
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Waiting,
    /// Given up; its response may still come.
    Quarantine,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    pending: Pending,
    /// When it was posted.
    period: u64,
    previous: u16,
    next: u16,
    state: State,
}

/// A doubly linked list through the slots.
#[derive(Clone, Copy, Debug)]
struct List {
    front: u16,
    back: u16,
    len: u32,
}

impl List {
    const EMPTY: Self = Self {
        front: NONE,
        back: NONE,
        len: 0,
    };

    #[inline]
    fn push_back(&mut self, slots: &mut [Slot], index: u16) {
        let slot = &mut slots[usize::from(index)];
        (slot.previous, slot.next) = (self.back, NONE);
        match self.back {
            NONE => self.front = index,
            back => slots[usize::from(back)].next = index,
        }
        self.back = index;
        self.len += 1;
    }

    #[inline]
    fn pop_front(&mut self, slots: &mut [Slot]) -> Option<u16> {
        let index = self.front;
        let slot = slots.get(usize::from(index))?;
        self.front = slot.next;
        match slot.next {
            NONE => self.back = NONE,
            next => slots[usize::from(next)].previous = NONE,
        }
        self.len -= 1;
        Some(index)
    }

    #[inline]
    fn remove(&mut self, slots: &mut [Slot], index: u16) {
        let Slot { previous, next, .. } = slots[usize::from(index)];
        match previous {
            NONE => self.front = next,
            previous => slots[usize::from(previous)].next = next,
        }
        match next {
            NONE => self.back = previous,
            next => slots[usize::from(next)].previous = previous,
        }
        self.len -= 1;
    }
}

/// The outstanding requests of one network interface.
#[derive(Clone, Debug)]
pub(crate) struct Outstanding {
    slots: Vec<Slot>,
    waiting: List,
    free: List,
    /// The longest there first.
    quarantine: List,
    periods: Periods,
    capacity: u32,
    /// Waiting requests of users.
    users: u32,
}

/// The echo of a period.
const fn echo_of(period: u64) -> u8 {
    period as u8 & ((1 << ECHO_BITS) - 1)
}

impl Outstanding {
    /// Room for `capacity` requests at once, and for [`RESERVED`] more, from the present one of `periods` on.
    ///
    /// # Panics
    /// If `capacity` is zero or above [`MAX_OUTSTANDING`]; the configuration checks it before.
    pub(crate) fn new(capacity: u32, periods: Periods) -> Self {
        assert!(
            (1..=MAX_OUTSTANDING).contains(&capacity),
            "the configuration bounds it"
        );
        let slot = Slot {
            pending: Pending::NONE,
            period: 0,
            previous: NONE,
            next: NONE,
            state: State::Free,
        };
        let mut slots = vec![slot; usize::from(IDS)];
        let mut free = List::EMPTY;
        for index in 0..IDS {
            free.push_back(&mut slots, index);
        }
        Self {
            slots,
            waiting: List::EMPTY,
            free,
            quarantine: List::EMPTY,
            periods,
            capacity,
            users: 0,
        }
    }

    /// Requests waiting for their response.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.waiting.len
    }

    /// Given-up requests whose response has not been seen.
    #[cfg(test)]
    pub(crate) fn quarantined(&self) -> u32 {
        self.quarantine.len
    }

    /// Lets time pass: what is begun from now on is of another period.
    #[inline]
    pub(crate) fn advance(&mut self, now: Time) {
        self.periods.advance(now);
    }

    /// Whether another request may begin.
    #[inline]
    pub(crate) fn has_room(&self, share: Share) -> bool {
        let reserve = match share {
            Share::Reserve => RESERVED,
            Share::User if self.users < RESERVED_FOR_USERS.min(self.capacity) => RESERVED,
            Share::User | Share::Bulk => 0,
        };
        self.waiting.len < self.capacity + reserve && self.has_id()
    }

    /// Whether an id of the present period is left.
    #[inline]
    fn has_id(&self) -> bool {
        self.periods.is_open() && (self.free.len > 0 || self.rested().is_some())
    }

    /// When there are ids again, if none is left now.
    pub(crate) fn opens(&self) -> Option<Time> {
        (!self.has_id()).then(|| self.periods.ends())
    }

    /// The id that has been in quarantine for longest, if it was not used in the present period.
    #[inline]
    fn rested(&self) -> Option<u16> {
        let index = self.quarantine.front;
        let slot = self.slots.get(usize::from(index))?;
        (slot.period != self.periods.number()).then_some(index)
    }

    /// Whether a response with this id and echo, which nobody waits for, is of the period in which the id served last.
    pub(crate) fn is_recent(&self, id: PacketId, echo: u8) -> bool {
        echo_of(self.slots[id.index()].period) == echo
    }

    /// Begins a request and answers its id and what its response will echo.
    ///
    /// `pending.posted` must not be earlier than that of any request begun before.
    ///
    /// # Panics
    /// If there is no room even in the reserve; [`has_room`](Self::has_room) has been asked before.
    #[inline]
    pub(crate) fn begin(&mut self, pending: Pending) -> (PacketId, u8) {
        assert!(self.has_room(Share::Reserve), "room was asked for");
        let index = self
            .free
            .pop_front(&mut self.slots)
            .or_else(|| self.quarantine.pop_front(&mut self.slots))
            .expect("room was asked for");
        let period = self.periods.number();
        let slot = &mut self.slots[usize::from(index)];
        slot.pending = pending;
        slot.period = period;
        slot.state = State::Waiting;
        self.users += u32::from(pending.asker.is_user());
        self.waiting.push_back(&mut self.slots, index);
        (PacketId(index), echo_of(period))
    }

    /// The request that a response with `id` and `echo` answers, if one waits for it.
    #[inline]
    pub(crate) fn answered_by(&self, id: PacketId, echo: u8) -> Option<&Pending> {
        let slot = &self.slots[id.index()];
        let waits = slot.state == State::Waiting && echo_of(slot.period) == echo;
        waits.then_some(&slot.pending)
    }

    /// The request that `id` names, if it waits.
    #[cfg(test)]
    pub(crate) fn get(&self, id: PacketId) -> Option<&Pending> {
        let slot = &self.slots[id.index()];
        (slot.state == State::Waiting).then_some(&slot.pending)
    }

    /// Ends a request whose response has come.
    ///
    /// # Panics
    /// If `id` does not wait; [`answered_by`](Self::answered_by) has been asked before.
    #[inline]
    pub(crate) fn finish(&mut self, id: PacketId) {
        self.leave(id, State::Free);
    }

    /// Ends a request whose response may still come.
    ///
    /// # Panics
    /// If `id` does not wait; [`answered_by`](Self::answered_by) has been asked before.
    pub(crate) fn give_up(&mut self, id: PacketId) {
        self.leave(id, State::Quarantine);
    }

    #[inline]
    fn leave(&mut self, id: PacketId, state: State) {
        let slot = &mut self.slots[id.index()];
        assert!(slot.state == State::Waiting, "a waiting request is ended");
        slot.state = state;
        self.users -= u32::from(slot.pending.asker.is_user());
        self.waiting.remove(&mut self.slots, id.0);
        let list = match state {
            State::Quarantine => &mut self.quarantine,
            _ => &mut self.free,
        };
        list.push_back(&mut self.slots, id.0);
    }

    /// Notes that nothing more will come for `id`: its late response is here, or it was never sent.
    /// True when `id` was in quarantine, which it leaves.
    pub(crate) fn release(&mut self, id: PacketId) -> bool {
        let known = self.slots[id.index()].state == State::Quarantine;
        if known {
            self.quarantine.remove(&mut self.slots, id.0);
            self.slots[id.index()].state = State::Free;
            self.free.push_back(&mut self.slots, id.0);
        }
        known
    }

    /// When the longest-waiting request was posted.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<Time> {
        let slot = self.slots.get(usize::from(self.waiting.front))?;
        Some(slot.pending.posted)
    }

    /// Times out the longest-waiting request if it was posted at `limit` or before.
    #[inline]
    pub(crate) fn expire(&mut self, limit: Time) -> Option<(PacketId, Pending)> {
        let index = self.waiting.front;
        let pending = self.slots.get(usize::from(index))?.pending;
        if pending.posted > limit {
            return None;
        }
        self.give_up(PacketId(index));
        Some((PacketId(index), pending))
    }
}

#[cfg(test)]
#[path = "outstanding_tests.rs"]
mod tests;
