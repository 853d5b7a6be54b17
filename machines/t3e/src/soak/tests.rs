//! Random tori, and canaries of their checks.

use super::*;
use crate::link::sabotage::{self, Sabotage};
use phitwire::sim::check::{Allowance, Violation, check_barriers};
use phitwire::sim::soak::testing::*;

#[test]
fn a_seed_is_one_case_and_one_run() {
    one_case_and_one_run::<Tori>();
}

#[test]
fn the_words_of_many_seeds_are_netems() {
    words_are_netems::<Tori>();
}

/// Canary: a link that stays down is found, and the schedule shrinks to the necessary steps.
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
    lanes_and_stops_with_late_copies::<Tori>();
}

#[test]
fn a_network_that_is_not_allowed_to_lose_and_does_is_a_failure() {
    losses_are_found::<Tori>(|case| case.traffic.count > 100);
}

#[test]
fn a_trace_records_actions_and_results() {
    trace_records_actions::<Tori>();
}

#[test]
fn every_kind_of_harm_and_torus_comes_up() {
    let cases: Vec<Case<Tori>> = (0..400).map(Case::random).collect();
    assert_eq!(kinds(&cases).len(), 9, "{:?}", kinds(&cases));
    let any = |wanted: fn(&Case<Tori>) -> bool| cases.iter().any(wanted);
    let size = |case: &Case<Tori>| case.spec.shape.size();
    assert!(any(|case| case.spec.shape.size()[0] == 5));
    assert!(
        cases
            .iter()
            .any(|case| size(case).iter().all(|size| *size > 1))
    );
    assert!(any(|case| case.spec.shape.size()[0] == 2));
    assert!(any(|case| !case.spec.shape.partial().is_empty()));
    assert!(any(|case| case.spec.defects.iter().count() > 1));
    assert!(any(|case| case.spec.spares > 0));
    let is_node = |defect: Defect| matches!(defect, Defect::Node(_));
    let isolates = |case: &&Case<Tori>| case.spec.defects.iter().any(is_node);
    assert!(cases.iter().filter(isolates).count() > 20);
    assert!(any(|case| case.barriers.len() > 1));
    assert!(any(|case| case.barriers.iter().any(|spec| spec.eureka)));
    // All barriers of these cases must complete.
    let alone = |case: &&Case<Tori>| !case.barriers.is_empty() && case.leaves_alone(RUNS[0]);
    assert!(cases.iter().filter(alone).count() > 5);
    let harmed = |case: &&Case<Tori>| !case.barriers.is_empty() && !case.leaves_alone(RUNS[0]);
    assert!(cases.iter().filter(harmed).count() > 10);
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
fn packets_in_flight_in_a_torus_are_not_at_rest() {
    let is_long = |case: &Case<Tori>| {
        let is_paced = case.spec.settings.profile == Profile::Paper;
        is_paced && case.traffic.count > 100 && case.traffic.window > 50
    };
    let case = (1..).map(Case::random).find(is_long);
    let found = found_during_the_run(&case.unwrap(), 2_000, Duration::from_ns(100));
    let any = |wanted: fn(&Violation) -> bool| found.iter().any(wanted);
    assert!(any(|v| matches!(v, Violation::Outstanding { .. })));
    assert!(any(|v| matches!(v, Violation::Credits { .. })));
    assert!(any(|v| matches!(v, Violation::Unacknowledged { .. })));
}

/// Any message may be lost or rejected.
const ANY: Allowance = Allowance {
    refusals: true,
    ..Allowance::DESTROYED
};

/// Violations in a case's traffic while the link of the first processor goes down and up again, and
/// link ends make a mistake.
fn violations(case: &Case<Tori>, mistake: Option<Sabotage>) -> Vec<Violation> {
    let run = || {
        let mut world = case.bring_up().expect("all links come up");
        world.start_traffic(&case.traffic).expect("a run");
        for us in [60, 90, 30] {
            world.fabric.run_for(Duration::from_us(us));
            for (fault, us) in [(LinkFault::Down, 50), (LinkFault::Up, 5_000)] {
                for link in world.links().take(4) {
                    let (node, port) = world.fabric.ends(link)[0];
                    let done = world
                        .fabric
                        .command(node, |device, now| device.link_fault(now, port, fault));
                    done.expect("the link accepts the fault");
                }
                world.fabric.run_for(Duration::from_us(us));
            }
        }
        let is_over = world.finish(case.traffic.run, Duration::from_ms(100_000));
        assert!(is_over || mistake.is_some(), "the run ends");
        let limit = Duration::from_ms(1_000);
        world.drain(case.traffic.run, None, ANY, limit)
    };
    match mistake {
        None => run(),
        Some(mistake) => sabotage::during(mistake, run),
    }
}

/// Canaries of credits that return twice or never, and of data that sessions cut off.
#[test]
fn mistakes_of_link_ends_are_found() {
    let is_long = |case: &Case<Tori>| {
        let traffic = &case.traffic;
        let is_live = case.spec.settings.profile == Profile::Live;
        is_live && traffic.op == Operation::Put && traffic.size > 40 && traffic.window > 100
    };
    let cases: Vec<Case<Tori>> = (0..).map(Case::random).filter(is_long).take(3).collect();
    for case in &cases {
        assert_eq!(violations(case, None), []);
    }
    for mistake in [Sabotage::CreditsTwice, Sabotage::CreditsLost] {
        let found: Vec<_> = cases
            .iter()
            .flat_map(|case| violations(case, Some(mistake)))
            .collect();
        let wanted = |v: &Violation| matches!(v, Violation::Credits { .. });
        assert!(found.iter().any(wanted), "{mistake:?} {found:?}");
    }
}

/// Canary of wrong bits: a destination that accepts two of them is found.
#[test]
fn wrong_bits_that_nobody_looks_at_are_found() {
    let noisy = |seed| {
        let mut case = Case::<Tori>::random(seed);
        case.harms.clear();
        case.traffic.op = Operation::Put;
        case.traffic.size = 64;
        case.traffic.count = 5_000;
        case
    };
    let broken = |case: &Case<Tori>| {
        let mut world = case.bring_up().ok()?;
        for link in world.links() {
            for (node, port) in world.fabric.ends(link) {
                // Two wrong bits in many packets.
                let fault = LinkFault::LaneNoise {
                    lane: 3,
                    per_bit: Probability::from_ratio(1, 5_000),
                };
                let done = world
                    .fabric
                    .command(node, |device, now| device.link_fault(now, port, fault));
                done.expect("the link accepts the fault");
            }
        }
        world.start_traffic(&case.traffic).ok()?;
        world.fabric.run_for(Duration::from_ms(200));
        let report = world.report(RUNS[0]);
        Some((report.corrupted, report.refused))
    };
    let case = noisy(3);
    let (corrupted, refused) = broken(&case).expect("the case runs");
    assert!(corrupted == 0 && refused > 0, "{corrupted} {refused}");
    let (corrupted, _) = sabotage::during(Sabotage::WrongWordsPass, || broken(&case)).unwrap();
    assert!(corrupted > 0);
}

/// Canary of barriers: one that a processor never joins, and one that is released too early.
#[test]
fn barriers_that_are_lost_or_early_are_found() {
    let several = |spec: &&BarrierSpec| spec.processors.len() > 2;
    let (case, spec) = (0..)
        .map(Case::<Tori>::random)
        .find_map(|case| Some((case.clone(), case.barriers.iter().find(several)?.clone())))
        .expect("a case with several barriers");
    let report = |missing: usize| {
        let mut world = case.bring_up().expect("all links come up");
        world.prepare_barriers(&spec).expect("a tree");
        let mut started = spec.clone();
        started.processors.truncate(spec.processors.len() - missing);
        world.start_barriers(&started).expect("the unit is ready");
        assert!(world.finish(RUNS[0], PATIENCE.times(10)), "the run ends");
        world.barrier_report(&started)
    };
    let mut right = report(0);
    assert_eq!(check_barriers(&right, true), Ok(()));
    let is_found = |found| matches!(found, Err(Violation::Barriers(_)));
    let lost = report(1);
    assert!(is_found(check_barriers(&lost, true)), "{lost:?}");
    assert_eq!(
        check_barriers(&lost, false),
        Ok(()),
        "the faults explain the loss"
    );
    right.early = 1;
    assert!(is_found(check_barriers(&right, false)));
}

/// A few dozen seeds without the one that takes longer than all others together; `phitwire soak`
/// runs that and more.
#[test]
fn many_seeds_pass() {
    for seed in (0..30).filter(|seed| *seed != 8) {
        if let Err(failure) = run(&Case::<Tori>::random(seed)) {
            panic!("{seed}: {failure}");
        }
    }
}
