//! The terms that two YARC ends agree on, and the remains of an old session.

use phitwire_framing::carrier::frame::LinkEnd;
use phitwire_framing::yarc::packet::Vc;

use crate::link::testing::{Pair, config, live, with};
use crate::link::{PhitLinkConfig, PhitProfile, STANDARD};
use phitwire::link::testing::end::Drain;
use phitwire::link::testing::rig::{A, B, SECOND, name};
use phitwire::link::{LinkClock, LinkConfig, LinkConfigError, LinkProfile, LinkView, NodeLink};
use phitwire::time::Duration;

#[test]
fn both_ends_agree_on_the_smaller_window_and_each_on_the_other_s_buffer() {
    let small = PhitProfile {
        window_packets: 8,
        input_phits_per_vc: 40,
        retry_phits: 200,
        ..PhitProfile::live()
    };
    let a = with(config(A), small);
    let mut pair = Pair::with(5, a, live(B), 1_472);
    pair.wait_up();
    assert_eq!(pair.ends[B].lcb.wire().credits(Vc::Request), 40);
    assert_eq!(pair.ends[A].lcb.wire().credits(Vc::Request), 16_365);
    pair.wire(|wire| wire.cut = true);
    pair.load(A, 100);
    pair.run_for(SECOND);
    assert_eq!(pair.ends[A].lcb.unacknowledged_packets(), 8);
    pair.wire(|wire| wire.cut = false);
    pair.load(B, 500);
    pair.finish(SECOND.times(5));
}

#[test]
fn phits_of_an_old_session_in_the_input_queue_count_against_the_new_credits() {
    let mut pair = Pair::up(9);
    pair.ends[A].drain = Drain::Blocked;
    pair.load(B, 1_000);
    pair.run_for(Duration::from_ms(2));
    let queued = Vc::ALL.map(|vc| pair.ends[A].lcb.input().len(vc));
    assert!(queued.iter().all(|phits| *phits > 1_000));
    pair.load(A, 2);
    pair.replace(B, 5);
    pair.run_until(SECOND, |pair| {
        pair.ends[A].lcb.epochs().1 == 5 && pair.ends[B].lcb.is_active()
    });
    pair.run_for(Duration::from_ms(2));
    for vc in Vc::ALL {
        assert_eq!(
            pair.ends[B].lcb.wire().credits(vc),
            16_365 - queued[vc.index()]
        );
    }
    pair.ends[A].drain = Drain::Eager;
    pair.run_until(SECOND, |pair| pair.credits_are_back());
}

#[test]
fn configurations_that_cannot_work_are_not_built() {
    let base = || config(A);
    let link = || base().build().unwrap();
    let profile = |change: fn(&mut PhitProfile)| {
        let mut profile = PhitProfile::live();
        change(&mut profile);
        PhitLinkConfig::new(link(), profile, 19).unwrap_err()
    };
    let unnamed = base().epoch(0).build().unwrap_err();
    assert_eq!(unnamed, LinkConfigError::ZeroEpoch);
    for longest in [3, 20] {
        assert!(PhitLinkConfig::new(link(), PhitProfile::live(), longest).is_err());
    }
    let timeless = LinkProfile {
        max_retry_timeout: Duration::ZERO,
        ..LinkProfile::live()
    };
    let error = base().profile(timeless).build().unwrap_err().to_string();
    assert!(error.contains("retry"), "{error}");
    let paced = LinkClock::Paced { dilation: 0 };
    let still = base().clock(paced).build().unwrap_err();
    assert_eq!(still, LinkConfigError::ZeroDilation);
    let short = "input_phits_per_vc is 18, expected 19 to 262144";
    type Change = fn(&mut PhitProfile);
    let bad: [(Change, &str); 3] = [
        (|p| p.input_phits_per_vc = 18, short),
        (|p| p.window_packets = 0, "window_packets"),
        (|p| p.retry_phits = 5, "retry_phits"),
    ];
    for (change, words) in bad {
        let error = profile(change).to_string();
        assert!(error.contains(words), "{error}");
    }
    let end = |local| {
        let builder = LinkConfig::builder(STANDARD, 1, LinkEnd::A, local, name("b", 0));
        builder.build().unwrap_err()
    };
    assert_eq!(end(name("", 0)), LinkConfigError::NoName { which: "local" });
    let long = end(name(&"x".repeat(33), 0));
    assert!(matches!(long, LinkConfigError::NameTooLong { .. }));
    let zero = end(name("a\0b", 0));
    assert!(matches!(zero, LinkConfigError::NameWithZero { .. }));
}
