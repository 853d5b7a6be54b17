//! Requests of users and runs beyond puts and gets, over a lossy link.

use std::collections::BTreeSet;

use super::tests::{TestPacket, joined, nic_config};
use super::*;
use crate::link::impair::Netem;
use crate::link::testing::rig::{A, B};
use crate::nic::{Operation, RoutingMode, RunPhase, TrafficSpec};
use crate::packets::TransferNicCounters;
use crate::packets::message_queues::Message;
use crate::sim::{Fabric, NodeId};

type Nic = PacketNic<TestPacket<2>>;

const NIC_A: NodeId = NodeId(A as u32);
const NIC_B: NodeId = NodeId(B as u32);

/// Two NICs whose timeout, and so period, is two seconds.
fn pair() -> Fabric<Nic> {
    joined([A, B].map(|end| PacketNicConfig {
        timeout: Duration::from_ms(2_000),
        ..nic_config::<2>(end, 64)
    }))
}

/// A pair over a link that loses, duplicates and damages frames.
fn bad_pair() -> Fabric<Nic> {
    let mut fabric = pair();
    let netem = "loss 5% duplicate 5% corrupt 2% delay 20us 10us";
    fabric.impair_all(Some(netem.parse::<Netem>().expect("netem's words")));
    fabric
}

/// Lets B serve requests, or leaves them in the input buffer.
fn serve(fabric: &mut Fabric<Nic>, serves: bool) {
    fabric.command(NIC_B, |nic, _| {
        nic.nic_core.config.answers = if serves { 64 } else { 0 };
    });
}

fn post(fabric: &mut Fabric<Nic>, from: NodeId, asked: Transfer) -> Result<u64, PostError> {
    fabric.command(from, |nic, now| nic.post(now, &asked))
}

fn completion(fabric: &mut Fabric<Nic>) -> Option<Completion> {
    fabric.command(NIC_A, |nic, _| nic.poll_completion())
}

fn asked(fabric: &mut Fabric<Nic>, asked: Transfer) -> Outcome {
    let name = post(fabric, NIC_A, asked).expect("there is room for a request");
    fabric.run_for(Duration::from_ms(100));
    let ended = completion(fabric).expect("the request was answered");
    assert_eq!((ended.name, ended.kind), (name, asked.kind));
    ended.outcome
}

/// The old word that an atomic operation returned.
fn found(outcome: Outcome) -> u64 {
    let Outcome::Done { data, len: 8 } = outcome else {
        panic!("expected an old word, found {outcome:?}");
    };
    u64::from_le_bytes(*data.first_chunk().expect("the data has 8 bytes"))
}

fn counters(fabric: &Fabric<Nic>, nic: NodeId) -> TransferNicCounters {
    fabric.node(nic).counters()
}

#[test]
fn additions_of_a_run_are_carried_out_once_each() {
    let mut fabric = bad_pair();
    let count = 2_000;
    for nic in [NIC_A, NIC_B] {
        let spec = TrafficSpec {
            processors: vec![0, 1],
            op: Operation::Amo,
            window: 32,
            addresses: 3,
            count,
            ..TrafficSpec::default()
        };
        let started = fabric.command(nic, |nic, now| nic.start(now, spec));
        started.expect("the run is valid");
    }
    let done = |fabric: &Fabric<Nic>| {
        let [mut report, other] = [NIC_A, NIC_B].map(|nic| {
            fabric
                .node(nic)
                .report(Some(1))
                .expect("the run was started")
        });
        report.merge(&other);
        report
    };
    let (limit, period) = (Duration::from_ms(60_000), Duration::from_ms(1));
    fabric.run_until_done(limit, period, |fabric| done(fabric).phase == RunPhase::Done);
    let report = done(&fabric);
    assert!(
        report.is_clean() && report.phase == RunPhase::Done,
        "{report:?}"
    );
    assert_eq!([report.delivered, report.acknowledged], [2 * count; 2]);
    assert_eq!(counters(&fabric, NIC_A).atomics_served, count);
}

#[test]
fn every_count_of_a_word_is_found_once() {
    let mut fabric = bad_pair();
    let mut all_found = BTreeSet::new();
    let mut left = [300; 2];
    for _ in 0..1_000 {
        for (nic, left) in [NIC_A, NIC_B].into_iter().zip(&mut left) {
            // Each NIC increments a word of the other.
            let asked = Transfer::new(1 - nic.0 as u16, Kind::Increment, 64);
            while *left > 0 && post(&mut fabric, nic, asked).is_ok() {
                *left -= 1;
            }
        }
        fabric.run_for(Duration::from_ms(1));
        for nic in [NIC_A, NIC_B] {
            while let Some(ended) = fabric.command(nic, |nic, _| nic.poll_completion()) {
                assert!(all_found.insert((nic.0, found(ended.outcome))), "twice");
            }
        }
    }
    let all = [0, 1].map(|nic| (0..300).map(move |count| (nic, count)));
    assert!(all_found.into_iter().eq(all.into_iter().flatten()));
}

