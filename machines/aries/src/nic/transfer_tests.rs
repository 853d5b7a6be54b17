mod dead;

use std::collections::BTreeMap;

use super::bte::TransferOwner;
use super::interface::Owner;
use super::test_bench::*;
use super::*;
use phitwire::rng::Rng;
use phitwire::time::Duration;

fn filled(pair: &mut Pair, nic: usize, address: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng::new(len as u64, address);
    let data: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
    pair.write(nic, address, &data);
    data
}

fn outcome(pair: &mut Pair) -> Outcome {
    pair.drain();
    pair.completions()[0].outcome
}

fn start(pair: &mut Pair, channel: usize, transfer: BlockTransfer) {
    pair.nics[0].transfer(pair.now, channel, transfer).unwrap();
}

fn receive(pair: &mut Pair, local: u64, length: u64) {
    let receive = Receive {
        local,
        length,
        key: KEY,
        user: local,
    };
    assert!(pair.nics[1].responder.receives.post(receive));
}

/// Lengths around packet sizes, and one that fills several windows.
const LENGTHS: [usize; 16] = [
    0, 1, 3, 4, 7, 63, 64, 65, 100, 127, 128, 129, 1000, 4096, 9999, 100_003,
];

#[test]
fn puts_and_gets_of_odd_lengths_and_alignments() {
    let mut pair = Pair::new();
    let mut rng = Rng::new(8, 8);
    for length in LENGTHS {
        for _ in 0..8 {
            let (local, remote) = (1000 + rng.below(70), 500_000 + rng.below(70));
            for put in [true, false] {
                let mut ends = [(0, local), (1, remote)];
                if !put {
                    ends.reverse();
                }
                let [(source, from), (sink, to)] = ends;
                let data = filled(&mut pair, source, from, length);
                // Guards around the written area.
                pair.write(sink, to - 8, &[0x5a; 8]);
                pair.write(sink, to + length as u64, &[0x5a; 8]);
                let operation = [block_get, block_put][usize::from(put)](remote);
                let channel = rng.below(4) as usize;
                let whole = transfer(operation, local, length as u64);
                start(&mut pair, channel, whole);
                pair.drain();
                let ends = pair.completions();
                let bytes = Ended::Transfer {
                    channel: channel as u8,
                    bytes: length as u64,
                };
                assert_eq!((ends.len(), ends[0].ended), (1, bytes));
                assert_eq!(ends[0].outcome, Outcome::Done);
                assert_eq!(pair.read(sink, to, length), data);
                assert_eq!(pair.read(sink, to - 8, 8), [0x5a; 8]);
                assert_eq!(pair.read(sink, to + length as u64, 8), [0x5a; 8]);
            }
        }
    }
}

#[test]
fn sends_fill_posted_receives() {
    let mut pair = Pair::new();
    for (n, length) in LENGTHS.into_iter().enumerate() {
        let (local, address) = (1000 + n as u64, 500_000 + 7 * n as u64);
        let data = filled(&mut pair, 0, local, length);
        receive(&mut pair, address, length as u64 + 5);
        start(&mut pair, n % 4, transfer(SEND, local, length as u64));
        pair.drain();
        assert_eq!(pair.completions()[0].outcome, Outcome::Done, "{length}");
        assert_eq!(pair.read(1, address, length), data);
        let event = TargetEvent::Received {
            user: address,
            source: NODES[0],
            bytes: length as u64,
            failure: None,
        };
        assert_eq!(pair.target_events(), [event]);
    }
    assert_eq!(pair.nics[1].counters().receives_done, LENGTHS.len() as u64);
}

