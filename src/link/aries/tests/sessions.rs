//! Channel initialisation, restarts, wrong peers, commands.

use phitwire_framing::flit48::VCS;
use phitwire_framing::frame::LinkEnd;
use phitwire_framing::lanes::Permutation;

use super::harness::{A, B, Drain, End, Pair, aries, config, live, name, with};
use crate::link::aries::{AriesLinkConfig, SetProfile};
use crate::link::{
    DownReason, LaneRate, LinkConfig, LinkConfigBuilder, LinkEvent, LinkProfile, LinkState,
};
use crate::time::Duration;

const SECOND: Duration = Duration::from_ms(1_000);

fn is_up(event: &LinkEvent) -> bool {
    matches!(event, LinkEvent::Up { .. })
}

#[test]
fn initialisation_takes_few_round_trips_and_says_who_is_there() {
    let mut pair = Pair::new(1);
    let start = pair.now;
    pair.wait_up();
    assert!(
        pair.now.since(start) < Duration::from_ms(1),
        "{}",
        pair.state()
    );
    pair.run_for(SECOND);
    assert_eq!(
        pair.ends[A].events,
        [LinkEvent::Up {
            peer: name("right", 5),
            tx_lanes: 7,
            rx_lanes: 7
        }]
    );
    assert!(
        pair.frames[A] < 10,
        "an idle link is silent: {} frames",
        pair.frames[A]
    );
}

#[test]
fn initialisation_survives_a_bad_wire() {
    for seed in 0..30 {
        let mut pair = Pair::new(seed);
        pair.wire(|wire| {
            wire.loss = 400;
            wire.duplicate = 300;
            wire.reorder = 300;
            wire.mangle = 100;
            wire.delay = Duration::from_ms(5);
            wire.jitter = Duration::from_ms(20);
        });
        pair.run_until(SECOND.times(10), |pair| {
            pair.ends.iter().all(|e| e.lcb.is_active())
        });
        pair.load(A, 200);
        pair.load(B, 200);
        pair.finish(SECOND.times(60));
    }
}

#[test]
fn lane_order_and_polarity_are_found_for_every_cable() {
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        for bits in 0..8_u8 {
            let invert = [0, 1, 2].map(|lane| bits >> lane & 1 != 0);
            let cable = Permutation::new(order, invert).unwrap();
            let a = aries(config(A).cable(cable), SetProfile::live());
            let mut pair = Pair::with(2, a, live(B), 1_472);
            pair.wait_up();
            assert_eq!(pair.ends[B].lcb.common.handshake.cable, cable);
            assert_eq!(
                pair.ends[A].lcb.common.handshake.cable,
                Permutation::IDENTITY
            );
            pair.load(A, 100);
            pair.load(B, 100);
            pair.finish(SECOND);
            assert_eq!(pair.sets(B, |c| c.rx_bad_crcs), 0);
        }
    }
}

/// What end A reports when end B is configured by `change`.
fn refusal(change: impl Fn() -> LinkConfigBuilder) -> String {
    let b = aries(change(), SetProfile::live());
    let mut pair = Pair::with(3, live(A), b, 1_472);
    pair.run_for(SECOND);
    assert!(pair.ends.iter().all(|end| !end.lcb.is_active()));
    assert_eq!(pair.ends[A].lcb.state(), LinkState::Refused);
    let messages: Vec<_> = pair.ends[A].events.iter().collect();
    match messages[..] {
        [LinkEvent::Refused { message }] => message.clone(),
        _ => panic!("one complaint, not {messages:?}"),
    }
}

