//! Transactions: several requests with one completion.
//!
//! XC white paper, "Ordering and Completion": every packet of a transaction carries its
//! synchronization sequence identification (SSID). Counters track the requests and their responses,
//! and an event is generated when all have arrived. The event "reports the successful execution of
//! the transaction or provides details of a failure".

use std::collections::VecDeque;

use phitwire_framing::aries::packet::{ADDRESS_BITS, SSID_BITS};

use super::completion::Failure;
use super::virtual_node::Target;
use phitwire::time::Time;

/// Number of SSIDs of a NIC; 0 means no transaction.
const SSIDS: u16 = 1 << 9;
const USABLE: u64 = SSIDS as u64 - 1;
/// Position from which the addresses of messages and events carry the SSID bits that exceed the
/// packet field. Their addresses stay below 2^32.
const HIGH_SHIFT: u32 = ADDRESS_BITS - SSIDS.trailing_zeros() + SSID_BITS;

const _: () = assert!(HIGH_SHIFT > 32, "messages may be 2^32 bytes long");

/// The upper bits of an SSID, for the address field of a message or an event.
#[inline]
pub(crate) const fn high_ssid(ssid: u16) -> u64 {
    (ssid as u64 >> SSID_BITS) << HIGH_SHIFT
}

/// The complete SSID of a message or an event with the field `low`, and its address without the
/// SSID bits.
#[inline]
pub(crate) const fn whole_ssid(low: u16, address: u64) -> (u16, u64) {
    let high = (address >> HIGH_SHIFT) as u16;
    (high << SSID_BITS | low, address & ((1 << HIGH_SHIFT) - 1))
}

/// Identifies an open transaction of one NIC: 1 to 511.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ssid(u16);

impl Ssid {
    /// The 9 bits, of which puts carry the lower four.
    pub const fn bits(self) -> u16 {
        self.0
    }
}

/// An event that a transaction sends to a target once all its requests have succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteEvent {
    pub target: Target,
    /// A memory domain of the target with put access, which the event requires too.
    pub handle: u16,
    pub key: u16,
    pub data: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Free,
    Open,
    /// Closed, with requests outstanding.
    Closing,
    /// All requests have succeeded; the event for the target is queued or in flight.
    Telling,
}

#[derive(Clone, Copy, Debug)]
struct Transaction {
    stage: Stage,
    user: u64,
    opened: Time,
    requests: u64,
    outstanding: u32,
    failed: u64,
    first_failure: Option<Failure>,
    event: Option<RemoteEvent>,
}

impl Transaction {
    const FREE: Self = Self {
        stage: Stage::Free,
        user: 0,
        opened: Time::ZERO,
        requests: 0,
        outstanding: 0,
        failed: 0,
        first_failure: None,
        event: None,
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub user: u64,
    pub opened: Time,
    pub requests: u64,
    pub failed: u64,
    pub failure: Option<Failure>,
}

/// The next step after a request of a transaction has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    Waiting,
    /// Send the event, which [`Transactions::next_event`] returns.
    Tell,
    Ended(Ended),
}

#[derive(Debug)]
pub(crate) struct Transactions {
    table: Vec<Transaction>,
    /// A queue, so that an SSID stays unused as long as possible.
    free: VecDeque<u16>,
    /// Transactions whose event must be sent.
    telling: VecDeque<u16>,
}

impl Transactions {
    /// Creates slots with all SSIDs free. The random `begin` determines the first one to use.
    pub(crate) fn new(begin: u64) -> Self {
        Self {
            table: vec![Transaction::FREE; usize::from(SSIDS)],
            free: (0..USABLE)
                .map(|number| 1 + ((begin % USABLE + number) % USABLE) as u16)
                .collect(),
            telling: VecDeque::with_capacity(usize::from(SSIDS)),
        }
    }

    /// Opens a transaction; `None` if all 511 are in use.
    pub(crate) fn open(&mut self, now: Time, user: u64) -> Option<Ssid> {
        let ssid = self.free.pop_front()?;
        self.table[usize::from(ssid)] = Transaction {
            stage: Stage::Open,
            user,
            opened: now,
            ..Transaction::FREE
        };
        Some(Ssid(ssid))
    }

    #[inline]
    pub(crate) fn is_open(&self, ssid: Ssid) -> bool {
        self.table[usize::from(ssid.0)].stage == Stage::Open
    }

    #[inline]
    pub(crate) fn began(&mut self, ssid: u16) {
        let transaction = &mut self.table[usize::from(ssid)];
        debug_assert!(
            transaction.stage == Stage::Open,
            "only open transactions begin requests"
        );
        transaction.requests += 1;
        transaction.outstanding += 1;
    }

    /// Handles the end of a request or of the event.
    pub(crate) fn ended(&mut self, ssid: u16, failure: Option<Failure>) -> NextStep {
        let transaction = &mut self.table[usize::from(ssid)];
        if let Some(failure) = failure {
            transaction.failed += 1;
            transaction.first_failure.get_or_insert(failure);
        }
        if transaction.stage == Stage::Telling {
            return self.finish(ssid);
        }
        assert!(
            transaction.outstanding > 0,
            "more requests ended than began"
        );
        transaction.outstanding -= 1;
        self.proceed(ssid)
    }

