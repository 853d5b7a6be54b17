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
mod tests {
    use super::*;
    use crate::nic::periods::Incarnation;
    use crate::rng::Rng;
    use crate::time::Duration;
    use std::collections::HashSet;

    fn fresh(capacity: u32) -> Outstanding {
        successor(capacity, Time::ZERO)
    }

    /// One that begins at `now`, in periods of two seconds.
    fn successor(capacity: u32, now: Time) -> Outstanding {
        let timeout = Duration::from_ms(2_000);
        let after = Incarnation {
            clock_ns: 0,
            first: now == Time::ZERO,
        };
        Outstanding::new(capacity, Periods::new(after, now, timeout, 1))
    }

    fn at(ns: u64) -> Pending {
        Pending {
            posted: Time::from_ns(ns),
            offset: ns,
            ..Pending::NONE
        }
    }

    #[test]
    fn requests_expire_in_posting_order_and_only_when_due() {
        let mut table = fresh(4);
        let ids: Vec<PacketId> = (1..=4).map(|ns| table.begin(at(ns)).0).collect();
        assert!(!table.has_room(Share::Bulk) && table.has_room(Share::Reserve));
        table.finish(ids[1]);
        assert_eq!(table.oldest(), Some(Time::from_ns(1)));
        assert_eq!(table.expire(Time::from_ns(3)).unwrap().0, ids[0]);
        assert_eq!(table.expire(Time::from_ns(3)).unwrap().1.offset, 3);
        assert!(table.expire(Time::from_ns(3)).is_none());
        assert_eq!((table.len(), table.quarantined()), (1, 2));
    }

    /// They waited for the end of the run.
    #[test]
    fn users_have_room_beside_those_who_use_all_there_is_and_no_more_than_that_without_them() {
        let of_run = |ns| Pending {
            asker: Asker::Transfer(0, TransferStep::Chunk),
            ..at(ns)
        };
        for capacity in [1, 4, 40, MAX_OUTSTANDING] {
            let few = RESERVED_FOR_USERS.min(capacity);
            let mut table = fresh(capacity);
            for _ in 0..capacity {
                table.begin(of_run(1));
            }
            assert!(!table.has_room(Share::Bulk));
            let mut ids = Vec::new();
            while table.has_room(Share::User) {
                ids.push(table.begin(at(2)).0);
            }
            assert_eq!(ids.len(), few as usize, "{capacity}");
            assert!(table.has_room(Share::Reserve));
            // One that has ended makes room for another user, and not for the run.
            table.finish(ids[0]);
            assert!(table.has_room(Share::User) && !table.has_room(Share::Bulk));
            table.expire(Time::from_ns(1)).unwrap();

            let mut alone = fresh(capacity);
            while alone.has_room(Share::User) {
                alone.begin(at(2));
            }
            assert_eq!(alone.len(), capacity);
        }
    }

    #[test]
    fn a_late_response_never_completes_another_request() {
        let mut table = fresh(MAX_OUTSTANDING);
        let (old, _) = table.begin(at(1));
        table.expire(Time::from_ns(1)).unwrap();
        for ns in 2..1_000_000 {
            let (id, _) = table.begin(at(ns));
            assert_ne!(id, old);
            table.finish(id);
        }
        assert!(table.get(old).is_none());
        assert!(table.release(old) && !table.release(old));
    }

    #[test]
    fn nothing_can_be_asked_when_all_ids_of_a_period_are_in_quarantine() {
        let mut table = fresh(MAX_OUTSTANDING);
        let first = table.begin(at(1));
        table.expire(Time::NEVER).unwrap();
        for ns in 1..u64::from(IDS) {
            assert!(table.has_room(Share::Bulk) && table.opens().is_none());
            table.begin(at(ns));
            table.expire(Time::NEVER).unwrap();
        }
        assert_eq!(table.quarantined(), u32::from(IDS));
        assert!(!table.has_room(Share::Reserve));
        // The longest rested serves first.
        let second = Time::ZERO + Duration::from_ms(2_000);
        assert_eq!(table.opens(), Some(second));
        table.advance(second);
        let again = table.begin(at(1 << 21));
        assert_eq!(again.0, first.0);
        assert_ne!(again.1, first.1);
        assert!(
            table.answered_by(first.0, first.1).is_none() && !table.is_recent(first.0, first.1)
        );
    }

    #[test]
    fn an_id_rests_while_all_others_serve() {
        let mut table = fresh(1);
        let mut seen = HashSet::new();
        for ns in 0..u64::from(IDS) {
            let (id, _) = table.begin(at(ns));
            assert!(seen.insert(id));
            table.finish(id);
        }
        assert!(!seen.insert(table.begin(at(1 << 20)).0));
    }

    /// Thousands of lives of one network interface, each cut short with requests outstanding whose responses come at
    /// any later time up to 60 s.
    #[test]
    fn no_name_comes_again_within_a_minute_whatever_was_killed() {
        for seed in 0..2_000 {
            let mut rng = Rng::new(seed, 9);
            let mut now = Time::from_ns(rng.below(1 << 32));
            let mut asked: Vec<(Time, PacketId, u8)> = Vec::new();
            for _life in 0..5 {
                let mut table = successor(MAX_OUTSTANDING, now);
                for _ in 0..rng.below(200) {
                    now += Duration::from_ns(1 << [12, 24, 30][rng.below(3) as usize]);
                    table.advance(now);
                    while rng.chance(1, 3) && table.expire(now).is_some() {}
                    if !table.has_room(Share::Bulk) {
                        continue;
                    }
                    let (id, echo) = table.begin(Pending {
                        posted: now,
                        ..at(1)
                    });
                    // A name that was answered may come again.
                    if rng.chance(1, 4) {
                        table.finish(id);
                        continue;
                    }
                    let same = |&&(_, i, e): &&(Time, PacketId, u8)| (i, e) == (id, echo);
                    if let Some((before, ..)) = asked.iter().rev().find(same) {
                        let apart = now.since(*before);
                        assert!(apart > Duration::from_ms(62_000), "{seed}: {apart:?}");
                    }
                    asked.push((now, id, echo));
                }
                now += Duration::from_ns(1 << [20, 28, 34][rng.below(3) as usize]);
            }
        }
    }

    #[test]
    fn every_slot_is_in_exactly_one_list() {
        let mut table = fresh(37);
        let (mut rng, mut live, mut dead) = (Rng::new(5, 0), Vec::new(), Vec::new());
        for ns in 1..200_000 {
            match rng.below(4) {
                0 | 1 if table.has_room(Share::Bulk) => live.push(table.begin(at(ns)).0),
                2 if !live.is_empty() => {
                    table.finish(live.swap_remove(rng.below(live.len() as u64) as usize));
                }
                _ if rng.chance(1, 20) => {
                    if let Some((id, _)) = table.expire(Time::from_ns(ns)) {
                        live.retain(|&other| other != id);
                        dead.push(id);
                    }
                }
                _ => {
                    if let Some(id) = dead.pop() {
                        assert!(table.get(id).is_none() && table.release(id));
                    }
                }
            }
            assert_eq!(table.len() as usize, live.len());
            let lists = table.waiting.len + table.free.len + table.quarantine.len;
            assert_eq!(lists, u32::from(IDS));
        }
        assert!(live.iter().all(|&id| table.get(id).is_some()));
    }
}
