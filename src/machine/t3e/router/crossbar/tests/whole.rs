//! Packets as a whole, where cycles have no length.

use super::*;

/// Packets that follow on the same channel need no arbitration of their own while nobody else asks;
/// others get their turn after each of them, at the output as at the input.
#[test]
fn whole_packets_follow_each_other_until_somebody_else_asks() {
    let words = packet(Command::Get1, tag([3, 1, 1], false));
    let run = |others: &[(usize, usize)]| {
        let (mut bench, crossbar) = (Bench::default(), crossbar());
        let mut crossbar = crossbar.with_whole_packets();
        for _ in 0..4 {
            give(&mut bench, &mut crossbar, (FROM_X, 0), &words);
        }
        for &(port, vc) in others {
            let mut words = words.clone();
            words[1] = 1;
            give(&mut bench, &mut crossbar, (port, vc), &words);
        }
        crossbar.run(&mut bench);
        let sent = bench.sent[X].iter().skip(1).step_by(2);
        let from: Vec<u64> = sent.map(|(_, _, flit)| flit.word).collect();
        assert_eq!(from.len(), 4 + others.len());
        (from, cycles(&bench, X))
    };
    let (_, alone) = run(&[]);
    assert!(alone.iter().all(|cycle| *cycle == alone[0]), "{alone:?}");
    for other in [(FROM_Y, 0), (FROM_X, 1)] {
        let (from, cycles) = run(&[other]);
        let place = from.iter().position(|word| *word == 1);
        assert!(
            place.is_some_and(|place| place < 2),
            "it does not wait for all: {from:?}"
        );
        assert!(cycles.first() < cycles.last());
    }
}

/// Nor do they go past a packet that is under way to the same output on another channel.
#[test]
fn whole_packets_do_not_follow_each_other_past_one_under_way() {
    let (mut bench, crossbar) = (Bench::default(), crossbar());
    let mut crossbar = crossbar.with_whole_packets();
    let response = packet(Command::Get8Data, tag([3, 1, 1], false));
    give(
        &mut bench,
        &mut crossbar,
        (FROM_Y, vc::RESPONSE),
        &response[..1],
    );
    crossbar.run(&mut bench);
    assert_eq!(bench.sent[X].len(), 1, "it has begun");
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
        "it ends before the last requests: {sent:?}"
    );
}

#[test]
fn whole_packets_move_at_once_and_wait_as_others_do() {
    let (mut bench, crossbar) = (Bench::default(), crossbar());
    let mut crossbar = crossbar.with_whole_packets();
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
        "none of a packet goes where there is no room for all of it"
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
        "two pieces as they came, and what waited for credits"
    );
}
