//! Ends whose sessions no longer match recover, and silence is reported.

use super::rig::{A, B, Drain, FRAME_BYTES, Link, SECOND, made};
use crate::link::testing::pair::{Pair, plant};
use crate::link::{DownReason, LinkEvent, LinkProfile, LinkView, NodeLink};
use crate::rng::Rng;
use crate::time::{Duration, Time};

fn pair_with<L: Link>(change: impl Fn(&mut LinkProfile)) -> Pair<L> {
    let end = |end, epoch| {
        let mut profile = LinkProfile::live();
        change(&mut profile);
        made::<L>(end, epoch, profile)
    };
    let mut pair = Pair::<L>::with(1, end(A, 1_000), end(B, 2_000), FRAME_BYTES);
    pair.wait_up();
    pair
}

fn traffic_flows<L: Link>(pair: &mut Pair<L>) {
    pair.exchange(300, SECOND.times(5));
}

/// A pair that has carried traffic.
fn flowing<L: Link>(change: impl Fn(&mut LinkProfile)) -> Pair<L> {
    let mut pair = pair_with(change);
    traffic_flows(&mut pair);
    pair
}

fn no_session_ended<L: Link>(pair: &Pair<L>) -> bool {
    pair.downs(A).is_empty() && pair.downs(B).is_empty()
}

/// Cuts the link for `time`.
fn cut_for<L: Link>(pair: &mut Pair<L>, time: Duration) {
    pair.wire(|wire| wire.cut = true);
    pair.run_for(time);
    pair.wire(|wire| wire.cut = false);
}

/// Injects unusable frames into A until it ends the session. Returns the time until then.
fn end_by_frames<L: Link>(pair: &mut Pair<L>) -> Duration {
    pair.wires[A].cut = true;
    let frame = L::forge(pair, A, 7, 0x3000, &[]);
    let begin = pair.now;
    while pair.downs(A).is_empty() {
        pair.inject(A, &frame);
        pair.run_for(Duration::from_ms(1));
        assert!(pair.now.since(begin) < SECOND.times(2));
    }
    assert_eq!(pair.downs(A), [DownReason::Unusable]);
    pair.now.since(begin)
}

/// Makes end B accept data that end A never sent. B then acknowledges it in every frame, so A can
/// use none of them.
fn wedge<L: Link>(pair: &mut Pair<L>) {
    traffic_flows(pair);
    pair.allow_gaps();
    plant(pair, B);
}

pub fn a_session_without_usable_frames_restarts_in_time<L: Link>() {
    let mut pair = pair_with::<L>(|_| {});
    wedge(&mut pair);
    let before = L::given_up(&pair.ends[B]);
    pair.load(B, 20);
    let loaded = pair.ends[B].backlog.iter();
    let loaded: u64 = loaded.map(|(_, words)| L::weight(words)).sum();
    pair.run_for(Duration::from_ms(900));
    assert!(pair.ends[A].lcb.is_active(), "not before the timeout");
    assert!(pair.count(A, |c| c.drop_impossible_ack) > 3);
    pair.run_until(Duration::from_ms(500), |pair| {
        pair.is_active()
            && pair.ends[A].lcb.epochs() == (1_001, 2_001)
            && pair.ends[B].lcb.epochs() == (2_001, 1_001)
    });
    assert_eq!(pair.downs(A), [DownReason::Unusable]);
    assert_eq!(pair.downs(B), [DownReason::PeerRestarted]);
    assert_eq!(pair.count(A, |c| c.unusable_sessions), 1);
    for end in [A, B] {
        // The link reports what it discards.
        let counted = pair.count(end, |c| c.tx_discarded_packets);
        assert_eq!(pair.discarded(end), counted);
    }
    assert_eq!(L::given_up(&pair.ends[B]) - before, loaded);
    traffic_flows(&mut pair);
}

/// Canary of the test above: links without healing.
pub fn a_link_that_may_not_heal_stays_as_it_is<L: Link>() {
    let mut pair = pair_with::<L>(|profile| profile.heal = None);
    wedge(&mut pair);
    pair.load(B, 20);
    pair.run_for(SECOND.times(60));
    assert!(pair.downs(A).is_empty());
    let left = pair.ends[B].lcb.unacknowledged_packets();
    assert!(left > 0, "no packet flows");
}

