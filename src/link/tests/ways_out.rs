//! No state lasts in which two honest ends speak past each other. For both kinds of links.

use phitwire_framing::frame::{self, Frame};

use super::harness::{A, B, End, Pair, made};
use crate::link::session::Session;
use crate::link::{DownReason, LinkEvent, LinkProfile, LinkState};
use crate::time::Duration;

const SECOND: Duration = Duration::from_ms(1_000);

fn taped_pair(seed: u64) -> Pair {
    let mut pair = Pair::new(seed);
    pair.taping = true;
    pair.wait_up();
    pair.run_for(Duration::from_ms(10));
    pair.ends.iter_mut().for_each(|end| end.gaps_allowed = true);
    pair
}

fn comes_up(pair: &mut Pair) {
    pair.run_until(SECOND.times(5), |pair| {
        let [a, b] = [A, B].map(|end| pair.ends[end].lcb.epochs());
        pair.ends.iter().all(|end| end.lcb.is_active()) && a == (b.1, b.0)
    });
    pair.load(A, 200);
    pair.load(B, 200);
    pair.finish(SECOND.times(5));
}

fn die(pair: &mut Pair, end: usize) {
    let now = pair.now;
    let End { lcb, input, .. } = &mut pair.ends[end];
    lcb.die(now, input);
}

fn take_down(pair: &mut Pair, end: usize) {
    let now = pair.now;
    let End { lcb, input, .. } = &mut pair.ends[end];
    lcb.link_down(now, input);
}

fn take_up(pair: &mut Pair, end: usize) {
    let now = pair.now;
    pair.ends[end].lcb.link_up(now);
}

fn says(state: u8) -> impl Fn(&[u8]) -> bool {
    move |bytes| matches!(frame::parse(bytes), Ok(Frame::Training(t)) if t.state == state)
}

/// The word that B's lanes are gone comes when B has trained them again and found A, which is only about to
/// notice.
#[test]
fn an_end_that_hears_too_late_that_its_peer_died_comes_back() {
    let mut pair = taped_pair(1);
    pair.wires[A].cut = true;
    die(&mut pair, B);
    pair.run_for(Duration::from_ms(1));
    let obituary = pair.last_taped(A, says(4));
    pair.wires[A].cut = false;
    take_up(&mut pair, B);
    while !pair.ends[B].lcb.is_active() {
        pair.step(SECOND);
    }
    pair.wires[A].cut = true; // Nor does it hear the answer.
    pair.run_for(Duration::from_us(50));
    assert_eq!(pair.ends[A].lcb.epochs(), (1_000, 2_000), "nor now");
    pair.inject(A, &obituary);
    assert_eq!(pair.ends[A].lcb.state(), LinkState::Dead);
    pair.wires[A].cut = false;
    comes_up(&mut pair);
}

/// B is taken down, up and down again while nothing comes through: it is down under a name that A does not
/// know.
#[test]
fn an_end_whose_peer_is_down_under_another_name_hears_of_it() {
    let mut pair = taped_pair(2);
    pair.wire(|wire| wire.cut = true);
    for _ in 0..2 {
        take_down(&mut pair, B);
        pair.run_for(Duration::from_ms(1));
        take_up(&mut pair, B);
        pair.run_for(Duration::from_ms(1));
    }
    take_down(&mut pair, B);
    pair.run_for(Duration::from_ms(1));
    pair.wire(|wire| wire.cut = false);
    pair.load(A, 1);
    pair.run_until(SECOND.times(2), |pair| {
        pair.ends[A].lcb.state() == LinkState::Training
    });
    let down = |event: &LinkEvent| {
        matches!(
            event,
            LinkEvent::Down {
                why: DownReason::PeerDown,
                ..
            }
        )
    };
    pair.run_for(SECOND);
    assert!(
        pair.ends[A].events.iter().any(down),
        "{:?}",
        pair.ends[A].events
    );
    assert_eq!(
        pair.ends[B].lcb.state(),
        LinkState::Disabled,
        "until a command"
    );
    take_up(&mut pair, B);
    comes_up(&mut pair);
}

