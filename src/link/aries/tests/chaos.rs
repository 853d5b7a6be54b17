//! Everything at once: lists of operations, checked for conservation at the end.

use proptest::prelude::*;

use phitwire_framing::flit48::VCS;
use phitwire_framing::frame::set_frame_len;

use super::harness::{A, B, Drain, End, Pair, Wire, aries, config, live, paper};
use crate::link::aries::{AriesLinkConfig, SetProfile};
use crate::link::impair::{Impairment, Netem};
use crate::rng::Rng;
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
    PushFlits { end: usize, flits: usize },
    ForceRetry(usize),
    BadCrc(usize),
    Reinit(usize),
    LoseClock { end: usize, us: u64 },
    Load4 { end: usize, load: u8 },
    SoftError(usize),
    FrameBytes { end: usize, sets: usize },
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
        1 => (0..2_usize, 1..40_usize).prop_map(|(end, flits)| PushFlits { end, flits }),
        1 => (0..2_usize).prop_map(ForceRetry),
        1 => (0..2_usize).prop_map(BadCrc),
        1 => (0..2_usize).prop_map(Reinit),
        1 => (0..2_usize, 1..3_000_u64).prop_map(|(end, us)| LoseClock { end, us }),
        1 => (0..2_usize, 0..16_u8).prop_map(|(end, load)| Load4 { end, load }),
        1 => (0..2_usize).prop_map(SoftError),
        1 => (0..2_usize, 3..40_usize).prop_map(|(end, sets)| FrameBytes { end, sets }),
    ]
}

/// The same, and ends that are killed or taken down in between.
fn operation_or_end() -> impl Strategy<Value = Operation> {
    prop_oneof![
        12 => operation(),
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
        Operation::PushFlits { end, flits } => pair.ends[end].push_flits = flits,
        Operation::ForceRetry(end) => pair.ends[end].lcb.force_retry(now),
        Operation::BadCrc(end) => pair.ends[end].lcb.force_bad_crc(),
        Operation::Reinit(end) => pair.ends[end].lcb.force_reinit(now),
        Operation::LoseClock { end, us } => {
            pair.ends[end].lcb.lose_clock(now, Duration::from_us(us));
        }
        Operation::Load4 { end, load } => pair.ends[end].lcb.set_load(load),
        Operation::SoftError(end) => pair.ends[end].lcb.soft_error_next(),
        Operation::FrameBytes { end, sets } => pair.ends[end].frame_bytes = set_frame_len(sets),
        Operation::Restart(end) => {
            let number = pair.ends[end].number + 1;
            if number < 16 {
                let config = config(end).epoch(0x8000_0000 + number * 1_000);
                let config = aries(config, SetProfile::live());
                pair.ends[end] = End::new(config, now, SMALL).incarnation(number);
            }
        }
        Operation::Down(end) => {
            let end = &mut pair.ends[end];
            end.lcb.link_down(now, &mut end.input);
        }
        Operation::Up(end) => pair.ends[end].lcb.link_up(now),
    }
}

/// Four sets and the header.
const SMALL: usize = set_frame_len(4);

/// Runs the operations, then lets everything drain over a clean wire.
fn campaign(mut pair: Pair, operations: Vec<Operation>) {
    let clean = pair.wires[A].clone();
    pair.wait_up();
    for operation in operations {
        apply(&mut pair, operation);
    }
    pair.wire(|wire| *wire = clean.clone());
    for end in &mut pair.ends {
        end.drain = Drain::Eager;
        end.push_flits = usize::MAX;
    }
    pair.finish(Duration::from_ms(30_000));
    for end in [A, B] {
        let sent = pair.count(end, |c| c.tx_packets);
        assert_eq!(pair.count(end, |c| c.tx_acked_packets), sent);
        let delivered: u32 = pair.ends[1 - end].got_id.iter().sum();
        assert_eq!(u64::from(delivered), sent);
        assert_eq!(
            pair.sets(end, |c| c.tx_flits),
            pair.sets(1 - end, |c| c.rx_flits),
            "each flit accepted once"
        );
        assert_eq!(
            pair.ends[1 - end].poisoned,
            pair.count(end, |c| c.tx_soft_errors)
        );
    }
}

// Lanes are not the concern of these tests.
fn wired(end: usize, sets: SetProfile) -> AriesLinkConfig {
    aries(config(end).lane_retry_threshold(1_000_000), sets)
}

