//! Channel initialisation, restarts, wrong peers, commands.

use phitwire_framing::carrier::frame::LinkEnd;
use phitwire_framing::carrier::lanes::Permutation;

use super::rig::{A, B, FRAME_BYTES, Link, SECOND, config, live, name};
use crate::link::testing::end::End;
use crate::link::testing::pair::Pair;
use crate::link::{
    DownReason, LinkConfig, LinkConfigBuilder, LinkEvent, LinkProfile, LinkState, LinkView,
    NodeLink,
};
use crate::time::Duration;

pub fn initialisation_takes_few_round_trips_and_names_the_peer<L: Link>() {
    let mut pair = Pair::<L>::new(1);
    let start = pair.now;
    pair.wait_up();
    let took = pair.now.since(start);
    assert!(took < Duration::from_ms(1), "{}", pair.state());
    pair.run_for(SECOND);
    let up = LinkEvent::Up {
        peer: name("right", 5),
        tx_lanes: 7,
        rx_lanes: 7,
    };
    assert_eq!(pair.ends[A].events, [up]);
    let frames = pair.frames[A];
    assert!(frames < 10, "an idle link is not silent: {frames} frames");
}

pub fn initialisation_survives_a_bad_wire<L: Link>() {
    for seed in 0..30 {
        let mut pair = Pair::<L>::new(seed);
        pair.wire(|wire| {
            wire.loss = 400;
            wire.duplicate = 300;
            wire.reorder = 300;
            wire.mangle = 100;
            wire.delay = Duration::from_ms(5);
            wire.jitter = Duration::from_ms(20);
        });
        pair.run_until(SECOND.times(10), |pair| pair.is_active());
        pair.exchange(200, SECOND.times(60));
    }
}

pub fn lane_order_and_polarity_are_found_for_every_cable<L: Link>() {
    let straight = [[0, 1, 2], [1, 2, 0], [2, 0, 1]];
    let crossed = straight.map(|[a, b, c]| [c, b, a]);
    for order in straight.into_iter().chain(crossed) {
        for bits in 0..8_u8 {
            let invert = [0, 1, 2].map(|lane| bits >> lane & 1 != 0);
            let cable = Permutation::new(order, invert).unwrap();
            let a = L::built(config::<L>(A).cable(cable));
            let mut pair = Pair::<L>::with(2, a, live::<L>(B), FRAME_BYTES);
            pair.wait_up();
            let found = |end: usize| pair.ends[end].lcb.common().handshake.cable;
            assert_eq!([A, B].map(found), [Permutation::IDENTITY, cable]);
            pair.exchange(100, SECOND);
            assert_eq!(L::check_failures(&pair.ends[B].lcb), 0);
        }
    }
}

/// The refusal that end A reports when end B is configured as `b`.
fn refusal<L: Link>(b: LinkConfigBuilder) -> String {
    let mut pair = Pair::<L>::with(3, live::<L>(A), L::built(b), FRAME_BYTES);
    pair.run_for(SECOND);
    assert!(pair.ends.iter().all(|end| !end.lcb.is_active()));
    assert_eq!(pair.ends[A].lcb.state(), LinkState::Refused);
    let messages: Vec<_> = pair.ends[A].events.iter().collect();
    match messages[..] {
        [LinkEvent::Refused { message }] => message.clone(),
        _ => panic!("expected one refusal, found {messages:?}"),
    }
}