#[test]
fn a_wrong_peer_is_refused_with_its_name() {
    let builder = |link, local, peer| {
        LinkConfig::builder(link, LinkEnd::B, local, peer)
            .epoch(9)
            .rate(LaneRate::G14_0)
    };
    let ours = || name("left", 3);
    let theirs = || name("right", 5);
    let message = refusal(|| builder(7, name("other", 5), ours()).fabric(0xfab));
    assert_eq!(message, "link 7: expected right port 5, found other port 5");
    let message = refusal(|| builder(7, name("right", 6), ours()).fabric(0xfab));
    assert_eq!(message, "link 7: expected right port 5, found right port 6");
    let message = refusal(|| builder(7, theirs(), name("far", 1)).fabric(0xfab));
    assert_eq!(
        message,
        "link 7: right port 5 expects far port 1 at this end, which is left port 3"
    );
    let message = refusal(|| builder(8, theirs(), ours()).fabric(0xfab));
    assert_eq!(
        message,
        "link 7: expected right port 5, found right port 5 of link 8"
    );
    let message = refusal(|| builder(7, theirs(), ours()).fabric(0xbad));
    assert!(
        message.contains("right port 5 belongs to another lab"),
        "{message}"
    );
    let message = refusal(|| {
        builder(7, theirs(), ours())
            .fabric(0xfab)
            .rate(LaneRate::G12_5)
    });
    assert!(message.contains("lane rate"), "{message}");
    let message = refusal(|| {
        LinkConfig::builder(7, LinkEnd::A, theirs(), ours())
            .rate(LaneRate::G14_0)
            .fabric(0xfab)
    });
    assert!(message.contains("calls itself end A"), "{message}");
}

#[test]
fn the_right_peer_is_taken_after_a_wrong_one() {
    let wrong = LinkConfig::builder(7, LinkEnd::B, name("other", 5), name("left", 3))
        .fabric(0xfab)
        .rate(LaneRate::G14_0);
    let wrong = aries(wrong, SetProfile::live());
    let mut pair = Pair::with(4, live(A), wrong, 1_472);
    pair.run_for(SECOND);
    pair.ends[B] = End::new(live(B), pair.now, 1_472);
    pair.wait_up();
}

#[test]
fn both_ends_agree_on_the_smaller_window_and_each_on_the_other_s_buffer() {
    let small = SetProfile {
        window_sets: 8,
        private_flits: 20,
        common_flits: 40,
        held_sets: 8,
        ..SetProfile::live()
    };
    let a = aries(config(A), small);
    let mut pair = Pair::with(5, a, live(B), 1_472);
    pair.wait_up();
    assert_eq!(pair.ends[B].lcb.credits(), [60; VCS]);
    assert_eq!(pair.ends[A].lcb.credits(), [12_800; VCS]);
    pair.wire(|wire| wire.cut = true);
    pair.load(A, 100);
    pair.run_for(SECOND);
    assert_eq!(pair.ends[A].lcb.unacknowledged_sets(), 8);
    pair.wire(|wire| wire.cut = false);
    pair.load(B, 500);
    pair.finish(SECOND.times(5));
}

#[test]
fn a_yarc_and_an_aries_end_refuse_each_other() {
    use crate::link::{InputQueue, Lcb};
    let mut now = crate::time::Time::from_ns(5);
    let yarc = config(B).rate(LaneRate::G6_25).build().unwrap();
    let mut input = InputQueue::new(&yarc);
    let (mut yarc, mut end) = (Lcb::new(yarc, now), End::new(live(A), now, 1_472));
    let mut buf = vec![0; 1_472];
    for _ in 0..20 {
        while let Some(length) = yarc.poll_frame(now, &mut buf) {
            end.lcb.handle_frame(now, &buf[..length], &mut end.input);
        }
        while let Some(length) = end.lcb.poll_frame(now, &mut buf) {
            yarc.handle_frame(now, &buf[..length], &mut input);
        }
        now += Duration::from_ms(20);
    }
    assert_eq!(yarc.state(), LinkState::Refused);
    assert_eq!(end.lcb.state(), LinkState::Refused);
}

fn restart(pair: &mut Pair, end: usize, epoch: u32) {
    let config = aries(config(end).epoch(epoch), SetProfile::live());
    pair.ends[end] = End::new(config, pair.now, 1_472).incarnation(1);
    pair.ends[1 - end].gaps_allowed = true;
}

