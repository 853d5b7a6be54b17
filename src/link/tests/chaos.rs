//! Everything at once: lists of operations, checked for conservation at the end.

use proptest::prelude::*;

use phitwire_framing::frame::frame_len;
use phitwire_framing::packet24::Vc;

use super::harness::{A, B, Drain, End, Pair, TINY, config};
use crate::link::{LinkClock, LinkProfile};
use crate::time::Duration;

#[derive(Clone, Debug)]
enum Operation {
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
    PushPhits { end: usize, phits: usize },
    ForceRetry(usize),
    SoftError(usize),
    FrameBytes { end: usize, phits: usize },
    Restart(usize),
    Down(usize),
    Up(usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    let drain = prop_oneof![
        Just(super::harness::Drain::Eager),
        (1..40_u32).prop_map(super::harness::Drain::Slow),
        Just(super::harness::Drain::Blocked),
    ];
    prop_oneof![
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
        1 => (0..2_usize, 1..40_usize).prop_map(|(end, phits)| PushPhits { end, phits }),
        1 => (0..2_usize).prop_map(ForceRetry),
        1 => (0..2_usize).prop_map(SoftError),
        1 => (0..2_usize, 48..600_usize).prop_map(|(end, phits)| FrameBytes { end, phits }),
    ]
}

/// The same, and ends that are killed or taken down in between.
fn operation_or_end() -> impl Strategy<Value = Operation> {
    prop_oneof![
        12 => operation().prop_filter("a damaged packet has no number", |operation| {
            !matches!(operation, Operation::SoftError(_))
        }),
        1 => (0..2_usize).prop_map(Operation::Restart),
        1 => (0..2_usize).prop_map(Operation::Down),
        1 => (0..2_usize).prop_map(Operation::Up),
    ]
}

fn apply(pair: &mut Pair, operation: Operation) {
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
        Operation::PushPhits { end, phits } => pair.ends[end].push_phits = phits,
        Operation::ForceRetry(end) => pair.ends[end].lcb.force_retry(now),
        Operation::SoftError(end) => pair.ends[end].lcb.soft_error_next(),
        Operation::FrameBytes { end, phits } => pair.ends[end].frame_bytes = frame_len(phits),
        Operation::Restart(end) => {
            let number = pair.ends[end].number + 1;
            if number < 16 {
                let config = config(end)
                    .epoch(0x8000_0000 + number * 1_000)
                    .build()
                    .unwrap();
                pair.ends[end] = End::new(config, now, TINY).incarnation(number);
            }
        }
        Operation::Down(end) => {
            let end = &mut pair.ends[end];
            end.lcb.link_down(now, &mut end.input);
        }
        Operation::Up(end) => pair.ends[end].lcb.link_up(now),
    }
}

/// Runs the operations, then lets everything drain over a clean wire.
fn campaign(seed: u64, profile: LinkProfile, clock: LinkClock, operations: Vec<Operation>) {
    let end = |end| {
        // Lanes are not this test's concern.
        let builder = config(end).profile(profile.clone()).clock(clock);
        builder.lane_retry_threshold(1_000_000).build().unwrap()
    };
    let mut pair = Pair::with(seed, end(A), end(B), TINY);
    pair.wait_up();
    for operation in operations {
        apply(&mut pair, operation);
    }
    pair.wire(|wire| *wire = super::harness::Wire::clean());
    for end in &mut pair.ends {
        end.drain = Drain::Eager;
        end.push_phits = usize::MAX;
    }
    pair.finish(Duration::from_ms(30_000));
    for end in [A, B] {
        let (sent, got) = (
            pair.count(end, |c| c.tx_packets),
            pair.count(1 - end, |c| c.rx_packets),
        );
        assert_eq!(sent, got, "each packet accepted once");
        assert_eq!(pair.count(end, |c| c.tx_acked_packets), sent);
        let delivered: u32 = pair.ends[1 - end].got_id.iter().sum();
        assert_eq!(u64::from(delivered), sent);
        assert_eq!(
            u64::from(pair.ends[1 - end].soft_errors as u32),
            pair.count(end, |c| c.tx_soft_errors)
        );
    }
}

/// Buffers so small that everything is full all the time.
fn cramped() -> LinkProfile {
    LinkProfile {
        input_phits_per_vc: 24,
        retry_phits: 64,
        window_packets: 4,
        reorder_phits: 100,
        ..LinkProfile::live()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_packet_arrives_once_whatever_happens(
        seed in any::<u64>(),
        cramp in any::<bool>(),
        operations in prop::collection::vec(operation(), 1..60),
    ) {
        let profile = if cramp { cramped() } else { LinkProfile::live() };
        campaign(seed, profile, LinkClock::FreeRunning, operations);
    }

    #[test]
    fn no_packet_arrives_twice_whoever_dies(
        seed in any::<u64>(),
        operations in prop::collection::vec(operation_or_end(), 1..60),
    ) {
        campaign_of_ends(seed, operations);
    }

    #[test]
    fn every_packet_arrives_once_at_the_chip_s_own_depths(
        seed in any::<u64>(),
        operations in prop::collection::vec(operation(), 1..30),
    ) {
        campaign(seed, LinkProfile::paper(), LinkClock::Paced { dilation: 50 }, operations);
    }
}

/// Ends die and are taken down: packets may be missing then, but none comes twice or out of order, and in
/// the end everything flows again.
fn campaign_of_ends(seed: u64, operations: Vec<Operation>) {
    let mut pair = Pair::with(
        seed,
        config(A).build().unwrap(),
        config(B).build().unwrap(),
        TINY,
    );
    pair.ends.iter_mut().for_each(|end| end.gaps_allowed = true);
    for operation in operations {
        apply(&mut pair, operation);
    }
    pair.wire(|wire| *wire = super::harness::Wire::clean());
    let now = pair.now;
    for end in &mut pair.ends {
        end.drain = Drain::Eager;
        end.push_phits = usize::MAX;
        end.lcb.link_up(now);
    }
    // Whoever still believes in a session with a dead peer finds out by what the peer says.
    pair.run_for(Duration::from_ms(2_000));
    pair.wait_up();
    for end in [A, B] {
        for vc in Vc::ALL {
            pair.ends[end].send(vc, 10);
        }
    }
    pair.finish(Duration::from_ms(30_000));
}

#[test]
fn all_of_netem_at_once() {
    for seed in 0..10 {
        let mut pair = Pair::new(seed);
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
        pair.load(A, 5_000);
        pair.load(B, 5_000);
        pair.finish(Duration::from_ms(60_000));
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let mut pair = Pair::up(5);
        pair.wire(|wire| {
            wire.loss = 200;
            wire.reorder = 200;
            wire.corrupt = 50;
        });
        pair.load(A, 3_000);
        pair.finish(Duration::from_ms(60_000));
        (pair.now, pair.frames, pair.ends[A].lcb.counters().clone())
    };
    assert_eq!(run(), run());
}

#[test]
fn the_checker_can_fail() {
    let outcome = std::panic::catch_unwind(|| {
        let mut pair = Pair::up(6);
        pair.ends[B].got_id = [1, 0];
        pair.ends[A].send(Vc::Request, 5);
        pair.finish(Duration::from_ms(100));
    });
    let message = *outcome.unwrap_err().downcast::<String>().unwrap();
    assert!(
        message.contains("each packet once and in order"),
        "{message}"
    );
}
