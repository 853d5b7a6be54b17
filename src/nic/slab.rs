//! Outstanding requests: slots with timeouts and quarantine.
//!
//! A slot serves one request at a time. Slot number and [period](super::periods) of posting
//! identify a request; how a packet carries them depends on the machine. Free slots are reused in
//! the order in which they were freed, so each stays unused as long as possible. The slot of a
//! request that timed out is quarantined: its response may still arrive, and must never complete
//! another request. A quarantined slot is released when the late response arrives, when the request
//! turns out never to have been sent, or, if no other slot is free, in a later period, longest
//! quarantined first. Until then no request can be posted.
//!
//! All requests have the same timeout, so posting order is deadline order. The requests form one
//! doubly linked list through the slots, and expiry checks only its front. Posting, completing and
//! expiring are O(1) and allocate nothing.

use prefetch_index::prefetch_index;

use super::periods::Periods;
use crate::kit::Grace;
use crate::time::{Duration, Time};

const NONE: u32 = u32::MAX;
/// Maximum extension of timeouts after suspensions, in timeouts.
const GRACE: u64 = 4;

/// Data of a request, kept until its response arrives.
pub trait Entry: Copy {
    fn posted(&self) -> Time;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Waiting,
    /// Given up, but the response may still arrive.
    Quarantine,
}

/// Aligned to a cache line, because the response reads the slot long after the request wrote it.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Slot<E> {
    entry: E,
    previous: u32,
    next: u32,
    /// Period of the slot's last use; periods do not wrap within 270 years.
    period: u32,
    state: State,
}

#[derive(Clone, Copy, Debug)]
struct List {
    front: u32,
    back: u32,
    len: u32,
}

impl List {
    const EMPTY: Self = Self {
        front: NONE,
        back: NONE,
        len: 0,
    };

    #[inline]
    fn push_back<E>(&mut self, slots: &mut [Slot<E>], index: u32) {
        debug_assert!(
            (self.len == 0) == (self.back == NONE),
            "only an empty list has no end"
        );
        let slot = &mut slots[index as usize];
        (slot.previous, slot.next) = (self.back, NONE);
        match self.back {
            NONE => self.front = index,
            back => slots[back as usize].next = index,
        }
        self.back = index;
        self.len += 1;
    }

    #[inline]
    fn remove<E>(&mut self, slots: &mut [Slot<E>], index: u32) {
        debug_assert!(self.len > 0, "slot {index} is in this list");
        let Slot { previous, next, .. } = slots[index as usize];
        match previous {
            NONE => self.front = next,
            previous => slots[previous as usize].next = next,
        }
        match next {
            NONE => self.back = previous,
            next => slots[next as usize].previous = previous,
        }
        self.len -= 1;
        debug_assert!(
            (self.len == 0) == (self.front == NONE),
            "only an empty list has no front"
        );
    }
}

/// The outstanding requests of one NIC, by slot.
#[derive(Clone, Debug)]
pub struct Slab<E> {
    slots: Vec<Slot<E>>,
    waiting: List,
    regions: Vec<Region>,
    region_of: fn(u32) -> usize,
    periods: Periods,
    grace: Grace,
}

/// A set of slots to which a request can be restricted.
#[derive(Clone, Copy, Debug)]
struct Region {
    free: List,
    /// Longest quarantined first.
    quarantine: List,
}

impl<E: Entry> Slab<E> {
    /// Creates `slots` free slots filled with `idle`, from the present period of `periods` on.
    pub fn new(slots: u32, idle: E, periods: Periods) -> Self {
        Self::in_regions(slots, idle, periods, (1, |_| 0))
    }