#[test]
fn a_restarted_peer_is_noticed_and_traffic_goes_on() {
    for seed in 0..40 {
        let mut pair = Pair::up(seed);
        pair.wire(|wire| wire.jitter = Duration::from_us(50));
        pair.load(A, 4_000);
        pair.load(B, 4_000);
        let span = pair.rng.below(60_000);
        pair.run_for(Duration::from_ns(30_000 + span));
        pair.ends[A].backlog.clear();
        restart(&mut pair, B, 77);
        let start = pair.now;
        pair.run_until(SECOND, |pair| {
            pair.ends
                .iter()
                .all(|end| end.lcb.is_active() && end.lcb.epochs().1 != 0)
                && pair.ends[A].lcb.epochs().1 == 77
        });
        assert!(pair.now.since(start) < Duration::from_ms(20));
        let restarts = pair.ends[A].events.iter().find_map(|event| match event {
            LinkEvent::PeerRestarted { discarded_packets } => Some(*discarded_packets),
            _ => None,
        });
        let discarded = restarts.expect("reported");
        assert_eq!(pair.count(A, |c| c.tx_discarded_packets), discarded);
        assert_eq!(pair.ends[A].lcb.unacknowledged_packets(), 0);
        pair.load(A, 500);
        pair.load(B, 500);
        pair.finish(SECOND.times(5));
    }
}

#[test]
fn a_peer_restarted_behind_a_cut_is_noticed_when_the_cut_ends() {
    let mut pair = Pair::up(6);
    pair.load(A, 100);
    pair.load(B, 100);
    pair.finish(SECOND);
    pair.wire(|wire| wire.cut = true);
    restart(&mut pair, B, 5);
    pair.run_for(SECOND.times(3));
    assert!(
        pair.ends[A].lcb.is_active(),
        "a silent peer is not a dead one"
    );
    pair.wire(|wire| wire.cut = false);
    pair.run_until(SECOND, |pair| {
        pair.ends[A].lcb.epochs().1 == 5 && pair.ends[B].lcb.is_active()
    });
    pair.load(A, 100);
    pair.load(B, 100);
    pair.finish(SECOND);
}

#[test]
fn both_ends_restart_at_once() {
    let mut pair = Pair::up(7);
    pair.load(A, 1_000);
    pair.load(B, 1_000);
    pair.run_for(Duration::from_us(20));
    for end in [A, B] {
        pair.ends[end].backlog.clear();
        restart(&mut pair, end, 50 + end as u32);
    }
    pair.wait_up();
    pair.load(A, 100);
    pair.load(B, 100);
    pair.finish(SECOND);
}

#[test]
fn old_frames_of_a_dead_incarnation_change_nothing() {
    let mut pair = Pair::up(8);
    // Frames of end B's first incarnation, training ones among them, kept for later.
    pair.load(B, 10);
    let mut old = Vec::new();
    let mut buf = vec![0; 1_472];
    let now = pair.now;
    pair.ends[B].lcb.common.handshake.answer(true);
    while let Some(length) = pair.ends[B].lcb.poll_frame(now, &mut buf) {
        old.push(buf[..length].to_vec());
    }
    pair.run_for(Duration::from_ms(100));
    restart(&mut pair, B, 99);
    pair.run_until(SECOND, |pair| {
        pair.ends[A].lcb.epochs().1 == 99 && pair.ends[A].lcb.is_active()
    });
    let ups = pair.ends[A]
        .events
        .iter()
        .filter(|event| is_up(event))
        .count();
    for _ in 0..5 {
        for frame in &old {
            pair.launch(A, frame.clone());
        }
        pair.load(A, 10);
        pair.load(B, 10);
        pair.finish(SECOND);
    }
    assert_eq!(
        pair.ends[A]
            .events
            .iter()
            .filter(|event| is_up(event))
            .count(),
        ups
    );
    assert!(pair.count(A, |c| c.drop_wrong_epoch) > 0);
}

