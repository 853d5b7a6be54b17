//! Requests that await their response, by transaction id.
//!
//! A transaction id has 20 bits: the low ones are the [slot](phitwire::nic::slab), the others the
//! [period](phitwire::nic::periods) in which the request was posted, modulo their range. A response
//! to a request that has timed out, or that a predecessor posted, matches no request with this slot
//! and period. It is recognised as late and never completes another request.

use phitwire::nic::RunRequest;
use phitwire::nic::periods::Periods;
use phitwire::nic::slab::{Entry, Slab};
use phitwire::time::Time;

/// Bits of a transaction id in a packet.
pub const TID_BITS: u32 = 20;
/// Maximum number of outstanding requests of a NIC, which leaves four bits for the period.
pub const MAX_OUTSTANDING: u32 = 1 << 16;

/// A transaction id, which identifies one outstanding request of one NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tid(u32);

impl Tid {
    /// The id with these 20 bits; higher bits are ignored.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & ((1 << TID_BITS) - 1))
    }

    pub const fn bits(self) -> u32 {
        self.0
    }
}

/// The part of the NIC that gets the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The caller of `post`, which gets a completion.
    User,
    Program,
    Probe,
    Run(RunRequest),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub address: u64,
    pub posted: Time,
    pub dest: u16,
    pub len: u8,
    pub is_read: bool,
    pub asker: Asker,
}

impl Entry for Pending {
    #[inline]
    fn posted(&self) -> Time {
        self.posted
    }
}

/// Number of bits that address a slot among `capacity`.
const fn index_bits(capacity: u32) -> u32 {
    capacity.next_power_of_two().ilog2()
}

/// Factor by which periods must be longer than with 16,384 slots: more slots leave fewer bits for
/// the period, but ids must stay distinguishable for the same time.
pub(crate) const fn longer_periods(capacity: u32) -> u64 {
    1 << index_bits(capacity).saturating_sub(14)
}

#[derive(Clone, Debug)]
pub(crate) struct Outstanding {
    pub slab: Slab<Pending>,
    index_bits: u32,
}

impl Outstanding {
    /// Room for `capacity` outstanding requests, starting in the current period of `periods`.
    ///
    /// # Panics
    /// If `capacity` is zero or above [`MAX_OUTSTANDING`]; the configuration is checked earlier.
    pub(crate) fn new(capacity: u32, periods: Periods) -> Self {
        assert!(
            (1..=MAX_OUTSTANDING).contains(&capacity),
            "the configuration limits the number of requests"
        );
        let idle = Pending {
            address: 0,
            posted: Time::ZERO,
            dest: 0,
            len: 0,
            is_read: false,
            asker: Asker::User,
        };
        Self {
            slab: Slab::new(capacity, idle, periods),
            index_bits: index_bits(capacity),
        }
    }

    #[inline]
    fn tid(&self, index: u32, period: u32) -> Tid {
        Tid::from_bits(period << self.index_bits | index)
    }

    #[inline]
    const fn index(&self, tid: Tid) -> u32 {
        tid.bits() & ((1 << self.index_bits) - 1)
    }

    /// Whether `tid` matches the period in which its slot was last used.
    #[inline]
    pub(crate) fn is_recent(&self, tid: Tid) -> bool {
        let index = self.index(tid);
        let period = self.slab.period(index);
        period.is_some_and(|period| self.tid(index, period) == tid)
    }

    /// Begins a request; `None` if no slot is available in the current period.
    ///
    /// `pending.posted` must not precede that of any earlier request.
    #[inline]
    pub(crate) fn begin(&mut self, pending: Pending) -> Option<Tid> {
        let (index, period) = self.slab.begin(pending)?;
        Some(self.tid(index, period))
    }

    #[inline]
    pub(crate) fn get(&self, tid: Tid) -> Option<&Pending> {
        let pending = self.slab.get(self.index(tid));
        pending.filter(|_| self.is_recent(tid))
    }

    /// Ends a request whose response has arrived.
    ///
    /// # Panics
    /// If `tid` is not outstanding; check [`get`](Self::get) first.
    #[inline]
    pub(crate) fn finish(&mut self, tid: Tid) {
        self.slab.finish(self.index(tid));
    }

    /// Handles a response to a request that is not outstanding. Returns true if it is the late
    /// response to a request that timed out, whose slot then leaves quarantine.
    pub(crate) fn late(&mut self, tid: Tid) -> bool {
        self.is_recent(tid) && self.slab.release(self.index(tid))
    }

