//! One fault at a time.

use phitwire_framing::yarc::packet::Vc;
use phitwire_framing::yarc::phit::{Phit, PhitKind};

use crate::link::testing::{Pair, REQUEST, RESPONSE, TINY, Yarc, config, live, packet, with};
use crate::link::{PhitLinkConfig, PhitProfile};
use phitwire::link::testing::end::Drain;
use phitwire::link::testing::pair::Wire;
use phitwire::link::testing::rig::{A, B, Link as _, SECOND};
use phitwire::link::{LinkEvent, LinkView, NodeLink};
use phitwire::time::Duration;

#[test]
fn packets_arrive_both_ways_and_credits_come_back() {
    let mut pair = Pair::up(1);
    pair.load(A, 3_000);
    pair.load(B, 2_000);
    pair.finish(SECOND);
    for end in [A, B] {
        let again = pair.count(end, |c| c.tx_retransmitted_packets);
        assert_eq!(again, 0, "{}", pair.state());
        assert_eq!(pair.count(end, |c| c.dropped_frames()), 0);
        assert_eq!(pair.ends[end].poisoned, 0);
    }
}

#[test]
fn one_way_flow_costs_few_idle_frames_back() {
    let mut pair = Pair::up(2);
    pair.frames = [0; 2];
    for _ in 0..20_000 {
        pair.ends[A].send(REQUEST, 10);
    }
    pair.finish(SECOND);
    let frames = pair.frames[B];
    assert!(frames * 100 < 20_000, "{frames} frames for 20,000 packets");
    assert_eq!(pair.count(B, |c| c.tx_data_frames), 0);
}

#[test]
fn frames_of_48_phits_cut_packets_anywhere() {
    for seed in 0..8 {
        let mut pair = Pair::with(seed, live(A), live(B), TINY);
        pair.wait_up();
        pair.wire(|wire| wire.loss = 100);
        pair.load(A, 1_000);
        pair.load(B, 1_000);
        pair.ends[A].push_words = 7;
        pair.ends[B].drain = Drain::Slow(5);
        pair.finish(Duration::from_ms(20_000));
        let gaps = pair.count(B, |c| c.rx_gaps_in_packet);
        assert!(gaps > 0, "{}", pair.state());
    }
}

#[test]
fn loss_from_a_thousandth_to_nearly_a_third() {
    for (loss, seconds) in [(1, 2), (10, 2), (100, 5), (300, 20)] {
        let mut pair = Pair::up(loss);
        pair.wire(|wire| wire.loss = loss);
        pair.load(A, 20_000);
        pair.load(B, 5_000);
        pair.finish(SECOND.times(seconds));
        assert!(pair.count(A, |c| c.tx_rewinds_requested) > 0);
    }
}

#[test]
fn sequence_numbers_and_counts_go_round() {
    let mut pair = Pair::up(20);
    pair.wire(|wire| {
        wire.loss = 20;
        wire.jitter = Duration::from_us(20);
    });
    for _ in 0..7 {
        for _ in 0..30_000 {
            pair.ends[A].send(REQUEST, 5);
        }
        pair.finish(SECOND.times(20));
    }
    assert!(pair.count(B, |c| c.rx_packets) > 3 * 65_536);
    assert!(pair.count(B, |c| c.rx_phits) > 1 << 20);
}

#[test]
fn a_lost_tail_is_found_without_waiting_for_the_time_out() {
    let mut pair = Pair::up(3);
    pair.load(A, 100);
    pair.finish(SECOND);
    let start = pair.now;
    pair.wires[B].cut = true;
    pair.ends[A].send(REQUEST, 10);
    pair.settle();
    pair.wires[B].cut = false;
    pair.finish(SECOND);
    assert_eq!(pair.count(A, |c| c.tx_rewinds_timeout), 0);
    assert_eq!(pair.count(A, |c| c.tx_rewinds_requested), 1);
    let took = pair.now.since(start);
    assert!(took < Duration::from_ms(3), "{}", pair.state());
}

