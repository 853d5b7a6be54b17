//! Packets that move as a whole, timed and untimed.

use super::*;
use phitwire::rng::Rng;

/// A whole packet takes one cycle and its own arbitration; other packets get their turn after it.
#[test]
fn a_whole_packet_is_arbitrated_for_like_any_other() {
    let words = packet(Command::Get1, tag([3, 1, 1], false));
    let run = |other: Option<(usize, usize)>| {
        let (mut bench, crossbar) = (Bench::default(), crossbar());
        let mut crossbar = crossbar.with_whole_packets(false);
        give(&mut bench, &mut crossbar, (FROM_X, 0), &words);
        if let Some((port, vc)) = other {
            let mut words = words.clone();
            words[1] = 1;
            give(&mut bench, &mut crossbar, (port, vc), &words);
        }
        for _ in 0..3 {
            give(&mut bench, &mut crossbar, (FROM_X, 0), &words);
        }
        crossbar.run(&mut bench);
        let sent = bench.sent[X].iter().skip(1).step_by(2);
        let from: Vec<u64> = sent.map(|(_, _, flit)| flit.word).collect();
        let mut cycles = cycles(&bench, X);
        cycles.dedup();
        assert_eq!(cycles.len(), from.len(), "a cycle each");
        (from, crossbar.counters().straight_packets)
    };
    assert_eq!(run(None).1, 4, "nothing delays the packets");
    for other in [(FROM_Y, 0), (FROM_X, 1)] {
        let (from, _) = run(Some(other));
        assert_eq!(from.len(), 5);
        let position = from.iter().position(|word| *word == 1);
        assert!(
            position.is_some_and(|position| position < 2),
            "{other:?}: {from:?}"
        );
    }
}

/// A timed packet's header leaves in the same cycle as with flits that move singly, and the next
/// header after its last flit.
#[test]
fn whole_packets_take_the_times_of_their_flits() {
    for (to, out, wait) in [([3, 1, 1], X, 0), ([1, 3, 1], Y, 3)] {
        let (mut bench, crossbar) = (Bench::default(), crossbar());
        let mut crossbar = crossbar.with_whole_packets(true);
        let words = packet(Command::Put1, tag(to, false));
        crossbar.rest_until(10);
        for _ in 0..2 {
            give(&mut bench, &mut crossbar, (FROM_X, 0), &words);
        }
        crossbar.run(&mut bench);
        let first = 10 + wait;
        let due = [[first; 4], [first + 4; 4]].concat();
        assert_eq!(cycles(&bench, out), due, "to {to:?}");
        assert_eq!(
            crossbar.counters().straight_packets,
            2 * u64::from(wait == 0)
        );
        assert_eq!((crossbar.flits(), crossbar.next_cycle()), (0, None));
    }
}

/// A crossbar of each grain: flits, timed packets, and untimed packets.
fn grains() -> [Crossbar; 3] {
    let [flits, timed, free] = [(); 3].map(|()| crossbar());
    [
        flits,
        timed.with_whole_packets(true),
        free.with_whole_packets(false),
    ]
}

/// A random packet that may arrive by `port`.
fn drawn(rng: &mut Rng, port: usize) -> (usize, Vec<u64>) {
    let commands = [Command::Put8, Command::Put1, Command::Get1, Command::Done];
    let command = commands[rng.below(4) as usize];
    let mut to = [0; 3].map(|_| 1 + rng.below(3) as u8);
    // Paths are minimal: a packet that arrived in +X can only continue in +X, and so on.
    to[port % 3] = 1 + rng.below(2) as u8;
    let is_adaptive = rng.chance(1, 2);
    let vc = match command.is_response() {
        true => vc::RESPONSE,
        false => vc::REQUEST,
    };
    (vc, packet(command, tag(to, is_adaptive)))
}

/// Without contention, the grain does not affect where and how packets leave.
#[test]
fn every_grain_takes_the_same_paths() {
    let mut crossbars = grains();
    let mut benches = [(); 3].map(|()| Bench::default());
    let mut rng = Rng::new(3, 0);
    for _ in 0..400 {
        let port = 3 + rng.below(3) as usize;
        let (vc, words) = drawn(&mut rng, port);
        let each = crossbars.iter_mut().zip(&mut benches);
        let sent = each.map(|(crossbar, bench)| {
            bench.credits = Bench::default().credits;
            // Wait until the previous packet has left the wires: a whole packet holds them for the
            // time of its flits.
            crossbar.rest_until(crossbar.cycle() + 10);
            give(bench, crossbar, (port, vc), &words);
            crossbar.run(bench);
            let mut sent = Vec::new();
            for (port, flits) in bench.sent.iter_mut().enumerate() {
                sent.extend(flits.drain(..).map(|(_, vc, _)| (port, vc)));
            }
            sent
        });
        let sent: Vec<_> = sent.collect();
        assert_eq!(sent[0].len(), words.len());
        assert!(sent[1..].iter().all(|other| *other == sent[0]), "{sent:?}");
    }
    let [flits, others @ ..] = crossbars.each_ref().map(Crossbar::counters);
    assert!(flits.straight_packets > 50 && flits.adaptive_packets > 50);
    for other in others {
        assert_eq!(other.straight_packets, flits.straight_packets);
        assert_eq!(other.adaptive_packets, flits.adaptive_packets);
        assert_eq!(other.packets, flits.packets);
    }
}