pub fn a_wrong_peer_is_refused_with_its_name<L: Link>() {
    let builder = |link, end, local, peer| {
        let builder = LinkConfig::builder(L::STANDARD, link, end, local, peer).epoch(9);
        builder.fabric(0xfab)
    };
    let (ours, theirs) = (|| name("left", 3), || name("right", 5));
    let end = |link, local, peer| builder(link, LinkEnd::B, local, peer);
    let right = || end(7, theirs(), ours());
    let another_end = builder(7, LinkEnd::A, theirs(), ours());
    let cases = [
        (
            end(7, name("other", 5), ours()),
            "expected right port 5, found other port 5",
        ),
        (
            end(7, name("right", 6), ours()),
            "expected right port 5, found right port 6",
        ),
        (
            end(7, theirs(), name("far", 1)),
            "right port 5 expects far port 1 at this end, but this is left port 3",
        ),
        (
            end(8, theirs(), ours()),
            "expected right port 5, found right port 5 on link 8",
        ),
    ];
    for (end, expected) in cases {
        assert_eq!(refusal::<L>(end), format!("link 7: {expected}"));
    }
    let cases = [
        (right().fabric(0xbad), "right port 5 belongs to another lab"),
        (right().rate(L::OTHER_RATE), "lane rate"),
        (another_end, "claims end A"),
    ];
    for (end, expected) in cases {
        let message = refusal::<L>(end);
        assert!(message.contains(expected), "{message}");
    }
}

pub fn the_right_peer_is_taken_after_a_wrong_one<L: Link>() {
    let (other, left) = (name("other", 5), name("left", 3));
    let wrong = LinkConfig::builder(L::STANDARD, 7, LinkEnd::B, other, left);
    let wrong = L::built(wrong.fabric(0xfab));
    let mut pair = Pair::<L>::with(4, live::<L>(A), wrong, FRAME_BYTES);
    pair.run_for(SECOND);
    pair.ends[B] = End::new(live::<L>(B), pair.now, FRAME_BYTES);
    pair.wait_up();
}

pub fn a_restarted_peer_is_noticed_and_traffic_goes_on<L: Link>() {
    for seed in 0..40 {
        let mut pair = Pair::<L>::up(seed);
        pair.wire(|wire| wire.jitter = Duration::from_us(50));
        pair.load(A, 4_000);
        pair.load(B, 4_000);
        let span = pair.rng.below(60_000);
        pair.run_for(Duration::from_ns(30_000 + span));
        pair.ends[A].backlog.clear();
        pair.replace(B, 77);
        let start = pair.now;
        pair.run_until(SECOND, |pair| {
            let knows = |end: &End<L>| end.lcb.is_active() && end.lcb.epochs().1 != 0;
            pair.ends.iter().all(knows) && pair.ends[A].lcb.epochs().1 == 77
        });
        assert!(pair.now.since(start) < Duration::from_ms(20));
        let restarts = pair.ends[A].events.iter().find_map(|event| match event {
            LinkEvent::PeerRestarted { discarded_packets } => Some(*discarded_packets),
            _ => None,
        });
        let discarded = restarts.expect("reported");
        assert_eq!(pair.count(A, |c| c.tx_discarded_packets), discarded);
        assert_eq!(pair.ends[A].lcb.unacknowledged_packets(), 0);
        pair.exchange(500, SECOND.times(5));
    }
}

pub fn a_peer_restarted_behind_a_cut_is_noticed_when_the_cut_ends<L: Link>() {
    let mut pair = Pair::<L>::up(6);
    pair.exchange(100, SECOND);
    pair.wire(|wire| wire.cut = true);
    pair.replace(B, 5);
    pair.run_for(SECOND.times(3));
    // Silence alone does not end the session.
    assert!(pair.ends[A].lcb.is_active());
    pair.wire(|wire| wire.cut = false);
    pair.run_until(SECOND, |pair| {
        pair.ends[A].lcb.epochs().1 == 5 && pair.ends[B].lcb.is_active()
    });
    pair.exchange(100, SECOND);
}

pub fn both_ends_restart_at_once<L: Link>() {
    let mut pair = Pair::<L>::up(7);
    pair.load(A, 1_000);
    pair.load(B, 1_000);
    pair.run_for(Duration::from_us(20));
    for end in [A, B] {
        pair.ends[end].backlog.clear();
        pair.replace(end, 50 + end as u32);
    }
    pair.wait_up();
    pair.exchange(100, SECOND);
}

