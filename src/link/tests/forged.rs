//! Lanes that somebody else than the peer asks for or sends on. For both kinds of links.

use phitwire_framing::frame::{self, Frame};
use phitwire_framing::lanes::bits_of_lane;
use phitwire_framing::training::Training;

use super::harness::{A, B, Pair, forge};
use crate::link::LinkEvent;
use crate::time::Duration;

const SECOND: Duration = Duration::from_ms(1_000);

fn all_lanes(pair: &Pair) -> bool {
    let all = |end: &super::harness::End| (end.lcb.tx_lanes(), end.lcb.rx_lanes()) == (7, 7);
    pair.ends.iter().all(all)
}

fn no_session_ended(pair: &Pair) -> bool {
    let ended = |event: &LinkEvent| matches!(event, LinkEvent::Down { .. });
    !pair.ends.iter().any(|end| end.events.iter().any(ended))
}

#[test]
fn a_hundred_thousand_headers_with_fewer_lanes_take_none() {
    let mut pair = Pair::up(1);
    pair.load(A, 50);
    pair.load(B, 50);
    pair.finish(SECOND);
    let dropped = [A, B].map(|end| pair.count(end, |c| c.drop_wrong_lanes));
    for round in 0..50_000_u64 {
        let lanes = 1 + (round % 6) as u8;
        for to in [A, B] {
            let frame = forge(&pair, to, lanes, 0, &[]);
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
        assert_eq!(dropped, 50_000, "each is counted");
    }
    pair.load(A, 500);
    pair.load(B, 500);
    pair.finish(SECOND);
    assert!(no_session_ended(&pair) && all_lanes(&pair));
}

/// The last word of the other end of `to`, which receives on `lanes`.
fn request(pair: &Pair, to: usize, lanes: u8) -> Vec<u8> {
    let is_training = |bytes: &[u8]| matches!(frame::parse(bytes), Ok(Frame::Training(_)));
    let taped = pair.last_taped(to, is_training);
    let Ok(Frame::Training(training)) = frame::parse(&taped) else {
        panic!("it was looked for");
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

fn taped_pair(seed: u64) -> Pair {
    let mut pair = Pair::new(seed);
    pair.taping = true;
    pair.wait_up();
    pair.run_for(Duration::from_ms(100));
    pair
}

#[test]
fn a_request_that_was_not_the_peer_s_is_taken_back() {
    for busy in [false, true] {
        let mut pair = taped_pair(2);
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

#[test]
fn a_request_for_no_lane_kills_nobody() {
    let mut pair = taped_pair(3);
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

#[test]
fn a_new_process_begins_no_session_without_lanes() {
    let mut pair = taped_pair(5);
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
    pair.load(A, 100);
    pair.load(B, 100);
    pair.finish(SECOND);
    assert!(all_lanes(&pair));
}

#[test]
fn a_pattern_that_nobody_asked_for_takes_no_lane() {
    let mut pair = taped_pair(4);
    let mut frame = request(&pair, A, 7);
    // As it came when lane 2 was out for a moment.
    let area = frame::phit_area(&frame).unwrap();
    let mask = bits_of_lane(7, 2).to_be_bytes();
    for word in frame[area].chunks_mut(3) {
        for (byte, mask) in word.iter_mut().zip(&mask[1..]) {
            *byte &= !mask;
        }
    }
    for _ in 0..1_000 {
        pair.inject(A, &frame);
        pair.run_for(Duration::from_us(30));
    }
    assert!(all_lanes(&pair), "{}", pair.state());
    assert_eq!(pair.count(A, |c| c.lane_retries.iter().sum()), 0);
}
