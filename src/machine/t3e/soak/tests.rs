//! Random tori, and the canaries of what is looked at in them.

use super::*;
use crate::machine::t3e::link::sabotage::{self, Sabotage};
use crate::sim::check::Violation;
use crate::sim::soak::tests::*;
use crate::sim::soak::{CaseReport, Failure};

#[test]
fn a_seed_is_one_case_and_one_run() {
    one_case_and_one_run::<Tori>();
}

#[test]
fn the_words_of_many_seeds_are_netems() {
    words_are_netems::<Tori>();
}

/// The canary: a link that stays down is found, and the schedule shrinks to what it takes.
#[test]
fn a_failure_is_found_and_shrunk() {
    found_and_shrunk::<Tori>();
}

#[test]
fn a_seed_with_late_copies_has_what_it_is_for() {
    late_cases_have_theirs::<Tori>(|spec| spec.settings.lane_retry_threshold > 0);
}

#[test]
fn lanes_are_given_up_and_ends_stand_still_while_copies_come() {
    lanes_and_stops_beside_copies::<Tori>();
}

#[test]
fn a_network_that_is_not_allowed_to_lose_and_does_is_a_failure() {
    losses_are_found::<Tori>(|case| case.traffic.count > 100);
}

#[test]
fn a_trace_tells_what_was_done_and_what_came_of_it() {
    trace_tells_what_was_done::<Tori>();
}

#[test]
fn every_kind_of_harm_and_torus_comes_up() {
    let cases: Vec<Case<Tori>> = (0..400).map(Case::random).collect();
    assert_eq!(kinds(&cases).len(), 9, "{:?}", kinds(&cases));
    let any = |wanted: fn(&Case<Tori>) -> bool| cases.iter().any(wanted);
    let size = |case: &Case<Tori>| case.spec.shape.size();
    assert!(any(|case| case.spec.shape.size()[0] == 5));
    assert!(cases.iter().any(|case| size(case).iter().all(|size| *size > 1)));
    assert!(any(|case| case.spec.shape.size()[0] == 2));
    assert!(any(|case| !case.spec.shape.partial().is_empty()));
    assert!(any(|case| case.spec.defects.iter().count() > 1));
    assert!(any(|case| case.spec.spares > 0));
    assert!(any(|case| !case.spec.adaptive));
    assert!(any(|case| case.spec.settings.profile == Profile::Paper));
    for channels in Channels::ALL {
        let has = |case: &Case<Tori>| case.spec.channels == channels.1;
        assert!(cases.iter().any(has), "{channels:?}");
    }
    for op in [Operation::Put, Operation::Get, Operation::Amo] {
        assert!(cases.iter().any(|case| case.traffic.op == op), "{op:?}");
    }
    assert!(any(|case| case.harms.is_empty()) && any(|case| case.impairment.is_empty()));
    let kept = |case: &&Case<Tori>| !any_harm(case, Harm::destroys);
    assert!(cases.iter().filter(kept).count() > 100);
}

#[test]
fn what_is_on_its_way_in_a_torus_is_not_at_rest() {
    let is_long = |case: &Case<Tori>| {
        let is_paced = case.spec.settings.profile == Profile::Paper;
        is_paced && case.traffic.count > 100 && case.traffic.window > 50
    };
    let case = (1..).map(Case::random).find(is_long);
    let found = found_on_the_way(&case.unwrap(), 2_000, Duration::from_ns(100));
    let any = |wanted: fn(&Violation) -> bool| found.iter().any(wanted);
    assert!(any(|v| matches!(v, Violation::Outstanding { .. })));
    assert!(any(|v| matches!(v, Violation::Credits { .. })));
    assert!(any(|v| matches!(v, Violation::Unacknowledged { .. })));
}

/// The first of these cases that fails while link ends make a mistake, which passes without.
fn found(
    mistake: Sabotage,
    cases: impl Iterator<Item = Case<Tori>>,
) -> (Case<Tori>, Failure) {
    let fails = |case: Case<Tori>| {
        let failure = sabotage::during(mistake, || run(&case)).err()?;
        Some((case, failure))
    };
    let (case, failure) = cases.take(60).find_map(fails).expect("one fails");
    let outcome: Result<CaseReport, Failure> = run(&case);
    assert!(outcome.is_ok(), "not for the mistake's sake");
    (case, failure)
}

/// The canaries of credits: told twice, or not at all.
#[test]
fn credits_that_are_told_wrongly_are_found() {
    for mistake in [Sabotage::CreditsTwice, Sabotage::CreditsLost] {
        let (_, failure) = found(mistake, (0..).map(Case::random));
        let text = failure.to_string();
        assert!(text.contains("of credit are left") || text.contains("rx_overflows"), "{text}");
    }
}

/// The canary of what sessions cut off: a packet of which the rest never comes is found.
#[test]
fn packets_that_are_cut_and_not_made_up_are_found() {
    let is_cut = |case: &Case<Tori>| {
        let destroys = |harm: &Harm<FlitHarm>| {
            matches!(harm, Harm::DownAndUp { .. } | Harm::RestartRouter { .. })
        };
        case.harms.iter().any(|(_, harm)| destroys(harm)) && case.traffic.size > 8
    };
    found(Sabotage::CutsStay, (0..).map(Case::random).filter(is_cut));
}

/// The canary of wrong bits: a destination that takes two of them for none is found.
#[test]
fn wrong_bits_that_nobody_looks_at_are_found() {
    let noisy = |seed| {
        let mut case = Case::<Tori>::random(seed);
        case.harms.clear();
        case.traffic.op = Operation::Put;
        case.traffic.size = 64;
        case.traffic.count = 2_000;
        case
    };
    let broken = |case: &Case<Tori>| {
        let mut world = case.bring_up().ok()?;
        for link in world.links() {
            for (node, port) in world.fabric.ends(link) {
                // Two wrong bits in many packets.
                let fault = LinkFault::LaneNoise {
                    lane: 3,
                    per_bit: Probability::from_ratio(1, 2_000),
                };
                let done = world
                    .fabric
                    .command(node, |device, now| device.link_fault(now, port, fault));
                done.expect("links can suffer it");
            }
        }
        world.start_traffic(&case.traffic).ok()?;
        world.fabric.run_for(Duration::from_ms(200));
        let report = world.report(RUNS[0]);
        Some((report.corrupted, report.refused))
    };
    let case = noisy(3);
    let (corrupted, refused) = broken(&case).expect("it runs");
    assert!(corrupted == 0 && refused > 0, "{corrupted} {refused}");
    let (corrupted, _) = sabotage::during(Sabotage::WrongWordsPass, || broken(&case)).unwrap();
    assert!(corrupted > 0);
}

/// A few dozen seeds; `phitwire soak` has more.
#[test]
fn many_seeds_pass() {
    for seed in 0..60 {
        if let Err(failure) = run(&Case::<Tori>::random(seed)) {
            panic!("{seed}: {failure}");
        }
    }
}
