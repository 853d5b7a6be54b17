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
    assert_eq!(kinds.len(), 8, "{kinds:?}");
    let any = |wanted: fn(&Case) -> bool| cases.iter().any(wanted);
    assert!(any(|case| case.spec.slices > 1) && any(|case| case.topology.chips.len() > 4));
    assert!(any(|case| case.impairment.contains("gemodel")));
    assert!(any(|case| case.harms.is_empty()));
}

/// The canary: a link that stays cut is found, and the schedule shrinks to what it takes.
#[test]
fn a_failure_is_found_and_shrunk() {
    let mut case = Case::random(1);
    let noise = Harm::ForceRetry { link: 0 };
    let for_ever = Harm::Cut {
        link: 0,
        span: Duration::from_ms(1),
    };
    let ms = Duration::from_us(10);
    case.harms = vec![(ms, noise.clone()), (ms, for_ever), (ms, noise)];
    let mut asked = 0;
    // A checker that takes a cut link for a fault.
    let keep = case.shrink(|case| {
        asked += 1;
        case.harms
            .iter()
            .any(|(_, harm)| matches!(harm, Harm::Cut { .. }))
    });
    assert_eq!(keep.harms, Some(vec![1]));
    assert_eq!((keep.clear, keep.messages), (true, Some(1)));
    assert!(asked < 30, "{asked}");
    assert_eq!(case.reduced(&keep).harms.len(), 1);
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
