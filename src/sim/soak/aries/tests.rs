use super::*;
use crate::nic::Operation;
use crate::sim::soak::canary;

#[test]
fn a_seed_is_one_case_and_one_run() {
    let hash = |seed| {
        let outcome = AriesCase::random(seed).run(&mut |_, _| {});
        outcome.expect("the case passes").trace_hash
    };
    assert_eq!(hash(3), hash(3));
    assert_ne!(hash(3), hash(4));
}

#[test]
fn every_kind_of_harm_network_and_message_comes_up() {
    let cases: Vec<AriesCase> = (0..400).map(AriesCase::random).collect();
    let mut kinds = std::collections::BTreeSet::new();
    for (_, harm) in cases.iter().flat_map(|case| &case.harms) {
        let text = format!("{harm:?}");
        kinds.insert(text.split([' ', '{']).next().map(str::to_owned));
        if let AriesHarm::Impair { words: text, .. } = harm {
            words(text);
        }
    }
    assert_eq!(kinds.len(), 11, "{kinds:?}");
    let any = |wanted: fn(&AriesCase) -> bool| cases.iter().any(wanted);
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
    let kept = |case: &AriesCase| !case.harms.iter().any(|(_, harm)| harm.destroys());
    assert!(cases.iter().filter(|case| kept(case)).count() > 100);
}

/// The canary: a link that stays down is found, and the schedule shrinks to what it takes.
#[test]
fn a_failure_is_found_and_shrunk() {
    let harmless = AriesHarm::ForceRetry { link: 0 };
    let after = Duration::from_us(10);
    let mut case = AriesCase::random(1);
    case.harms = [harmless.clone(), AriesHarm::LeaveDown { link: 0 }, harmless]
        .map(|harm| (after, harm))
        .to_vec();
    let run = |case: &AriesCase| case.run(&mut |_, _| {});
    let failure = run(&case).expect_err("a link is down");
    assert!(
        matches!(failure, AriesFailure::LinksDown { .. }),
        "{failure}"
    );
    let keep = case.shrink(|case| run(case).is_err());
    assert_eq!(keep.harms, Some(vec![1]));
    assert_eq!(keep.messages, Some(1));
    assert_eq!(keep.clear, !case.impairment.is_empty());
    let least = case.reduced(&keep);
    assert_eq!(least.harms.len(), 1);
    assert!(run(&least).is_err());
}

#[test]
fn a_seed_with_late_copies_has_what_it_is_for() {
    let cases: Vec<AriesCase> = (0..200).map(AriesCase::with_late_copies).collect();
    for case in &cases {
        let first = &case.harms[0].1;
        assert!(
            matches!(first, AriesHarm::LateCopiesEverywhere { .. }),
            "{case:?}"
        );
        words(&case.impairment);
        if case.spec.settings.lane_retry_threshold > 0 {
            assert!(!case.impairment.contains("corrupt"), "{case:?}");
            for (_, harm) in &case.harms {
                if let AriesHarm::Impair { words: text, .. } = harm {
                    words(text);
                    assert!(!text.contains("corrupt"), "{case:?}");
                }
            }
        }
    }
    let has = |wanted: fn(&AriesHarm) -> bool| {
        let in_case = |case: &&AriesCase| case.harms.iter().any(|(_, harm)| wanted(harm));
        cases.iter().filter(in_case).count()
    };
    assert!(has(|harm| matches!(harm, AriesHarm::LoseLane { .. })) > 60);
    assert!(has(|harm| matches!(harm, AriesHarm::Stop { .. })) > 60);
    assert!(has(|harm| matches!(harm, AriesHarm::RestartEnd { .. })) > 30);
}

#[test]
fn lanes_are_given_up_and_ends_stand_still_while_copies_come() {
    // Nothing in them is destroyed: all that was sent has to arrive.
    let is_whole = |case: &AriesCase| {
        let any = |wanted: fn(&AriesHarm) -> bool| case.harms.iter().any(|(_, harm)| wanted(harm));
        any(|harm| matches!(harm, AriesHarm::Stop { .. }))
            && any(|harm| matches!(harm, AriesHarm::LoseLane { .. }))
            && !any(AriesHarm::destroys)
            && case.traffic.count < 100_000
    };
    let cases = (1..).map(AriesCase::with_late_copies).filter(is_whole);
    let outcomes: Vec<_> = cases
        .take(4)
        .map(|case| case.run(&mut |_, _| {}).expect("it passes"))
        .collect();
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    assert!(sum(|o| o.late_copies) > 400, "{outcomes:?}");
    assert!(sum(|o| o.lanes_given_up) > 0, "{outcomes:?}");
}

