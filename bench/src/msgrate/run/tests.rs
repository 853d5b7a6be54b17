use super::super::course::LOOK_EVERY;
use super::super::lab::Role;
use super::super::options::Options;
use super::*;
use clap::Parser;
use phitwire::nic::{TrafficPattern, TrafficReport, TrafficSpec};
use phitwire_nodes::control::{Code, Holder, Refusal, Request, RunKind};

mod puppets;
use puppets::{Puppets, Sleeper, to};

fn options(words: &str) -> Options {
    let words = format!("phitwire-msgrate --lab demo {words}");
    Options::try_parse_from(words.split_whitespace()).expect("sensible options")
}

fn run_in(lab: &mut Puppets, words: &str) -> Result<RateResult, RunError> {
    let plan = Plan::new(&options(words), lab)?;
    let clock = clock_of(lab);
    measure(&plan, 8, 77, lab, &clock, |_| {})
}

fn goes_well(lab: &mut Puppets, words: &str) -> RateResult {
    run_in(lab, words).expect("all goes well")
}

/// The error of a run, also as text.
fn fails(lab: &mut Puppets, words: &str) -> (RunError, String) {
    let error = run_in(lab, words).expect_err(words);
    let text = error.to_string();
    (error, text)
}

fn clock_of(lab: &Puppets) -> Sleeper {
    Sleeper {
        now: lab.clock.clone(),
        ..Sleeper::default()
    }
}

#[test]
fn a_node_named_twice_is_refused_by_name() {
    for words in [
        "--from n0,n0 --to n1",
        "--from n0 --to n1,n2,n1",
        "--pattern hotspot --hot n2,n2",
    ] {
        let mut lab = Puppets::new();
        let (error, _) = fails(&mut lab, words);
        assert!(matches!(&error, RunError::Twice(_)), "{words}: {error}");
        assert!(lab.started.is_empty(), "{words}: no NIC was started");
    }
}

#[test]
fn a_run_without_a_message_is_an_error() {
    let mut lab = Puppets::new();
    lab.deserted = true;
    let (error, text) = fails(&mut lab, "--from n0 --to n0 --seconds 1");
    assert!(matches!(&error, RunError::NothingSent(_)), "{error}");
    assert!(text.contains("n0 -> n0"), "{error}");
}

#[test]
fn all_network_interfaces_take_part_in_a_pattern() {
    let mut lab = Puppets::new();
    let outcome = goes_well(&mut lab, "--pattern tornado --seconds 2 --seed 5");
    assert!(outcome.is_clean());
    assert_eq!((outcome.sent, outcome.acknowledged), (180, 180));
    assert_eq!(outcome.messages_per_second, 180_000.0);
    assert_eq!(outcome.latency_us.p99, 5.0);
    let spec = TrafficSpec {
        run: 77,
        pattern: TrafficPattern::Tornado,
        processors: vec![0, 1, 2],
        window: 2_048,
        duration_ns: 2_000_000_000,
        seed: 5,
        ..TrafficSpec::default()
    };
    let started: Vec<_> = lab.started.into_iter().collect();
    let everyone = ["n0", "n1", "n2"].map(|name| (name.to_owned(), spec.clone()));
    assert_eq!(started, everyone);
    // Counters are read before and after, from every process including routers.
    assert!(outcome.links.frames_sent > 0);
    let stats = lab
        .asked
        .iter()
        .filter(|(_, asked)| *asked == Request::Stats);
    assert_eq!(stats.count(), 8);
}

#[test]
fn named_sources_send_to_named_targets_that_know_the_run() {
    let mut lab = Puppets::new();
    let outcome = goes_well(&mut lab, "--from n2 --to n0,n1 --count 60");
    assert!(outcome.is_clean());
    let source = &lab.started["n2"];
    assert_eq!(source.pattern, to(&[0, 1]));
    assert_eq!((source.count, source.duration_ns), (60, 0));
    for target in ["n0", "n1"] {
        assert_eq!(lab.started[target].pattern, to(&[]));
        assert_eq!(lab.started[target].run, 77);
    }
    // Targets start before sources.
    let starts = |(_, asked): &&(String, Request)| matches!(asked, Request::TrafficStart { .. });
    let order = lab
        .asked
        .iter()
        .filter(starts)
        .map(|(node, _)| node.as_str());
    assert!(order.eq(["n0", "n1", "n2"]));
}

#[test]
fn a_hot_spot_is_the_first_or_the_named() {
    let pattern = |words: &str| {
        let mut lab = Puppets::new();
        goes_well(&mut lab, words);
        lab.started["n0"].pattern.clone()
    };
    let hotspot = |targets, percent| TrafficPattern::Hotspot { targets, percent };
    assert_eq!(pattern("--pattern hotspot"), hotspot(vec![0], 20));
    let named = pattern("--pattern hotspot --hot n1,n2 --hot-percent 7");
    assert_eq!(named, hotspot(vec![1, 2], 7));
}

