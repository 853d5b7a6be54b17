//! Packets handed over whole: only the speed differs from flit by flit.

use phitwire_framing::aries::flit::Flit;

use crate::link::AriesLcb;
use crate::link::testing::{Aries, AriesPair as _, Pair, packet};
use phitwire::link::testing::end::Drain;
use phitwire::link::testing::rig::{A, B, Link as _};
use phitwire::link::{LinkView, NodeLink};
use phitwire::rng::Rng;
use phitwire::time::Duration;

fn hand_over(lcb: &mut AriesLcb, flits: &[Flit], flit_by_flit: bool) {
    if flit_by_flit {
        flits.iter().for_each(|flit| lcb.push(*flit));
    } else {
        lcb.push_packet(flits);
    }
}

/// The actions of two ends with the same input: everything that could differ.
fn trace(seed: u64, flit_by_flit: bool) -> String {
    let mut pair = Pair::up(seed);
    let mut rng = Rng::new(seed, 1);
    for end in &mut pair.ends {
        end.word_by_word = flit_by_flit;
        end.gaps_allowed = true;
    }
    pair.wire(|wire| wire.loss = 20);
    for _ in 0..200 {
        let end = rng.below(2) as usize;
        let packets = rng.below(40) as usize;
        pair.load(end, packets);
        let now = pair.now;
        let at = &mut pair.ends[end];
        match rng.below(16) {
            0..3 => Aries::soft_error_next(&mut at.lcb),
            3 => at.lcb.link_down(now),
            4..6 => at.lcb.link_up(now),
            6 => at.drain = Drain::Slow(3),
            7 => at.drain = Drain::Eager,
            8..11 if !at.lcb.is_active() => {
                // Dropped whole.
                let flits = packet(2, 0, 1 + rng.below(14) as usize);
                hand_over(&mut at.lcb, &flits, flit_by_flit);
            }
            11..13
                if at.lcb.wire().can_begin(3, 14) && at.backlog.iter().all(|(vc, _)| *vc != 3) =>
            {
                // The session may end between the two parts.
                let id = at.next_id[3];
                at.next_id[3] += 1;
                let flits = packet(3, id, 14);
                let (first, rest) = flits.split_at(1 + rng.below(13) as usize);
                hand_over(&mut at.lcb, first, flit_by_flit);
                if rng.chance(1, 2) {
                    at.lcb.link_down(now);
                }
                hand_over(&mut pair.ends[end].lcb, rest, flit_by_flit);
            }
            _ => {}
        }
        pair.run_for(Duration::from_us(rng.below(200)));
    }
    for end in &mut pair.ends {
        end.drain = Drain::Eager;
        end.lcb.link_up(pair.now);
    }
    pair.wire(|wire| wire.loss = 0);
    pair.finish(Duration::from_ms(10_000));
    let events = pair.ends.each_ref().map(|end| &end.events);
    let ends = pair.ends.each_ref().map(|end| (end.poisoned, end.cut));
    format!("{} {events:?} {ends:?} {:?}", pair.state(), pair.bytes)
}

#[test]
fn whole_packets_do_what_their_flits_do() {
    for seed in 1..6 {
        let whole = trace(seed, false);
        assert_eq!(whole, trace(seed, true), "seed {seed}");
        for what in ["Poisoned", "tx_discarded_packets", "tx_replayed_sets"] {
            assert!(whole.contains(what), "seed {seed} never had {what}");
        }
    }
}

#[test]
fn several_packets_at_once_are_taken_one_after_the_other() {
    let mut pair = Pair::up(9);
    let flits = [packet(1, 0, 4), packet(1, 1, 3)].concat();
    pair.ends[A].next_id[1] = 2;
    pair.ends[A].lcb.push_packet(&flits);
    pair.finish(Duration::from_ms(100));
    assert_eq!(pair.count(A, |c| c.tx_packets), 2);
    assert_eq!(pair.sets(B, |c| c.rx_flits), 7);
}

#[test]
#[should_panic(expected = "pushed without checking for room")]
fn a_whole_packet_needs_room_too() {
    let mut pair = Pair::up(9);
    let flits = packet(1, 0, 14);
    while pair.ends[A].lcb.wire().can_begin(1, 14) {
        pair.ends[A].lcb.push_packet(&flits);
    }
    pair.ends[A].lcb.push_packet(&flits);
}
