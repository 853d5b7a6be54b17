//! Random sequences of operations of every kind, checked for conservation at the end.

use proptest::prelude::*;
use proptest::strategy::Union;

use super::rig::{A, B, Link, config, live};
use crate::link::NodeLink;
use crate::link::testing::end::{Drain, End};
use crate::link::testing::pair::{Pair, Wire};
use crate::time::Duration;

#[derive(Clone, Debug)]
enum Operation<C> {
    Load { end: usize, packets: usize },
    Run { us: u64 },
    Loss(u64),
    Corrupt(u64),
    Mangle(u64),
    Reorder(u64),
    Duplicate(u64),
    Delay { us: u64, jitter_us: u64 },
    Cut { direction: usize, cut: bool },
    Drain { end: usize, drain: Drain },
    PushWords { end: usize, words: usize },
    ForceRetry(usize),
    SoftError(usize),
    FrameBytes { end: usize, bytes: usize },
    Own { end: usize, command: C },
    Restart(usize),
    Down(usize),
    Up(usize),
}

fn operation<L: Link>() -> BoxedStrategy<Operation<L::Command>> {
    use Operation::*;
    let drain = prop_oneof![
        Just(super::rig::Drain::Eager),
        (1..40_u32).prop_map(super::rig::Drain::Slow),
        Just(super::rig::Drain::Blocked),
    ];
    let any_link = prop_oneof![
        4 => (0..2_usize, 1..60_usize).prop_map(|(end, packets)| Load { end, packets }),
        6 => (1..3_000_u64).prop_map(|us| Run { us }),
        1 => (0..400_u64).prop_map(Loss),
        1 => (0..300_u64).prop_map(Corrupt),
        1 => (0..300_u64).prop_map(Mangle),
        1 => (0..500_u64).prop_map(Reorder),
        1 => (0..500_u64).prop_map(Duplicate),
        1 => (0..2_000_u64, 0..2_000_u64).prop_map(|(us, jitter_us)| Delay { us, jitter_us }),
        1 => (0..2_usize, any::<bool>()).prop_map(|(direction, cut)| Cut { direction, cut }),
        2 => (0..2_usize, drain).prop_map(|(end, drain)| Drain { end, drain }),
        1 => (0..2_usize, 1..40_usize).prop_map(|(end, words)| PushWords { end, words }),
        1 => (0..2_usize).prop_map(ForceRetry),
        1 => (0..2_usize).prop_map(SoftError),
        1 => (0..2_usize, L::frame_bytes()).prop_map(|(end, bytes)| FrameBytes { end, bytes }),
    ];
    let own = L::commands().into_iter().map(|command| {
        let own = (0..2_usize, command).prop_map(|(end, command)| Own { end, command });
        (1, own.boxed())
    });
    Union::new_weighted([(23, any_link.boxed())].into_iter().chain(own).collect()).boxed()
}

/// Like [`operation`], plus ends that are killed or taken down.
fn operation_or_end<L: Link>() -> impl Strategy<Value = Operation<L::Command>> {
    prop_oneof![
        12 => operation::<L>().prop_filter("a damaged packet has no number", |operation| {
            L::NUMBERS_SOFT_ERRORS || !matches!(operation, Operation::SoftError(_))
        }),
        1 => (0..2_usize).prop_map(Operation::Restart),
        1 => (0..2_usize).prop_map(Operation::Down),
        1 => (0..2_usize).prop_map(Operation::Up),
    ]
}

fn apply<L: Link>(pair: &mut Pair<L>, operation: Operation<L::Command>) {
    let now = pair.now;
    match operation {
        Operation::Load { end, packets } => pair.load(end, packets),
        Operation::Run { us } => pair.run_for(Duration::from_us(us)),
        Operation::Loss(parts) => pair.wire(|wire| wire.loss = parts),
        Operation::Corrupt(parts) => pair.wire(|wire| wire.corrupt = parts),
        Operation::Mangle(parts) => pair.wire(|wire| wire.mangle = parts),
        Operation::Reorder(parts) => pair.wire(|wire| wire.reorder = parts),
        Operation::Duplicate(parts) => pair.wire(|wire| wire.duplicate = parts),
        Operation::Delay { us, jitter_us } => pair.wire(|wire| {
            wire.delay = Duration::from_us(us);
            wire.jitter = Duration::from_us(jitter_us);
        }),
        Operation::Cut { direction, cut } => pair.wires[direction].cut = cut,
        Operation::Drain { end, drain } => pair.ends[end].drain = drain,
        Operation::PushWords { end, words } => pair.ends[end].push_words = words,
        Operation::ForceRetry(end) => L::force_retry(&mut pair.ends[end].lcb, now),
        Operation::SoftError(end) => L::soft_error_next(&mut pair.ends[end].lcb),
        Operation::FrameBytes { end, bytes } => pair.ends[end].frame_bytes = bytes,
        Operation::Own { end, command } => L::command(&mut pair.ends[end].lcb, command, now),
        Operation::Restart(end) => {
            let number = pair.ends[end].number + 1;
            if number < 16 {
                let config = config::<L>(end).epoch(0x8000_0000 + number * 1_000);
                let end_anew = End::new(L::built(config), now, L::SMALL_FRAME_BYTES);
                pair.ends[end] = end_anew.incarnation(number);
            }
        }
        Operation::Down(end) => pair.link_down(end),
        Operation::Up(end) => pair.link_up(end),
    }
}