#[test]
fn a_paced_run_reports_the_achieved_rate() {
    let mut lab = Puppets::new();
    lab.decides = true;
    lab.spoil = Some(|_, report| report.not_offered = 5);
    let outcome = goes_well(&mut lab, "--rate 70000 --window 32");
    assert_eq!(lab.started["n1"].rate, 70_000);
    let pace = outcome.pace.expect("there is a rate");
    assert_eq!((pace.rate, pace.not_offered), (70_000, 15));
    assert_eq!(pace.offered_per_source, 60_000.0);
    assert_eq!(pace.accepted_per_source, 60_000.0);
    let decisions = outcome.decisions.expect("its router decides");
    assert!(decisions.non_minimal_decisions > 0);
    assert_eq!(decisions.non_minimal_share, Some(0.25));

    let mut lab = Puppets::new();
    let outcome = goes_well(&mut lab, "");
    assert_eq!(lab.started["n1"].rate, 0);
    assert_eq!((outcome.pace, outcome.decisions), (None, None));
}

#[test]
fn a_pattern_from_group_to_group_needs_groups() {
    let run = |groups: [Option<u16>; 3]| {
        let mut lab = Puppets::new();
        for ((_, role), found) in lab.nodes.iter_mut().zip(groups) {
            if let Role::Nic { group, .. } = role {
                *group = found;
            }
        }
        let ran = run_in(&mut lab, "--pattern group-adversarial");
        ran.map(|_| lab.started["n0"].clone())
    };
    let spec = run([Some(4), Some(0), Some(4)]).expect("there are two groups");
    assert_eq!(spec.pattern, TrafficPattern::GroupAdversarial);
    assert_eq!(spec.groups, [4, 0, 4]);
    for (groups, words) in [
        ([None; 3], "in no groups"),
        ([Some(1), None, Some(2)], "in no groups"),
        ([Some(1); 3], "in one group"),
    ] {
        let error = run(groups).expect_err("no two groups");
        assert!(matches!(error, RunError::NoGroups { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn damage_anywhere_is_in_the_outcome() {
    let spoilt: [fn(&str, &mut TrafficReport); 4] = [
        |node, report| report.delivered -= u64::from(node == "n1"),
        |node, report| report.duplicated += u64::from(node == "n2"),
        |node, report| report.misordered += u64::from(node == "n0"),
        |node, report| {
            let hit = u64::from(node == "n1");
            report.corrupted += hit;
            report.delivered -= hit;
        },
    ];
    for (index, spoil) in spoilt.into_iter().enumerate() {
        let mut lab = Puppets::new();
        lab.spoil = Some(spoil);
        let outcome = run_in(&mut lab, "").expect("damage is no error");
        assert!(!outcome.is_clean(), "damage {index}");
        let order = [outcome.duplicated, outcome.misordered];
        let seen = [outcome.lost, order[0], order[1], outcome.corrupted];
        assert_eq!(seen[index], 1, "damage {index}");
        assert_eq!(seen.iter().sum::<u64>(), 1, "damage {index}");
    }
}

#[test]
fn names_that_will_not_do_are_explained() {
    let message = |words: &str| fails(&mut Puppets::new(), words).1;
    let known = "lab `demo` has no node `n7`; its NICs are n0, n1, n2";
    assert_eq!(message("--from n7 --to n1"), known);
    assert!(message("--from n0 --to r0").contains("`r0` is a router"));
    let mut lab = Puppets::new();
    lab.nodes.remove("n1");
    lab.dead = vec!["n1".to_owned()];
    let (_, dead) = fails(&mut lab, "--from n0 --to n1");
    let said = "`n1` is dead: its process has ended (netns-scripts/node.sh --lab demo start n1)";
    assert_eq!(dead, said);
    let outcome = goes_well(&mut lab, "--from n0 --to n2");
    assert_eq!(outcome.fates.processes_dead, ["n1"]);
    let mut lab = Puppets::new();
    lab.nodes.retain(|name, _| *name != "n1" && *name != "n2");
    let (_, alone) = fails(&mut lab, "");
    assert!(alone.contains("fewer than two"), "{alone}");
}

#[test]
fn a_run_of_another_user_is_noticed() {
    let mut lab = Puppets::new();
    lab.spoil = Some(|node, report| report.run = if node == "n1" { 9 } else { report.run });
    let (_, text) = fails(&mut lab, "");
    assert!(
        text.starts_with("n1 reports on run 9 instead of 77"),
        "{text}"
    );
}

#[test]
fn sources_are_stopped_when_something_goes_wrong() {
    let mut lab = Puppets::new();
    lab.stuck = true;
    let outcome = run_in(&mut lab, "--seconds 1").expect("the known part is reported");
    assert_eq!(outcome.unfinished, ["n0", "n1", "n2"]);
    assert_eq!(outcome.acknowledged, 180);
    assert!(!outcome.is_clean());
    assert_eq!(lab.stopped().len(), 3);

    let mut lab = Puppets::new();
    goes_well(&mut lab, "");
    assert_eq!(lab.stopped().len(), 0);
}

#[test]
fn an_interrupted_run_is_accounted_for() {
    let run = |lab: &mut Puppets, interrupts: &[u64]| {
        let plan = Plan::new(&options("--seconds 100"), lab).expect("a plan");
        let sleeper = Sleeper {
            now: lab.clock.clone(),
            interrupts: interrupts
                .iter()
                .map(|at| Duration::from_secs(*at))
                .collect(),
        };
        let outcome = measure(&plan, 8, 77, lab, &sleeper, |_| {});
        (outcome, sleeper.now())
    };
    let mut lab = Puppets::new();
    lab.endless = true;
    let (outcome, took) = run(&mut lab, &[2]);
    let outcome = outcome.expect("the sources end when asked to");
    assert!(outcome.is_clean());
    assert_eq!(outcome.acknowledged, 180);
    assert_eq!(lab.stopped(), ["n0", "n1", "n2"], "each is asked once");
    assert!(took < Duration::from_secs(3), "{took:?}");

    let mut lab = Puppets::new();
    lab.stuck = true;
    let (outcome, took) = run(&mut lab, &[2, 4]);
    assert!(matches!(outcome, Err(RunError::Interrupted)));
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(!lab.stopped().is_empty());
}

#[test]
fn a_network_interface_that_dies_is_named_and_ends_nothing() {
    for (who, words) in [
        ("n1", ""),
        ("n1", "--from n0 --to n1,n2"),
        ("n0", "--from n0 --to n1,n2"),
    ] {
        let mut lab = Puppets::new();
        lab.dies = Some((who, 2));
        let outcome = run_in(&mut lab, words).expect("the others go on");
        assert_eq!(outcome.restarted, [who], "{words}");
        assert_eq!(outcome.fates.processes_restarted, [who], "{words}");
        assert_eq!(outcome.fates.uncounted, [who], "{words}");
        assert!(!outcome.is_clean(), "{words}");
        assert_eq!(lab.stopped().len(), 0, "the others came to their end");
    }
}

#[test]
fn progress_is_shown_until_the_end() {
    let mut lab = Puppets::new();
    let plan = Plan::new(&options("--seconds 1"), &mut lab).expect("a plan");
    let mut seen = Vec::new();
    measure(&plan, 8, 77, &mut lab, &Sleeper::default(), |progress| {
        seen.push(progress)
    })
    .expect("all goes well");
    let phases: Vec<RunPhase> = seen.iter().map(|progress| progress.phase).collect();
    // One of the three is still running at the second poll, so the run is too.
    assert_eq!(
        phases,
        [RunPhase::Running, RunPhase::Running, RunPhase::Done]
    );
    assert_eq!(seen[2].elapsed, 2 * LOOK_EVERY);
    assert_eq!(plan.describe(), "3 sources, uniform, 1 s");
}

#[test]
fn a_router_that_was_started_again_is_named_and_counted_by_itself() {
    // The restarted process makes the sum of all counters lower than before the run.
    let mut lab = Puppets::new();
    lab.dies = Some(("r0", 2));
    let outcome = run_in(&mut lab, "").expect("nobody missed it");
    assert_eq!(outcome.fates.processes_restarted, ["r0"]);
    assert_eq!(outcome.fates.uncounted, ["r0"]);
    assert!(outcome.restarted.is_empty() && outcome.is_clean());
    let mut whole = Puppets::new();
    let of_all = goes_well(&mut whole, "").links;
    let share = of_all.frames_sent / 4;
    assert!(outcome.links.frames_sent > 3 * share - 12, "{outcome:?}");
}

#[test]
fn a_run_whose_network_interface_stands_still_keeps_its_numbers() {
    let seconds = Duration::from_secs;
    for (who, words) in [
        ("n0", "--from n0 --to n1"),
        ("n1", "--from n0 --to n1"),
        ("n2", ""),
    ] {
        // The process resumes after 25 s, or only after the tool has given up waiting.
        for (until, goes_on, most) in [(25, true, 30), (1_000, false, 70)] {
            let mut lab = Puppets::new();
            lab.still = Some((who, Duration::from_millis(100), seconds(until)));
            let outcome = run_in(&mut lab, &format!("{words} --seconds 1")).expect("it ends");
            assert_eq!(outcome.is_clean(), goes_on, "{who}: {outcome:?}");
            assert_eq!(outcome.fates.processes_stopped, [who]);
            let left: &[&str] = if goes_on { &[] } else { &[who] };
            assert_eq!(outcome.unfinished, left);
            if !goes_on {
                assert_eq!(outcome.fates.uncounted, left);
                let has_numbers = outcome.sent > 0 && outcome.latency_us.p50 > 0.0;
                assert!(has_numbers, "{outcome:?}");
            }
            assert!(lab.clock.get() < seconds(most), "{:?}", lab.clock);
        }
    }
}

/// A lab in which only n0 takes part: some targets are unreachable, others refuse the run.
fn deserted(unreached: &[u16], refusers: &[u16]) -> Puppets {
    let mut lab = Puppets::new();
    (lab.unreached, lab.refusers) = (unreached.to_vec(), refusers.to_vec());
    lab.deserted = true;
    lab
}

#[test]
fn targets_out_of_reach_are_called_that() {
    let (error, text) = fails(&mut deserted(&[1], &[]), "--from n0 --to n1");
    assert!(matches!(error, RunError::Unreachable(..)), "{text}");
    assert!(text.contains("n1 could not be reached"), "{text}");
    let mut lab = Puppets::new();
    lab.unreached = vec![2];
    let outcome = run_in(&mut lab, "--from n0 --to n1,n2").expect("one is there");
    assert_eq!(outcome.unreached, ["n2"]);
    assert!(!outcome.is_clean());
}

/// Targets that refuse the run are not reported as unreachable.
#[test]
fn targets_that_refuse_the_run_are_called_that_with_a_remedy() {
    let (error, text) = fails(&mut deserted(&[], &[1]), "--from n0 --to n1");
    assert!(matches!(error, RunError::Refused(..)), "{text}");
    assert!(
        text.contains("n1 refused the run: the target has already seen run 90 of"),
        "{text}"
    );
    assert!(text.contains("use one above 90"), "{text}");
    let mut lab = Puppets::new();
    lab.refusers = vec![2];
    let outcome = run_in(&mut lab, "--from n0 --to n1,n2").expect("one takes part");
    assert_eq!(outcome.refusers, ["n2"]);
    assert_eq!(outcome.unreachable, 0);
    assert!(!outcome.is_clean());
}

/// Both the refusing and the unreachable target are named.
#[test]
fn one_target_that_refuses_and_one_out_of_reach_are_both_named() {
    let (error, text) = fails(&mut deserted(&[2], &[1]), "--from n0 --to n1,n2");
    let of_both = matches!(error, RunError::RefusedOrUnreachable(..));
    assert!(of_both, "{text}");
    assert!(text.contains("n1 refused the run: "), "{text}");
    assert!(text.contains("; n2 could not be reached"), "{text}");
}

#[test]
fn a_busy_nic_s_holder_is_named_and_not_disturbed() {
    let taken = Refusal {
        text: "phitwire-bench (process 12) holds this NIC".to_owned(),
        code: Some(Code::Taken),
        holder: Some(Holder {
            tool: "phitwire-bench".to_owned(),
            pid: 12,
        }),
        run: None,
    };
    let mut lab = Puppets::new();
    lab.busy = Some(("n1", taken, None));
    let (_, text) = fails(&mut lab, "");
    assert!(
        text.starts_with("n1: phitwire-bench (process 12) holds this NIC"),
        "{text}"
    );
    assert!(text.contains("kill 12"), "{text}");
    assert!(lab.started.is_empty() && lab.stopped().is_empty());

    // Wait for the last replies of a run whose tool has exited.
    let ending = Refusal {
        text: "traffic run 9 is waiting for its last responses".to_owned(),
        code: Some(Code::Ending),
        run: Some((RunKind::Traffic, 9)),
        ..Refusal::default()
    };
    for (until, waited) in [(Some(5), true), (None, false)] {
        let mut lab = Puppets::new();
        lab.busy = Some(("n1", ending.clone(), until.map(Duration::from_secs)));
        let outcome = run_in(&mut lab, "");
        assert_eq!(outcome.is_ok(), waited);
        let took = lab.clock.get().as_secs();
        assert!((5..=31).contains(&took), "{took} s");
    }
}

/// For example, a process of another version does not know the request; nobody holds the NIC.
#[test]
fn other_refusals_are_printed_unchanged() {
    let mut lab = Puppets::new();
    let refusal = Refusal::new(Code::NotUnderstood, "invalid request: `claim`");
    lab.busy = Some(("n1", refusal, None));
    assert_eq!(fails(&mut lab, "").1, "n1: invalid request: `claim`");
}

#[test]
fn numbers_of_runs_grow_even_if_the_clock_was_set_back() {
    let mut lab = Puppets::new();
    lab.latest = 1 << 50;
    goes_well(&mut lab, "");
    assert_eq!(lab.started["n0"].run, (1 << 50) + 1);
}
