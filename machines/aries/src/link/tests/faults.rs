//! Wire faults, one at a time, on both profiles.

use crate::link::SetProfile;
use crate::link::testing::{Aries, AriesPair as _, Pair, aries, config, live, set_load, with};
use phitwire::link::testing::end::Drain;
use phitwire::link::testing::rig::Link;
use phitwire::link::testing::rig::{A, B};
use phitwire::link::{ErrorInjection, LinkFault, LinkView, NodeLink};
use phitwire::time::Duration;

const LONG: Duration = Duration::from_ms(60_000);

fn both(seed: u64, test: impl Fn(&mut Pair)) {
    for mut pair in [Pair::new(seed), Aries::paper(seed)] {
        pair.wait_up();
        test(&mut pair);
    }
}

#[test]
fn a_clean_wire_carries_everything_once_without_a_replay() {
    both(1, |pair| {
        pair.exchange(3_000, LONG);
        for end in [A, B] {
            assert_eq!(
                pair.sets(end, |c| c.tx_replayed_sets),
                0,
                "{}",
                pair.state()
            );
            assert_eq!(pair.sets(end, |c| c.rx_nacks), 0);
            let (sent, got) = (
                pair.sets(end, |c| c.tx_flits),
                pair.sets(1 - end, |c| c.rx_flits),
            );
            assert_eq!(sent, got);
            assert_eq!(pair.count(end, |c| c.tx_packets), 3_000);
            assert_eq!(pair.count(end, |c| c.tx_acked_packets), 3_000);
        }
    });
}

#[test]
fn acknowledgements_of_a_one_way_flow_are_few() {
    let mut pair = Pair::up(2);
    let before = pair.frames[B];
    pair.load(A, 20_000);
    pair.finish(LONG);
    let (sets, frames) = (pair.sets(A, |c| c.tx_sets), pair.frames[B] - before);
    assert!(frames * 100 < sets, "{frames} frames for {sets} sets");
    assert_eq!(pair.sets(B, |c| c.tx_sets), 0);
}

#[test]
fn losses_are_replayed() {
    for parts in [10, 100, 300] {
        both(parts, |pair| {
            pair.wire(|wire| wire.loss = parts);
            pair.exchange(2_000, LONG);
            assert!(pair.sets(A, |c| c.tx_replayed_sets) > 0);
        });
    }
}

#[test]
fn a_lost_frame_costs_little_more_than_itself() {
    let mut pair = Pair::up(3);
    pair.wire(|wire| wire.loss = 20);
    pair.load(A, 40_000);
    pair.finish(LONG);
    let (sets, again) = (
        pair.sets(A, |c| c.tx_sets),
        pair.sets(A, |c| c.tx_replayed_sets),
    );
    assert!(
        again * 20 < sets,
        "{again} of {sets} sets resent at 2 % loss"
    );
}

#[test]
fn corrupted_sets_are_asked_for_at_once() {
    both(4, |pair| {
        pair.wire(|wire| wire.corrupt = 50);
        pair.load(A, 5_000);
        pair.finish(LONG);
        assert!(pair.sets(B, |c| c.rx_bad_crcs) > 0 && pair.sets(B, |c| c.rx_nacks) > 0);
        assert!(pair.sets(A, |c| c.tx_replays_nacked) > 0);
    });
}

#[test]
fn mangled_bursts_and_duplicates_do_no_harm() {
    both(5, |pair| {
        pair.wire(|wire| {
            wire.mangle = 100;
            wire.duplicate = 300;
        });
        pair.exchange(2_000, LONG);
        assert!(pair.sets(B, |c| c.rx_duplicate_sets) > 0);
    });
}

#[test]
fn reordering_is_learnt_and_then_not_taken_for_loss() {
    let mut pair = Pair::up(6);
    pair.wire(|wire| {
        wire.delay = Duration::from_us(300);
        wire.jitter = Duration::from_us(200);
    });
    pair.load(A, 100_000);
    pair.finish(LONG);
    let replayed = |pair: &Pair| pair.sets(A, |c| c.tx_replayed_sets);
    let (sets, again) = (pair.sets(A, |c| c.tx_sets), replayed(&pair));
    pair.load(A, 40_000);
    pair.finish(LONG);
    let sets = pair.sets(A, |c| c.tx_sets) - sets;
    let again = replayed(&pair) - again;
    assert!(pair.sets(B, |c| c.rx_held_sets) > 0);
    assert!(again * 50 < sets, "{again} of {sets}: {}", pair.state());
}