pub fn a_stranger_s_frames_do_not_end_a_session_whose_peer_answers<L: Link>() {
    for busy in [false, true] {
        let mut pair = flowing::<L>(|_| {});
        let before = pair.count(A, |c| c.drop_impossible_ack);
        for _ in 0..10_000 {
            let frame = L::forge(&pair, A, 7, 0x3000, &[]);
            pair.inject(A, &frame);
            if busy {
                pair.load(A, 1);
                pair.load(B, 1);
            }
            pair.run_for(Duration::from_ms(1));
        }
        assert_eq!(pair.count(A, |c| c.drop_impossible_ack), before + 10_000);
        assert!(no_session_ended(&pair));
        traffic_flows(&mut pair);
    }
}

pub fn the_same_frames_end_a_session_whose_peer_does_not_answer<L: Link>() {
    let mut pair = flowing::<L>(|_| {});
    let after = end_by_frames(&mut pair);
    assert!(after >= SECOND, "{after:?}");
}

pub fn one_bad_frame_before_a_cut_ends_nothing<L: Link>() {
    let mut pair = flowing::<L>(|_| {});
    let frame = L::forge(&pair, A, 7, 0x3000, &[]);
    pair.inject(A, &frame);
    cut_for(&mut pair, SECOND.times(10));
    traffic_flows(&mut pair);
    assert!(no_session_ended(&pair));
}

pub fn answers_that_take_longer_than_a_session_may_be_unusable_are_waited_for<L: Link>() {
    let mut pair = pair_with::<L>(|profile| profile.max_retry_timeout = SECOND);
    pair.wire(|wire| wire.delay = Duration::from_ms(600));
    pair.exchange(50, SECOND.times(30));
    // Over such a path everything is resent before it can be acknowledged: only replies to probes
    // are measured.
    pair.run_for(SECOND.times(10));
    for _ in 0..10_000 {
        let frame = L::forge(&pair, A, 7, 0x3000, &[]);
        pair.inject(A, &frame);
        pair.run_for(Duration::from_ms(1));
    }
    assert!(pair.downs(A).is_empty(), "{}", pair.state());
}

pub fn a_falsely_acknowledged_packet_is_not_awaited_for_ever<L: Link>() {
    let mut pair = flowing::<L>(|_| {});
    pair.allow_gaps();
    // A's data is lost, and a forged frame acknowledges it in B's name.
    pair.wires[B].cut = true;
    pair.load(A, 1);
    pair.run_for(Duration::from_us(50));
    let frame = L::forge(&pair, A, 7, 1, &[]);
    pair.inject(A, &frame);
    pair.wires[B].cut = false;
    pair.run_for(SECOND.times(10));
    assert!(pair.downs(B).is_empty(), "loss for this long is allowed");
    pair.run_until(SECOND.times(60), |pair| {
        pair.downs(B) == [DownReason::Missing]
    });
    pair.wait_up();
    traffic_flows(&mut pair);
}

pub fn silence_is_reported_and_cleared_and_nothing_else_happens<L: Link>() {
    let mut pair = flowing::<L>(|_| {});
    let asleep = pair.now;
    pair.run_for(SECOND.times(20));
    for end in &pair.ends {
        let events = &end.events;
        assert_eq!(events.len(), 1, "an idle peer answers: {events:?}");
        let last = end.lcb.last_accepted().unwrap();
        assert!(last > asleep && pair.now.since(last) < SECOND);
    }
    pair.wire(|wire| wire.cut = true);
    pair.run_for(Duration::from_ms(1_200));
    assert!(!pair.ends[A].lcb.is_silent());
    pair.run_for(Duration::from_ms(900));
    for end in &pair.ends {
        assert_eq!(end.events[1..], [LinkEvent::Silent]);
        assert!(end.lcb.is_silent() && end.lcb.is_active());
        assert_eq!(end.lcb.counters().silences, 1);
    }
    let frames = pair.frames[A];
    pair.run_for(SECOND.times(60));
    assert!(pair.frames[A] - frames < 200, "probes are rare");
    assert_eq!(pair.ends[A].events.len(), 2, "reported once");
    pair.wire(|wire| wire.cut = false);
    pair.run_until(SECOND, |pair| {
        pair.ends.iter().all(|end| !end.lcb.is_silent())
    });
    for end in &pair.ends {
        let LinkEvent::Heard { after } = end.events[2] else {
            panic!("{:?}", end.events);
        };
        let about = SECOND.times(61)..SECOND.times(64);
        assert!(about.contains(&after), "{after:?}");
    }
    traffic_flows(&mut pair);
    assert!(no_session_ended(&pair));
}