#[test]
fn flits_of_an_old_session_in_the_input_buffer_count_against_the_new_credits() {
    let mut pair = Pair::up(9);
    pair.ends[A].drain = Drain::Blocked;
    pair.load(B, 3_000);
    pair.run_for(Duration::from_ms(2));
    let queued: [u32; VCS] = core::array::from_fn(|vc| pair.ends[A].input.len(vc));
    assert!(queued.iter().all(|flits| *flits > 512));
    pair.load(A, 2);
    restart(&mut pair, B, 5);
    pair.run_until(SECOND, |pair| {
        pair.ends[A].lcb.epochs().1 == 5 && pair.ends[B].lcb.is_active()
    });
    pair.run_for(Duration::from_ms(2));
    let common: u32 = queued.iter().map(|flits| flits - 512).sum();
    assert_eq!(pair.ends[B].lcb.credits(), [12_288 - common; VCS]);
    pair.ends[A].drain = Drain::Eager;
    pair.run_until(SECOND, |pair| pair.credits_are_back());
}

#[test]
fn a_packet_cut_in_two_by_a_restart_is_completed_and_refused_by_its_contents() {
    for drain in [Drain::Eager, Drain::Blocked] {
        let mut pair = Pair::up(14);
        pair.ends[A].drain = drain;
        pair.ends[B].send(3, 14);
        pair.ends[B].push_flits = 10;
        pair.ends[B].push();
        pair.ends[B].push_flits = 0;
        pair.run_for(Duration::from_us(100));
        let there = if drain == Drain::Eager { 0 } else { 9 };
        assert_eq!(pair.ends[A].input.len(3), there);
        restart(&mut pair, B, 77);
        pair.run_until(SECOND, |pair| pair.ends[A].lcb.epochs().1 == 77);
        pair.ends[A].drain = Drain::Eager;
        pair.wait_up();
        pair.load(B, 20);
        pair.finish(SECOND);
        assert_eq!(pair.sets(A, |c| c.rx_cut_packets), 1);
        assert_eq!(pair.ends[A].cut, 1);
        let poisoned = u64::from(drain == Drain::Blocked);
        assert_eq!(pair.ends[A].poisoned, poisoned, "its head was still there");
    }
}

#[test]
fn a_link_taken_down_by_command_is_down_at_both_ends_until_it_is_taken_up() {
    let mut pair = Pair::up(10);
    pair.load(A, 1_000);
    pair.load(B, 1_000);
    pair.run_for(Duration::from_us(15));
    let now = pair.now;
    let end = &mut pair.ends[A];
    end.lcb.link_down(now, &mut end.input);
    assert!(!end.lcb.can_begin(0, 1));
    pair.run_for(Duration::from_ms(5));
    assert_eq!(pair.ends[A].lcb.state(), LinkState::Disabled);
    assert_eq!(pair.ends[B].lcb.state(), LinkState::Training);
    let why = |end: &End| {
        end.events.iter().find_map(|event| match event {
            LinkEvent::Down { why, .. } => Some(*why),
            _ => None,
        })
    };
    assert_eq!(why(&pair.ends[A]), Some(DownReason::Command));
    assert_eq!(why(&pair.ends[B]), Some(DownReason::PeerDown));
    pair.run_for(SECOND.times(3));
    assert!(!pair.ends[B].lcb.is_active());
    let now = pair.now;
    pair.ends.iter_mut().for_each(|end| end.gaps_allowed = true);
    pair.ends[A].lcb.link_up(now);
    pair.wait_up();
    pair.load(A, 100);
    pair.load(B, 100);
    pair.finish(SECOND);
}

#[test]
fn the_news_of_a_command_may_be_lost() {
    let mut pair = Pair::up(11);
    pair.wires[B].cut = true;
    let now = pair.now;
    let end = &mut pair.ends[A];
    end.lcb.link_down(now, &mut end.input);
    pair.run_for(Duration::from_ms(5));
    assert!(pair.ends[B].lcb.is_active());
    pair.wires[B].cut = false;
    pair.load(B, 1);
    pair.run_for(SECOND);
    assert_eq!(pair.ends[B].lcb.state(), LinkState::Training);
}

