//! Noise on lanes: a link degrades from three lanes to two, one and none.

use super::rig::{A, B, FRAME_BYTES, Link, SECOND, config};
use crate::link::testing::end::End;
use crate::link::testing::pair::Pair;
use crate::link::{DownReason, LinkEvent, LinkProfile, LinkState, LinkView};
use crate::time::Duration;

fn pair_with_threshold<L: Link>(threshold: u32) -> Pair<L> {
    let end = |end| L::built(config::<L>(end).lane_retry_threshold(threshold));
    let mut pair = Pair::<L>::with(1, end(A), end(B), FRAME_BYTES);
    pair.wait_up();
    pair
}

/// Flips a bit of `lanes` towards B with probability 1 in `of` per word.
fn noise<L: Link>(pair: &mut Pair<L>, lanes: u8, of: u64) {
    pair.wires[B].noisy_lanes = lanes;
    pair.wires[B].noise_of = of;
}

/// End A sends, `packets` at a time, until its transmit lanes are `lanes`.
fn until_on_lanes<L: Link>(pair: &mut Pair<L>, lanes: u8, packets: usize, most: Duration) {
    pair.run_until(most, |pair| {
        if pair.ends[A].backlog.is_empty() {
            pair.load(A, packets);
        }
        pair.ends[A].lcb.tx_lanes() == lanes
    });
}

pub fn a_noisy_lane_is_charged_and_given_up_at_the_threshold<L: Link>() {
    let mut pair = pair_with_threshold::<L>(20);
    noise(&mut pair, 0b010, 2_000);
    until_on_lanes(&mut pair, 0b101, 500, SECOND.times(20));
    pair.finish(SECOND.times(5));
    // The other direction keeps its lanes, and only the noisy lane is charged.
    assert_eq!([A, B].map(|end| pair.ends[end].lcb.rx_lanes()), [7, 0b101]);
    let retries = pair.ends[B].lcb.counters().lane_retries;
    assert_eq!(retries[0] + retries[2], 0, "{retries:?}");
    assert!(L::CHARGES_OF_20.contains(&retries[1]), "{retries:?}");
    let (lane, left) = (1, 0b101);
    let degraded = LinkEvent::LaneDegraded { lane, left };
    assert!(pair.ends[B].events.contains(&degraded));
    let degraded = LinkEvent::PeerDegraded { left };
    assert!(pair.ends[A].events.contains(&degraded));
    let errors = L::check_failures(&pair.ends[B].lcb);
    pair.load(A, 5_000);
    pair.finish(SECOND.times(5));
    // The noisy lane is no longer used.
    assert_eq!(L::check_failures(&pair.ends[B].lcb), errors);
}

pub fn frames_from_before_a_lane_loss_end_no_session_of_a_suspended_peer<L: Link>() {
    let mut pair = pair_with_threshold::<L>(20);
    noise(&mut pair, 0b010, 2_000);
    until_on_lanes(&mut pair, 0b101, 500, SECOND.times(20));
    pair.finish(SECOND.times(5));
    // From now on only frames sent before the lane was dropped arrive.
    pair.load(B, 50);
    pair.wire(|wire| wire.cut = true);
    let old = L::forge(&pair, B, 7, 0, &[]);
    for _ in 0..1_500 {
        pair.inject(B, &old);
        pair.run_for(Duration::from_ms(2));
    }
    assert!(pair.count(B, |c| c.drop_wrong_lanes) >= 1_500);
    pair.wire(|wire| wire.cut = false);
    pair.finish(SECOND.times(5));
    let counts = pair.ends.each_ref().map(|end| end.lcb.counters());
    assert_eq!(counts.map(|c| c.tx_discarded_packets), [0, 0]);
    assert_eq!(counts.map(|c| c.unusable_sessions), [0, 0]);
}

pub fn lanes_go_one_by_one_and_with_the_last_the_link<L: Link>() {
    let mut pair = pair_with_threshold::<L>(10);
    if L::LOSES_TAILS {
        pair.allow_gaps();
    }
    let mut seen = vec![7];
    for lane in [2, 0, 1] {
        pair.wires[B].noisy_lanes |= 1 << lane;
        pair.wires[B].noise_of = 1_000;
        let before = pair.ends[A].lcb.tx_lanes();
        pair.run_until(SECOND.times(60), |pair| {
            if pair.ends[A].backlog.is_empty() {
                pair.load(A, 200);
            }
            !pair.ends[A].lcb.is_active() || pair.ends[A].lcb.tx_lanes() != before
        });
        if pair.ends[A].lcb.is_active() {
            seen.push(pair.ends[A].lcb.tx_lanes());
        }
    }
    assert_eq!(seen, [0b111, 0b011, 0b010]);
    pair.run_for(SECOND);
    for end in [A, B] {
        // link_active is deasserted.
        assert_eq!(pair.ends[end].lcb.state(), LinkState::Dead);
        assert!(!L::can_begin(&pair.ends[end].lcb, 0, 1));
        assert!(pair.downs(end).contains(&DownReason::NoLanes));
    }
    // Replace the cable.
    pair.wires[B].noisy_lanes = 0;
    pair.allow_gaps();
    pair.link_up(A);
    pair.wait_up();
    assert_eq!(pair.ends[A].lcb.tx_lanes(), 7);
    pair.exchange(100, SECOND);
}

