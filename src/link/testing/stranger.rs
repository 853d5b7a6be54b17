//! A stranger records what two honest ends send and replays any of it at any time.

use proptest::prelude::*;

use super::rig::{A, B, Link, SECOND};
use crate::link::LinkView;
use crate::link::testing::pair::Pair;
use crate::time::Duration;

/// An event while the stranger listens.
#[derive(Clone, Copy, Debug)]
enum Past {
    Traffic(usize, usize),
    Idle(u64),
    Restart(usize),
    DownAndUp(usize, u64),
    Cut(usize, u64),
}

fn past() -> impl Strategy<Value = Past> {
    prop_oneof![
        3 => (0..2_usize, 1..200_usize).prop_map(|(end, packets)| Past::Traffic(end, packets)),
        1 => (0..2_000_u64).prop_map(Past::Idle),
        1 => (0..2_usize).prop_map(Past::Restart),
        1 => (0..2_usize, 0..3_000_u64).prop_map(|(end, us)| Past::DownAndUp(end, us)),
        1 => (0..2_usize, 0..3_000_u64).prop_map(|(end, us)| Past::Cut(end, us)),
    ]
}

fn happen<L: Link>(pair: &mut Pair<L>, past: Past) {
    match past {
        Past::Traffic(end, packets) => {
            pair.load(end, packets);
            pair.run_for(Duration::from_us(200));
        }
        Past::Idle(ms) => pair.run_for(Duration::from_ms(ms)),
        Past::Restart(end) => {
            let number = pair.ends[end].number + 1;
            if number < 16 {
                pair.replace(end, 0x8000_0000 + number * 1_000);
            }
        }
        Past::DownAndUp(end, us) => {
            pair.link_down(end);
            pair.run_for(Duration::from_us(us));
            pair.link_up(end);
        }
        Past::Cut(end, us) => {
            pair.wires[end].cut = true;
            pair.run_for(Duration::from_us(us));
            pair.wires[end].cut = false;
        }
    }
}

fn storm<L: Link>(seed: u64, history: Vec<Past>, last: Option<Past>, per_ms: u64, spans_ms: u64) {
    let mut pair = Pair::<L>::new(seed);
    pair.taping = true;
    pair.allow_gaps();
    for past in history {
        happen(&mut pair, past);
    }
    pair.run_until(SECOND.times(5), |pair| pair.both_are_up());
    pair.exchange(50, SECOND.times(5));
    pair.ends.iter_mut().for_each(|end| end.events.clear());
    let before = [A, B].map(|end| {
        let sent = pair.count(end, |c| c.tx_packets);
        (
            sent,
            pair.count(1 - end, |c| c.rx_packets),
            pair.count(end, |c| c.tx_discarded_packets),
        )
    });
    // The storm, which may also replay what is sent during it.
    for ms in 0..spans_ms {
        for _ in 0..per_ms {
            let nth = pair.rng.below(pair.tape.len() as u64) as usize;
            let (to, bytes) = pair.tape[nth].clone();
            // Reflect some frames to their sender.
            let to = if pair.rng.chance(1, 20) { 1 - to } else { to };
            pair.inject(to, &bytes);
            let span = pair.rng.below(2_000 / per_ms);
            pair.run_for(Duration::from_us(span));
        }
        if ms % 4 == 0 {
            pair.load(A, 1);
            pair.load(B, 1);
        }
        if ms == spans_ms / 2
            && let Some(last) = last
        {
            happen(&mut pair, last);
        }
    }
    pair.taping = false;
    pair.run_until(SECOND.times(5), |pair| pair.both_are_up());
    pair.exchange(50, SECOND.times(5));
    for end in [A, B] {
        let lanes = (pair.ends[end].lcb.tx_lanes(), pair.ends[end].lcb.rx_lanes());
        assert_eq!(lanes, (7, 7), "{}", pair.state());
        if matches!(last, Some(Past::Restart(_))) {
            continue; // Its counters restarted.
        }
        let (sent, got, lost) = before[end];
        let sent = pair.count(end, |c| c.tx_packets) - sent;
        let lost = pair.count(end, |c| c.tx_discarded_packets) - lost;
        assert_eq!(pair.discarded(end), lost, "discarded packets are reported");
        if last.is_none() {
            assert_eq!(
                lost, 0,
                "a session of two honest ends ended: {:?}",
                pair.ends[end].events
            );
        }
        let got = pair.count(1 - end, |c| c.rx_packets) - got;
        assert!(
            got <= sent && got + lost >= sent,
            "{got} of {sent}, {lost} discarded"
        );
    }
}

pub fn nothing_that_was_ever_sent_does_lasting_harm_when_it_is_sent_again<L: Link>() {
    let config = ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..Default::default()
    };
    let history = prop::collection::vec(past(), 1..8);
    proptest!(config, |(
        seed in any::<u64>(),
        history in history,
        last in prop::option::of(past()),
        per_ms in 1..20_u64,
        spans_ms in 1..400_u64,
    )| {
        storm::<L>(seed, history, last, per_ms, spans_ms);
    });
}