#[test]
fn four_channels_work_at_once_and_leave_room_for_single_requests() {
    let mut pair = Pair::new();
    pair.spread = 300;
    let length = 60_000;
    for channel in 0..4 {
        let at = 100_000 * channel as u64;
        filled(&mut pair, 0, at, length);
        let whole = transfer(block_put(at), at, length as u64);
        start(&mut pair, channel, whole);
    }
    let mut most = 0;
    for n in 0..400 {
        pair.step();
        most = most.max(pair.nics[0].requester.outstanding.slab.used());
        if n % 4 != 0 {
            continue;
        }
        let posted = pair.nics[0].post(pair.now, Owner::User(n), &post(put(&[1]), at(MEMORY - 1)));
        assert_eq!(posted, Ok(()), "there is room next to the transfers");
    }
    assert!(most > 600 && most <= MAX_OUTSTANDING);
    pair.drain();
    let ends = pair.completions();
    let is_transfer = |end: &&Completion| matches!(end.ended, Ended::Transfer { .. });
    let mut all = ends.iter().filter(is_transfer);
    assert_eq!(all.clone().count(), 4);
    assert!(all.all(|c| c.outcome == Outcome::Done));
    for channel in 0..4 {
        let at = 100_000 * channel;
        assert_eq!(pair.read(0, at, length), pair.read(1, at, length));
    }
}

#[test]
fn a_fenced_transfer_waits_for_all_before_it() {
    for fence in [false, true] {
        let mut pair = Pair::new();
        start(&mut pair, 0, transfer(block_put(0), 0, 50_000));
        start(&mut pair, 1, transfer(block_put(0), 0, 40_000));
        let short = BlockTransfer {
            fence,
            ..transfer(block_put(0), 0, 10)
        };
        start(&mut pair, 2, short);
        pair.drain();
        let order: Vec<u64> = pair.completions().iter().map(|c| c.user).collect();
        let last = usize::from(fence) * 2;
        assert_eq!(order[last], 10, "{fence}: {order:?}");
    }
}

#[test]
fn a_channel_does_not_wait_for_answers_between_short_transfers() {
    let mut pair = Pair::new();
    pair.spread = 300;
    let (count, length) = (200_u64, 128);
    for n in 0..count {
        let at = n * length;
        filled(&mut pair, 0, at, length as usize);
        let with_event = BlockTransfer {
            event: Some(n),
            ..transfer(block_put(at), at, length)
        };
        start(&mut pair, 0, with_event);
    }
    let begin = pair.now;
    let mut most = 0;
    while pair.nics[0].transfers.open() > 0 {
        pair.step();
        most = most.max(pair.nics[0].requester.outstanding.slab.used());
        let under_way = pair.nics[0].transfers.under_way();
        assert!(under_way <= 128, "{under_way}");
    }
    // In sequence, each transfer would take two round trips of 300 us on average.
    let took = pair.now.since(begin);
    assert!(took < Duration::from_ms(6), "{took:?}");
    assert!(most > 150, "{most}");
    let mut events: Vec<u64> = pair
        .target_events()
        .iter()
        .map(|event| match event {
            TargetEvent::Transaction { data, .. } => *data,
            other => panic!("{other:?}"),
        })
        .collect();
    events.sort_unstable();
    assert!(events.into_iter().eq(0..count), "each event arrives once");
    let ends = pair.completions();
    assert!(ends.iter().all(|end| end.outcome == Outcome::Done));
    assert_eq!(ends.len(), count as usize);
    let all = (count * length) as usize;
    assert_eq!(pair.read(0, 0, all), pair.read(1, 0, all));
    // All SSIDs are free again.
    let now = pair.now;
    assert!((0..511).all(|user| pair.nics[0].open(now, user).is_ok()));
}

#[test]
fn empty_transfers_delay_no_other() {
    let mut pair = Pair::new();
    let none = transfer(block_put(0), 0, 0);
    let event = Some(1);
    let fence = true;
    // The end of each transfer begins the next, on a channel that was checked before.
    for (channel, transfer) in [
        (3, none),
        (2, BlockTransfer { fence, ..none }),
        (
            3,
            BlockTransfer {
                fence,
                event,
                ..none
            },
        ),
        (0, BlockTransfer { fence, ..none }),
        (1, BlockTransfer { event, ..none }),
    ] {
        start(&mut pair, channel, transfer);
    }
    pair.step();
    let ended = pair.completions().len();
    assert_eq!(
        (ended, pair.nics[0].requester.outstanding.slab.used()),
        (2, 2)
    );
    pair.drain();
    assert_eq!(pair.completions().len(), 3);
    assert_eq!(pair.target_events().len(), 2);
}