pub fn a_resumed_process_does_not_call_its_peer_silent<L: Link>() {
    let mut pair = flowing::<L>(|_| {});
    // The process is suspended for half a minute. Then its timers run before any reply is read.
    pair.now += SECOND.times(30);
    pair.settle();
    pair.run_for(SECOND);
    for end in &pair.ends {
        assert_eq!(end.events.len(), 1, "{:?}", end.events);
    }
}

pub fn no_peer_is_probed_if_silence_is_not_reported<L: Link>() {
    let mut pair = flowing::<L>(|profile| profile.silence = None);
    pair.run_for(SECOND);
    let [a, b] = pair.ends.each_ref().map(|end| end.lcb.next_wakeup());
    assert_eq!([a, b], [Time::NEVER; 2]);
    assert_eq!(LinkProfile::paper().silence, None);
}

pub fn giving_up_ends_an_idle_session_too<L: Link>() {
    let mut pair = flowing::<L>(|profile| profile.give_up = Some(SECOND.times(2)));
    pair.run_for(SECOND.times(20));
    assert!(pair.downs(A).is_empty(), "an idle peer answers");
    pair.wire(|wire| wire.cut = true);
    pair.run_for(Duration::from_ms(3_000));
    for end in [A, B] {
        assert_eq!(pair.downs(end), [DownReason::Silence]);
        // Silence is defined only within a session.
        assert!(!pair.ends[end].lcb.is_silent());
    }
    pair.wire(|wire| wire.cut = false);
    pair.allow_gaps();
    pair.wait_up();
    traffic_flows(&mut pair);
}

pub fn a_peer_that_is_far_away_is_called_silent_once_and_then_waited_for<L: Link>() {
    let mut pair = flowing::<L>(|_| {});
    pair.wire(|wire| wire.delay = Duration::from_ms(3_000));
    pair.run_for(SECOND.times(60));
    for end in &pair.ends {
        assert!(!end.lcb.is_silent());
        assert_eq!(end.lcb.counters().silences, 1, "{:?}", end.events);
    }
    assert!(no_session_ended(&pair));
}

/// Time until both ends report that a cut link is silent.
fn silence_reported_after<L: Link>(pair: &mut Pair<L>) -> Duration {
    let begin = pair.now;
    pair.wire(|wire| wire.cut = true);
    pair.run_until(SECOND.times(100), |pair| {
        pair.ends.iter().all(|end| end.lcb.is_silent())
    });
    pair.now.since(begin)
}

pub fn a_cable_that_was_out_does_not_make_its_ends_more_patient<L: Link>() {
    for busy in [true, false] {
        let mut pair = flowing::<L>(|_| {});
        silence_reported_after(&mut pair);
        pair.run_for(SECOND.times(30));
        pair.wire(|wire| wire.cut = false);
        if busy {
            traffic_flows(&mut pair);
            traffic_flows(&mut pair);
        } else {
            pair.run_for(SECOND.times(10));
        }
        let after = silence_reported_after(&mut pair);
        assert!(after <= Duration::from_ms(2_100), "busy {busy}: {after:?}");
    }
}

pub fn a_session_heals_as_soon_after_a_cable_was_out_as_before<L: Link>() {
    let mut pair = flowing::<L>(|_| {});
    cut_for(&mut pair, SECOND.times(30));
    traffic_flows(&mut pair);
    traffic_flows(&mut pair);
    end_by_frames(&mut pair);
}

pub fn frames_on_wrong_lanes_draw_training_frames_at_their_own_pace<L: Link>() {
    let mut pair = flowing::<L>(|_| {});
    let sent = pair.count(A, |c| c.tx_training_frames);
    let frame = L::forge(&pair, A, 0b011, 0, &[]);
    let begin = pair.now;
    while pair.now.since(begin) < SECOND {
        pair.inject(A, &frame);
        pair.load(B, 1);
        pair.run_for(Duration::from_us(100));
    }
    pair.finish(SECOND);
    assert!(pair.count(A, |c| c.drop_wrong_lanes) >= 9_000);
    let drawn = pair.count(A, |c| c.tx_training_frames) - sent;
    let most = SECOND.as_ps() / LinkProfile::live().min_training_interval.as_ps();
    assert!((1..=most + 1).contains(&drawn), "{drawn} of {most}");
}

