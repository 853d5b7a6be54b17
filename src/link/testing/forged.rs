//! Lanes that a forged frame requests or uses.

use phitwire_framing::carrier::training::Training;

use super::rig::{A, B, Link, SECOND};
use crate::link::LinkView;
use crate::link::testing::end::End;
use crate::link::testing::pair::Pair;
use crate::time::Duration;

fn all_lanes<L: Link>(pair: &Pair<L>) -> bool {
    let all = |end: &End<L>| (end.lcb.tx_lanes(), end.lcb.rx_lanes()) == (7, 7);
    pair.ends.iter().all(all)
}

fn no_session_ended<L: Link>(pair: &Pair<L>) -> bool {
    [A, B].iter().all(|end| pair.downs(*end).is_empty())
}

pub fn a_hundred_thousand_headers_with_fewer_lanes_take_none<L: Link>() {
    let mut pair = Pair::<L>::up(1);
    pair.exchange(50, SECOND);
    let dropped = [A, B].map(|end| pair.count(end, |c| c.drop_wrong_lanes));
    for round in 0..50_000_u64 {
        let lanes = 1 + (round % 6) as u8;
        for to in [A, B] {
            let frame = L::forge(&pair, to, lanes, 0, &[]);
            pair.inject(to, &frame);
        }
        if round % 100 == 0 {
            pair.load(A, 2);
            pair.load(B, 2);
            pair.run_for(Duration::from_us(50));
        }
    }
    assert!(all_lanes(&pair), "{}", pair.state());
    for end in [A, B] {
        let dropped = pair.count(end, |c| c.drop_wrong_lanes) - dropped[end];
        assert_eq!(dropped, 50_000, "each forged frame is counted");
    }
    pair.exchange(500, SECOND);
    assert!(no_session_ended(&pair) && all_lanes(&pair));
}

/// Forges a frame from the last one taped towards `to`; it claims that its sender receives on
/// `lanes`.
fn request<L: Link>(pair: &Pair<L>, to: usize, lanes: u8) -> Vec<u8> {
    let is_training = |bytes: &[u8]| Training::parse(bytes).is_ok();
    let taped = pair.last_taped(to, is_training);
    let Ok(training) = Training::parse(&taped) else {
        panic!("the mutation was searched for");
    };
    let [tx_epoch, rx_epoch] = [1 - to, to].map(|end| pair.ends[end].lcb.epochs().0);
    let mut forged = Training {
        rx_lanes: lanes,
        state: 3,
        heard: true,
        ..training
    };
    (forged.header.tx_epoch, forged.header.rx_epoch) = (tx_epoch, rx_epoch);
    let mut buf = [0; 200];
    let length = forged.emit(&mut buf).unwrap();
    buf[..length].to_vec()
}

fn taped_pair<L: Link>(seed: u64) -> Pair<L> {
    let mut pair = Pair::<L>::new(seed);
    pair.taping = true;
    pair.wait_up();
    pair.run_for(Duration::from_ms(100));
    pair
}

pub fn a_request_that_was_not_the_peer_s_is_taken_back<L: Link>() {
    for busy in [false, true] {
        let mut pair = taped_pair::<L>(2);
        for lanes in [0b001, 0b110, 0b100] {
            if busy {
                pair.load(A, 400);
                pair.load(B, 400);
            }
            let frame = request(&pair, A, lanes);
            pair.inject(A, &frame);
            assert_eq!(pair.ends[A].lcb.tx_lanes(), lanes);
            pair.run_until(Duration::from_ms(500), |pair| all_lanes(pair));
            pair.finish(SECOND);
        }
        assert!(no_session_ended(&pair), "{busy} {}", pair.state());
    }
}

pub fn requests_for_no_lane_are_dropped<L: Link>() {
    let mut pair = taped_pair::<L>(3);
    let before = pair.count(A, |c| c.drop_wrong_lanes);
    for _ in 0..100 {
        let frame = request(&pair, A, 0);
        pair.inject(A, &frame);
    }
    assert_eq!(pair.count(A, |c| c.drop_wrong_lanes), before + 100);
    pair.load(A, 100);
    pair.finish(SECOND);
    assert!(no_session_ended(&pair) && all_lanes(&pair));
}

pub fn a_new_process_begins_no_session_without_lanes<L: Link>() {
    let mut pair = taped_pair::<L>(5);
    pair.replace(A, 5_000);
    pair.wire(|wire| wire.cut = true);
    let frame = request(&pair, A, 0);
    for _ in 0..100 {
        pair.inject(A, &frame);
    }
    assert!(!pair.ends[A].lcb.is_active(), "{}", pair.state());
    assert_eq!(pair.count(A, |c| c.drop_wrong_lanes), 100);
    pair.wire(|wire| wire.cut = false);
    pair.wait_up();
    pair.exchange(100, SECOND);
    assert!(all_lanes(&pair));
}

pub fn an_unrequested_pattern_removes_no_lane<L: Link>() {
    let mut pair = taped_pair::<L>(4);
    let mut frame = request(&pair, A, 7);
    // Blank lane 2, as if it had failed for a moment.
    let area = L::LAYOUT.area(&frame).unwrap();
    let lanes = L::LAYOUT.lanes();
    lanes.map_area(&mut frame[area], |word| word & !lanes.bits_of(7, 2));
    for _ in 0..1_000 {
        pair.inject(A, &frame);
        pair.run_for(Duration::from_us(30));
    }
    assert!(all_lanes(&pair), "{}", pair.state());
    assert_eq!(pair.count(A, |c| c.lane_retries.iter().sum()), 0);
}