#[test]
fn transfers_that_are_completely_sent_are_not_given_up() {
    let mut pair = Pair::new();
    pair.spread = 300;
    let with_event = BlockTransfer {
        event: Some(1),
        ..transfer(block_put(0), 0, 1000)
    };
    let (out, waits) = (with_event, transfer(block_put(0), 0, 100_000));
    for (channel, what) in [(0, out), (1, waits), (0, out), (1, waits)] {
        start(&mut pair, channel, what);
    }
    while pair.nics[0].requester.outstanding.slab.used() < 600 {
        pair.step();
    }
    let nic = &mut pair.nics[0];
    let (transfers, transactions) = (&mut nic.transfers, &mut nic.transactions);
    transfers.give_up(TransferOwner::User(0), transactions);
    pair.drain();
    let mut ends: Vec<(u64, Outcome)> = pair
        .completions()
        .iter()
        .map(|c| (c.user, c.outcome))
        .collect();
    ends.sort_by_key(|end| end.0);
    let (done, aborted) = (Outcome::Done, Outcome::Failed(Failure::Aborted));
    assert_eq!(
        ends,
        [
            (1000, done),
            (1000, done),
            (100_000, aborted),
            (100_000, aborted)
        ]
    );
    assert_eq!(
        pair.target_events().len(),
        2,
        "both transfers notified the target"
    );
}

#[test]
fn a_fence_also_waits_for_the_answers_of_its_own_channel() {
    let mut pair = Pair::new();
    pair.spread = 300;
    start(&mut pair, 0, transfer(block_put(0), 0, 128));
    let fenced = BlockTransfer {
        fence: true,
        ..transfer(block_put(0), 0, 64)
    };
    start(&mut pair, 0, fenced);
    start(&mut pair, 0, transfer(block_put(0), 0, 32));
    let mut ended = Vec::new();
    while pair.nics[0].transfers.open() > 0 {
        pair.step();
        ended.extend(pair.completions().iter().map(|end| end.user));
        let posted = pair.nics[0].counters().puts_posted;
        assert!(posted <= 2 || !ended.is_empty(), "a put passed the fence");
    }
    assert_eq!(ended[0], 128, "{ended:?}");
}

#[test]
fn a_put_may_leave_an_event_when_all_of_it_is_there() {
    let mut pair = Pair::new();
    let with_event = BlockTransfer {
        event: Some(99),
        ..transfer(block_put(100), 0, 20_000)
    };
    let data = filled(&mut pair, 0, 0, 20_000);
    start(&mut pair, 3, with_event);
    while pair.nics[1].counters().target_events == 0 {
        assert!(pair.completions().is_empty());
        pair.step();
    }
    assert_eq!(pair.read(1, 100, 20_000), data);
    assert_eq!(outcome(&mut pair), Outcome::Done);
    let events = pair.target_events();
    let is_expected = matches!(events[..], [TargetEvent::Transaction { data: 99, .. }]);
    assert!(is_expected, "{events:?}");
}