    /// Allocates an SSID for a block transfer, which does its own accounting; `None` if all are in
    /// use.
    pub(crate) fn reserve(&mut self) -> Option<u16> {
        self.free.pop_front()
    }

    /// Returns an SSID from [`reserve`](Self::reserve).
    pub(crate) fn release(&mut self, ssid: u16) {
        self.free.push_back(ssid);
    }

    /// Accepts no more requests. Returns `None` if the transaction is not open.
    pub(crate) fn close(&mut self, ssid: Ssid, event: Option<RemoteEvent>) -> Option<NextStep> {
        let transaction = &mut self.table[usize::from(ssid.0)];
        if transaction.stage != Stage::Open {
            return None;
        }
        transaction.stage = Stage::Closing;
        transaction.event = event;
        Some(self.proceed(ssid.0))
    }

    fn proceed(&mut self, ssid: u16) -> NextStep {
        let transaction = &mut self.table[usize::from(ssid)];
        if transaction.stage != Stage::Closing || transaction.outstanding > 0 {
            return NextStep::Waiting;
        }
        if transaction.event.is_some() && transaction.first_failure.is_none() {
            transaction.stage = Stage::Telling;
            self.telling.push_back(ssid);
            return NextStep::Tell;
        }
        self.finish(ssid)
    }

    fn finish(&mut self, ssid: u16) -> NextStep {
        let transaction = &mut self.table[usize::from(ssid)];
        transaction.stage = Stage::Free;
        self.free.push_back(ssid);
        NextStep::Ended(Ended {
            user: transaction.user,
            opened: transaction.opened,
            requests: transaction.requests,
            failed: transaction.failed,
            failure: transaction.first_failure,
        })
    }

    pub(crate) fn next_event(&self) -> Option<(u16, RemoteEvent)> {
        let &ssid = self.telling.front()?;
        let event = self.table[usize::from(ssid)].event;
        Some((ssid, event.expect("a queued transaction has an event")))
    }

    /// Records that the event of [`next_event`](Self::next_event) was sent.
    pub(crate) fn event_sent(&mut self) {
        self.telling.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_ends_when_it_is_closed_and_all_requests_have_ended() {
        let mut all = Transactions::new(7);
        let ssid = all.open(Time::from_ns(5), 42).unwrap();
        for _ in 0..3 {
            all.began(ssid.bits());
        }
        assert_eq!(all.ended(ssid.bits(), None), NextStep::Waiting);
        assert_eq!(all.close(ssid, None), Some(NextStep::Waiting));
        assert!(!all.is_open(ssid) && all.close(ssid, None).is_none());
        let failure = Some(Failure::TimedOut);
        assert_eq!(all.ended(ssid.bits(), failure), NextStep::Waiting);
        let NextStep::Ended(ended) = all.ended(ssid.bits(), None) else {
            panic!("the transaction has not ended")
        };
        let counts = (ended.user, ended.requests, ended.failed, ended.failure);
        assert_eq!(counts, (42, 3, 1, failure));
        let empty = all.open(Time::ZERO, 1).unwrap();
        assert!(matches!(
            all.close(empty, None),
            Some(NextStep::Ended(Ended { requests: 0, .. }))
        ));
    }

    #[test]
    fn the_event_goes_out_only_after_success() {
        let mut all = Transactions::new(7);
        let event = RemoteEvent {
            target: Target::Virtual(3),
            handle: 0,
            key: 1,
            data: 9,
        };
        let (good, bad) = (
            all.open(Time::ZERO, 1).unwrap(),
            all.open(Time::ZERO, 2).unwrap(),
        );
        for ssid in [good, bad] {
            all.began(ssid.bits());
            assert_eq!(all.close(ssid, Some(event)), Some(NextStep::Waiting));
        }
        assert_eq!(all.ended(good.bits(), None), NextStep::Tell);
        assert!(matches!(
            all.ended(bad.bits(), Some(Failure::TimedOut)),
            NextStep::Ended(Ended { user: 2, .. })
        ));
        assert_eq!(all.next_event(), Some((good.bits(), event)));
        all.event_sent();
        assert_eq!(all.next_event(), None);
        let ended = all.ended(good.bits(), None);
        assert!(matches!(ended, NextStep::Ended(Ended { user: 1, .. })));
    }

    #[test]
    fn there_are_511_and_each_rests() {
        let mut all = Transactions::new(7);
        let first = all.open(Time::ZERO, 0).unwrap();
        for _ in 1..511 {
            all.open(Time::ZERO, 0).unwrap();
        }
        assert!(all.open(Time::ZERO, 0).is_none());
        all.close(first, None).unwrap();
        assert_eq!(all.open(Time::ZERO, 0), Some(first));
    }
}