#[test]
fn a_lost_tail_is_found_by_a_probe() {
    both(7, |pair| {
        pair.load(A, 10);
        pair.settle();
        pair.wires[B].cut = true;
        pair.load(A, 3);
        pair.settle();
        pair.wires[B].cut = false;
        pair.finish(Duration::from_ms(500));
    });
}

#[test]
fn a_cut_of_ten_seconds_loses_nothing() {
    both(8, |pair| {
        pair.load(A, 4_000);
        pair.load(B, 4_000);
        pair.run_for(Duration::from_us(50));
        pair.wire(|wire| wire.cut = true);
        pair.run_for(Duration::from_ms(10_000));
        pair.wire(|wire| wire.cut = false);
        pair.finish(Duration::from_ms(2_000));
    });
}

#[test]
fn retries_become_rare_while_a_cable_is_cut_and_quick_on_a_long_one() {
    let mut pair = Pair::up(9);
    pair.load(A, 100);
    pair.wires[B].cut = true;
    let before = pair.frames[A];
    pair.run_for(Duration::from_ms(10_000));
    assert!(pair.frames[A] - before < 500, "{}", pair.frames[A] - before);
    // Round trip of 200 ms: timeouts adapt and nothing is resent prematurely.
    let mut pair = Pair::up(9);
    pair.wire(|wire| wire.delay = Duration::from_ms(100));
    for _ in 0..40 {
        pair.load(A, 50);
        pair.run_for(Duration::from_ms(300));
    }
    let before = pair.sets(A, |c| c.tx_replayed_sets);
    for _ in 0..20 {
        pair.load(A, 50);
        pair.run_for(Duration::from_ms(300));
    }
    assert_eq!(pair.sets(A, |c| c.tx_replayed_sets), before);
    pair.finish(LONG);
}

#[test]
fn a_blocked_channel_blocks_no_other_and_gives_its_credits_back() {
    both(10, |pair| {
        pair.ends[B].drain = Drain::Blocked;
        for _ in 0..6_000 {
            pair.ends[A].send(2, 14);
        }
        pair.run_for(Duration::from_ms(50));
        let lcb = &pair.ends[A].lcb;
        assert!(!lcb.wire().can_begin(2, 14), "{}", pair.state());
        assert!(lcb.wire().can_begin(3, 14), "the private part is left");
        let sets = pair.ends[B].lcb.wire().config().sets().clone();
        let most = sets.private_flits + sets.common_flits;
        assert!(pair.ends[A].lcb.wire().far_flits_of(2) > most - 14);
        assert!(
            pair.ends[B].lcb.input().len(2) > most - 14,
            "all of it is queued"
        );
        pair.ends[A].send(3, 14);
        pair.run_for(Duration::from_ms(50));
        assert_eq!(pair.ends[B].lcb.input().len(3), 14);
        pair.ends[B].drain = Drain::Eager;
        pair.finish(LONG);
    });
}

#[test]
fn commands_replay_break_and_reinitialise() {
    both(11, |pair| {
        pair.load(A, 500);
        for _ in 0..20 {
            let now = pair.now;
            pair.ends[A].lcb.force_retry(now);
            pair.run_for(Duration::from_us(20));
        }
        assert!(pair.sets(A, |c| c.tx_replays_forced) > 0);
        pair.load(A, 500);
        let now = pair.now;
        pair.ends[A].lcb.apply_fault(now, LinkFault::BadCrc);
        pair.run_for(Duration::from_ms(1));
        assert_eq!(pair.sets(A, |c| c.tx_injected_errors), 1);
        assert!(pair.sets(B, |c| c.rx_bad_crcs) >= 1);
        let now = pair.now;
        pair.ends[B].lcb.apply_fault(now, LinkFault::Reinit);
        pair.load(A, 500);
        pair.run_for(Duration::from_us(20));
        let now = pair.now;
        pair.ends[B]
            .lcb
            .apply_fault(now, LinkFault::LoseClock(Duration::from_ms(3)));
        pair.load(A, 500);
        pair.finish(LONG);
        assert_eq!(pair.sets(B, |c| c.rx_reinits), 2);
        assert!(pair.sets(B, |c| c.rx_clock_lost_frames) > 0);
    });
}