    /// Like [`new`](Self::new), but with `regions` regions; `region_of` maps a slot to its region.
    pub fn in_regions(
        slots: u32,
        idle: E,
        periods: Periods,
        (regions, region_of): (usize, fn(u32) -> usize),
    ) -> Self {
        let slot = Slot {
            entry: idle,
            previous: NONE,
            next: NONE,
            period: 0,
            state: State::Free,
        };
        assert!(slots < NONE, "the last number stands for no slot");
        let count = slots;
        let mut slots = vec![slot; count as usize];
        let empty = Region {
            free: List::EMPTY,
            quarantine: List::EMPTY,
        };
        let mut regions = vec![empty; regions];
        for index in 0..count {
            let region = &mut regions[region_of(index)];
            region.free.push_back(&mut slots, index);
        }
        Self {
            slots,
            waiting: List::EMPTY,
            regions,
            region_of,
            periods,
            grace: Grace::default(),
        }
    }

    /// Number of requests that wait for their response.
    #[inline]
    pub fn used(&self) -> u32 {
        self.waiting.len
    }

    /// Number of requests that were given up and have no response so far.
    #[cfg(any(test, feature = "testing"))]
    pub fn quarantined(&self) -> u32 {
        self.regions.iter().map(|r| r.quarantine.len).sum()
    }

    #[cfg(any(test, feature = "testing"))]
    pub fn listed(&self) -> u32 {
        let resting = self.regions.iter().map(|r| r.free.len + r.quarantine.len);
        self.waiting.len + resting.sum::<u32>()
    }