    /// Times out the oldest request if it was posted at or before `limit`.
    #[inline]
    pub(crate) fn expire(&mut self, limit: Time) -> Option<(Tid, Pending)> {
        let (index, pending) = self.slab.expire(limit)?;
        let period = self
            .slab
            .period(index)
            .expect("the expired request was waiting in this slot");
        Some((self.tid(index, period), pending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire::nic::periods::Incarnation;
    use phitwire::rng::Rng;
    use phitwire::time::Duration;
    use std::collections::HashSet;

    fn fresh(capacity: u32) -> Outstanding {
        successor(capacity, Time::ZERO)
    }

    fn successor(capacity: u32, now: Time) -> Outstanding {
        let timeout = Duration::from_ms(2_000);
        let longer = longer_periods(capacity);
        let after = Incarnation {
            clock_ns: 0,
            first: now == Time::ZERO,
        };
        let periods = Periods::new(after, now, timeout, longer);
        Outstanding::new(capacity, periods)
    }

    fn at(ns: u64) -> Pending {
        Pending {
            address: ns,
            posted: Time::from_ns(ns),
            dest: 1,
            len: 8,
            is_read: false,
            asker: Asker::User,
        }
    }

    #[test]
    fn requests_expire_in_posting_order_and_only_when_due() {
        let mut table = fresh(4);
        let tids: Vec<Tid> = (1..=4).map(|ns| table.begin(at(ns)).unwrap()).collect();
        assert!(table.begin(at(5)).is_none());
        table.finish(tids[1]);
        assert_eq!(table.slab.oldest(), Some(Time::from_ns(1)));
        assert_eq!(table.expire(Time::from_ns(3)).unwrap().0, tids[0]);
        assert_eq!(table.expire(Time::from_ns(3)).unwrap().1.address, 3);
        assert!(table.expire(Time::from_ns(3)).is_none());
        assert_eq!((table.slab.used(), table.slab.quarantined()), (1, 2));
    }

    #[test]
    fn a_late_response_never_completes_another_request() {
        let mut table = fresh(2);
        let old = table.begin(at(1)).unwrap();
        table.expire(Time::from_ns(1)).unwrap();
        for ns in 2..10_000_000 {
            let tid = table.begin(at(ns)).unwrap();
            assert_ne!(tid, old);
            table.finish(tid);
        }
        assert!(table.get(old).is_none());
        assert!(table.late(old));
        assert!(!table.late(old));
    }

    #[test]
    fn a_quarantined_slot_serves_again_in_the_next_period_when_no_other_is_left() {
        let mut table = fresh(1);
        let old = table.begin(at(1)).unwrap();
        table.expire(Time::from_ns(1)).unwrap();
        assert!(table.begin(at(2)).is_none());
        let second = Time::ZERO + Duration::from_ms(2_000);
        assert_eq!(table.slab.opens(), Some(second));
        table.slab.advance(second);
        let new = table.begin(at(2)).unwrap();
        assert_ne!(old, new);
        assert!(table.get(old).is_none() && !table.late(old) && !table.is_recent(old));
        assert_eq!(table.get(new).unwrap().address, 2);
    }

    /// Incarnations are killed with requests outstanding, whose responses arrive at any later time.
    #[test]
    fn no_id_comes_again_within_a_minute_whatever_was_killed() {
        for (seed, capacity) in (0..1_000).flat_map(|seed| [(seed, 3), (seed, 40_000)]) {
            let mut rng = Rng::new(seed, 9);
            let mut now = Time::from_ns(rng.below(1 << 32));
            let mut asked: Vec<(Time, Tid)> = Vec::new();
            for _life in 0..[5, 2][usize::from(capacity > 3)] {
                let mut table = successor(capacity, now);
                for _ in 0..rng.below(100) {
                    now += Duration::from_ns(1 << [12, 24, 30][rng.below(3) as usize]);
                    table.slab.advance(now);
                    while rng.chance(1, 3) && table.expire(now).is_some() {}
                    let Some(tid) = table.begin(Pending {
                        posted: now,
                        ..at(1)
                    }) else {
                        continue;
                    };
                    if rng.chance(1, 4) {
                        table.finish(tid);
                        continue;
                    }
                    if let Some((before, _)) = asked.iter().rev().find(|(_, t)| *t == tid) {
                        let apart = now.since(*before);
                        assert!(apart > Duration::from_ms(120_000), "{seed}: {apart:?}");
                    }
                    asked.push((now, tid));
                }
                now += Duration::from_ns(1 << [20, 28, 34][rng.below(3) as usize]);
            }
        }
    }

    #[test]
    fn a_finished_request_is_not_known_any_more() {
        let mut table = fresh(3);
        let tid = table.begin(at(1)).unwrap();
        table.finish(tid);
        assert!(table.get(tid).is_none() && !table.late(tid));
        // An index beyond a capacity that is not a power of two.
        assert!(table.get(Tid::from_bits(3)).is_none() && !table.late(Tid::from_bits(3)));
    }

    #[test]
    fn every_slot_is_in_exactly_one_list() {
        let mut table = fresh(37);
        let (mut rng, mut live, mut dead) = (Rng::new(5, 0), Vec::new(), Vec::new());
        for ns in 1..200_000 {
            match rng.below(4) {
                0 | 1 => live.extend(table.begin(at(ns))),
                2 if !live.is_empty() => {
                    table.finish(live.swap_remove(rng.below(live.len() as u64) as usize));
                }
                _ if rng.chance(1, 20) => {
                    if let Some((tid, _)) = table.expire(Time::from_ns(ns)) {
                        live.retain(|&t| t != tid);
                        dead.push(tid);
                    }
                }
                _ => {
                    if let Some(tid) = dead.pop() {
                        assert!(table.get(tid).is_none());
                        table.late(tid);
                    }
                }
            }
            assert_eq!(table.slab.used() as usize, live.len());
            assert_eq!(table.slab.listed(), 37);
        }
        assert_eq!(live.iter().collect::<HashSet<_>>().len(), live.len());
        assert!(live.iter().all(|&tid| table.get(tid).is_some()));
    }
}