#[test]
fn a_send_waits_for_a_receive_but_not_for_ever() {
    let mut pair = Pair::with(config(0).send_retry(Duration::from_us(50), 12), config(1));
    let data = filled(&mut pair, 0, 0, 1000);
    start(&mut pair, 0, transfer(SEND, 0, 1000));
    // It does not delay another channel.
    start(&mut pair, 1, transfer(block_put(0), 0, 10));
    pair.run(Duration::from_ms(3));
    assert_eq!(pair.completions()[0].user, 10);
    receive(&mut pair, 5000, 1000);
    assert_eq!(outcome(&mut pair), Outcome::Done);
    assert_eq!(pair.read(1, 5000, 1000), data);
    assert!(pair.nics[0].counters().sends_retried > 3);
    start(&mut pair, 0, transfer(SEND, 0, 1000));
    let begin = pair.now;
    pair.drain();
    let end = Outcome::Failed(Failure::NoReceive);
    assert_eq!(pair.completions()[0].outcome, end);
    assert!(pair.now.since(begin) < Duration::from_ms(100));
    let wrong_key = BlockOperation::Send { key: 1 };
    receive(&mut pair, 5000, 1000);
    start(&mut pair, 0, transfer(wrong_key, 0, 10));
    assert_eq!(outcome(&mut pair), end, "a receive for another key");
    assert!(pair.nics[1].counters().refused_not_ready > 20);
}

#[test]
fn sends_do_not_wait_for_each_other_and_puts_not_for_sends_that_nobody_takes() {
    let mut pair = Pair::new();
    pair.spread = 300;
    let (count, length) = (200_u64, 500);
    for n in 0..count {
        filled(&mut pair, 0, n * length, length as usize);
        receive(&mut pair, 500_000 + n * length, length);
        start(&mut pair, 0, transfer(SEND, n * length, length));
    }
    let begin = pair.now;
    while pair.nics[0].transfers.open() > 0 {
        pair.step();
        let under_way = pair.nics[0].transfers.under_way();
        assert!(under_way <= 48, "{under_way}");
    }
    // In sequence, each transfer would take two round trips of 300 us on average, the first of them
    // in its channel.
    let took = pair.now.since(begin);
    assert!(took < Duration::from_ms(15), "{took:?}");
    assert_eq!(pair.nics[1].counters().receives_done, count);
    // Which message fills which receive depends on the network.
    let all = |pair: &mut Pair, nic, at| {
        let mut all: Vec<_> = (0..count)
            .map(|n| pair.read(nic, at + n * length, length as usize))
            .collect();
        all.sort_unstable();
        all
    };
    let sent = all(&mut pair, 0, 0);
    assert_eq!(all(&mut pair, 1, 500_000), sent);
    pair.completions();
    for _ in 0..20 {
        start(&mut pair, 0, transfer(SEND, 0, length));
    }
    start(&mut pair, 0, transfer(block_put(0), 0, 10));
    pair.run(Duration::from_ms(5));
    assert_eq!(pair.completions()[0].user, 10, "the put ends first");
    for n in 0..20 {
        receive(&mut pair, 500_000 + n * length, length);
    }
    pair.drain();
    let ends = pair.completions();
    assert!(ends.iter().all(|end| end.outcome == Outcome::Done));
    assert_eq!(ends.len(), 20);
    let now = pair.now;
    assert!((0..511).all(|user| pair.nics[0].open(now, user).is_ok()));
}

#[test]
fn a_message_longer_than_its_receive_is_refused() {
    let mut pair = Pair::new();
    receive(&mut pair, 5000, 999);
    start(&mut pair, 0, transfer(SEND, 0, 1000));
    pair.drain();
    let refused = Failure::Refused(Status::OutOfBounds);
    assert_eq!(pair.completions()[0].outcome, Outcome::Failed(refused));
    assert_eq!(pair.nics[1].responder.receives.waiting(), 1);
    assert!(pair.target_events().is_empty());
}

#[test]
fn a_transfer_reports_what_went_wrong_and_stops() {
    let mut pair = Pair::new();
    let beyond = MEMORY - 1000;
    start(&mut pair, 0, transfer(block_put(beyond), 0, 1 << 19));
    start(&mut pair, 1, transfer(block_get(beyond), 0, 1 << 19));
    pair.drain();
    for end in pair.completions() {
        let refused = Failure::Refused(Status::OutOfBounds);
        assert_eq!(end.outcome, Outcome::Failed(refused));
        let Ended::Transfer { bytes, .. } = end.ended else {
            panic!("the transfer was not queued as one")
        };
        assert!((960..=1000).contains(&bytes), "{bytes}");
    }
    let asked = pair.nics[0].counters();
    // The source stops early.
    assert!(asked.puts_posted < 2000 && asked.gets_posted < 2000);
}