pub fn a_lane_too_noisy_for_any_frame_is_given_up_all_the_same<L: Link>() {
    let mut pair = pair_with_threshold::<L>(1_000);
    // Noise flips a bit in most words of the lane, so no control word passes its check.
    noise(&mut pair, 0b100, 1);
    pair.load(A, 2_000);
    pair.run_until(SECOND.times(120), |pair| pair.ends[A].lcb.tx_lanes() != 7);
    assert_eq!(pair.ends[B].lcb.rx_lanes(), 0b011, "{}", pair.state());
    pair.finish(SECOND.times(5));
}

pub fn a_lane_too_noisy_for_any_frame_is_given_up_by_the_first_packet_that_cannot_pass<L: Link>() {
    let mut pair = pair_with_threshold::<L>(20);
    noise(&mut pair, 0b010, 500);
    until_on_lanes(&mut pair, 0b101, 200, SECOND.times(60));
    pair.finish(SECOND);
    noise(&mut pair, 0b100, 1);
    pair.load(A, 1);
    let start = pair.now;
    pair.run_until(SECOND.times(60), |pair| {
        pair.ends[A].lcb.tx_lanes() == 0b001
    });
    let took = pair.now.since(start);
    assert!(took < SECOND.times(2), "{took:?}");
    pair.finish(SECOND);
}

/// Regression (soak seed 5127): the challenge to the new incarnation offered the lanes of the
/// previous session, so the ends disagreed on their lanes and nothing passed.
pub fn a_restarted_peer_gets_all_lanes_again<L: Link>() {
    let mut pair = pair_with_threshold::<L>(3);
    noise(&mut pair, 0b001, 500);
    until_on_lanes(&mut pair, 0b110, 100, SECOND.times(60));
    pair.finish(SECOND);
    pair.wires[B].noisy_lanes = 0;
    let again = config::<L>(A).epoch(77_000).lane_retry_threshold(3);
    let again = L::built(again);
    pair.ends[A] = End::new(again, pair.now, FRAME_BYTES).incarnation(1);
    pair.ends[B].gaps_allowed = true;
    pair.wait_up();
    pair.exchange(100, SECOND);
    assert_eq!(pair.ends[A].lcb.tx_lanes(), 7);
    assert_eq!(pair.ends[B].lcb.rx_lanes(), 7);
}

pub fn a_link_at_rest_stays_at_rest_when_a_lane_has_gone<L: Link>() {
    let end = |end| {
        let profile = LinkProfile {
            silence: None,
            ..LinkProfile::live()
        };
        L::built(config::<L>(end).profile(profile).lane_retry_threshold(3))
    };
    let mut pair = Pair::<L>::with(1, end(A), end(B), FRAME_BYTES);
    pair.wait_up();
    noise(&mut pair, 0b010, 500);
    // The last packet causes the charge that exceeds the threshold.
    pair.run_until(SECOND.times(60), |pair| {
        let quiet =
            pair.ends[A].backlog.is_empty() && pair.ends[A].lcb.unacknowledged_packets() == 0;
        if quiet && pair.ends[A].lcb.tx_lanes() == 7 {
            pair.load(A, 1);
        }
        pair.ends[A].lcb.tx_lanes() != 7
    });
    pair.finish(SECOND);
    pair.run_for(SECOND);
    let requests = L::requests(&pair.ends[B].lcb);
    let frames = pair.frames;
    pair.run_for(SECOND.times(10));
    assert_eq!(L::requests(&pair.ends[B].lcb), requests);
    // An idle link sends nothing.
    assert_eq!(pair.frames, frames);
}

pub fn a_lane_that_comes_late_leaves_both_ends_agreed<L: Link>() {
    for then_silent in [0, 0b001, 0b010] {
        let mut pair = Pair::<L>::new(1);
        pair.wires[B].silent_lanes = 0b100;
        // B announces two receive lanes; A has not heard from B yet.
        pair.wires[A].cut = true;
        pair.run_until(SECOND.times(5), |pair| {
            pair.ends[B].lcb.common().handshake.heard()
        });
        assert!(!pair.ends[A].lcb.is_active() && !pair.ends[B].lcb.is_active());
        pair.wires[B].silent_lanes = then_silent;
        pair.wires[A].cut = false;
        pair.wait_up();
        pair.wires[B].silent_lanes = 0;
        pair.exchange(50, SECOND.times(5));
        let lanes = pair.ends[A].lcb.tx_lanes();
        assert_eq!(pair.ends[B].lcb.rx_lanes(), lanes, "{then_silent:#b}");
        // A lane that fell silent while the link ran may be given up too.
        assert_eq!(lanes & 0b100, 0, "{lanes:#b} {then_silent:#b}");
    }
}

pub fn the_request_for_fewer_lanes_may_be_lost<L: Link>() {
    let mut pair = pair_with_threshold::<L>(5);
    noise(&mut pair, 1, 1_000);
    pair.wires[A].loss = 500;
    pair.load(A, 20_000);
    pair.finish(SECOND.times(60));
    assert_eq!(pair.ends[A].lcb.tx_lanes(), 0b110);
    assert!(pair.count(B, |c| c.drop_wrong_lanes) > 0);
}
