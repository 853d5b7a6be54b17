//! Tests and canaries of cases over encoded links: those of every machine, and what each has of its
//! own.

use std::collections::BTreeSet;

use super::*;
use crate::machine::aries::soak::AriesLinks;
use crate::machine::blackwidow::soak::Blackwidow;
use crate::nic::Operation;
use crate::sim::fabric::LinkId;

type Forgery = fn(&[u8], Vec<u8>) -> Vec<u8>;

fn run<M: Soaked>(case: &Case<M>) -> Result<Outcome, Failure> {
    case.run(&mut |_, _| {})
}

fn any_harm<M: Soaked>(case: &Case<M>, wanted: fn(&Harm<M::Own>) -> bool) -> bool {
    case.harms.iter().any(|(_, harm)| wanted(harm))
}

fn kinds<M: Soaked>(cases: &[Case<M>]) -> BTreeSet<Option<String>> {
    let harms = cases.iter().flat_map(|case| &case.harms);
    let texts = harms.map(|(_, harm)| format!("{harm:?}"));
    let words = texts.map(|text| text.split([' ', '{']).next().map(str::to_owned));
    words.collect()
}

fn one_case_and_one_run<M: Soaked>() {
    let hash = |seed| {
        let outcome = run(&Case::<M>::random(seed));
        outcome.expect("the case passes").trace_hash
    };
    assert_eq!(hash(3), hash(3));
    assert_ne!(hash(3), hash(4));
}

#[test]
fn a_seed_is_one_case_and_one_run() {
    one_case_and_one_run::<Blackwidow>();
    one_case_and_one_run::<AriesLinks>();
}

fn words_are_netems<M: Soaked>() {
    for seed in 0..2_000 {
        let case = Case::<M>::random(seed);
        words(&case.impairment);
        for (_, harm) in &case.harms {
            if let Harm::Impair { words: text, .. } = harm {
                words(text);
            }
        }
    }
}