#[test]
fn giving_up_is_for_those_who_ask_for_it() {
    let profile = LinkProfile {
        give_up: Some(SECOND),
        ..LinkProfile::live()
    };
    let a = aries(config(A).profile(profile), SetProfile::live());
    let mut pair = Pair::with(12, a, live(B), 1_472);
    pair.wait_up();
    pair.run_for(SECOND.times(5));
    assert!(
        pair.ends[A].lcb.is_active(),
        "nothing was sent, so nothing is owed"
    );
    pair.wire(|wire| wire.cut = true);
    pair.load(A, 10);
    pair.load(B, 10);
    pair.run_for(Duration::from_ms(900));
    assert!(pair.ends[A].lcb.is_active());
    pair.run_for(Duration::from_ms(200));
    assert!(!pair.ends[A].lcb.is_active());
    assert!(pair.ends[B].lcb.is_active());
    pair.wire(|wire| wire.cut = false);
    pair.ends.iter_mut().for_each(|end| end.gaps_allowed = true);
    pair.run_until(SECOND, |pair| {
        pair.ends
            .iter()
            .all(|end| end.lcb.is_active() && end.lcb.unacknowledged_packets() == 0)
    });
    pair.load(A, 10);
    pair.load(B, 10);
    pair.finish(SECOND);
}

#[test]
fn another_cable_is_learnt_when_the_lanes_are_initialised_again() {
    let mut pair = Pair::up(13);
    pair.load(A, 500);
    pair.finish(SECOND);
    // Somebody swaps two lanes while data flows: every CRC is bad until the lanes are looked at.
    let cable = Permutation::new([1, 0, 2], [false, true, false]).unwrap();
    pair.ends[A].lcb.common.config.cable = cable;
    pair.load(A, 500);
    pair.finish(SECOND.times(20));
    assert!(pair.sets(B, |c| c.rx_reinits) > 0);
    assert!(pair.ends[B].events.contains(&LinkEvent::Reinitialised));
    assert_eq!(pair.ends[B].lcb.common.handshake.cable, cable);
}

#[test]
fn configurations_that_cannot_work_are_not_built() {
    let sets = |change: fn(&mut SetProfile)| {
        let mut sets = SetProfile::live();
        change(&mut sets);
        AriesLinkConfig::new(config(A).build().unwrap(), sets).map_err(|error| error.to_string())
    };
    assert!(sets(|_| {}).is_ok());
    assert!(
        sets(|s| s.window_sets = 3)
            .unwrap_err()
            .contains("window_sets")
    );
    assert!(
        sets(|s| s.private_flits = 13)
            .unwrap_err()
            .contains("private_flits")
    );
    assert!(
        sets(|s| s.common_flits = u32::MAX)
            .unwrap_err()
            .contains("common_flits")
    );
    assert!(
        sets(|s| s.held_sets = 100)
            .unwrap_err()
            .contains("held_sets")
    );
    assert!(
        sets(|s| s.full_numbers = false)
            .unwrap_err()
            .contains("window_sets")
    );
    assert!(
        sets(|s| s.burst_sets = 0)
            .unwrap_err()
            .contains("burst_sets")
    );
    let yarc = config(A).rate(LaneRate::G6_25).build().unwrap();
    let error = AriesLinkConfig::new(yarc, SetProfile::live()).unwrap_err();
    assert!(error.to_string().contains("rate"), "{error}");
    let registers = |change: fn(&mut crate::link::LcbRegisters)| {
        let mut registers = *live(A).registers();
        change(&mut registers);
        live(A).with_registers(registers).is_ok()
    };
    assert!(registers(|r| r.reinit_after_bad_sets = 1));
    assert!(!registers(|r| r.reinit_after_bad_sets = 0));
    assert!(!registers(|r| r.reinit_after_bad_sets = 8));
    assert!(!registers(|r| r.max_degrades = 3));
    assert_eq!(
        with(live(A), |r| r.max_degrades = 0)
            .registers()
            .max_degrades,
        0
    );
}
