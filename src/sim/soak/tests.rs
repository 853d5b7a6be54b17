use super::*;

#[test]
fn a_seed_is_one_case_and_one_run() {
    let hash = |seed| {
        let outcome = Case::random(seed).run(&mut |_, _| {});
        outcome.expect("the case passes").trace_hash
    };
    assert_eq!(hash(3), hash(3));
    assert_ne!(hash(3), hash(4));
}

#[test]
fn the_words_of_many_seeds_are_netems() {
    for seed in 0..2_000 {
        let case = Case::random(seed);
        words(&case.impairment);
        for (_, harm) in &case.harms {
            if let Harm::Impair { words: text, .. } = harm {
                words(text);
            }
        }
    }
}

#[test]
fn every_kind_of_harm_and_network_comes_up() {
    let cases: Vec<Case> = (0..300).map(Case::random).collect();
    let mut kinds = std::collections::BTreeSet::new();
    for (_, harm) in cases.iter().flat_map(|case| &case.harms) {
        let text = format!("{harm:?}");
        kinds.insert(text.split([' ', '{']).next().map(str::to_owned));
    }
    assert_eq!(kinds.len(), 9, "{kinds:?}");
    let any = |wanted: fn(&Case) -> bool| cases.iter().any(wanted);
    assert!(any(|case| case.spec.slices > 1) && any(|case| case.topology.chips.len() > 4));
    assert!(any(|case| case.impairment.contains("gemodel")));
    assert!(any(|case| case.harms.is_empty()));
}

/// The canary: a link that stays down is found, and the schedule shrinks to what it takes.
#[test]
fn a_failure_is_found_and_shrunk() {
    let harmless = Harm::ForceRetry { link: 0 };
    let after = Duration::from_us(10);
    let mut case = Case::random(1);
    case.harms = [harmless.clone(), Harm::LeaveDown { link: 0 }, harmless]
        .map(|harm| (after, harm))
        .to_vec();
    let run = |case: &Case| case.run(&mut |_, _| {});
    let failure = run(&case).expect_err("a link is down");
    assert!(matches!(failure, Failure::LinksDown { .. }), "{failure}");
    let mut asked = 0;
    let keep = case.shrink(|case| {
        asked += 1;
        run(case).is_err()
    });
    assert_eq!(keep.harms, Some(vec![1]));
    assert_eq!(keep.messages, Some(1));
    assert_eq!(keep.clear, !case.impairment.is_empty());
    assert!(asked < 30, "{asked}");
    let least = case.reduced(&keep);
    assert_eq!(least.harms.len(), 1);
    assert!(run(&least).is_err());
}

#[test]
fn a_seed_with_late_copies_has_what_it_is_for() {
    let cases: Vec<Case> = (0..200).map(Case::with_late_copies).collect();
    for case in &cases {
        let first = &case.harms[0].1;
        assert!(
            matches!(first, Harm::LateCopiesEverywhere { .. }),
            "{case:?}"
        );
        words(&case.impairment);
        // Corruption charges all lanes of a link, until it has none.
        let is_corrupt = |text: &str| text.contains("corrupt");
        if case.spec.settings.lane_retry_threshold > 0 {
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
    let count = |wanted: fn(&Case) -> bool| cases.iter().filter(|case| wanted(case)).count();
    let has = |wanted: fn(&Harm) -> bool| {
        let in_case = |case: &&Case| case.harms.iter().any(|(_, harm)| wanted(harm));
        cases.iter().filter(in_case).count()
    };
    assert!(count(|case| case.spec.settings.lane_retry_threshold > 0) > 60);
    assert!(count(|case| case.traffic.count >= 100_000) > 4);
    assert!(has(|harm| matches!(harm, Harm::Stop { .. })) > 60);
    assert!(has(|harm| matches!(harm, Harm::RestartEnd { .. })) > 30);
}

#[test]
fn lanes_are_given_up_and_ends_stand_still_while_copies_come() {
    // Nothing in them is destroyed: all that was sent has to arrive.
    let is_whole = |case: &Case| {
        let any = |wanted: fn(&Harm) -> bool| case.harms.iter().any(|(_, harm)| wanted(harm));
        any(|harm| matches!(harm, Harm::Stop { .. }))
            && any(|harm| matches!(harm, Harm::LoseLane { .. }))
            && !any(Harm::destroys)
            && case.traffic.count < 100_000
    };
    let cases = (1..).map(Case::with_late_copies).filter(is_whole);
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
    let is_short = |case: &Case| case.traffic.count < 100_000;
    let found = (1..20)
        .map(Case::with_late_copies)
        .filter(is_short)
        .find_map(|case| {
            let forgery = Some(canary::with_short_numbers::<14> as fn(&[u8], Vec<u8>) -> Vec<u8>);
            let mut case = Case { forgery, ..case };
            case.traffic.count = 20_000;
            case.run(&mut |_, _| {}).err().map(|_| case)
        });
    let case = found.expect("a case that fails");
    let case = Case {
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
    // At the chip's own pace: without one, phits pass a router in no time.
    let is_paced = |case: &Case| case.spec.settings.profile == crate::topology::Profile::Paper;
    let case = (1..).map(Case::random).find(is_paced).unwrap();
    let mut network = Network::new(case.topology, case.seed, case.link).unwrap();
    assert!(network.bring_up(TRAINING));
    network.fabric.run_for(Duration::from_ms(1));
    assert_eq!(network.violations(), []);
    network.start_traffic(&case.traffic).unwrap();
    let mut found = Vec::new();
    for _ in 0..2_000 {
        network.fabric.run_for(Duration::from_ns(100));
        found.extend(network.violations());
    }
    let any = |wanted: fn(&Violation) -> bool| found.iter().any(wanted);
    assert!(any(|v| matches!(v, Violation::PhitsInside { .. })));
    assert!(any(|v| matches!(v, Violation::Outstanding { .. })));
    assert!(any(|v| matches!(v, Violation::Credits { .. })));
}

#[test]
fn a_network_that_is_not_allowed_to_lose_and_does_is_a_failure() {
    // A router that restarts loses what it holds. Told that nothing may be lost, the checkers complain.
    let lossy = (1..200).map(Case::random).find_map(|case| {
        (case.topology.chips.len() == 1).then_some(())?;
        let mut network = Network::new(case.topology.clone(), case.seed, case.link).ok()?;
        network.bring_up(TRAINING).then_some(())?;
        network.start_traffic(&case.traffic).ok()?;
        network.fabric.run_for(Duration::from_us(50));
        let router = network.routers().next()?;
        network.restart(router).ok()?;
        let finished = finish(&mut network, RUNS[0], Allowance::default());
        finished.err()
    });
    let failure = lossy.expect("some restart hits a message");
    assert!(matches!(failure, Failure::Violations { .. }), "{failure}");
    assert!(failure.to_string().contains("messages:"), "{failure}");
}

#[test]
fn a_trace_tells_what_was_done_and_what_came_of_it() {
    let seed = (0..).find(|seed| !Case::random(*seed).harms.is_empty());
    let case = Case::random(seed.expect("most cases have some harm"));
    let mut told = Vec::new();
    case.run(&mut |at, text| told.push((at, text.to_owned())))
        .expect("the case passes");
    let harms = told.iter().filter(|(_, text)| text.starts_with("harm: "));
    assert_eq!(harms.count(), case.harms.len());
    assert!(told.iter().any(|(_, text)| text.contains("Up {")));
}
