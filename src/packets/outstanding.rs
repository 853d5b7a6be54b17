//! Requests that await their reply, by name.
//!
//! A reply to a request that has timed out, or that a predecessor posted, matches no request with
//! this [slot](crate::nic::slab) and [period](crate::nic::periods). It is recognised as late and
//! never completes another request.

use super::names::Names;
use super::transfer::Kind;
use crate::nic::RunRequest;
use crate::nic::periods::{Incarnation, Periods};
use crate::nic::slab::{Entry, Slab};
use crate::time::{Duration, Time};

/// The requester, which gets the reply.
#[derive(Clone, Copy, Debug)]
pub(super) enum RequestOrigin {
    User,
    Program,
    Probe,
    Run(RunRequest),
}

/// A request that waits for its reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) posted: Time,
    pub(super) origin: RequestOrigin,
    pub(super) kind: Kind,
    pub(super) address: u64,
    /// Bytes that its reply carries on success.
    pub(super) answer_bytes: u8,
}

impl Entry for Pending {
    #[inline]
    fn posted(&self) -> Time {
        self.posted
    }
}

impl Pending {
    /// Whether the request announces or queries a run.
    pub(super) const fn is_announcement(&self) -> bool {
        matches!(self.origin, RequestOrigin::Run(asked) if !matches!(asked, RunRequest::Message(_)))
    }
}

#[derive(Clone, Debug)]
pub(super) struct Outstanding {
    pub(super) slab: Slab<Pending>,
    names: Names,
    timeout: Duration,
}

impl Outstanding {
    /// Up to `most` outstanding requests with names of `name_bits` bits, of a NIC that starts at
    /// `now`.
    ///
    /// # Panics
    /// Like [`Names::new`].
    pub(super) fn new(
        (name_bits, most): (u32, u32),
        incarnation: Incarnation,
        timeout: Duration,
        now: Time,
    ) -> Self {
        let names = Names::new(name_bits, most);
        let idle = Pending {
            posted: now,
            origin: RequestOrigin::User,
            kind: Kind::Put,
            address: 0,
            answer_bytes: 0,
        };
        let periods = Periods::new(incarnation, now, timeout, names.longer_periods());
        Self {
            slab: Slab::new(most, idle, periods),
            names,
            timeout,
        }
    }

    /// Whether `name` matches the period in which its slot was last used.
    #[inline]
    pub(super) fn is_recent(&self, name: u64) -> bool {
        let slot = self.names.slot(name);
        let period = self.slab.period(slot);
        period.is_some_and(|period| self.names.name(slot, period) == name)
    }

    /// Begins a request; `None` if no slot is available in the current period.
    ///
    /// `pending.posted` must not precede that of any earlier request.
    #[inline]
    pub(super) fn begin(&mut self, pending: Pending) -> Option<u64> {
        let (slot, period) = self.slab.begin(pending)?;
        Some(self.names.name(slot, period))
    }

    #[inline]
    pub(super) fn get(&self, name: u64) -> Option<&Pending> {
        let pending = self.slab.get(self.names.slot(name));
        pending.filter(|_| self.is_recent(name))
    }

    /// Ends a request whose reply has arrived.
    ///
    /// # Panics
    /// If `name` is not outstanding; check [`get`](Self::get) first.
    #[inline]
    pub(super) fn finish(&mut self, name: u64) {
        self.slab.finish(self.names.slot(name));
    }

    /// Handles a reply to a request that is not outstanding. Returns true if it is the late reply
    /// to a request that timed out, whose slot then leaves quarantine.
    pub(super) fn late(&mut self, name: u64) -> bool {
        self.is_recent(name) && self.slab.release(self.names.slot(name))
    }

    /// Records that the process was suspended for `span` until `now`.
    pub(super) fn handle_suspension(&mut self, now: Time, span: Duration) {
        self.slab.handle_suspension(now, span, self.timeout);
    }