/// B trains again, and hears a frame of another lab: it says `refused` until the right peer speaks, which is
/// dead and speaks only when it is spoken to.
#[test]
fn an_end_without_lanes_answers_a_peer_that_was_spoken_to_by_a_stranger() {
    let mut pair = taped_pair(3);
    die(&mut pair, A);
    pair.run_for(Duration::from_ms(5));
    assert_eq!(pair.ends[B].lcb.state(), LinkState::Dead);
    pair.wire(|wire| wire.cut = true);
    take_up(&mut pair, B);
    let mut stranger = taped_pair(4);
    stranger.tape.clear();
    stranger.replace(A, 50_000);
    stranger.run_for(Duration::from_ms(1));
    let mut frame = stranger.last_taped(B, says(1));
    frame = of_another_lab(&frame);
    pair.run_for(Duration::from_ms(1));
    pair.inject(B, &frame);
    assert_eq!(pair.ends[B].lcb.state(), LinkState::Refused);
    pair.wire(|wire| wire.cut = false);
    comes_up(&mut pair);
}

fn of_another_lab(frame: &[u8]) -> Vec<u8> {
    let Ok(Frame::Training(mut training)) = frame::parse(frame) else {
        panic!("a training frame");
    };
    training.header.fabric ^= 1;
    let mut buf = [0; 200];
    let length = training.emit(&mut buf).unwrap();
    buf[..length].to_vec()
}

/// Both ends are active, A with an incarnation of B that has died since, whose last word came late.
#[test]
fn ends_that_believe_in_different_sessions_find_each_other() {
    let mut pair = Pair::new(5);
    pair.taping = true;
    // A(1000) trains; B(2000) answers it, and the answer is kept back.
    pair.run_until(SECOND, |pair| {
        let to_a = |(to, bytes): &(usize, Vec<u8>)| *to == A && heard_by(bytes, 1_000);
        pair.tape.iter().any(to_a)
    });
    let answer = pair.last_taped(A, |bytes| heard_by(bytes, 1_000));
    let mut pair = Pair::new(6);
    pair.taping = true;
    let profile = LinkProfile::live();
    pair.ends[B] = End::new(made(B, 7_000, profile), pair.now, 1_472);
    pair.ends.iter_mut().for_each(|end| end.gaps_allowed = true);
    while pair.ends[A].lcb.epochs().1 != 7_000 {
        pair.step(SECOND);
    }
    pair.wires[A].cut = true; // B's answer is lost, A's is not.
    pair.run_for(Duration::from_us(50));
    assert_eq!(pair.ends[B].lcb.epochs(), (7_000, 1_000));
    assert!(pair.ends[B].lcb.is_active() && !pair.ends[A].lcb.is_active());
    pair.inject(A, &answer);
    assert_eq!(pair.ends[A].lcb.epochs(), (1_000, 2_000));
    assert!(pair.ends[A].lcb.is_active());
    pair.wires[A].cut = false;
    comes_up(&mut pair);
}

fn heard_by(bytes: &[u8], epoch: u32) -> bool {
    match frame::parse(bytes) {
        Ok(Frame::Training(t)) => {
            t.heard && t.header.rx_epoch == epoch && t.header.tx_epoch == 2_000
        }
        _ => false,
    }
}

/// As above, and then the one that A does not know loses its lanes.
#[test]
fn an_end_that_died_in_a_session_unknown_to_its_peer_is_found() {
    let mut pair = taped_pair(7);
    // B restarts twice behind A's back and dies in between, in a session that A never saw.
    pair.wire(|wire| wire.cut = true);
    pair.replace(B, 9_000);
    {
        let now = pair.now;
        let lcb = &mut pair.ends[B].lcb;
        lcb.common.state = LinkState::Dead;
        lcb.common.handshake.peer_epoch = 5;
        lcb.common.handshake.rest();
        assert!(!lcb.wants_to_send(now));
    }
    pair.wire(|wire| wire.cut = false);
    pair.load(A, 1);
    comes_up(&mut pair);
}

#[test]
fn frames_of_a_session_kept_for_forty_seconds_end_none() {
    let mut pair = taped_pair(8);
    pair.load(A, 300);
    pair.load(B, 300);
    pair.finish(SECOND);
    take_down(&mut pair, A);
    pair.run_for(Duration::from_ms(5));
    take_up(&mut pair, A);
    comes_up(&mut pair);
    pair.replace(B, 30_000);
    comes_up(&mut pair);
    let capture = core::mem::take(&mut pair.tape);
    pair.taping = false;
    pair.run_for(SECOND.times(40));
    let ended = |event: &LinkEvent| matches!(event, LinkEvent::Down { .. });
    let ends = [A, B].map(|end| pair.ends[end].events.iter().filter(|e| ended(e)).count());
    for (to, bytes) in &capture {
        pair.inject(*to, bytes);
        pair.run_for(Duration::from_us(1));
    }
    comes_up(&mut pair);
    let now = [A, B].map(|end| pair.ends[end].events.iter().filter(|e| ended(e)).count());
    assert_eq!(ends, now, "no session ended");
}