/// The canary: with numbers that come round during a run, late copies do their harm, and it is found.
#[test]
fn what_late_copies_do_to_short_numbers_is_found() {
    let is_short = |case: &AriesCase| case.traffic.count < 100_000;
    let found = (1..20)
        .map(AriesCase::with_late_copies)
        .filter(is_short)
        .find_map(|case| {
            let forgery = Some(canary::with_short_numbers::<7> as fn(&[u8], Vec<u8>) -> Vec<u8>);
            let mut case = AriesCase { forgery, ..case };
            case.traffic.count = 20_000;
            case.run(&mut |_, _| {}).err().map(|_| case)
        });
    let case = found.expect("a case that fails");
    let case = AriesCase {
        forgery: None,
        ..case
    };
    assert!(
        case.run(&mut |_, _| {}).is_ok(),
        "not for the numbers' sake"
    );
}

#[test]
fn what_is_on_its_way_is_not_at_rest() {
    // The canaries of what only a network's own checks look at.
    let is_long = |case: &AriesCase| case.traffic.count > 100 && case.traffic.window > 50;
    let case = (1..).map(AriesCase::random).find(is_long);
    let case = case.expect("there are many cases");
    let mut network = case.bring_up().expect("links come up");
    network.fabric.run_for(Duration::from_ms(1));
    assert_eq!(network.violations(), []);
    case.start(&mut network).expect("the runs begin");
    let mut found = Vec::new();
    for _ in 0..500 {
        network.fabric.run_for(Duration::from_us(1));
        found.extend(network.violations());
    }
    let any = |wanted: fn(&AriesViolation) -> bool| found.iter().any(wanted);
    assert!(any(|v| matches!(v, AriesViolation::Outstanding { .. })));
    assert!(any(|v| matches!(v, AriesViolation::Credits { .. })));
    assert!(any(|v| matches!(v, AriesViolation::Held { .. })));
    assert!(any(|v| matches!(v, AriesViolation::Flits { .. })));
}

/// The canary of flits inside: a router whose link to a network interface hears nothing keeps what it has for it.
#[test]
fn a_router_that_keeps_flits_is_found() {
    let is_large = |case: &AriesCase| case.spec.shape.all_nics() > 5;
    let case = (1..).map(AriesCase::random).find(is_large);
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
    let mut network = case.bring_up().expect("links come up");
    let nic = network.nics().next().expect("there are some");
    let at_nic = |link: &LinkId| {
        network
            .fabric
            .ends(*link)
            .iter()
            .any(|(node, _)| *node == nic)
    };
    let link = (0..network.fabric.links() as u32).map(LinkId).find(at_nic);
    network
        .start_traffic(&case.traffic)
        .expect("the run begins");
    network.fabric.run_for(Duration::from_us(500));
    network.fabric.cut(link.expect("it has a link"));
    network.fabric.run_for(Duration::from_ms(20));
    let found = network.violations();
    let inside = |v: &AriesViolation| matches!(v, AriesViolation::FlitsInside { .. });
    assert!(found.iter().any(inside), "{found:?}");
}

#[test]
fn a_network_that_is_not_allowed_to_lose_and_does_is_a_failure() {
    // A router that restarts loses what it holds. Told that nothing may be lost, the checkers complain.
    let lossy = (1..200).map(AriesCase::random).find_map(|case| {
        let mut network = case.bring_up().ok()?;
        network.start_traffic(&case.traffic).ok()?;
        network.fabric.run_for(Duration::from_us(50));
        let router = network.routers().next()?;
        network.restart(router).ok()?;
        finish(&mut network, RUNS[0], None, AriesAllowance::default()).err()
    });
    let failure = lossy.expect("some restart hits a message");
    assert!(
        matches!(failure, AriesFailure::Violations { .. }),
        "{failure}"
    );
    assert!(failure.to_string().contains("messages:"), "{failure}");
}