/// Runs the operations, then lets everything drain over a clean wire.
fn campaign<L: Link>(mut pair: Pair<L>, operations: Vec<Operation<L::Command>>) {
    let clean = pair.wires[A].clone();
    pair.wait_up();
    for operation in operations {
        apply(&mut pair, operation);
    }
    pair.wire(|wire| *wire = clean.clone());
    for end in &mut pair.ends {
        end.drain = Drain::Eager;
        end.push_words = usize::MAX;
    }
    pair.finish(Duration::from_ms(30_000));
    for end in [A, B] {
        let sent = pair.count(end, |c| c.tx_packets);
        assert_eq!(pair.count(end, |c| c.tx_acked_packets), sent);
        let delivered: u32 = pair.ends[1 - end].got_id.iter().sum();
        assert!(!L::COUNTS_PACKETS || u64::from(delivered) == sent);
        L::assert_conserved(&pair, end);
    }
}

fn cases() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..Default::default()
    }
}

pub fn every_packet_arrives_once_whatever_happens<L: Link>() {
    let operations = prop::collection::vec(operation::<L>(), 1..60);
    proptest!(cases(), |(seed in any::<u64>(), cramp in any::<bool>(), operations in operations)| {
        // Never give up lanes: this test is not about them.
        let end = |end| {
            let builder = config::<L>(end).lane_retry_threshold(1_000_000);
            if cramp { L::cramped(builder) } else { L::built(builder) }
        };
        let pair = Pair::<L>::with(seed, end(A), end(B), L::SMALL_FRAME_BYTES);
        campaign(pair, operations);
    });
}

pub fn no_packet_arrives_twice_across_restarts<L: Link>() {
    let operations = prop::collection::vec(operation_or_end::<L>(), 1..60);
    proptest!(cases(), |(seed in any::<u64>(), operations in operations)| {
        campaign_of_ends::<L>(seed, operations);
    });
}

pub fn every_packet_arrives_once_at_the_chip_s_own_depths<L: Link>() {
    let operations = prop::collection::vec(operation::<L>(), 1..30);
    proptest!(cases(), |(seed in any::<u64>(), operations in operations)| {
        campaign(L::paper(seed), operations);
    });
}

/// Ends die and are taken down: packets may be lost, but none arrives twice or out of order, and
/// traffic flows again in the end.
fn campaign_of_ends<L: Link>(seed: u64, operations: Vec<Operation<L::Command>>) {
    let mut pair = Pair::<L>::with(seed, live::<L>(A), live::<L>(B), L::SMALL_FRAME_BYTES);
    pair.allow_gaps();
    for operation in operations {
        apply(&mut pair, operation);
    }
    pair.wire(|wire| *wire = Wire::clean());
    let now = pair.now;
    for end in &mut pair.ends {
        end.drain = Drain::Eager;
        end.push_words = usize::MAX;
        end.lcb.link_up(now);
    }
    // An end in a session with a dead incarnation learns of that from the new incarnation's frames.
    pair.run_for(Duration::from_ms(2_000));
    pair.wait_up();
    for end in &mut pair.ends {
        (0..L::VCS).for_each(|vc| end.send(vc, 10));
    }
    pair.finish(Duration::from_ms(30_000));
}

pub fn all_of_netem_at_once<L: Link>() {
    for seed in 0..3 {
        let mut pair = Pair::<L>::new(seed);
        pair.wire(|wire| {
            wire.loss = 100;
            wire.duplicate = 50;
            wire.reorder = 250;
            wire.corrupt = 10;
            wire.mangle = 10;
            wire.delay = Duration::from_ms(1);
            wire.jitter = Duration::from_us(500);
        });
        pair.wait_up();
        pair.exchange(5_000, Duration::from_ms(60_000));
    }
}

pub fn the_same_seed_gives_the_same_run<L: Link>() {
    let run = || {
        let mut pair = Pair::<L>::up(5);
        pair.wire(|wire| {
            wire.loss = 200;
            wire.reorder = 200;
            wire.corrupt = 50;
        });
        pair.load(A, 3_000);
        pair.finish(Duration::from_ms(60_000));
        // Compare all counters of both ends, which are part of the state.
        (pair.now, pair.frames, pair.state())
    };
    assert_eq!(run(), run());
}

pub fn the_checker_can_fail<L: Link>() {
    let outcome = std::panic::catch_unwind(|| {
        let mut pair = Pair::<L>::up(6);
        pair.ends[B].got_id[0] = 1;
        pair.ends[A].send(0, 5);
        pair.finish(Duration::from_ms(100));
    });
    let message = *outcome.unwrap_err().downcast::<String>().unwrap();
    assert!(
        message.contains("each packet arrives once and in order"),
        "{message}"
    );
}