/// Buffers so small that everything is full all the time.
fn cramped() -> SetProfile {
    SetProfile {
        window_sets: 4,
        private_flits: 14,
        common_flits: 10,
        held_sets: 4,
        ..SetProfile::live()
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
        let sets = if cramp { cramped() } else { SetProfile::live() };
        let pair = Pair::with(seed, wired(A, sets.clone()), wired(B, sets), SMALL);
        campaign(pair, operations);
    }

    #[test]
    fn no_packet_arrives_twice_whoever_dies(
        seed in any::<u64>(),
        operations in prop::collection::vec(operation_or_end(), 1..60),
    ) {
        campaign_of_ends(seed, operations);
    }

    /// Six bits of number cannot tell a late set from a new one: a cable keeps the order of what it carries.
    #[test]
    fn every_packet_arrives_once_at_the_chip_s_own_depths(
        seed in any::<u64>(),
        operations in prop::collection::vec(operation(), 1..30),
    ) {
        campaign(Pair::paper(seed), operations);
    }
}

/// Ends die and are taken down: packets may be missing then, but none comes twice or out of order, and in
/// the end everything flows again.
fn campaign_of_ends(seed: u64, operations: Vec<Operation>) {
    let mut pair = Pair::with(seed, live(A), live(B), SMALL);
    pair.ends.iter_mut().for_each(|end| end.gaps_allowed = true);
    for operation in operations {
        apply(&mut pair, operation);
    }
    pair.wire(|wire| *wire = Wire::clean());
    let now = pair.now;
    for end in &mut pair.ends {
        end.drain = Drain::Eager;
        end.push_flits = usize::MAX;
        end.lcb.link_up(now);
    }
    // Whoever still believes in a session with a dead peer finds out by what the peer says.
    pair.run_for(Duration::from_ms(2_000));
    pair.wait_up();
    for end in [A, B] {
        for vc in 0..VCS {
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
        let sets = pair.ends[A].lcb.set_counters().clone();
        (pair.now, pair.frames, sets)
    };
    assert_eq!(run(), run());
}

#[test]
fn the_checker_can_fail() {
    let outcome = std::panic::catch_unwind(|| {
        let mut pair = Pair::up(6);
        pair.ends[B].got_id[0] = 1;
        pair.ends[A].send(0, 5);
        pair.finish(Duration::from_ms(100));
    });
    let message = *outcome.unwrap_err().downcast::<String>().unwrap();
    assert!(
        message.contains("each packet once and in order"),
        "{message}"
    );
}

/// Both profiles behind the netem decorator: what the labs put on a wire.
#[test]
fn netem_s_own_effects_are_survived() {
    let list = [
        "delay 200us 100us loss 2%",
        "delay 1ms loss gemodel 2% 20% 80% 1%",
        "delay 500us duplicate 10% corrupt 3%",
        "delay 1ms reorder 25% 50%",
        "loss 20% rate 100mbit",
    ];
    for (index, words) in list.iter().enumerate() {
        let seed = index as u64;
        run_netem(words, seed, live(A), live(B), words.to_string());
        // On the chip's terms the wire keeps the order.
        if !words.contains("reorder") && !words.contains("100us") {
            run_netem(words, seed, paper(A), paper(B), format!("paper {words}"));
        }
    }
}

fn run_netem(words: &str, seed: u64, a: AriesLinkConfig, b: AriesLinkConfig, what: String) {
    let netem: Netem = words.parse().unwrap();
    let mut wires = [0, 1].map(|end| Impairment::new(netem, Rng::new(seed, end)));
    let mut pair = Pair::with(seed, a, b, 1_472);
    pair.load(A, 1_000);
    pair.load(B, 1_000);
    let mut buf = vec![0; 1_472];
    let end_of_test = pair.now + Duration::from_ms(60_000);
    loop {
        let now = pair.now;
        for index in [A, B] {
            while let Some((_, frame)) = wires[1 - index].poll(now) {
                let end = &mut pair.ends[index];
                end.lcb.handle_frame(now, &frame, &mut end.input);
            }
            let end = &mut pair.ends[index];
            end.lcb.handle_timers(now, &mut end.input);
            end.take();
            end.push();
            while let Some(length) = end.lcb.poll_frame(now, &mut buf) {
                wires[index].send(now, &buf[..length]);
                end.push();
            }
        }
        if (0..2).all(|end| pair.ends[1 - end].got_id == pair.ends[end].next_id) {
            return;
        }
        assert!(now < end_of_test, "{what}: {}", pair.state());
        let wakes = pair.ends.iter().filter_map(|end| end.lcb.next_wakeup());
        let arrivals = wires.iter().filter_map(Impairment::next_deadline);
        let next = wakes.chain(arrivals).min().unwrap();
        pair.now = next.max(now + Duration::from_ps(1_000));
    }
}