#[test]
fn the_words_of_many_seeds_are_netems() {
    words_are_netems::<Blackwidow>();
    words_are_netems::<AriesLinks>();
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
fn every_kind_of_harm_dragonfly_and_message_comes_up() {
    let cases: Vec<Case<AriesLinks>> = (0..400).map(Case::random).collect();
    assert_eq!(kinds(&cases).len(), 11, "{:?}", kinds(&cases));
    let any = |wanted: fn(&Case<AriesLinks>) -> bool| cases.iter().any(wanted);
    assert!(any(
        |case| case.spec.shape.groups == 3 && case.spec.shape.chassis == 2
    ));
    assert!(any(|case| case.spec.shape.groups == 1) && any(|case| case.spec.shape.routers() == 1));
    assert!(any(|case| case.traffic.size > 64) && any(|case| case.traffic.size < 8));
    for op in [Operation::Put, Operation::Get, Operation::Amo] {
        assert!(cases.iter().any(|case| case.traffic.op == op), "{op:?}");
    }
    assert!(any(|case| case.collectives.is_some()) && any(|case| case.collectives.is_none()));
    assert!(any(|case| case.harms.is_empty()) && any(|case| case.impairment.is_empty()));
    let kept = |case: &&Case<AriesLinks>| !any_harm(case, Harm::destroys);
    assert!(cases.iter().filter(kept).count() > 100);
}

fn found_and_shrunk<M: Soaked>() {
    let harmless = Harm::ForceRetry { link: 0 };
    let after = Duration::from_us(10);
    let mut case = Case::<M>::random(1);
    case.harms = [harmless.clone(), Harm::LeaveDown { link: 0 }, harmless]
        .map(|harm| (after, harm))
        .to_vec();
    let failure = run(&case).expect_err("a link is down");
    assert!(matches!(failure, Failure::LinksDown { .. }), "{failure}");
    let mut asked = 0;
    let case: &dyn SoakCase = &case;
    let keep = case.shrink(|case| {
        asked += 1;
        case.run(&mut |_, _| {}).is_err()
    });
    assert_eq!(keep.harms, Some(vec![1]));
    assert_eq!(keep.messages, Some(1));
    assert_eq!(keep.clear, !case.whole().clear);
    assert!(asked < 30, "{asked}");
    let least = case.reduced(&keep);
    assert_eq!(least.whole().harms, Some(vec![0]));
    assert!(least.run(&mut |_, _| {}).is_err());
}

/// The canary: a link that stays down is found, and the schedule shrinks to what it takes.
#[test]
fn a_failure_is_found_and_shrunk() {
    found_and_shrunk::<Blackwidow>();
    found_and_shrunk::<AriesLinks>();
}

/// What 200 cases with late copies must have, of which those that give lanes up are told by
/// `gives_up`.
fn late_cases_have_theirs<M: Soaked>(gives_up: fn(&M::Spec) -> bool) -> Vec<Case<M>> {
    let cases: Vec<Case<M>> = (0..200).map(Case::with_late_copies).collect();
    for case in &cases {
        let first = &case.harms[0].1;
        assert!(
            matches!(first, Harm::LateCopiesEverywhere { .. }),
            "{case:?}"
        );
        words(&case.impairment);
        // Corruption charges all lanes of a link, until it has none.
        let is_corrupt = |text: &str| text.contains("corrupt");
        if gives_up(&case.spec) {
            assert!(!is_corrupt(&case.impairment), "{case:?}");
            for (_, harm) in &case.harms {
                let bad = match harm {
                    Harm::Impair { words: text, .. } => {
                        words(text);
                        is_corrupt(text)
                    }
                    Harm::LaneNoise { lane, .. } => *lane != 0,
                    _ => false,
                };
                assert!(!bad, "{case:?}");
            }
        }
    }
    let has = |wanted: fn(&Harm<M::Own>) -> bool| {
        let cases = cases.iter().filter(|case| any_harm(case, wanted));
        cases.count()
    };
    let long = cases.iter().filter(|case| case.traffic.count >= 100_000);
    assert!(long.count() > 4);
    assert!(has(|harm| matches!(harm, Harm::LoseLane { .. })) > 60);
    assert!(has(|harm| matches!(harm, Harm::Stop { .. })) > 60);
    assert!(has(|harm| matches!(harm, Harm::RestartEnd { .. })) > 30);
    assert!(cases.iter().filter(|case| gives_up(&case.spec)).count() > 60);
    cases
}

#[test]
fn a_seed_with_late_copies_has_what_it_is_for() {
    late_cases_have_theirs::<Blackwidow>(|spec| spec.settings.lane_retry_threshold > 0);
    late_cases_have_theirs::<AriesLinks>(|spec| spec.settings.lane_retry_threshold > 0);
}

fn lanes_and_stops_beside_copies<M: Soaked>() {
    // Nothing in them is destroyed: all that was sent has to arrive.
    let is_whole = |case: &Case<M>| {
        any_harm(case, |harm| matches!(harm, Harm::Stop { .. }))
            && any_harm(case, |harm| matches!(harm, Harm::LoseLane { .. }))
            && !any_harm(case, Harm::may_lose)
            && case.traffic.count < 100_000
    };
    let cases = (1..).map(Case::with_late_copies).filter(is_whole);
    let outcomes: Vec<_> = cases
        .take(4)
        .map(|case| run(&case).expect("it passes"))
        .collect();
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    assert!(sum(|o| o.late_copies) > 400, "{outcomes:?}");
    assert!(sum(|o| o.lanes_given_up) > 0, "{outcomes:?}");
}

#[test]
fn lanes_are_given_up_and_ends_stand_still_while_copies_come() {
    lanes_and_stops_beside_copies::<Blackwidow>();
    lanes_and_stops_beside_copies::<AriesLinks>();
}

fn short_numbers_are_found<M: Soaked>(forgery: Forgery) {
    let found = (1..20)
        .map(Case::<M>::with_late_copies)
        .filter(|case| case.traffic.count < 100_000)
        .find_map(|mut case| {
            case.forgery = Some(forgery);
            case.traffic.count = 20_000;
            run(&case).is_err().then_some(case)
        });
    let mut case = found.expect("a case that fails");
    case.forgery = None;
    assert!(run(&case).is_ok(), "not for the numbers' sake");
}

/// The canary: with numbers that come round during a run, late copies do their harm, and it is
/// found.
#[test]
fn what_late_copies_do_to_short_numbers_is_found() {
    short_numbers_are_found::<Blackwidow>(canary::with_short_numbers::<14>);
    short_numbers_are_found::<AriesLinks>(canary::with_short_numbers::<7>);
}

/// What is found of a case's traffic while it flows, looked at that often with so much time
/// between.
fn found_on_the_way<M: Soaked>(case: &Case<M>, looks: u32, every: Duration) -> Vec<Violation> {
    let mut world = case.bring_up().expect("links come up");
    world.fabric.run_for(Duration::from_ms(1));
    assert_eq!(world.violations(), []);
    case.start(&mut world).expect("the runs begin");
    let mut found = Vec::new();
    for _ in 0..looks {
        world.fabric.run_for(every);
        found.extend(world.violations());
    }
    found
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

#[test]
fn what_is_on_its_way_in_a_dragonfly_is_not_at_rest() {
    let is_long = |case: &Case<AriesLinks>| case.traffic.count > 100 && case.traffic.window > 50;
    let case = (1..).map(Case::random).find(is_long);
    let found = found_on_the_way(&case.unwrap(), 500, Duration::from_us(1));
    let any = |wanted: fn(&Violation) -> bool| found.iter().any(wanted);
    assert!(any(|v| matches!(v, Violation::Outstanding { .. })));
    assert!(any(|v| matches!(v, Violation::Credits { .. })));
    assert!(any(|v| matches!(v, Violation::Unacknowledged { .. })));
    assert!(any(|v| matches!(v, Violation::Conservation { .. })));
}

/// The canary of flits inside: a router whose link to a network interface hears nothing keeps what
/// it has for it.
#[test]
fn a_router_that_keeps_flits_is_found() {
    let is_large = |case: &Case<AriesLinks>| case.spec.shape.all_nics() > 5;
    let case = (1..).map(Case::random).find(is_large);
    let mut case = case.expect("there are many cases");
    // More than the link's own buffers hold.
    case.traffic = TrafficSpec {
        size: 64,
        window: 1_000,
        count: 1_000_000,
        op: Operation::Put,
        ways: None,
        ..case.traffic
    };
    case.traffic.pattern = crate::nic::Pattern::List {
        destinations: vec![0],
    };
    let mut world = case.bring_up().expect("links come up");
    let nic = world.nics().next().expect("there are some");
    let at_nic = |link: &LinkId| {
        let ends = world.fabric.ends(*link);
        ends.iter().any(|(node, _)| *node == nic)
    };
    let link = world.links().find(at_nic).expect("it has a link");
    world.start_traffic(&case.traffic).expect("the run begins");
    world.fabric.run_for(Duration::from_us(500));
    world.fabric.cut(link);
    world.fabric.run_for(Duration::from_ms(20));
    let found = world.violations();
    let inside = |v: &Violation| matches!(v, Violation::Inside { .. });
    assert!(found.iter().any(inside), "{found:?}");
}

fn losses_are_found<M: Soaked>(wanted: fn(&Case<M>) -> bool) {
    // A router that restarts loses what it holds. Told that nothing may be lost, the checkers
    // complain.
    let cases = (1..200).map(Case::<M>::random).filter(wanted);
    let lossy = cases.into_iter().find_map(|mut case| {
        case.collectives = None;
        let mut world = case.bring_up().ok()?;
        case.start(&mut world).ok()?;
        world.fabric.run_for(Duration::from_us(50));
        let router = world.routers().next()?;
        world.restart(router).ok()?;
        case.finish(&mut world, RUNS[0], Allowance::default()).err()
    });
    let failure = lossy.expect("some restart hits a message");
    assert!(matches!(failure, Failure::Violations { .. }), "{failure}");
    assert!(failure.to_string().contains("messages:"), "{failure}");
}

#[test]
fn a_network_that_is_not_allowed_to_lose_and_does_is_a_failure() {
    losses_are_found::<Blackwidow>(|case| case.topology().unwrap().chips.len() == 1);
    losses_are_found::<AriesLinks>(|_| true);
}

#[test]
fn a_trace_tells_what_was_done_and_what_came_of_it() {
    let mut cases = (0..).map(Case::<Blackwidow>::random);
    let case = cases.find(|case| !case.harms.is_empty());
    let case = case.expect("most cases have some harm");
    let mut told = Vec::new();
    case.run(&mut |at, text| told.push((at, text.to_owned())))
        .expect("the case passes");
    let harms = told.iter().filter(|(_, text)| text.starts_with("harm: "));
    assert_eq!(harms.count(), case.harms.len());
    assert!(told.iter().any(|(_, text)| text.contains("Up {")));
}
