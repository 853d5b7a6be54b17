//! Suspended processes: a suspended host, a frozen control group, a starved processor.
//!
//! No frame that the wires carried is lost, whichever ends are suspended, however long, and in
//! whatever order they resume, as long as no running end waits beyond its timeout.

use super::rig::{A, B, Link, Pair, SECOND, made};
use crate::link::{DownReason, LinkProfile, LinkView};
use crate::rng::Rng;
use crate::time::Duration;

const GIVE_UP: Duration = Duration::from_ms(2_000);
const MS: Duration = Duration::from_ms(1);

fn pair<L: Link>(seed: u64) -> Pair<L> {
    let max_probes = LinkProfile::live().max_probes;
    asking(seed, max_probes)
}

fn asking<L: Link>(seed: u64, max_probes: Option<u32>) -> Pair<L> {
    let profile = || LinkProfile {
        give_up: Some(GIVE_UP),
        max_probes,
        ..LinkProfile::live()
    };
    let [a, b] = [(A, 1_000), (B, 2_000)].map(|(end, epoch)| made::<L>(end, epoch, profile()));
    let mut pair = Pair::with(seed, a, b, super::rig::FRAME_BYTES);
    pair.wait_up();
    pair
}

fn no_session_ended<L: Link>(pair: &Pair<L>) -> bool {
    [A, B].iter().all(|&end| pair.downs(end).is_empty())
}

/// Keeps packets in flight in both directions for `span`.
fn busy<L: Link>(pair: &mut Pair<L>, span: Duration) {
    let end = pair.now + span;
    while pair.now < end {
        for to in [A, B] {
            if pair.ends[to].backlog.len() < 20 {
                pair.load(to, 5);
            }
        }
        let left = end.since(pair.now);
        pair.run_for(left.min(MS.times(50)));
    }
}

/// Suspends one or both ends once. Random: which end stops first, the delay until the other stops,
/// the length, and the order and spacing in which they resume.
fn stand_still<L: Link>(pair: &mut Pair<L>, rng: &mut Rng) {
    let first = rng.below(2) as usize;
    let apart = MS.times(rng.below(700));
    pair.freeze(first);
    busy(pair, apart);
    if rng.chance(1, 3) {
        // The other end keeps running and must not time out.
        busy(pair, MS.times(rng.below(800)));
        pair.thaw(first);
        return;
    }
    pair.freeze(1 - first);
    let ms = [60, 600, 3_000, 30_000][rng.below(4) as usize];
    let span = MS.times(rng.below(ms) + 1);
    pair.run_for(span);
    let woken = rng.below(2) as usize;
    pair.thaw(woken);
    // An end that was suspended waits longer by the length of the suspension.
    let late = span.as_ns() / 1_000_000;
    busy(pair, MS.times(rng.below(600 + late.min(16_000))));
    pair.thaw(1 - woken);
}

fn standstills<L: Link>(pair: &mut Pair<L>, seed: u64) {
    let mut rng = Rng::new(seed, 7);
    pair.wire(|wire| wire.loss = [0, 0, 100][seed as usize % 3]);
    for _ in 0..6 {
        stand_still(pair, &mut rng);
        busy(pair, MS.times(rng.below(1_500)));
    }
    pair.wire(|wire| wire.loss = 0);
}

pub fn ends_that_stand_still_for_any_time_lose_nothing<L: Link>() {
    for seed in 0..24 {
        let mut pair = pair::<L>(seed);
        standstills(&mut pair, seed);
        pair.finish(SECOND.times(10));
        assert!(no_session_ended(&pair), "seed {seed}: {}", pair.state());
    }
}

/// Canary of the test above: by clock time alone, the same suspensions end sessions.
pub fn by_the_clock_alone_the_same_standstills_end_sessions<L: Link>() {
    let ended = (0..24).filter(|&seed| {
        let mut pair = pair::<L>(seed);
        pair.attends = false;
        pair.allow_gaps();
        standstills(&mut pair, seed);
        !no_session_ended(&pair)
    });
    assert!(ended.count() > 12);
}