fn stalls<L: Link>(pair: &Pair<L>, end: usize) -> Vec<LinkEvent> {
    let is_stall = |event: &&LinkEvent| matches!(event, LinkEvent::Stalled | LinkEvent::Resumed);
    let events = pair.ends[end].events.iter();
    events.filter(is_stall).cloned().collect()
}

pub fn a_path_that_drops_long_frames_is_reported_although_short_ones_pass<L: Link>() {
    let mut pair = flowing::<L>(|_| {});
    pair.wires[B].most_bytes = L::IDLE_FRAME_BYTES;
    pair.load(A, 300);
    pair.run_for(Duration::from_ms(900));
    assert!(!pair.ends[A].lcb.is_stalled(), "not before the timeout");
    pair.run_for(Duration::from_ms(2_500));
    assert!(pair.ends[A].lcb.is_stalled(), "{}", pair.state());
    pair.run_for(SECOND.times(40));
    assert_eq!(stalls(&pair, A), [LinkEvent::Stalled], "reported once");
    assert_eq!(pair.count(A, |c| c.stalls), 1);
    assert!(pair.ends[A].lcb.is_active() && !pair.ends[A].lcb.is_silent());
    assert!(stalls(&pair, B).is_empty(), "the other direction works");
    pair.wires[B].most_bytes = usize::MAX;
    pair.finish(SECOND.times(10));
    assert_eq!(stalls(&pair, A), [LinkEvent::Stalled, LinkEvent::Resumed]);
    assert!(!pair.ends[A].lcb.is_stalled());
}

pub fn an_end_that_misses_a_packet_for_a_minute_restarts_with_a_reason<L: Link>() {
    let mut pair = flowing::<L>(|_| {});
    pair.allow_gaps();
    pair.wires[B].most_bytes = L::IDLE_FRAME_BYTES;
    pair.load(A, 300);
    pair.run_for(SECOND.times(55));
    assert!(no_session_ended(&pair));
    pair.run_for(SECOND.times(15));
    assert_eq!(pair.downs(B), [DownReason::Missing]);
}

/// The peer's frames, handled several at once, request a packet and show that the peer is live
/// before the packet is resent.
pub fn a_path_that_drops_long_frames_is_reported_while_the_peer_sends<L: Link>() {
    let mut pair = flowing::<L>(|_| {});
    pair.wires[B].most_bytes = L::IDLE_FRAME_BYTES;
    pair.wires[A].cut = true;
    pair.taping = true;
    pair.load(A, 300);
    for _ in 0..700 {
        for _ in 0..10 {
            pair.load(B, 2);
            pair.run_for(Duration::from_us(500));
        }
        for (to, frame) in core::mem::take(&mut pair.tape) {
            if to == A {
                pair.inject(A, &frame);
            }
        }
    }
    assert!(pair.ends[A].lcb.is_stalled(), "{}", pair.state());
}

pub fn a_session_given_up_for_dropped_long_frames_passes_its_stall_to_the_next<L: Link>() {
    let mut pair = flowing::<L>(|profile| profile.give_up = Some(SECOND.times(2)));
    pair.allow_gaps();
    pair.wires[B].most_bytes = L::IDLE_FRAME_BYTES;
    pair.load(A, 300);
    pair.run_until(SECOND.times(3), |pair| !pair.downs(A).is_empty());
    assert_eq!(pair.downs(A), [DownReason::Stalled]);
    assert_eq!(stalls(&pair, A), [LinkEvent::Stalled]);
    assert_eq!(pair.count(A, |c| c.stalls), 1);
    // Let training frames pass, which are longer than the limit.
    pair.wires[B].most_bytes = usize::MAX;
    pair.wait_up();
    assert!(
        pair.ends[A].lcb.is_stalled(),
        "no acknowledgement arrived yet"
    );
    pair.run_for(SECOND.times(70));
    let stalled = pair.ends[A].lcb.is_stalled();
    assert!(!stalled, "the stall has ended");
    traffic_flows(&mut pair);
}

pub fn a_silent_peer_and_an_end_that_stood_still_are_not_called_stalled<L: Link>() {
    let mut pair = flowing::<L>(|_| {});
    pair.wire(|wire| wire.cut = true);
    pair.load(A, 300);
    pair.load(B, 300);
    pair.run_for(SECOND.times(30));
    pair.wire(|wire| wire.cut = false);
    pair.finish(SECOND.times(10));
    pair.load(A, 300);
    pair.now += SECOND.times(30);
    pair.finish(SECOND.times(10));
    assert!(stalls(&pair, A).is_empty() && stalls(&pair, B).is_empty());
}

