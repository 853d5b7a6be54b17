//! Tests and canaries of cases over encoded links, which every machine includes in its own tests.

use std::collections::BTreeSet;

use super::*;

/// The tests common to all machines, given the bits of the machine's short numbers and which of its
/// cases lose messages when a router restarts.
#[doc(hidden)]
#[macro_export]
macro_rules! shared_soak_cases {
    ($machine:ty, $short:literal, $lossy:expr) => {
        #[test]
        fn a_seed_is_one_case_and_one_run() {
            one_case_and_one_run::<$machine>();
        }

        #[test]
        fn the_words_of_many_seeds_are_netems() {
            words_are_netems::<$machine>();
        }

        /// Canary: a link that stays down is detected, and the schedule shrinks to that harm.
        #[test]
        fn a_failure_is_found_and_shrunk() {
            found_and_shrunk::<$machine>();
        }

        #[test]
        fn a_seed_with_late_copies_has_what_it_is_for() {
            late_cases_have_theirs::<$machine>(|spec| spec.settings.lane_retry_threshold > 0);
        }

        #[test]
        fn lanes_are_given_up_and_ends_stand_still_while_copies_come() {
            lanes_and_stops_with_late_copies::<$machine>();
        }

        /// Canary: with numbers that wrap during a run, late copies do harm, which is detected.
        #[test]
        fn damage_by_late_copies_to_short_numbers_is_found() {
            short_numbers_are_found::<$machine>(canary::with_short_numbers::<$short>);
        }

        #[test]
        fn a_network_that_is_not_allowed_to_lose_and_does_is_a_failure() {
            losses_are_found::<$machine>($lossy);
        }

        #[test]
        fn a_trace_records_actions_and_results() {
            trace_records_actions::<$machine>();
        }
    };
}

pub use shared_soak_cases;

pub type Forgery = fn(&[u8], Vec<u8>) -> Vec<u8>;

pub fn run<M: Soaked>(case: &Case<M>) -> Result<CaseReport, Failure> {
    case.run(&mut |_, _| {})
}

pub fn any_harm<M: Soaked>(case: &Case<M>, wanted: fn(&Harm<M::Own>) -> bool) -> bool {
    case.harms.iter().any(|(_, harm)| wanted(harm))
}

pub fn kinds<M: Soaked>(cases: &[Case<M>]) -> BTreeSet<Option<String>> {
    let harms = cases.iter().flat_map(|case| &case.harms);
    let texts = harms.map(|(_, harm)| format!("{harm:?}"));
    let words = texts.map(|text| text.split([' ', '{']).next().map(str::to_owned));
    words.collect()
}

pub fn one_case_and_one_run<M: Soaked>() {
    let hash = |seed| {
        let outcome = run(&Case::<M>::random(seed));
        outcome.expect("the case passes").trace_hash
    };
    assert_eq!(hash(3), hash(3));
    assert_ne!(hash(3), hash(4));
}

/// Parses the netem words of 300 cases. Each case has several texts, and one text in a hundred has
/// the rarest pair of choices.
pub fn words_are_netems<M: Soaked>() {
    for seed in 0..300 {
        let case = Case::<M>::random(seed);
        words(&case.impairment);
        for (_, harm) in &case.harms {
            if let Harm::Impair { words: text, .. } = harm {
                words(text);
            }
        }
    }
}