    /// When the next request times out, or requests become possible again.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.slab.next_deadline(self.timeout)
    }

    /// Times out the oldest request if it is due at `now`.
    #[inline]
    pub(super) fn expire(&mut self, now: Time) -> Option<(u64, Pending)> {
        let (at, oldest) = self.slab.times_out(self.timeout)?;
        if at > now {
            return None;
        }
        self.expire_until(oldest)
    }

    /// Times out the oldest request if it was posted at or before `limit`.
    #[inline]
    fn expire_until(&mut self, limit: Time) -> Option<(u64, Pending)> {
        let (slot, pending) = self.slab.expire(limit)?;
        let period = self
            .slab
            .period(slot)
            .expect("the expired request was waiting in this slot");
        Some((self.names.name(slot, period), pending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::HashSet;

    fn fresh(capacity: u32) -> Outstanding {
        successor(capacity, Time::ZERO)
    }

    fn successor(capacity: u32, now: Time) -> Outstanding {
        let after = Incarnation {
            clock_ns: 0,
            first: now == Time::ZERO,
        };
        Outstanding::new((20, capacity), after, Duration::from_ms(2_000), now)
    }

    fn at(ns: u64) -> Pending {
        Pending {
            posted: Time::from_ns(ns),
            origin: RequestOrigin::User,
            kind: Kind::Put,
            address: ns,
            answer_bytes: 0,
        }
    }

    #[test]
    fn requests_expire_in_posting_order_and_only_when_due() {
        let mut table = fresh(4);
        let names: Vec<u64> = (1..=4).map(|ns| table.begin(at(ns)).unwrap()).collect();
        assert!(table.begin(at(5)).is_none());
        table.finish(names[1]);
        assert_eq!(table.slab.oldest(), Some(Time::from_ns(1)));
        assert_eq!(table.expire_until(Time::from_ns(3)).unwrap().0, names[0]);
        assert_eq!(table.expire_until(Time::from_ns(3)).unwrap().1.address, 3);
        assert!(table.expire_until(Time::from_ns(3)).is_none());
        assert_eq!((table.slab.used(), table.slab.quarantined()), (1, 2));
    }

    #[test]
    fn a_late_response_never_completes_another_request() {
        let mut table = fresh(2);
        let old = table.begin(at(1)).unwrap();
        table.expire_until(Time::from_ns(1)).unwrap();
        for ns in 2..10_000_000 {
            let name = table.begin(at(ns)).unwrap();
            assert_ne!(name, old);
            table.finish(name);
        }
        assert!(table.get(old).is_none());
        assert!(table.late(old));
        assert!(!table.late(old));
    }

    #[test]
    fn a_quarantined_slot_serves_again_in_the_next_period_when_no_other_is_left() {
        let mut table = fresh(1);
        let old = table.begin(at(1)).unwrap();
        table.expire_until(Time::from_ns(1)).unwrap();
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
    fn no_id_is_reused_within_a_minute_across_restarts() {
        for (seed, capacity) in (0..1_000).flat_map(|seed| [(seed, 3), (seed, 40_000)]) {
            let mut rng = Rng::new(seed, 9);
            let mut now = Time::from_ns(rng.below(1 << 32));
            let mut asked: Vec<(Time, u64)> = Vec::new();
            for _life in 0..[5, 2][usize::from(capacity > 3)] {
                let mut table = successor(capacity, now);
                for _ in 0..rng.below(100) {
                    now += Duration::from_ns(1 << [12, 24, 30][rng.below(3) as usize]);
                    table.slab.advance(now);
                    while rng.chance(1, 3) && table.expire_until(now).is_some() {}
                    let Some(name) = table.begin(Pending {
                        posted: now,
                        ..at(1)
                    }) else {
                        continue;
                    };
                    if rng.chance(1, 4) {
                        table.finish(name);
                        continue;
                    }
                    if let Some((before, _)) = asked.iter().rev().find(|(_, t)| *t == name) {
                        let apart = now.since(*before);
                        assert!(apart > Duration::from_ms(120_000), "{seed}: {apart:?}");
                    }
                    asked.push((now, name));
                }
                now += Duration::from_ns(1 << [20, 28, 34][rng.below(3) as usize]);
            }
        }
    }

    #[test]
    fn a_finished_request_is_not_known_any_more() {
        let mut table = fresh(3);
        let name = table.begin(at(1)).unwrap();
        table.finish(name);
        assert!(table.get(name).is_none() && !table.late(name));
        // An index beyond a capacity that is not a power of two.
        assert!(table.get(3).is_none() && !table.late(3));
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
                    if let Some((name, _)) = table.expire_until(Time::from_ns(ns)) {
                        live.retain(|&t| t != name);
                        dead.push(name);
                    }
                }
                _ => {
                    if let Some(name) = dead.pop() {
                        assert!(table.get(name).is_none());
                        table.late(name);
                    }
                }
            }
            assert_eq!(table.slab.used() as usize, live.len());
            assert_eq!(table.slab.listed(), 37);
        }
        assert_eq!(live.iter().collect::<HashSet<_>>().len(), live.len());
        assert!(live.iter().all(|&name| table.get(name).is_some()));
    }
}
