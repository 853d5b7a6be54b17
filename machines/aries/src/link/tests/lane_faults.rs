//! Dropped lanes: how many a link survives, also with the chip's profile.

use crate::link::SetProfile;
use crate::link::testing::{AriesPair as _, Pair, aries, config, paper_of, with};
use phitwire::link::testing::rig::{A, B, SECOND};
use phitwire::link::{LinkState, LinkView};
use phitwire::time::Duration;

#[test]
fn a_link_dies_rather_than_degrade_more_often_than_allowed() {
    for allowed in 0..3_u8 {
        let end = |end| {
            let config = aries(config(end).lane_retry_threshold(5), SetProfile::live());
            with(config, |registers| registers.max_degrades = allowed)
        };
        let mut pair = Pair::with(9, end(A), end(B), 1_472);
        pair.wait_up();
        pair.wires[B].noise_of = 1_000;
        pair.wires[B].noisy_lanes = 7;
        pair.allow_gaps();
        let mut fewest = 3;
        pair.run_until(SECOND.times(60), |pair| {
            if pair.ends[A].backlog.is_empty() {
                pair.load(A, 200);
            }
            fewest = fewest.min(pair.ends[A].lcb.tx_lanes().count_ones());
            !pair.ends[A].lcb.is_active()
        });
        assert_eq!(fewest, 3 - u32::from(allowed));
        pair.run_for(SECOND);
        assert_eq!(pair.ends[B].lcb.state(), LinkState::Dead);
        assert_eq!(pair.ends[A].lcb.state(), LinkState::Dead);
    }
}

#[test]
fn lanes_are_decommissioned_under_the_chip_s_profile_too() {
    let end = |end| paper_of(config(end).lane_retry_threshold(10));
    let mut pair = Pair::cabled(10, end(A), end(B), Duration::from_us(2));
    pair.wait_up();
    pair.wires[B].noisy_lanes = 0b010;
    pair.wires[B].noise_of = 1_000;
    pair.load(A, 20_000);
    pair.finish(SECOND.times(60));
    assert_eq!(pair.ends[A].lcb.tx_lanes(), 0b101);
    let retries = pair.ends[B].lcb.counters().lane_retries;
    assert_eq!(retries[0] + retries[2], 0, "{retries:?}");
}
