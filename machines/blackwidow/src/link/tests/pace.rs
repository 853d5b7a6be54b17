//! The effects of dropped lanes and of lane rates under a paced clock.

use crate::link::testing::{Pair, REQUEST, config, with};
use crate::link::{PhitProfile, rates};
use phitwire::link::testing::rig::{A, B, SECOND};
use phitwire::link::{CutThrough, LaneRate, LinkClock, LinkProfile, LinkView};
use phitwire::time::Duration;

/// Phits per millisecond that arrive over a paced link on `lanes`.
fn paced_rate(lanes: u8) -> u64 {
    let end = |end| {
        let builder = config(end)
            .clock(LinkClock::Paced { dilation: 1_000 })
            .lane_retry_threshold(1)
            .profile(LinkProfile {
                min_retry_timeout: Duration::from_us(20),
                max_retry_timeout: Duration::from_us(500),
                ..LinkProfile::paper()
            });
        with(builder, PhitProfile::paper())
    };
    let mut pair = Pair::with(u64::from(lanes), end(A), end(B), 1_472);
    pair.wait_up();
    pair.wires[B].noisy_lanes = 7 & !lanes;
    pair.wires[B].noise_of = 300;
    pair.run_until(SECOND.times(300), |pair| {
        if pair.ends[A].backlog.is_empty() {
            pair.load(A, 50);
        }
        pair.ends[A].lcb.tx_lanes() == lanes
    });
    pair.wires[B].noisy_lanes = 0;
    pair.load(A, 4_000);
    pair.run_for(Duration::from_ms(5));
    let before = pair.count(B, |c| c.rx_phits);
    pair.run_for(Duration::from_ms(20));
    (pair.count(B, |c| c.rx_phits) - before) / 20
}

#[test]
fn paced_throughput_falls_to_two_thirds_and_one_third() {
    // 18.75 Gb/s are 781 phits per microsecond, dilated by 1,000.
    let (three, two, one) = (paced_rate(7), paced_rate(0b011), paced_rate(0b001));
    assert!((770..=782).contains(&three), "{three}");
    assert!((513..=521).contains(&two), "{two}");
    assert!((255..=261).contains(&one), "{one}");
}

#[test]
fn lane_rates_set_the_pace() {
    for (rate, expected) in [(rates::G3_125, 390), (rates::G1_25, 156)] {
        let clock = LinkClock::Paced { dilation: 1_000 };
        let end = |end| {
            let builder = config(end).clock(clock).rate(rate);
            with(builder.profile(LinkProfile::paper()), PhitProfile::paper())
        };
        let mut pair = Pair::with(3, end(A), end(B), 1_472);
        pair.wait_up();
        pair.load(A, 4_000);
        pair.run_for(Duration::from_ms(2));
        let before = pair.count(B, |c| c.rx_phits);
        pair.run_for(Duration::from_ms(20));
        let got = (pair.count(B, |c| c.rx_phits) - before) / 20;
        assert!(
            (expected - 5..=expected + 1).contains(&got),
            "{got} at {rate:?}"
        );
    }
}

#[test]
fn a_packet_crosses_a_paced_link_in_its_serialisation_time() {
    let clock = LinkClock::Paced { dilation: 1 };
    let end = |end| {
        let builder = config(end).clock(clock).profile(LinkProfile::paper());
        with(builder, PhitProfile::paper())
    };
    let mut pair = Pair::with(4, end(A), end(B), 1_472);
    pair.wire(|wire| wire.delay = Duration::from_ns(5));
    pair.wait_up();
    pair.run_for(Duration::from_us(10));
    let start = pair.now;
    pair.ends[A].send(REQUEST, 13);
    pair.run_until(SECOND, |pair| pair.ends[B].got_id[0] == 1);
    assert_eq!(pair.now.since(start), Duration::from_ps(13 * 1_280 + 5_000));
}

/// A late frame with more phits than a burst is handed up at the line rate. The next frame flushes
/// the rest.
#[test]
fn a_paced_receiver_hands_up_a_burst_at_a_time() {
    let end = |end| {
        let clock = match end {
            A => LinkClock::FreeRunning,
            _ => LinkClock::Paced { dilation: 1_000 },
        };
        // A is free-running and B's acknowledgements are paced: a longer timeout avoids retries.
        let mut profile = LinkProfile::paper();
        if end == A {
            profile.min_retry_timeout = Duration::from_ms(1);
            profile.max_retry_timeout = Duration::from_ms(100);
        }
        let builder = config(end).clock(clock).profile(profile);
        with(builder.cut_through(CutThrough::Phits), PhitProfile::paper())
    };
    let mut pair = Pair::with(4, end(A), end(B), 1_472);
    pair.wire(|wire| wire.delay = Duration::from_us(1));
    pair.wait_up();
    pair.run_for(Duration::from_ms(10));
    let start = pair.now;
    pair.ends[A].send(REQUEST, 13);
    pair.run_until(SECOND, |pair| pair.ends[B].got_id[0] == 1);
    let took = pair.now.since(start);
    assert_eq!(took, Duration::from_ps(3 * 4 * 1_280_000 + 1_000_000));
    let start = pair.now;
    pair.ends[A].send(REQUEST, 13);
    pair.run_for(Duration::from_us(3));
    pair.ends[A].send(REQUEST, 4);
    pair.run_until(SECOND, |pair| pair.ends[B].got_id[0] == 3);
    assert_eq!(pair.now.since(start), Duration::from_us(4));
}

#[test]
fn every_lane_rate_gives_whole_picoseconds() {
    for rate in rates::ALL {
        for lanes in 1..=3 {
            let ps = u128::from(rate.time_of(24, lanes).as_ps());
            let bits = ps * u128::from(rate.bits_per_second()) * u128::from(lanes);
            assert_eq!(bits, 24 * 1_000_000_000_000, "{rate:?} on {lanes} lanes");
        }
        assert_eq!(LaneRate::from_code(&rates::ALL, rate.code()), Some(rate));
    }
    assert_eq!(LaneRate::from_code(&rates::ALL, 6), None);
    let phit = rates::G6_25.time_of(24, 3);
    assert_eq!(phit, Duration::from_ps(1_280), "18.75 Gb/s");
    assert_eq!(
        format!("{:?}", rates::ALL),
        "[G6_25, G5_0, G3_125, G2_5, G1_5625, G1_25]"
    );
}
