//! Session negotiation between two Aries ends, leftovers of old sessions, and rejected peers.

use phitwire_framing::aries::flit::VCS;
use phitwire_framing::carrier::lanes::Permutation;

use crate::link::testing::{AriesPair as _, Pair, aries, config, live, with};
use crate::link::{AriesLinkConfig, SetProfile};
use phitwire::link::testing::end::Drain;
use phitwire::link::testing::rig::{A, B, SECOND};
use phitwire::link::{LaneRate, LinkEvent, LinkView, NodeLink};
use phitwire::time::Duration;

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
    assert_eq!(pair.ends[B].lcb.wire().credits(), [60; VCS]);
    assert_eq!(pair.ends[A].lcb.wire().credits(), [12_800; VCS]);
    pair.wire(|wire| wire.cut = true);
    pair.load(A, 100);
    pair.run_for(SECOND);
    assert_eq!(pair.ends[A].lcb.wire().unacknowledged_sets(), 8);
    pair.wire(|wire| wire.cut = false);
    pair.load(B, 500);
    pair.finish(SECOND.times(5));
}

#[test]
fn flits_of_an_old_session_in_the_input_buffer_count_against_the_new_credits() {
    let mut pair = Pair::up(9);
    pair.ends[A].drain = Drain::Blocked;
    pair.load(B, 3_000);
    pair.run_for(Duration::from_ms(2));
    let queued: [u32; VCS] = core::array::from_fn(|vc| pair.ends[A].lcb.input().len(vc));
    assert!(queued.iter().all(|flits| *flits > 512));
    pair.load(A, 2);
    pair.replace(B, 5);
    pair.run_until(SECOND, |pair| {
        pair.ends[A].lcb.epochs().1 == 5 && pair.ends[B].lcb.is_active()
    });
    pair.run_for(Duration::from_ms(2));
    let common: u32 = queued.iter().map(|flits| flits - 512).sum();
    assert_eq!(pair.ends[B].lcb.wire().credits(), [12_288 - common; VCS]);
    pair.ends[A].drain = Drain::Eager;
    pair.run_until(SECOND, |pair| pair.credits_are_back());
}

#[test]
fn a_packet_cut_in_two_by_a_restart_is_completed_and_refused_by_its_contents() {
    for drain in [Drain::Eager, Drain::Blocked] {
        let mut pair = Pair::up(14);
        pair.ends[A].drain = drain;
        pair.ends[B].send(3, 14);
        pair.ends[B].push_words = 10;
        pair.ends[B].push();
        pair.ends[B].push_words = 0;
        pair.run_for(Duration::from_us(100));
        let there = if drain == Drain::Eager { 0 } else { 9 };
        assert_eq!(pair.ends[A].lcb.input().len(3), there);
        pair.replace(B, 77);
        pair.run_until(SECOND, |pair| pair.ends[A].lcb.epochs().1 == 77);
        pair.ends[A].drain = Drain::Eager;
        pair.wait_up();
        pair.load(B, 20);
        pair.finish(SECOND);
        assert_eq!(pair.sets(A, |c| c.rx_cut_packets), 1);
        assert_eq!(pair.ends[A].cut, 1);
        let poisoned = u64::from(drain == Drain::Blocked);
        assert_eq!(pair.ends[A].poisoned, poisoned, "the head was still queued");
    }
}

#[test]
fn another_cable_is_learnt_when_the_lanes_are_initialised_again() {
    let mut pair = Pair::up(13);
    pair.load(A, 500);
    pair.finish(SECOND);
    // Two lanes are swapped while data flows: every CRC is bad until the lanes are retested.
    let cable = Permutation::new([1, 0, 2], [false, true, false]).unwrap();
    pair.ends[A].lcb.parts_mut().1.config.cable = cable;
    pair.load(A, 500);
    pair.finish(SECOND.times(20));
    assert!(pair.sets(B, |c| c.rx_reinits) > 0);
    assert!(pair.ends[B].events.contains(&LinkEvent::Reinitialised));
    assert_eq!(pair.ends[B].lcb.common().handshake.cable, cable);
}

#[test]
fn configurations_that_cannot_work_are_not_built() {
    let sets = |change: fn(&mut SetProfile)| {
        let mut sets = SetProfile::live();
        change(&mut sets);
        AriesLinkConfig::new(config(A).build().unwrap(), sets).map_err(|error| error.to_string())
    };
    assert!(sets(|_| {}).is_ok());
    type Change = fn(&mut SetProfile);
    let bad: [(Change, &str); 6] = [
        (|s| s.window_sets = 3, "window_sets"),
        (|s| s.private_flits = 13, "private_flits"),
        (|s| s.common_flits = u32::MAX, "common_flits"),
        (|s| s.held_sets = 100, "held_sets"),
        (|s| s.full_numbers = false, "window_sets"),
        (|s| s.burst_sets = 0, "burst_sets"),
    ];
    for (change, word) in bad {
        let error = sets(change).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
    let stranger = LaneRate::new(0, 6_250_000_000);
    let other = config(A).rate(stranger).build().unwrap();
    let error = AriesLinkConfig::new(other, SetProfile::live()).unwrap_err();
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
    let none = with(live(A), |r| r.max_degrades = 0);
    assert_eq!(none.registers().max_degrades, 0);
}