#[test]
fn each_atomic_operation_answers_the_word_before() {
    let mut fabric = bad_pair();
    let mut on = |kind, words: &[u64]| {
        let outcome = asked(&mut fabric, Transfer::new(1, kind, 128).with_words(words));
        found(outcome)
    };
    assert_eq!(on(Kind::Add, &[5]), 0);
    assert_eq!(on(Kind::Increment, &[]), 5);
    assert_eq!(on(Kind::CompareSwap, &[5, 9]), 6);
    assert_eq!(on(Kind::CompareSwap, &[6, 0x1234]), 6);
    assert_eq!(on(Kind::MaskedSwap, &[0xff, 0x5678]), 0x1234);
    assert_eq!(on(Kind::Add, &[0]), 0x1278);
    // These addresses contain no words.
    for address in [4, 1 << 20, u64::MAX - 7] {
        let outcome = asked(&mut fabric, Transfer::new(1, Kind::Increment, address));
        assert_eq!(outcome, Outcome::Refused(None), "{address}");
    }
    assert_eq!(counters(&fabric, NIC_B).atomics_served, 6);
}

#[test]
fn a_full_queue_refuses_messages_and_notifies_their_senders() {
    let mut fabric = bad_pair();
    let message = |number| Transfer::new(1, Kind::Message, 3).with(&[number; MESSAGE_BYTES]);
    assert_eq!(asked(&mut fabric, message(0)), Outcome::Refused(None));
    fabric.command(NIC_B, |nic, _| {
        nic.queues_mut().open(3, 2).expect("the queue is not open");
        assert!(nic.queues_mut().arm(3, 2));
    });
    let done = Outcome::Done {
        data: [0; MAX_DATA],
        len: 0,
    };
    for (number, outcome) in [(1, done), (2, done), (3, Outcome::Refused(None))] {
        assert_eq!(asked(&mut fabric, message(number)), outcome);
    }
    fabric.command(NIC_B, |nic, _| {
        let data = [1; MESSAGE_BYTES];
        assert_eq!(nic.queues_mut().take_interrupts(), 1 << 3);
        assert_eq!(nic.queues_mut().poll(3), Some(Message { from: 0, data }));
    });
    assert_eq!(asked(&mut fabric, message(4)), done);
    let seen = counters(&fabric, NIC_B);
    assert_eq!((seen.messages_taken, seen.messages_refused), (3, 2));
    assert_eq!(fabric.node(NIC_B).queues().waiting(), 2);
}

#[test]
fn a_late_answer_ends_no_request_of_another_period() {
    let one = PacketNicConfig {
        outstanding: 1,
        timeout: Duration::from_ms(2_000),
        ..nic_config::<2>(A, 64)
    };
    let mut fabric = joined([one, nic_config::<2>(B, 64)]);
    serve(&mut fabric, false);
    let increment = Transfer::new(1, Kind::Increment, 0);
    let first = post(&mut fabric, NIC_A, increment).expect("there is room for a request");
    fabric.run_for(Duration::from_ms(2_500));
    let ended = completion(&mut fabric).expect("the request timed out");
    assert_eq!((ended.name, ended.outcome), (first, Outcome::Unknown));
    // Posted in the next period, in the same slot.
    let second = post(&mut fabric, NIC_A, increment).expect("the period has begun");
    assert_ne!(first, second);
    let third = post(&mut fabric, NIC_A, increment);
    assert_eq!(third, Err(PostError::TooMany));
    serve(&mut fabric, true);
    fabric.run_for(Duration::from_ms(10));
    assert_eq!(counters(&fabric, NIC_A).late_responses, 1);
    let ended = completion(&mut fabric).expect("the request was answered");
    assert_eq!((ended.name, found(ended.outcome)), (second, 1));
    assert_eq!(completion(&mut fabric), None);
}

