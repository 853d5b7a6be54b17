//! Whenever two honest ends disagree about their session, they recover.

use phitwire_framing::carrier::training::Training;

use super::rig::{A, B, FRAME_BYTES, Link, SECOND, made};
use crate::link::testing::end::End;
use crate::link::testing::pair::Pair;
use crate::link::{DownReason, LinkProfile, LinkState, LinkView, NodeLink};
use crate::time::Duration;

fn taped_pair<L: Link>(seed: u64) -> Pair<L> {
    let mut pair = Pair::<L>::new(seed);
    pair.taping = true;
    pair.wait_up();
    pair.run_for(Duration::from_ms(10));
    pair.allow_gaps();
    pair
}

fn comes_up<L: Link>(pair: &mut Pair<L>) {
    pair.run_until(SECOND.times(5), |pair| pair.both_are_up());
    pair.exchange(200, SECOND.times(5));
}

fn die<L: Link>(pair: &mut Pair<L>, end: usize) {
    let now = pair.now;
    L::die(&mut pair.ends[end].lcb, now);
}

fn has_state(state: u8) -> impl Fn(&[u8]) -> bool {
    move |bytes| Training::parse(bytes).is_ok_and(|t| t.state == state)
}

/// A learns that B lost its lanes only after B has retrained them and found A, just before A would
/// notice the new session.
pub fn an_end_that_learns_late_of_its_peer_s_death_recovers<L: Link>() {
    let mut pair = taped_pair::<L>(1);
    pair.wires[A].cut = true;
    die(&mut pair, B);
    pair.run_for(Duration::from_ms(1));
    let obituary = pair.last_taped(A, has_state(4));
    pair.wires[A].cut = false;
    pair.link_up(B);
    while !pair.ends[B].lcb.is_active() {
        pair.step(SECOND);
    }
    pair.wires[A].cut = true; // A does not receive the reply either.
    pair.run_for(Duration::from_us(50));
    assert_eq!(
        pair.ends[A].lcb.epochs(),
        (1_000, 2_000),
        "A hears nothing after the cut"
    );
    pair.inject(A, &obituary);
    assert_eq!(pair.ends[A].lcb.state(), LinkState::Dead);
    pair.wires[A].cut = false;
    comes_up(&mut pair);
}

/// B goes down, up and down again while the link is cut, so it is down under an epoch that A does
/// not know.
pub fn an_end_learns_that_its_peer_is_down_under_another_epoch<L: Link>() {
    let mut pair = taped_pair::<L>(2);
    pair.wire(|wire| wire.cut = true);
    for _ in 0..2 {
        pair.link_down(B);
        pair.run_for(Duration::from_ms(1));
        pair.link_up(B);
        pair.run_for(Duration::from_ms(1));
    }
    pair.link_down(B);
    pair.run_for(Duration::from_ms(1));
    pair.wire(|wire| wire.cut = false);
    pair.load(A, 1);
    pair.run_until(SECOND.times(2), |pair| {
        pair.ends[A].lcb.state() == LinkState::Training
    });
    pair.run_for(SECOND);
    assert!(
        pair.downs(A).contains(&DownReason::PeerDown),
        "{:?}",
        pair.ends[A].events
    );
    assert_eq!(
        pair.ends[B].lcb.state(),
        LinkState::Disabled,
        "until the command"
    );
    pair.link_up(B);
    comes_up(&mut pair);
}

/// B retrains and receives a frame of another lab: it stays refused until the expected peer sends,
/// but that peer is dead and only replies.
pub fn an_end_without_lanes_answers_a_peer_that_was_spoken_to_by_a_stranger<L: Link>() {
    let mut pair = taped_pair::<L>(3);
    die(&mut pair, A);
    pair.run_for(Duration::from_ms(5));
    assert_eq!(pair.ends[B].lcb.state(), LinkState::Dead);
    pair.wire(|wire| wire.cut = true);
    pair.link_up(B);
    let mut stranger = taped_pair::<L>(4);
    stranger.tape.clear();
    stranger.replace(A, 50_000);
    stranger.run_for(Duration::from_ms(1));
    let mut frame = stranger.last_taped(B, has_state(1));
    frame = of_another_lab(&frame);
    pair.run_for(Duration::from_ms(1));
    pair.inject(B, &frame);
    assert_eq!(pair.ends[B].lcb.state(), LinkState::Refused);
    pair.wire(|wire| wire.cut = false);
    comes_up(&mut pair);
}

