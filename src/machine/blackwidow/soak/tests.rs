//! Random BlackWidow networks, and the canaries of what is looked at in them.

use super::*;
use crate::sim::check::Violation;
use crate::sim::soak::tests::*;

#[test]
fn a_seed_is_one_case_and_one_run() {
    one_case_and_one_run::<Blackwidow>();
}

#[test]
fn the_words_of_many_seeds_are_netems() {
    words_are_netems::<Blackwidow>();
}

/// The canary: a link that stays down is found, and the schedule shrinks to what it takes.
#[test]
fn a_failure_is_found_and_shrunk() {
    found_and_shrunk::<Blackwidow>();
}

#[test]
fn a_seed_with_late_copies_has_what_it_is_for() {
    late_cases_have_theirs::<Blackwidow>(|spec| spec.settings.lane_retry_threshold > 0);
}

#[test]
fn lanes_are_given_up_and_ends_stand_still_while_copies_come() {
    lanes_and_stops_beside_copies::<Blackwidow>();
}

/// The canary: with numbers that come round during a run, late copies do their harm, and it is
/// found.
#[test]
fn what_late_copies_do_to_short_numbers_is_found() {
    short_numbers_are_found::<Blackwidow>(canary::with_short_numbers::<14>);
}

#[test]
fn a_network_that_is_not_allowed_to_lose_and_does_is_a_failure() {
    losses_are_found::<Blackwidow>(|case| case.topology().unwrap().chips.len() == 1);
}

#[test]
fn a_trace_tells_what_was_done_and_what_came_of_it() {
    trace_tells_what_was_done::<Blackwidow>();
}

#[test]
fn every_kind_of_harm_and_network_comes_up() {
    let cases: Vec<Case<Blackwidow>> = (0..300).map(Case::random).collect();
    assert_eq!(kinds(&cases).len(), 9, "{:?}", kinds(&cases));
    let any = |wanted: fn(&Case<Blackwidow>) -> bool| cases.iter().any(wanted);
    assert!(any(|case| case.spec.slices > 1));
    assert!(any(|case| case.topology().unwrap().chips.len() > 4));
    assert!(any(|case| case.impairment.contains("gemodel")));
    assert!(any(|case| case.harms.is_empty()));
}

#[test]
fn what_is_on_its_way_is_not_at_rest() {
    // The canaries of what only a network's own checks look at.
    // At the chip's own pace: without one, phits pass a router in no time.
    let is_paced =
        |case: &Case<Blackwidow>| case.spec.settings.profile == crate::net::Profile::Paper;
    let case = (1..).map(Case::random).find(is_paced);
    let found = found_on_the_way(&case.unwrap(), 2_000, Duration::from_ns(100));
    let any = |wanted: fn(&Violation) -> bool| found.iter().any(wanted);
    assert!(any(|v| matches!(v, Violation::Inside { .. })));
    assert!(any(|v| matches!(v, Violation::Outstanding { .. })));
    assert!(any(|v| matches!(v, Violation::Credits { .. })));
}