pub fn found_and_shrunk<M: Soaked>() {
    let harmless = Harm::ForceRetry { link: 0 };
    let after = Duration::from_us(10);
    // The smallest of a few networks, since each of about thirty runs waits for the link.
    let few = (1..20).map(Case::<M>::random);
    let mut case = few
        .min_by_key(|case| case.topology().expect("a network").link_count())
        .expect("there are seeds");
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

/// Checks 200 cases with late copies; `gives_up` is true for those that decommission lanes.
pub fn late_cases_have_theirs<M: Soaked>(gives_up: fn(&M::Spec) -> bool) -> Vec<Case<M>> {
    let cases: Vec<Case<M>> = (0..200).map(Case::with_late_copies).collect();
    for case in &cases {
        let first = &case.harms[0].1;
        let is_first = matches!(first, Harm::LateCopiesEverywhere { .. });
        assert!(is_first, "{case:?}");
        words(&case.impairment);
        // Reject corruption here, since it charges all lanes of a link until none is left.
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

pub fn lanes_and_stops_with_late_copies<M: Soaked>() {
    // These cases destroy nothing, so everything sent must arrive.
    let is_whole = |case: &Case<M>| {
        any_harm(case, |harm| matches!(harm, Harm::Stop { .. }))
            && any_harm(case, |harm| matches!(harm, Harm::LoseLane { .. }))
            && !any_harm(case, Harm::may_lose)
            && case.traffic.count < 100_000
    };
    let cases = (1..).map(Case::with_late_copies).filter(is_whole);
    let outcomes = cases
        .take(4)
        .map(|case| run(&case).expect("the case passes"));
    let outcomes: Vec<_> = outcomes.collect();
    let sum = |of: fn(&CaseReport) -> u64| outcomes.iter().map(of).sum::<u64>();
    assert!(sum(|o| o.late_copies) > 400, "{outcomes:?}");
    assert!(sum(|o| o.lanes_given_up) > 0, "{outcomes:?}");
}

pub fn short_numbers_are_found<M: Soaked>(forgery: Forgery) {
    let found = (1..20)
        .map(Case::<M>::with_late_copies)
        .filter(|case| case.traffic.count < 100_000)
        .find_map(|mut case| {
            case.hooks.forgery = Some(forgery);
            case.traffic.count = 20_000;
            run(&case).is_err().then_some(case)
        });
    let mut case = found.expect("a case that fails");
    case.hooks.forgery = None;
    assert!(
        run(&case).is_ok(),
        "the case fails only because of the sabotage"
    );
}

/// Violations found while a case's traffic flows, in `looks` checks at intervals of `every`.
pub fn found_during_the_run<M: Soaked>(
    case: &Case<M>,
    looks: u32,
    every: Duration,
) -> Vec<Violation> {
    let mut world = case.bring_up().expect("all links come up");
    world.fabric.run_for(Duration::from_ms(1));
    assert_eq!(world.violations(), []);
    case.start(&mut world).expect("all runs start");
    let mut found = Vec::new();
    for _ in 0..looks {
        world.fabric.run_for(every);
        found.extend(world.violations());
    }
    found
}

pub fn losses_are_found<M: Soaked>(wanted: fn(&Case<M>) -> bool) {
    // A restarted router loses its contents. The checkers must object if no loss is allowed.
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
    let failure = lossy.expect("some restart loses a message");
    assert!(matches!(failure, Failure::Violations { .. }), "{failure}");
    assert!(failure.to_string().contains("messages:"), "{failure}");
}

pub fn trace_records_actions<M: Soaked>() {
    let mut cases = (0..).map(Case::<M>::random);
    let case = cases.find(|case| !case.harms.is_empty());
    let case = case.expect("most cases have faults");
    let mut log = Vec::new();
    case.run(&mut |at, text| log.push((at, text.to_owned())))
        .expect("the case passes");
    let harms = log.iter().filter(|(_, text)| text.starts_with("fault: "));
    assert_eq!(harms.count(), case.harms.len());
    assert!(log.iter().any(|(_, text)| text.contains("Up {")));
}

/// The number nearest to `last` that has the last `BITS` bits of `number`.
pub fn nearest<const BITS: u32>(last: u64, number: u64) -> u64 {
    let unused = u64::BITS - BITS;
    let ahead = (number.wrapping_sub(last) << unused) as i64 >> unused;
    last.wrapping_add_signed(ahead)
}
