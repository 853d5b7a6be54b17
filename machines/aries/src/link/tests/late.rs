//! Late frames: exact copies of what a link end sent long ago.

use phitwire_framing::aries::flit::VCS;
use phitwire_framing::aries::set::{ControlSet, Set};

use crate::link::testing::{AriesPair as _, Pair, data, frame_with, packet};
use phitwire::link::LinkView;
use phitwire::link::testing::end::Drain;
use phitwire::link::testing::rig::{A, B, SECOND};
use phitwire::time::Duration;

/// At 10 million packets a second, 32-bit flit counts wrap within a minute: a control set that old
/// may hold any credit count. Its acknowledgement shows that it is old.
#[test]
fn an_old_control_set_gives_no_credits() {
    let mut pair = Pair::up(1);
    pair.load(A, 50);
    pair.load(B, 3_000);
    pair.finish(SECOND);
    pair.ends[A].drain = Drain::Blocked;
    for _ in 0..300 {
        pair.ends[B].send(0, 14);
    }
    pair.run_for(Duration::from_ms(5));
    let credits = pair.ends[B].lcb.wire().credits();
    let freed = (0..VCS).map(|vc| pair.ends[B].lcb.wire().tx.credits().freed(vc));
    let freed: Vec<u32> = freed.collect();
    let (next, acked) = (
        pair.ends[B].lcb.wire().rx.expected() as u32,
        pair.ends[B].lcb.wire().tx.buffer().acked() as u32,
    );
    assert!(acked > 1_000);
    for age in [1, 100, acked] {
        for step in [1, 14, 300, 4_200, 1 << 31] {
            let old = ControlSet {
                next,
                ack: acked - age,
                vc_acks: core::array::from_fn(|vc| freed[vc].wrapping_add(step)),
                nack: true,
                ..Default::default()
            };
            let frame = frame_with(&pair, B, 7, &[Set::Control(old)]);
            pair.inject(B, &frame);
            assert_eq!(pair.ends[B].lcb.wire().credits(), credits, "{age} {step}");
        }
    }
    assert_eq!(pair.sets(B, |c| c.tx_replays_nacked), 0);
    assert_eq!(pair.count(B, |c| c.drop_impossible_vc_ack), 0);
    pair.ends[A].drain = Drain::Eager;
    pair.finish(SECOND);
}

/// A frame more than a window old is not a sign of life, gets no response and has no effect.
#[test]
fn frames_older_than_a_window_are_passed_over() {
    let mut pair = Pair::up(2);
    for _ in 0..30_000 {
        pair.ends[A].send(0, 3);
    }
    pair.finish(SECOND);
    pair.run_for(Duration::from_ms(20));
    let expected = pair.ends[B].lcb.wire().rx.expected();
    assert!(expected > 5_000);
    let (frames, heard) = (pair.frames, pair.ends[B].lcb.last_accepted());
    for age in [2_049, 2_050, 5_000, expected] {
        let old = ControlSet {
            next: (expected - age) as u32,
            probe: true,
            load: 9,
            ..Default::default()
        };
        let frame = frame_with(
            &pair,
            B,
            7,
            &[Set::Control(old), data(expected - age, &packet(0, 0, 3))],
        );
        for _ in 0..100 {
            pair.inject(B, &frame);
            pair.run_for(Duration::from_us(50));
        }
    }
    assert_eq!(pair.count(B, |c| c.rx_stale_frames), 400);
    assert_eq!(pair.frames, frames, "{}", pair.state());
    assert_eq!(pair.ends[B].lcb.last_accepted(), heard);
    assert_eq!(pair.ends[B].lcb.wire().peer_load(), 0);
    pair.load(A, 100);
    pair.finish(SECOND);
}
