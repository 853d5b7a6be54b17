//! Transactions: several requests with one completion, and an event for the target.

use super::interface::Owner;
use super::test_bench::*;
use super::*;

#[test]
fn a_transaction_completes_once_and_then_notifies_its_target() {
    let mut pair = Pair::new();
    pair.spread = 200;
    let ssid = pair.nics[0].open(pair.now, 77).unwrap();
    for n in 0..3000_u64 {
        let word = n.to_le_bytes();
        pair.post(Owner::Transaction(ssid), &post(put(&word), at(8 * n)));
    }
    let event = RemoteEvent {
        target: Target::Virtual(1),
        handle: ALL,
        key: KEY,
        data: 4711,
    };
    pair.nics[0].close(pair.now, ssid, Some(event)).unwrap();
    assert!(pair.completions().is_empty() && pair.target_events().is_empty());
    pair.drain();
    let event = TargetEvent::Transaction {
        source: NODES[0],
        ssid: ssid.bits(),
        handle: ALL,
        data: 4711,
    };
    assert_eq!(pair.target_events(), [event]);
    let ends = pair.completions();
    assert_eq!(ends.len(), 1);
    assert_eq!((ends[0].user, ends[0].outcome), (77, Outcome::Done));
    let counts = Ended::Transaction {
        requests: 3000,
        failed: 0,
    };
    assert_eq!(ends[0].ended, counts);
    for n in 0..3000_u64 {
        assert_eq!(pair.read(1, 8 * n, 8), n.to_le_bytes());
    }
    let more = pair.nics[0].post(pair.now, Owner::Transaction(ssid), &post(put(&[1]), at(0)));
    assert_eq!(more, Err(PostError::Transaction));
}

#[test]
fn a_failed_transaction_reports_its_first_failure_and_sends_no_event() {
    let mut pair = Pair::new();
    pair.spread = 1;
    let ssid = pair.nics[0].open(pair.now, 1).unwrap();
    let owner = Owner::Transaction(ssid);
    let wrong_key = RemoteAddress { key: 1, ..at(0) };
    pair.post(owner, &post(put(&[1]), at(0)));
    pair.post(owner, &post(put(&[1]), wrong_key));
    pair.post(owner, &post(put(&[1]), at(MEMORY)));
    let no_place = pair.nics[0].post(pair.now, owner, &post(get(8), at(0)));
    assert_eq!(no_place, Err(PostError::NoAddress));
    let event = RemoteEvent {
        target: NODES[1].into(),
        handle: ALL,
        key: KEY,
        data: 0,
    };
    pair.nics[0].close(pair.now, ssid, Some(event)).unwrap();
    pair.drain();
    let ends = pair.completions();
    assert_eq!(ends[0].outcome, refused(Status::BadKey));
    let counts = Ended::Transaction {
        requests: 3,
        failed: 2,
    };
    assert_eq!((ends.len(), ends[0].ended), (1, counts));
    assert!(pair.target_events().is_empty());
    assert_eq!(pair.nics[0].counters().transactions_failed, 1);
}

#[test]
fn events_are_accepted_only_from_sources_that_may_put() {
    let mut pair = Pair::new();
    let ssid = pair.nics[0].open(pair.now, 1).unwrap();
    let event = RemoteEvent {
        target: NODES[1].into(),
        handle: ALL,
        key: 0,
        data: 0,
    };
    pair.nics[0].close(pair.now, ssid, Some(event)).unwrap();
    // Its only request is the event.
    pair.step();
    pair.drain();
    assert_eq!(pair.completions()[0].outcome, refused(Status::BadKey));
    assert!(pair.target_events().is_empty());
}