#[test]
fn a_message_that_is_cut_off_uses_its_receive_up_with_a_failure() {
    // The source notices a lost piece and gives up, or loses all packets too.
    for lose_all in [false, true] {
        let mut pair = Pair::new();
        receive(&mut pair, 5000, 1 << 19);
        start(&mut pair, 0, transfer(SEND, 0, 1 << 19));
        pair.run(Duration::from_us(50));
        pair.harm.lost = 1000;
        pair.run(Duration::from_us(10));
        pair.harm.lost = if lose_all { 1000 } else { 0 };
        pair.drain();
        let end = Outcome::Failed(Failure::TimedOut);
        assert_eq!(pair.completions()[0].outcome, end);
        pair.run(TIMEOUT.times(6));
        let expected = [Failure::Aborted, Failure::TimedOut][usize::from(lose_all)];
        let events = pair.target_events();
        let [TargetEvent::Received { failure, bytes, .. }] = events[..] else {
            panic!("the receive was used twice: {events:?}")
        };
        assert_eq!(failure, Some(expected));
        assert!(bytes < 1 << 19);
        assert_eq!(pair.nics[1].counters().receives_failed, 1);
    }
}

#[test]
fn invalid_transfers_are_not_queued() {
    let mut pair = Pair::new();
    let now = pair.now;
    let mut error = |channel, transfer| {
        let queued = pair.nics[0].transfer(now, channel, transfer);
        queued.expect_err("the transfer is rejected")
    };
    let good = transfer(block_put(0), 0, 10);
    let long = MAX_TRANSFER_BYTES + 1;
    let beyond = transfer(block_get(1 << 40), 0, 1);
    let target = Target::Virtual(2);
    let nobody = BlockTransfer { target, ..good };
    for (channel, transfer, expected) in [
        (4, good, BlockError::Channel(4)),
        (0, transfer(block_put(0), 0, long), BlockError::Length(long)),
        (
            0,
            transfer(block_put(0), MEMORY - 9, 10),
            BlockError::LocalBounds,
        ),
        (0, beyond, BlockError::Offset),
        (0, nobody, BlockError::VirtualNode(2)),
    ] {
        assert_eq!(error(channel, transfer), expected, "{transfer:?}");
    }
    for _ in 0..MAX_QUEUED_TRANSFERS {
        start(&mut pair, 0, good);
    }
    let full = pair.nics[0].transfer(now, 0, good);
    assert_eq!(full, Err(BlockError::QueueFull));
    pair.drain();
    assert_eq!(pair.completions().len(), MAX_QUEUED_TRANSFERS);
}

#[test]
fn more_messages_than_may_arrive_at_once_wait_their_turn() {
    let mut pair = Pair::new();
    pair.spread = 400;
    for n in 0..100 {
        receive(&mut pair, 400_000 + 3000 * n, 3000);
        let from = 3000 * n;
        filled(&mut pair, 0, from, 3000);
        start(&mut pair, n as usize % 4, transfer(SEND, from, 3000));
    }
    pair.drain();
    let ends = pair.completions();
    assert!(ends.iter().all(|c| c.outcome == Outcome::Done));
    let mut all = |nic, from| -> Vec<Vec<u8>> {
        let addresses = (0..100_u64).map(|n| from + 3000 * n);
        addresses
            .map(|address| pair.read(nic, address, 3000))
            .collect()
    };
    let (mut found, mut sent) = (all(1, 400_000), all(0, 0));
    // Which message fills which receive depends on the network.
    found.sort();
    sent.sort();
    assert!(found == sent);
    assert_eq!(pair.nics[1].counters().receives_done, 100);
}