fn of_another_lab(frame: &[u8]) -> Vec<u8> {
    let Ok(mut training) = Training::parse(frame) else {
        panic!("not a training frame");
    };
    training.header.fabric ^= 1;
    let mut buf = [0; 200];
    let length = training.emit(&mut buf).unwrap();
    buf[..length].to_vec()
}

/// Both ends are active, A in a session with a replaced incarnation of B whose last frame arrived
/// late.
pub fn ends_that_believe_in_different_sessions_find_each_other<L: Link>() {
    let mut pair = Pair::<L>::new(5);
    pair.taping = true;
    // A(1000) trains, B(2000) replies, and we keep the reply.
    pair.run_until(SECOND, |pair| {
        let to_a = |(to, bytes): &(usize, Vec<u8>)| *to == A && confirms_epoch(bytes, 1_000);
        pair.tape.iter().any(to_a)
    });
    let answer = pair.last_taped(A, |bytes| confirms_epoch(bytes, 1_000));
    let mut pair = Pair::<L>::new(6);
    pair.taping = true;
    let profile = LinkProfile::live();
    pair.ends[B] = End::new(made::<L>(B, 7_000, profile), pair.now, FRAME_BYTES);
    pair.allow_gaps();
    while pair.ends[A].lcb.epochs().1 != 7_000 {
        pair.step(SECOND);
    }
    pair.wires[A].cut = true; // B's reply is lost, A's is not.
    pair.run_for(Duration::from_us(50));
    assert_eq!(pair.ends[B].lcb.epochs(), (7_000, 1_000));
    assert!(pair.ends[B].lcb.is_active() && !pair.ends[A].lcb.is_active());
    pair.inject(A, &answer);
    assert_eq!(pair.ends[A].lcb.epochs(), (1_000, 2_000));
    assert!(pair.ends[A].lcb.is_active());
    pair.wires[A].cut = false;
    comes_up(&mut pair);
}

fn confirms_epoch(bytes: &[u8], epoch: u32) -> bool {
    Training::parse(bytes)
        .is_ok_and(|t| t.heard && t.header.rx_epoch == epoch && t.header.tx_epoch == 2_000)
}

/// As above, but the incarnation that A does not know loses its lanes.
pub fn an_end_that_died_in_a_session_unknown_to_its_peer_is_found<L: Link>() {
    let mut pair = taped_pair::<L>(7);
    // B restarts unseen by A and dies in a session that A never saw.
    pair.wire(|wire| wire.cut = true);
    pair.replace(B, 9_000);
    {
        let now = pair.now;
        let lcb = &mut pair.ends[B].lcb;
        let common = L::common(lcb);
        common.state = LinkState::Dead;
        common.handshake.peer_epoch = 5;
        common.handshake.rest();
        assert!(!lcb.wants_to_send(now));
    }
    pair.wire(|wire| wire.cut = false);
    pair.load(A, 1);
    comes_up(&mut pair);
}

pub fn frames_of_a_session_kept_for_forty_seconds_end_none<L: Link>() {
    let mut pair = taped_pair::<L>(8);
    pair.exchange(300, SECOND);
    pair.link_down(A);
    pair.run_for(Duration::from_ms(5));
    pair.link_up(A);
    comes_up(&mut pair);
    pair.replace(B, 30_000);
    comes_up(&mut pair);
    let capture = core::mem::take(&mut pair.tape);
    pair.taping = false;
    pair.run_for(SECOND.times(40));
    let ends = [A, B].map(|end| pair.downs(end).len());
    for (to, bytes) in &capture {
        pair.inject(*to, bytes);
        pair.run_for(Duration::from_us(1));
    }
    comes_up(&mut pair);
    let now = [A, B].map(|end| pair.downs(end).len());
    assert_eq!(ends, now, "no session ended");
}