#[test]
fn a_link_cut_for_ten_seconds_goes_on_with_nothing_lost() {
    let mut pair = Pair::up(4);
    pair.load(A, 5_000);
    pair.load(B, 5_000);
    pair.run_for(Duration::from_us(25));
    pair.wire(|wire| wire.cut = true);
    let frames = pair.frames;
    pair.run_for(SECOND.times(10));
    let tries = pair.frames[A] - frames[A];
    assert!(
        tries > 30 && tries < 2_000,
        "{tries} retries in ten seconds"
    );
    pair.wire(|wire| wire.cut = false);
    let restored = pair.now;
    pair.finish(SECOND.times(2));
    // The back-off is bounded, so the link recovers soon.
    assert!(pair.now.since(restored) < Duration::from_ms(400));
    for end in &pair.ends {
        let [up, silent, heard] = &end.events[..] else {
            panic!("the session survived: {:?}", end.events);
        };
        assert!(matches!(up, LinkEvent::Up { .. }), "{up:?}");
        assert_eq!(*silent, LinkEvent::Silent);
        assert!(matches!(heard, LinkEvent::Heard { after } if *after >= SECOND.times(10)));
    }
}

#[test]
fn corrupt_bits_are_crc_errors_and_poisoned_packets_only() {
    let mut pair = Pair::up(5);
    pair.wire(|wire| wire.corrupt = 10);
    pair.ends[A].push_words = 30;
    pair.load(A, 20_000);
    pair.finish(SECOND.times(10));
    assert!(pair.count(B, |c| c.rx_crc_errors) > 20, "{}", pair.state());
    let poisoned = pair.ends[B].poisoned;
    assert!(poisoned > 0, "some packets had begun to flow");
    let others = pair.count(B, |c| c.rx_crc_errors) - poisoned;
    assert!(others > 0, "other packets had not");
}

#[test]
fn lost_acknowledgements_are_asked_for() {
    let mut pair = Pair::up(6);
    pair.wires[A].cut = true;
    for _ in 0..10 {
        pair.ends[A].send(REQUEST, 10);
    }
    pair.run_for(Duration::from_us(500));
    assert_eq!(pair.ends[B].got_id[0], 10);
    pair.wires[A].cut = false;
    pair.finish(SECOND);
    assert!(pair.count(A, |c| c.tx_probes) > 0);
    assert_eq!(pair.count(B, |c| c.rx_packets), 10);
}

/// A pair with room for 64 phits per channel; B drains nothing.
fn shallow(seed: u64) -> Pair {
    let phits = PhitProfile {
        input_phits_per_vc: 64,
        ..PhitProfile::live()
    };
    let end = |end| with(config(end), phits.clone());
    let mut pair = Pair::with(seed, end(A), end(B), 1_472);
    pair.wait_up();
    pair.ends[B].drain = Drain::Blocked;
    pair
}

#[test]
fn a_sender_without_credits_recovers_from_lost_vc_acks() {
    let mut pair = shallow(7);
    for _ in 0..50 {
        pair.ends[A].send(REQUEST, 16);
    }
    pair.run_for(Duration::from_ms(1));
    // Everything is acknowledged, but the peer's credits do not suffice for a packet of 19.
    assert_eq!(pair.ends[A].lcb.unacknowledged_packets(), 0);
    assert_eq!(pair.ends[A].lcb.wire().credits(Vc::Request), 16);
    pair.wires[A].cut = true;
    pair.ends[B].drain = Drain::Eager;
    pair.run_for(Duration::from_ms(5));
    // The queue was drained, but its VC acks were lost.
    assert!(pair.ends[B].lcb.input().is_empty());
    pair.wires[A].cut = false;
    pair.finish(SECOND);
}

#[test]
fn a_channel_without_credits_does_not_block_the_other() {
    let mut pair = shallow(8);
    for _ in 0..50 {
        pair.ends[A].send(REQUEST, 10);
        pair.ends[A].send(RESPONSE, 10);
    }
    pair.run_for(Duration::from_ms(1));
    assert!(!pair.ends[A].lcb.wire().can_begin(Vc::Request));
    assert!(!pair.ends[A].lcb.wire().can_begin(Vc::Response));
    for _ in 0..30 {
        while pair.ends[B].lcb.input().ready(Vc::Response) {
            pair.ends[B].pop(RESPONSE);
        }
        pair.ends[B].give_back();
        pair.run_for(Duration::from_ms(1));
    }
    assert_eq!(pair.ends[B].got_id, [0, 50]);
    pair.ends[B].drain = Drain::Eager;
    pair.finish(SECOND);
}

