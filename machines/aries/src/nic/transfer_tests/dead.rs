//! Transfers to targets that do not answer.

use super::*;

/// A node that does not exist.
const DEAD: NodeId = NodeId::new(9, 9, 1);

fn to_the_dead(length: u64) -> BlockTransfer {
    BlockTransfer {
        target: Target::Node(DEAD),
        ..transfer(block_put(0), 0, length)
    }
}

/// The time of a put of half the memory, with whatever else is queued.
fn put_of_half(pair: &mut Pair, channel: usize) -> Duration {
    let begin = pair.now;
    start(
        pair,
        channel,
        transfer(block_put(MEMORY / 2), 0, MEMORY / 2),
    );
    loop {
        pair.step();
        if let Some(end) = pair.nics[0].poll_completion() {
            assert_eq!((end.user, end.outcome), (MEMORY / 2, Outcome::Done));
            return pair.now.since(begin);
        }
        let took = pair.now.since(begin);
        assert!(
            took < Duration::from_ms(10),
            "the transfer waits for a dead target"
        );
    }
}

/// Two NICs with a request timeout that no test reaches.
fn patient_pair() -> Pair {
    let timeout = Duration::from_ms(20);
    Pair::with(config(0).request_timeout(timeout), config(1))
}

#[test]
fn a_dead_target_takes_little_from_those_that_answer() {
    let mut pair = patient_pair();
    let alone = put_of_half(&mut pair, 0);
    // More transfers than channels, some of them ahead of the live target's in its channel.
    for n in 0..12 {
        start(&mut pair, n % CHANNELS, to_the_dead(MEMORY / 2));
    }
    pair.run(Duration::from_us(100));
    for channel in 0..CHANNELS {
        let took = put_of_half(&mut pair, channel);
        assert!(took < alone.times(2), "{took:?} instead of {alone:?}");
    }
    // Short transfers, each of which takes a slot.
    for n in 0..40 {
        start(&mut pair, n % CHANNELS, to_the_dead(1));
    }
    let took = put_of_half(&mut pair, 0);
    assert!(took < alone.times(2), "{took:?} instead of {alone:?}");
    pair.drain();
    let ends = pair.completions();
    let timed_out = Outcome::Failed(Failure::TimedOut);
    assert!(ends.iter().all(|end| end.outcome == timed_out));
    assert_eq!(ends.len(), 52);
    let now = pair.now;
    assert!((0..511).all(|user| pair.nics[0].open(now, user).is_ok()));
}

#[test]
fn a_target_that_dies_leaves_some_for_others_and_gets_all_again_when_it_is_back() {
    let mut pair = patient_pair();
    let alone = put_of_half(&mut pair, 0);
    // The target takes its share of packets; then no more responses arrive.
    for channel in 0..CHANNELS {
        start(&mut pair, channel, transfer(block_put(0), 0, MEMORY / 2));
    }
    pair.run(Duration::from_us(20));
    pair.harm.lost = 1000;
    pair.run(Duration::from_us(200));
    let held = pair.nics[0].requester.outstanding.slab.used();
    assert!((885..=896).contains(&held), "{held}");
    // Another target, which has never responded, gets few of the remaining packets.
    start(&mut pair, 0, to_the_dead(MEMORY / 2));
    pair.run(Duration::from_us(200));
    let held_more = pair.nics[0].requester.outstanding.slab.used() - held;
    assert_eq!(held_more, 1, "one packet probes the target");
    pair.drain();
    assert_eq!(pair.completions().len(), CHANNELS + 1);
    pair.harm.lost = 0;
    let again = put_of_half(&mut pair, 1);
    assert!(again < alone.times(2), "{again:?} instead of {alone:?}");
}

#[test]
fn transfers_queued_to_a_silent_target_fail_with_its_window() {
    for count in [64_u64, 200] {
        let mut pair = Pair::new();
        pair.harm.lost = 1000;
        for n in 0..count {
            let channel = (n % 4) as usize;
            start(&mut pair, channel, transfer(block_put(0), 0, 4096));
        }
        let begin = pair.now;
        pair.drain();
        let took = pair.now.since(begin);
        assert!(took < TIMEOUT + TIMEOUT, "{took:?} for one timeout");
        let ends = pair.completions();
        let timed_out = Outcome::Failed(Failure::TimedOut);
        assert!(ends.iter().all(|end| end.outcome == timed_out));
        assert_eq!(ends.len(), count as usize, "each transfer ends once");
    }
}

#[test]
fn a_silent_target_does_not_take_others_with_it() {
    let mut pair = Pair::new();
    let dead = Target::Node(NodeId::new(9, 9, 3));
    for n in 0..60_u64 {
        for (target, length) in [(dead, 4096), (Target::Virtual(1), 4000)] {
            let one = BlockTransfer {
                target,
                ..transfer(block_put(0), 0, length)
            };
            start(&mut pair, (n % 4) as usize, one);
        }
    }
    // The transfer queued later is fenced: it waits for those to the dead target, and is then
    // carried out.
    let fenced = BlockTransfer {
        fence: true,
        ..transfer(block_put(0), 0, 10)
    };
    start(&mut pair, 0, fenced);
    let begin = pair.now;
    pair.drain();
    assert!(pair.now.since(begin) < TIMEOUT + TIMEOUT);
    let mut counts = BTreeMap::new();
    for end in pair.completions() {
        *counts
            .entry((end.user, end.outcome == Outcome::Done))
            .or_insert(0) += 1;
    }
    let wanted = [((10, true), 1), ((4000, true), 60), ((4096, false), 60)];
    assert_eq!(counts, BTreeMap::from(wanted));
}

#[test]
fn a_nic_without_responses_times_out_all_targets_at_once() {
    let mut pair = Pair::new();
    let begin = pair.now;
    pair.harm.lost = 1000;
    for node in 0..200_u32 {
        let one = BlockTransfer {
            target: Target::Node(NodeId::from_bits(0x100 + node)),
            ..transfer(block_put(0), 0, 4096)
        };
        start(&mut pair, (node % 4) as usize, one);
    }
    pair.drain();
    let took = pair.now.since(begin);
    assert!(took < TIMEOUT + TIMEOUT, "{took:?} for one timeout");
    assert_eq!(pair.completions().len(), 200);
}