pub fn a_half_frozen_link_is_given_up_in_its_time_and_comes_back<L: Link>() {
    for ran_before in [false, true] {
        let mut pair = pair::<L>(1);
        pair.allow_gaps();
        if ran_before {
            // Suspend both ends once, and let the resulting extension run out.
            for end in [A, B] {
                pair.freeze(end);
            }
            pair.run_for(SECOND.times(5));
            for end in [A, B] {
                pair.thaw(end);
            }
            pair.run_for(SECOND);
        }
        pair.load(A, 20);
        pair.freeze(B);
        let begin = pair.now;
        pair.run_until(GIVE_UP.times(2), |pair| !pair.downs(A).is_empty());
        assert_eq!(pair.downs(A), [DownReason::Silence]);
        let after = pair.now.since(begin);
        assert!(
            (GIVE_UP..GIVE_UP + MS.times(700)).contains(&after),
            "{after:?}"
        );
        pair.run_for(SECOND.times(30));
        pair.thaw(B);
        pair.wait_up();
        pair.exchange(50, SECOND);
    }
}

pub fn a_peer_that_resumes_late_may_still_acknowledge<L: Link>() {
    let mut pair = pair::<L>(1);
    pair.wire(|wire| wire.delay = MS.times(60));
    pair.exchange(50, SECOND.times(20));
    pair.load(A, 300);
    pair.run_for(MS);
    pair.freeze(B);
    pair.run_for(MS.times(1_880));
    // B is heard 1,950 ms after A sent what B owes, and acknowledges it another 60 ms later.
    pair.wires[B].cut = true;
    pair.sockets_lose(B);
    pair.load(B, 1);
    pair.thaw(B);
    pair.run_for(MS);
    pair.wires[B].cut = false;
    pair.finish(SECOND.times(20));
    assert!(no_session_ended(&pair), "{}", pair.state());
}

/// Number of units resent although no frame was lost, when one end runs only now and then, as on a
/// starved host.
fn resent_to_a_starved_peer<L: Link>(max_probes: Option<u32>) -> u64 {
    let mut pair = asking::<L>(1, max_probes);
    pair.exchange(100, SECOND);
    for _ in 0..20 {
        pair.load(A, 5);
        pair.freeze(B);
        pair.run_for(MS.times(300));
        pair.thaw(B);
        pair.run_for(MS.times(5));
    }
    pair.finish(SECOND);
    assert!(no_session_ended(&pair), "{}", pair.state());
    pair.ends[A].lcb.resent()
}

pub fn nothing_is_resent_to_a_starved_peer<L: Link>() {
    assert_eq!(
        resent_to_a_starved_peer::<L>(LinkProfile::live().max_probes),
        0
    );
}

/// Canary of the test above: with a limited number of probes, data is resent to a silent peer.
pub fn a_starved_peer_is_resent_what_it_has_by_a_limit_of_probes<L: Link>() {
    assert!(resent_to_a_starved_peer::<L>(Some(4)) > 0);
}

pub fn a_cut_link_between_starved_ends_is_given_up_all_the_same<L: Link>() {
    let mut pair = pair::<L>(1);
    pair.allow_gaps();
    pair.load(A, 20);
    pair.wire(|wire| wire.cut = true);
    let mut rounds = 0;
    while pair.ends.iter().any(|end| end.lcb.is_active()) {
        pair.run_for(MS.times(5));
        for end in [A, B] {
            pair.freeze(end);
        }
        pair.run_for(MS.times(300));
        for end in [A, B] {
            pair.thaw(end);
        }
        rounds += 1;
        assert!(rounds < 1_000, "{}", pair.state());
    }
    assert_eq!(
        [A, B].map(|end| pair.downs(end)),
        [[DownReason::Silence]; 2]
    );
    // Each round counts as 55 ms, and the extension after suspensions adds to the timeout.
    assert!(rounds > 30, "{rounds}");
}