#[test]
fn retry_timeout_adapts_to_the_round_trip_of_the_link() {
    // Delay, and the bounds of the measured round trip.
    let (slow, far) = ([1_000, 2_000, 3_000], [100_000, 200_000, 210_000]);
    for case in [[5, 5, 220], slow, far] {
        let [delay, least, most] = case.map(Duration::from_us);
        let mut pair = Pair::new(9);
        pair.wire(|wire| wire.delay = delay);
        pair.wait_up();
        for _ in 0..60 {
            pair.load(A, 50);
            pair.finish(SECOND.times(5));
        }
        let before = pair.count(A, |c| c.tx_rewinds_timeout);
        let rtt = pair.ends[A].lcb.round_trip().unwrap();
        assert!(rtt >= least && rtt <= most, "{rtt:?} with {delay:?}");
        for _ in 0..60 {
            pair.load(A, 50);
            pair.finish(SECOND.times(5));
        }
        let after = pair.count(A, |c| c.tx_rewinds_timeout);
        assert_eq!(after, before, "no unnecessary timeout");
        assert!(pair.ends[A].lcb.retry_timeout() < rtt.times(2) + Duration::from_ms(5));
    }
}

/// Time that 20,000 packets of 10 phits take.
fn transfer_time(seed: u64, change: impl Fn(&mut Wire)) -> (Duration, Pair) {
    let mut pair = Pair::new(seed);
    pair.wire(change);
    pair.wait_up();
    // Some traffic first, so that the link adapts.
    pair.load(A, 20_000);
    pair.finish(SECOND.times(30));
    let start = pair.now;
    for _ in 0..20_000 {
        pair.ends[A].send(REQUEST, 10);
    }
    pair.finish(SECOND.times(30));
    (pair.now.since(start), pair)
}

#[test]
fn jitter_and_reordering_do_not_collapse_throughput() {
    let (straight, _) = transfer_time(10, |wire| wire.delay = Duration::from_ms(1));
    // How often a sender rewinds before the link has learned how late frames get is random, so sum
    // over several seeds: fewer than two packets are resent per three packets sent.
    let (mut sent, mut again) = (0, 0);
    for seed in 10..16 {
        let (jittery, pair) = transfer_time(seed, |wire| {
            wire.delay = Duration::from_ms(1);
            wire.jitter = Duration::from_us(500);
            wire.reorder = 250;
        });
        let state = pair.state();
        let is_good = jittery.as_ps() < straight.as_ps() * 3;
        assert!(is_good, "{jittery:?} against {straight:?} {state}");
        sent += pair.count(A, |c| c.tx_packets);
        again += pair.count(A, |c| c.tx_retransmitted_packets);
    }
    assert!(again * 3 < sent * 2, "{again} of {sent} resent");
}

/// Share of a link's first 40,000 packets that is resent before it knows how late frames get, in
/// thousandths.
fn resent_at_the_start(seed: u64, change: impl Fn(&mut Wire)) -> u64 {
    let mut pair = Pair::new(seed);
    pair.wire(change);
    pair.wait_up();
    pair.load(A, 40_000);
    pair.finish(SECOND.times(30));
    pair.count(A, |c| c.tx_retransmitted_packets) / 40
}

/// Runs per kind of wire, over which a mean is taken.
const SEEDS: u64 = 3;

#[test]
fn a_link_that_begins_to_reorder_learns_it_at_once() {
    // Delay, jitter, early frames out of 1,000, and packets out of 1,000 that may be resent.
    let wires = [
        (1_000, 500, 250, 180),
        (1_000, 500, 0, 150),
        (1_000, 0, 100, 100),
        (200, 100, 250, 130),
        (5_000, 2_000, 500, 400),
    ];
    for (delay, jitter, reorder, most) in wires {
        let resent = (0..SEEDS).map(|seed| {
            resent_at_the_start(seed, |wire| {
                wire.delay = Duration::from_us(delay);
                wire.jitter = Duration::from_us(jitter);
                wire.reorder = reorder;
            })
        });
        let resent: Vec<_> = resent.collect();
        let mean = resent.iter().sum::<u64>() / SEEDS;
        println!("{delay} us, {jitter} us, {reorder}: {mean} of {resent:?}");
        assert!(mean <= most, "{delay} us, {jitter} us, {reorder}: {mean}");
    }
}

/// The cost of watching for late frames when none is late.
#[test]
fn losses_are_found_as_fast_as_ever() {
    // Lost and duplicated frames out of 1,000, delay, and allowed mean time of 20,000 packets, in
    // microseconds.
    let wires = [
        (10, 0, 50, 2_000),
        (10, 0, 1_000, 33_000),
        (50, 0, 1_000, 46_000),
        (100, 0, 50, 10_000),
        (10, 50, 50, 2_100),
        (10, 200, 50, 2_100),
    ];
    for (loss, duplicate, delay, most) in wires {
        let times = (0..8).map(|seed| {
            let (time, _) = transfer_time(seed, |wire| {
                wire.loss = loss;
                wire.duplicate = duplicate;
                wire.delay = Duration::from_us(delay);
            });
            time.as_ns() / 1_000
        });
        let mean = times.sum::<u64>() / 8;
        println!("{loss} lost, {duplicate} duplicated, {delay} us: {mean} us");
        assert!(
            mean <= most,
            "{loss} lost, {duplicate} duplicated: {mean} us"
        );
    }
}