#[test]
fn invalid_transfers_are_not_posted() {
    let mut fabric = pair();
    let to = |to, kind, len| Transfer {
        len,
        ..Transfer::new(to, kind, 0)
    };
    for (to, kind, len) in [
        (2, Kind::Get, 8),
        (1, Kind::Get, 0),
        (1, Kind::Get, 65),
        (1, Kind::Put, 0),
        (1, Kind::Put, 65),
        (1, Kind::Done, 0),
        (1, Kind::Refused, 0),
        (1, Kind::Damaged, 0),
        (1, Kind::Increment, 8),
        (1, Kind::Add, 0),
        (1, Kind::CompareSwap, 8),
        (1, Kind::Message, 32),
    ]
    .map(|(nic, kind, len)| (to(nic, kind, len), kind, len))
    {
        let posted = post(&mut fabric, NIC_A, to);
        assert_eq!(posted, Err(PostError::NotHere), "{kind:?} {len}");
    }
    serve(&mut fabric, false);
    let get = to(1, Kind::Get, 8);
    let mut posted = Ok(0);
    for _ in 0..65 {
        posted = post(&mut fabric, NIC_A, get);
        fabric.run_for(Duration::from_us(100));
    }
    // B has fewer buffers than A has slots.
    assert_eq!(posted, Err(PostError::NoRoom));
    let mut alone: Nic = PacketNic::new(nic_config::<2>(A, 64), Time::ZERO);
    assert_eq!(alone.post(Time::ZERO, &get), Err(PostError::NoRoom));
}

#[test]
fn unfetched_completions_occupy_request_slots() {
    let mut fabric = pair();
    let get = Transfer {
        len: 8,
        ..Transfer::new(1, Kind::Get, 0)
    };
    for _ in 0..64 {
        post(&mut fabric, NIC_A, get).expect("there is room for a request");
        fabric.run_for(Duration::from_us(100));
    }
    let posted = post(&mut fabric, NIC_A, get);
    assert_eq!(posted, Err(PostError::TooMany));
    completion(&mut fabric).expect("the request was answered");
    post(&mut fabric, NIC_A, get).expect("one completion was fetched");
}

/// The oldest transfer in the input buffer of requests.
fn front(nic: &mut Nic) -> Option<Transfer> {
    match nic.nic_core.ports[0].front(0, &mut TransferNicCounters::default()) {
        Some(Arrival::Whole(transfer)) => Some(transfer),
        _ => None,
    }
}

/// The oldest request in B's input buffer.
fn waiting(fabric: &mut Fabric<Nic>) -> Option<Transfer> {
    fabric.command(NIC_B, |nic, _| front(nic))
}

#[test]
fn a_run_is_ordered_if_requested_or_required() {
    for (ways, size, ordered) in [
        (None, 8, false),
        (Some(RoutingMode::Adaptive0), 8, false),
        (Some(RoutingMode::Ordered), 8, true),
        (None, 4, true),
    ] {
        let mut fabric = pair();
        serve(&mut fabric, false);
        let spec = TrafficSpec {
            processors: vec![0, 1],
            ways,
            size,
            ..TrafficSpec::default()
        };
        let started = fabric.command(NIC_A, |nic, now| nic.start(now, spec));
        started.expect("the run is valid");
        fabric.run_for(Duration::from_ms(1));
        let seen = waiting(&mut fabric).expect("the announcement is queued");
        assert_eq!(seen.ordered, ordered, "{ways:?} {size}");
    }
}

#[test]
fn damaged_requests_are_answered_as_damaged() {
    let mut fabric = pair();
    serve(&mut fabric, false);
    let get = Transfer {
        len: 8,
        ..Transfer::new(1, Kind::Get, 0)
    };
    let outcomes = [(); 3].map(|()| {
        let name = post(&mut fabric, NIC_A, get).expect("there is room for a request");
        fabric.run_for(Duration::from_ms(1));
        let asked = fabric.command(NIC_B, |nic, _| {
            let front = front(nic);
            nic.nic_core.ports[0].pop(0);
            front.expect("the packet has arrived")
        });
        assert_eq!(asked.name, name);
        (asked, name)
    });
    // The first request arrives damaged.
    fabric.command(NIC_B, |nic, _| nic.nic_core.spoiled(0, &outcomes[0].0));
    fabric.run_for(Duration::from_ms(1));
    let ended = completion(&mut fabric).expect("the request was answered");
    assert_eq!(
        (ended.name, ended.outcome),
        (outcomes[0].1, Outcome::Damaged)
    );
    // The second request's reply lacks the requested data; the third's is damaged.
    let short = outcomes[1].0.answer(Kind::Done).with(&[1; 4]);
    fabric.command(NIC_A, |nic, _| nic.answered(&short, true));
    assert_eq!(completion(&mut fabric), None);
    let damaged = outcomes[2].0.answer(Kind::Done).with(&[1; 8]);
    fabric.command(NIC_A, |nic, _| nic.answered(&damaged, false));
    let ended = completion(&mut fabric).expect("a damaged response ends the request");
    assert_eq!(
        (ended.name, ended.outcome),
        (outcomes[2].1, Outcome::Unknown)
    );
    let [a, b] = [NIC_A, NIC_B].map(|nic| counters(&fabric, nic));
    assert_eq!((a.mismatched_responses, a.damaged_answers), (1, 1));
    assert_eq!(b.damaged_requests, 1);
    assert_eq!(fabric.node(NIC_A).account().requests, 1);
}