    /// Advances time: later requests may belong to another period.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        self.periods.advance(now);
    }

    /// Whether requests may be posted in the present period.
    pub fn is_open(&self) -> bool {
        self.periods.is_open()
    }

    #[inline]
    pub fn has_slot_in(&self, region: usize) -> bool {
        let is_free = self.regions[region].free.len > 0;
        self.periods.is_open() && (is_free || self.rested(region).is_some())
    }

    #[inline]
    fn present(&self) -> u32 {
        self.periods.number() as u32
    }
    /// When slots become available, if none is available now.
    #[cfg(any(test, feature = "testing"))]
    pub fn opens(&self) -> Option<Time> {
        let is_full = (0..self.regions.len()).all(|region| !self.has_slot_in(region));
        is_full.then(|| self.periods.ends())
    }

    /// When every region has a free slot again, if one has none now.
    fn all_open(&self) -> Option<Time> {
        let one_is_full = (0..self.regions.len()).any(|region| !self.has_slot_in(region));
        one_is_full.then(|| self.periods.ends())
    }

    /// The longest-quarantined slot of a region, unless it was used in the present period.
    #[inline]
    fn rested(&self, region: usize) -> Option<u32> {
        let index = self.regions[region].quarantine.front;
        let slot = self.slots.get(index as usize)?;
        (slot.period != self.present()).then_some(index)
    }

    /// The period of slot `index`'s last use, if that slot exists.
    #[inline]
    pub fn period(&self, index: u32) -> Option<u32> {
        self.slots.get(index as usize).map(|slot| slot.period)
    }

    /// Begins a request and returns its slot and period; `None` if no slot is available in the
    /// present period.
    ///
    /// `entry` must not have been posted before any request that began earlier.
    #[inline]
    pub fn begin(&mut self, entry: E) -> Option<(u32, u32)> {
        self.begin_in(0, entry)
    }

    /// Like [`begin`](Self::begin), in a slot of `region`.
    // Inlined to store the entry in its final location: a copy would stall on the entry's stores.
    #[inline(always)]
    pub fn begin_in(&mut self, region: usize, entry: E) -> Option<(u32, u32)> {
        if !self.periods.is_open() {
            return None;
        }
        let front = self.regions[region].free.front;
        let index = if front != NONE {
            let free = &mut self.regions[region].free;
            free.remove(&mut self.slots, front);
            // The next free slot has rested for long and is in no cache; the next request will
            // write it.
            prefetch_index(&self.slots, free.front as usize);
            front
        } else {
            let index = self.rested(region)?;
            let quarantine = &mut self.regions[region].quarantine;
            quarantine.remove(&mut self.slots, index);
            index
        };
        let period = self.present();
        debug_assert!(
            self.slots
                .get(self.waiting.back as usize)
                .is_none_or(|last| last.entry.posted() <= entry.posted()),
            "posting order is deadline order"
        );
        let slot = &mut self.slots[index as usize];
        debug_assert!(
            match slot.state {
                State::Free => true,
                State::Waiting => false,
                State::Quarantine => slot.period != period,
            },
            "a slot serves one request at a time and is quarantined for a period after a timeout"
        );
        slot.period = period;
        slot.entry = entry;
        slot.state = State::Waiting;
        self.waiting.push_back(&mut self.slots, index);
        Some((index, period))
    }

    #[inline]
    pub fn get(&self, index: u32) -> Option<&E> {
        let slot = self.slots.get(index as usize)?;
        (slot.state == State::Waiting).then_some(&slot.entry)
    }

    /// Ends the request in slot `index`, whose response has arrived, and returns its entry.
    ///
    /// # Panics
    /// If no request waits there.
    #[inline]
    pub fn finish(&mut self, index: u32) -> E {
        let entry = self.leave(index, State::Free);
        let region = &mut self.regions[(self.region_of)(index)];
        region.free.push_back(&mut self.slots, index);
        entry
    }

    /// Ends the request in slot `index`, whose response may still arrive, and returns its entry.
    ///
    /// # Panics
    /// If no request waits there.
    pub fn give_up(&mut self, index: u32) -> E {
        let entry = self.leave(index, State::Quarantine);
        let region = &mut self.regions[(self.region_of)(index)];
        region.quarantine.push_back(&mut self.slots, index);
        entry
    }

    #[inline]
    fn leave(&mut self, index: u32, state: State) -> E {
        let slot = &mut self.slots[index as usize];
        assert!(
            slot.state == State::Waiting,
            "only a waiting request can end"
        );
        slot.state = state;
        let entry = slot.entry;
        self.waiting.remove(&mut self.slots, index);
        entry
    }

    /// Records that no further response can arrive for slot `index`: the late response has arrived,
    /// or the request was never sent. Returns true if that ends a quarantine.
    pub fn release(&mut self, index: u32) -> bool {
        let slot = self.slots.get_mut(index as usize);
        let Some(slot) = slot.filter(|slot| slot.state == State::Quarantine) else {
            return false;
        };
        slot.state = State::Free;
        let region = &mut self.regions[(self.region_of)(index)];
        region.quarantine.remove(&mut self.slots, index);
        region.free.push_back(&mut self.slots, index);
        true
    }

    #[inline]
    pub fn oldest(&self) -> Option<Time> {
        let slot = self.slots.get(self.waiting.front as usize)?;
        Some(slot.entry.posted())
    }

    /// Records that the process was suspended for `span` until `now`. Targets of earlier requests
    /// may have been suspended too, and may resume later.
    pub fn handle_suspension(&mut self, now: Time, span: Duration, timeout: Duration) {
        self.grace
            .handle_suspension(now, span, timeout.times(GRACE));
        self.periods.handle_suspension(now, span);
    }

    /// When the longest-waiting request times out, and when it was posted.
    #[inline]
    pub fn times_out(&self, timeout: Duration) -> Option<(Time, Time)> {
        let posted = self.oldest()?;
        Some((posted + timeout + self.grace.of(posted), posted))
    }

    /// When the next request has waited for `timeout`, or slots become available again.
    pub fn next_deadline(&self, timeout: Duration) -> Option<Time> {
        let timed_out = self.times_out(timeout).map(|(at, _)| at);
        [timed_out, self.all_open()].into_iter().flatten().min()
    }

    /// Times out the longest-waiting request if it was posted at or before `limit`.
    #[inline]
    pub fn expire(&mut self, limit: Time) -> Option<(u32, E)> {
        let index = self.waiting.front;
        let is_due = self.oldest()? <= limit;
        is_due.then(|| (index, self.give_up(index)))
    }
}