/// One direction works first, as after an interface outage: one end resolves its neighbour before
/// the other.
pub fn a_cable_restored_in_one_direction_first_is_not_called_stalled<L: Link>() {
    for (give_up, cut, lag) in [
        (None, 800, 450),
        (Some(SECOND), 800, 450),
        (None, 1_400, 700),
    ] {
        let mut pair = pair_with::<L>(|profile| profile.give_up = give_up);
        traffic_flows(&mut pair);
        pair.allow_gaps();
        pair.wire(|wire| wire.cut = true);
        pair.load(A, 300);
        pair.run_for(Duration::from_ms(cut));
        pair.wires[A].cut = false;
        pair.run_for(Duration::from_ms(lag));
        pair.wires[B].cut = false;
        pair.run_for(SECOND);
        traffic_flows(&mut pair);
        let events = stalls(&pair, A);
        assert!(events.is_empty(), "{give_up:?}: {events:?}");
        // B received nothing and gave up; A gives up too or learns of B's new session.
        let is_so = |why| matches!(why, DownReason::Silence | DownReason::PeerRestarted);
        assert!(pair.downs(A).into_iter().all(is_so), "{:?}", pair.downs(A));
    }
}

/// At least half of the short frames are lost, so the peer is heard only with pauses.
pub fn a_path_that_drops_long_frames_is_reported_although_many_frames_are_lost<L: Link>() {
    for (seed, loss, seconds) in (0..8).flat_map(|n| [(n, 500, 5), (n, 700, 10), (n, 900, 30)]) {
        let mut pair = flowing::<L>(|profile| profile.give_up = Some(SECOND.times(seconds)));
        pair.allow_gaps();
        pair.rng = Rng::new(seed, 0);
        pair.wires[B].most_bytes = L::IDLE_FRAME_BYTES;
        pair.wire(|wire| wire.loss = loss);
        pair.load(A, 300);
        pair.run_until(SECOND.times(seconds + 1), |pair| {
            !stalls(pair, A).is_empty() || !pair.downs(A).is_empty()
        });
        let events = stalls(&pair, A);
        assert_eq!(
            events,
            [LinkEvent::Stalled],
            "{loss} {seed}: {}",
            pair.state()
        );
    }
}

pub fn a_peer_that_is_heard_with_long_pauses_and_acknowledges_nothing_is_called_stalled<L: Link>() {
    let mut pair = flowing::<L>(|_| {});
    pair.wires[B].most_bytes = L::IDLE_FRAME_BYTES;
    pair.load(A, 300);
    for _ in 0..10 {
        for (cut, ms) in [(true, 1_100), (false, 400)] {
            pair.wires[A].cut = cut;
            pair.run_for(Duration::from_ms(ms));
        }
    }
    assert_eq!(stalls(&pair, A), [LinkEvent::Stalled], "{}", pair.state());
}

/// Units that end A resent because they were lost or presumed lost.
fn losses<L: Link>(pair: &Pair<L>) -> u64 {
    pair.ends[A].lcb.resent()
}

pub fn a_peer_that_has_no_room_is_asked_for_some_and_has_lost_nothing<L: Link>() {
    let mut pair = flowing::<L>(|_| {});
    let (before, timeout) = (losses(&pair), pair.ends[A].lcb.retry_timeout());
    pair.ends[B].drain = Drain::Blocked;
    pair.load(A, 10_000);
    pair.run_for(SECOND.times(10));
    assert!(!pair.ends[A].backlog.is_empty());
    assert_eq!(pair.ends[A].lcb.unacknowledged_packets(), 0);
    // The credits that finally open the buffer are lost.
    pair.wires[A].cut = true;
    pair.ends[B].drain = Drain::Eager;
    pair.run_for(Duration::from_ms(1));
    pair.wires[A].cut = false;
    pair.run_until(SECOND, |pair| pair.ends[A].backlog.is_empty());
    pair.finish(SECOND);
    assert_eq!(losses(&pair), before, "{}", pair.state());
    assert!(pair.ends[A].lcb.retry_timeout() <= timeout.times(2));
}

pub fn packets_after_an_idle_time_are_sent_once<L: Link>() {
    let mut pair = flowing::<L>(|_| {});
    let before = losses(&pair);
    for rest in 1..100 {
        pair.run_for(Duration::from_ms(rest));
        pair.exchange(1, SECOND);
    }
    assert_eq!(losses(&pair), before, "{}", pair.state());
}
