//! The paced clock: the rate of the lanes, and the effect of a dropped lane on it.

use crate::link::SetProfile;
use crate::link::rates;
use crate::link::testing::{AriesPair as _, Pair, aries, config};
use phitwire::link::testing::rig::{A, B};
use phitwire::link::{LaneRate, LinkClock, LinkProfile, LinkView, Wire as _};
use phitwire::time::{Duration, Time};

/// A pair at full speed over a cable of 50 ns.
fn pair(rate: LaneRate) -> Pair {
    let end = |end| {
        let builder = config(end)
            .profile(LinkProfile::paper())
            .clock(LinkClock::Paced { dilation: 1 })
            .rate(rate);
        aries(builder, SetProfile::paper())
    };
    let mut pair = Pair::cabled(1, end(A), end(B), Duration::from_ns(50));
    pair.wait_up();
    pair
}

/// Flits per microsecond that B receives at full load.
fn rate_of(pair: &mut Pair) -> u64 {
    for _ in 0..20_000 {
        pair.ends[A].send(1, 14);
    }
    pair.run_for(Duration::from_us(20));
    let before = pair.sets(B, |c| c.rx_flits);
    pair.run_for(Duration::from_us(100));
    (pair.sets(B, |c| c.rx_flits) - before) / 100
}

#[test]
fn nine_of_ten_flits_of_the_lane_rate_are_data() {
    // 14 Gb/s x 3 lanes / 48 bits = 875 flits a microsecond.
    let mut electrical = pair(rates::G14_0);
    let flits = rate_of(&mut electrical);
    assert!((785..=788).contains(&flits), "{flits} of 787.5");
    assert_eq!(electrical.sets(A, |c| c.tx_replayed_sets), 0);
    let flits = rate_of(&mut pair(rates::G12_5));
    assert!((701..=704).contains(&flits), "{flits} of 703.1");
}

#[test]
fn fewer_lanes_are_slower() {
    for (lanes, expected) in [(0b110, 525), (0b010, 262)] {
        let mut pair = pair(rates::G14_0);
        pair.ends[B].lcb.parts_mut().1.lanes.settle(lanes);
        let (now, end) = (pair.now, &mut pair.ends[A]);
        let (wire, link, _) = end.lcb.parts_mut();
        wire.send_on(link, lanes, now);
        let flits = rate_of(&mut pair);
        assert!(
            (expected - 2..=expected + 1).contains(&flits),
            "{flits} of {expected}"
        );
        assert_eq!(pair.ends[A].lcb.tx_lanes(), lanes);
    }
}

#[test]
fn a_short_packet_leaves_at_once_and_takes_the_time_of_a_set() {
    let mut pair = pair(rates::G14_0);
    pair.run_for(Duration::from_us(5));
    let start = pair.now;
    pair.ends[A].send(1, 3);
    pair.run_until(Duration::from_us(5), |pair| pair.ends[B].got_id[1] == 1);
    let took = pair.now.since(start);
    assert_eq!(
        took,
        Duration::from_ps(50_000 + 11_429),
        "one cable and one set"
    );
}

#[test]
fn flits_that_come_slowly_wait_for_each_other_and_none_is_idle_inside_a_packet() {
    let mut pair = pair(rates::G14_0);
    pair.ends[A].push_words = 1;
    for _ in 0..50 {
        pair.ends[A].send(2, 14);
        pair.ends[A].send(6, 1);
    }
    pair.finish(Duration::from_ms(10));
    assert_eq!(pair.sets(B, |c| c.rx_malformed_flits), 0);
}

#[test]
fn near_end_load_shows_and_is_bounded() {
    let mut pair = pair(rates::G14_0);
    assert_eq!(pair.ends[A].lcb.wire().backlog_flits(), 0);
    for _ in 0..100 {
        pair.ends[A].send(0, 14);
    }
    let mut most = 0;
    let end = pair.now + Duration::from_us(2);
    while pair.now < end {
        pair.step(Duration::from_ns(10));
        most = most.max(pair.ends[A].lcb.wire().backlog_flits());
    }
    assert!((14..=28).contains(&most), "{most}");
    assert!(pair.now > Time::ZERO);
}

#[test]
fn a_flit_takes_a_cycle_of_875_mhz() {
    // XC white paper: 14 Gb/s on each of three lanes, 5.25 GB/s.
    assert_eq!(rates::G14_0.time_of(48, 3), Duration::from_ps(1_143));
    assert_eq!(rates::G14_0.time_of(480, 3), Duration::from_ps(11_429));
    assert_eq!(rates::G12_5.time_of(480, 3), Duration::from_ps(12_800));
    assert_eq!(rates::G12_5.time_of(480, 1), Duration::from_ps(38_400));
    for rate in rates::ALL {
        assert_eq!(LaneRate::from_code(&rates::ALL, rate.code()), Some(rate));
    }
    assert_eq!(LaneRate::from_code(&rates::ALL, 8), None);
}