#[test]
fn soft_errors_mark_the_packet_and_flow_on() {
    both(12, |pair| {
        Aries::soft_error_next(&mut pair.ends[A].lcb);
        pair.load(A, 10);
        pair.finish(LONG);
        assert_eq!(pair.ends[B].poisoned, 1);
        assert_eq!(pair.count(A, |c| c.tx_soft_errors), 1);
    });
}

#[test]
fn injected_errors_are_recovered_from() {
    both(13, |pair| {
        let injection = ErrorInjection {
            lane_mask: 7,
            bit_mask: 0x8001,
            probability: 1 << 10,
            max_per_64_sets: 8,
            seed: 3,
        };
        let now = pair.now;
        pair.ends[A]
            .lcb
            .apply_fault(now, LinkFault::Inject(injection));
        pair.load(A, 3_000);
        pair.finish(LONG);
        let (made, seen) = (
            pair.sets(A, |c| c.tx_injected_errors),
            pair.sets(B, |c| c.rx_bad_crcs),
        );
        assert!(made > 0 && seen == made, "{made} made, {seen} seen");
    });
}

#[test]
fn repeated_numbers_trigger_a_replay_before_the_time_out() {
    both(14, |pair| {
        // The other direction is busy, so that its acknowledgements repeat.
        let dilation = pair.ends[A].lcb.config().clock().dilation();
        let step = Duration::from_us(if dilation > 1 { 8 } else { 50 });
        let mut lost_at = None;
        for round in 0..400 {
            pair.load(B, 1);
            if lost_at.is_none() {
                pair.load(A, 1);
            }
            if round == 200 {
                let early = pair.sets(A, |c| c.tx_replays_repeated);
                assert_eq!(
                    early,
                    0,
                    "nothing was lost, but packets were resent early: {}",
                    pair.state()
                );
                pair.wires[B].cut = true;
                lost_at = Some(pair.now);
            }
            pair.run_for(step);
            if pair.sets(A, |c| c.tx_replays_repeated) > 0 {
                break;
            }
        }
        let took = pair.now.since(lost_at.unwrap());
        assert!(took < Duration::from_ms(2), "{took:?}: {}", pair.state());
        assert_eq!(pair.sets(A, |c| c.tx_replays_timeout), 0);
        pair.wires[B].cut = false;
        pair.finish(LONG);
    });
}

#[test]
fn load_and_clock_reach_the_peer() {
    both(15, |pair| {
        set_load(&mut pair.ends[A].lcb, 11);
        pair.run_for(Duration::from_ms(10));
        assert_eq!(
            pair.ends[B].lcb.wire().peer_load(),
            11,
            "updated without data"
        );
        set_load(&mut pair.ends[A].lcb, 3);
        pair.load(A, 1);
        pair.finish(LONG);
        assert_eq!(pair.ends[B].lcb.wire().peer_load(), 3);
        let (clock, at) = pair.ends[B].lcb.wire().peer_clock().unwrap();
        let dilation = pair.ends[A].lcb.config().clock().dilation();
        assert!(clock > 0 && clock * dilation <= at.as_ns());
    });
}

#[test]
fn different_scrambler_seeds_do_not_understand_each_other() {
    let other = with(live(B), |registers| registers.scrambler_seeds[1] ^= 1);
    let mut pair = Pair::with(16, live(A), other, 1_472);
    pair.run_for(Duration::from_ms(100));
    assert!(pair.ends[A].lcb.is_active() && pair.sets(A, |c| c.rx_bad_crcs) > 0);
    assert_eq!(pair.ends[A].lcb.wire().credits(), [0; 8]);
}

#[test]
fn cramped_buffers_still_pass_everything() {
    let cramped = SetProfile {
        window_sets: 4,
        private_flits: 14,
        common_flits: 0,
        held_sets: 4,
        backlog_flits: 1,
        ..SetProfile::live()
    };
    let config = |end| aries(config(end), cramped.clone());
    let mut pair = Pair::with(17, config(A), config(B), 152);
    pair.wait_up();
    pair.wire(|wire| wire.loss = 50);
    pair.exchange(500, LONG);
}