#[test]
fn duplicates_are_harmless() {
    let mut pair = Pair::up(11);
    pair.wire(|wire| {
        wire.duplicate = 500;
        wire.jitter = Duration::from_us(30);
    });
    pair.exchange(10_000, SECOND.times(5));
    assert!(pair.count(A, |c| c.rx_duplicate_phits) > 0);
}

#[test]
fn a_soft_error_is_marked_before_sending_and_flows_on() {
    let mut pair = Pair::up(12);
    Yarc::soft_error_next(&mut pair.ends[A].lcb);
    pair.load(A, 20);
    pair.finish(SECOND);
    assert_eq!(pair.ends[B].soft_errors, 1);
    assert_eq!(pair.count(A, |c| c.tx_soft_errors), 1);
    assert_eq!(pair.count(B, |c| c.rx_poisoned_packets), 1);
    let errors = pair.count(B, |c| c.rx_crc_errors);
    assert_eq!(errors, 0, "not counted as a transmission error");
    let mut events = pair.ends[A].events.iter();
    assert!(events.any(|e| matches!(e, LinkEvent::SoftError { .. })));
}

#[test]
fn a_packet_too_long_for_the_peer_is_cut_before_sending() {
    let link = config(B).build().unwrap();
    let short = PhitLinkConfig::new(link, PhitProfile::live(), 10).unwrap();
    let mut pair = Pair::with(13, live(A), short, 1_472);
    pair.wait_up();
    assert_eq!(pair.ends[A].lcb.wire().max_packet_phits(), 10);
    pair.ends[A].send(REQUEST, 10);
    pair.ends[A].send(REQUEST, 19);
    pair.ends[A].send(REQUEST, 4);
    pair.finish(SECOND);
    assert_eq!(pair.ends[B].soft_errors, 1);
    assert_eq!(pair.count(A, |c| c.tx_oversize_packets), 1);
    assert_eq!(pair.count(B, |c| c.rx_clipped_packets), 0);
}

#[test]
fn a_forced_retry_sends_again_what_is_not_acknowledged() {
    let mut pair = Pair::up(14);
    pair.load(A, 100);
    pair.settle();
    let now = pair.now;
    pair.ends[A].lcb.force_retry(now);
    pair.finish(SECOND);
    assert!(pair.count(A, |c| c.tx_retransmitted_packets) >= 50);
    assert_eq!(pair.count(A, |c| c.tx_rewinds_forced), 1);
    assert_eq!(pair.count(B, |c| c.rx_packets), 100);
}

#[test]
fn a_packet_whose_rest_never_comes_is_given_up() {
    let mut pair = Pair::up(15);
    let whole = packet(Vc::Request, 0, 10);
    for phit in &whole[..4] {
        pair.ends[A].lcb.push(*phit);
    }
    pair.run_for(Duration::from_ms(100));
    assert_eq!(pair.ends[B].poisoned, 0, "patience");
    pair.run_for(Duration::from_ms(450));
    assert_eq!(pair.ends[B].poisoned, 1);
    assert_eq!(pair.count(B, |c| c.rx_silence_in_packet), 1);
    // The late part arrives in the end.
    for phit in &whole[4..] {
        pair.ends[A].lcb.push(*phit);
    }
    pair.run_for(SECOND);
    assert_eq!(pair.ends[B].got_id[0], 1, "{}", pair.state());
}

#[test]
#[should_panic(expected = "phit outside a packet")]
fn a_body_outside_a_packet_is_our_bug() {
    Pair::up(16).ends[A].lcb.push(Phit::new(PhitKind::Body, 0));
}

#[test]
#[should_panic(expected = "pushed without checking for room")]
fn a_packet_without_room_is_our_bug() {
    let mut pair = Pair::up(17);
    for _ in 0..20_000 {
        for phit in packet(Vc::Request, 0, 19) {
            pair.ends[A].lcb.push(phit);
        }
    }
}

#[test]
#[should_panic(expected = "time ran backwards")]
fn time_does_not_run_backwards() {
    let mut pair = Pair::up(18);
    let end = &mut pair.ends[A];
    end.lcb.handle_timers(phitwire::time::Time::ZERO);
}