pub fn old_frames_of_a_dead_incarnation_change_nothing<L: Link>() {
    let mut pair = Pair::<L>::up(8);
    // Record frames of end B's first incarnation, including training frames.
    pair.load(B, 10);
    let mut old = Vec::new();
    let mut buf = vec![0; FRAME_BYTES];
    let now = pair.now;
    L::common(&mut pair.ends[B].lcb).handshake.answer(true);
    while let Some(length) = pair.ends[B].lcb.poll_frame(now, &mut buf) {
        old.push(buf[..length].to_vec());
    }
    pair.run_for(Duration::from_ms(100));
    pair.replace(B, 99);
    pair.run_until(SECOND, |pair| {
        pair.ends[A].lcb.epochs().1 == 99 && pair.ends[A].lcb.is_active()
    });
    let ups = |pair: &Pair<L>| {
        let events = pair.ends[A].events.iter();
        events.filter(|e| matches!(e, LinkEvent::Up { .. })).count()
    };
    let before = ups(&pair);
    for _ in 0..5 {
        for frame in &old {
            pair.launch(A, frame.clone());
        }
        pair.exchange(10, SECOND);
    }
    assert_eq!(ups(&pair), before);
    assert!(pair.count(A, |c| c.drop_wrong_epoch) > 0);
}

pub fn a_link_taken_down_by_command_is_down_at_both_ends_until_it_is_taken_up<L: Link>() {
    let mut pair = Pair::<L>::up(10);
    pair.load(A, 1_000);
    pair.load(B, 1_000);
    pair.run_for(Duration::from_us(15));
    pair.link_down(A);
    assert!(!L::can_begin(&pair.ends[A].lcb, 0, 1));
    pair.run_for(Duration::from_ms(5));
    assert_eq!(pair.ends[A].lcb.state(), LinkState::Disabled);
    assert_eq!(pair.ends[B].lcb.state(), LinkState::Training);
    assert_eq!(pair.downs(A), [DownReason::Command]);
    assert_eq!(pair.downs(B), [DownReason::PeerDown]);
    pair.run_for(SECOND.times(3));
    assert!(!pair.ends[B].lcb.is_active());
    pair.allow_gaps();
    pair.link_up(A);
    pair.wait_up();
    pair.exchange(100, SECOND);
}

pub fn the_news_of_a_command_may_be_lost<L: Link>() {
    let mut pair = Pair::<L>::up(11);
    pair.wires[B].cut = true;
    pair.link_down(A);
    pair.run_for(Duration::from_ms(5));
    assert!(pair.ends[B].lcb.is_active());
    pair.wires[B].cut = false;
    pair.load(B, 1);
    pair.run_for(SECOND);
    assert_eq!(pair.ends[B].lcb.state(), LinkState::Training);
}

pub fn only_ends_with_give_up_end_the_session<L: Link>() {
    let profile = LinkProfile {
        give_up: Some(SECOND),
        ..LinkProfile::live()
    };
    let a = L::built(config::<L>(A).profile(profile));
    let mut pair = Pair::<L>::with(12, a, live::<L>(B), FRAME_BYTES);
    pair.wait_up();
    pair.run_for(SECOND.times(5));
    // The link stays up: nothing was sent, so the peer owes nothing.
    assert!(pair.ends[A].lcb.is_active());
    pair.wire(|wire| wire.cut = true);
    pair.load(A, 10);
    pair.load(B, 10);
    pair.run_for(Duration::from_ms(900));
    assert!(pair.ends[A].lcb.is_active());
    pair.run_for(Duration::from_ms(200));
    assert!(!pair.ends[A].lcb.is_active());
    assert!(pair.ends[B].lcb.is_active());
    pair.wire(|wire| wire.cut = false);
    pair.allow_gaps();
    pair.run_until(SECOND, |pair| {
        let rests = |end: &End<L>| end.lcb.is_active() && end.lcb.unacknowledged_packets() == 0;
        pair.ends.iter().all(rests)
    });
    pair.exchange(10, SECOND);
}