/// Under load, packets meet different packets in each grain, and may take the other of their two
/// channels. Still, all of them leave complete and in order per channel, and about as many go
/// straight through or adapt.
#[test]
fn every_grain_carries_the_same_packets_under_load() {
    for seed in 0..20 {
        let outcome = grains().map(|mut crossbar| {
            let (mut bench, mut rng) = (Bench::default(), Rng::new(seed, 1));
            bench.inputs = vec![FlitBuffer::new(Depths::LIVE); PORTS];
            let mut number = 0;
            for turn in 1..=60 {
                for port in 3..6 {
                    let (vc, mut words) = drawn(&mut rng, port);
                    number += 1;
                    *words.last_mut().expect("a packet has flits") = number;
                    give(&mut bench, &mut crossbar, (port, vc), &words);
                }
                bench.credits = Bench::default().credits;
                crossbar.wake();
                crossbar.run_until(turn * 20, &mut bench);
            }
            while crossbar.flits() > 0 || !crossbar.is_empty() {
                bench.credits = Bench::default().credits;
                crossbar.wake();
                crossbar.run(&mut bench);
            }
            let counters = crossbar.counters();
            assert_eq!(counters.packets, number);
            (
                counters.straight_packets,
                counters.adaptive_packets,
                counters.flits,
            )
        });
        let [flits, others @ ..] = outcome;
        for other in others {
            assert_eq!(other.2, flits.2, "seed {seed}");
            let (straight, adaptive) = (other.0.abs_diff(flits.0), other.1.abs_diff(flits.1));
            assert!(straight <= 25 && adaptive <= 25, "seed {seed}: {outcome:?}");
            assert!(other.0 > 0, "seed {seed}: {outcome:?}");
        }
    }
}

/// Whole packets do not overtake a packet in progress to the same output on another channel.
#[test]
fn whole_packets_do_not_follow_each_other_past_one_under_way() {
    let (mut bench, crossbar) = (Bench::default(), crossbar());
    let mut crossbar = crossbar.with_whole_packets(false);
    let response = packet(Command::Get8Data, tag([3, 1, 1], false));
    give(
        &mut bench,
        &mut crossbar,
        (FROM_Y, vc::RESPONSE),
        &response[..1],
    );
    crossbar.run(&mut bench);
    assert_eq!(bench.sent[X].len(), 1, "the packet has begun");
    let request = packet(Command::Get1, tag([3, 1, 1], false));
    for _ in 0..4 {
        give(&mut bench, &mut crossbar, (FROM_X, 0), &request);
    }
    for word in &response[1..] {
        bench.inputs[FROM_Y].receive(vc::RESPONSE, Flit::data(*word, vc::RESPONSE, false));
    }
    crossbar.enqueue(FROM_Y, vc::RESPONSE, 9);
    crossbar.run(&mut bench);
    let sent: Vec<_> = bench.sent[X].iter().map(|(_, vc, _)| *vc).collect();
    assert_eq!(sent.len(), 18);
    let last = sent.iter().rposition(|vc| *vc != 0);
    assert!(
        last.is_some_and(|last| last < 1 + 9 + 2),
        "it does not end before the last requests: {sent:?}"
    );
}

#[test]
fn whole_packets_move_at_once_and_wait_as_others_do() {
    let (mut bench, crossbar) = (Bench::default(), crossbar());
    let mut crossbar = crossbar.with_whole_packets(false);
    bench.credits[X] = [13; VCS];
    let words = packet(Command::Put8, tag([3, 1, 1], false));
    for _ in 0..2 {
        give(&mut bench, &mut crossbar, (FROM_X, 0), &words[..1]);
        crossbar.run(&mut bench);
        for word in &words[1..] {
            let (_, is_free) = bench.inputs[FROM_X].receive(0, Flit::data(*word, 0, false));
            assert!(!is_free);
        }
        crossbar.enqueue(FROM_X, 0, 9);
        crossbar.run(&mut bench);
    }
    assert_eq!(
        (bench.sent[X].len(), crossbar.flits()),
        (10, 10),
        "a packet moves only if all of it has room"
    );
    bench.credits[X] = [12; VCS];
    crossbar.wake();
    crossbar.run(&mut bench);
    let sent: Vec<_> = bench.sent[X].iter().map(|(_, _, flit)| flit.word).collect();
    assert_eq!(sent, [words.clone(), words].concat());
    let cycles: std::collections::BTreeSet<_> = cycles(&bench, X).into_iter().collect();
    assert_eq!(
        cycles.len(),
        3,
        "two pieces as they arrived, and one that waited for credits"
    );
}
