use super::super::course::LOOK_EVERY;
use super::super::lab::{LabError, Member, ProcessState, Role};
use super::super::options::Options;
use super::*;
use clap::Parser;
use phitwire::nic::{LatencyCounts, Pattern, TrafficReport, TrafficSpec};
use phitwire_nodes::control::{ClientError, Code, Holder, Refusal, Request, RunKind};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A lab that answers by script. Sources finish on the second look.
#[derive(Default)]
struct Puppets {
    nodes: BTreeMap<&'static str, Role>,
    asked: Vec<(String, Request)>,
    started: BTreeMap<String, TrafficSpec>,
    looks: u32,
    /// Changes what a node reports.
    spoil: Option<fn(&str, &mut TrafficReport)>,
    /// Who refuses to be claimed, why, and until when if not for ever.
    busy: Option<(&'static str, Refusal, Option<Duration>)>,
    /// Who stands still, from when to when.
    still: Option<(&'static str, Duration, Duration)>,
    clock: Rc<Cell<Duration>>,
    /// The number of the latest run.
    latest: u64,
    stuck: bool,
    /// Its routers choose between kinds of ways.
    decides: bool,
    /// Sources end when they are told to, and not before.
    endless: bool,
    /// Dies, or is started again, after so many looks at anybody.
    dies: Option<(&'static str, u32)>,
}

impl Puppets {
    fn stands_still(&self, node: &str) -> bool {
        let now = self.clock.get();
        self.still
            .is_some_and(|(who, from, to)| who == node && (from..to).contains(&now))
    }

    /// Of the process that has the name now.
    fn pid(&self, node: &str) -> u64 {
        let again = |(who, when): (&str, u32)| who == node && self.looks > when;
        1 + u64::from(self.dies.is_some_and(again))
    }

    /// Counters, which grow from question to question; routers decide as many times as questions
    /// are asked.
    fn stats(&self, node: &str) -> Value {
        let asked = self.asked.len();
        match self.nodes[node] {
            Role::Router if self.decides => json!({
                "port0.tx_frames": 1_000 + asked,
                "minimal_decisions": 3 * asked,
                "non_minimal_decisions": asked,
            }),
            _ => json!({ "port0.tx_frames": 1_000 + asked }),
        }
    }

    /// Who was told to stop.
    fn stopped(&self) -> Vec<&str> {
        let told = self.asked.iter();
        told.filter(|(_, request)| *request == Request::TrafficStop)
            .map(|(node, _)| node.as_str())
            .collect()
    }

    fn new() -> Self {
        let nic = |processor| Role::Nic {
            processor,
            group: None,
        };
        let nodes = [
            ("n0", nic(0)),
            ("n1", nic(1)),
            ("n2", nic(2)),
            ("r0", Role::Router),
        ]
        .into();
        Self {
            nodes,
            ..Self::default()
        }
    }

    fn report(&self, node: &str) -> TrafficReport {
        let Some(spec) = self.started.get(node) else {
            return TrafficReport::default();
        };
        let is_source = spec.pattern
            != Pattern::List {
                destinations: vec![],
            };
        let sources = self
            .started
            .values()
            .filter(|spec| {
                spec.pattern
                    != Pattern::List {
                        destinations: vec![],
                    }
            })
            .count() as u64;
        let receivers = match &spec.pattern {
            Pattern::List { .. } => self.started.len() as u64 - sources,
            _ => sources,
        };
        let receives =
            !matches!(&spec.pattern, Pattern::List { destinations } if !destinations.is_empty());
        let mut report = TrafficReport {
            run: spec.run,
            size: spec.size,
            ..Default::default()
        };
        if is_source {
            let told = self.stopped().contains(&node);
            let busy = self.stuck || self.looks < 2 * sources as u32 || (self.endless && !told);
            report.phase = if busy { Phase::Running } else { Phase::Done };
            report.sent = 60;
            report.acknowledged = 60;
            report.elapsed_ns = 1_000_000;
            report.latency = LatencyCounts {
                buckets: vec![(5_000, 60)],
                max_ns: 5_000,
            };
        }
        if receives {
            report.delivered = 60 * sources / receivers.max(1);
        }
        if let Some(spoil) = self.spoil {
            spoil(node, &mut report);
        }
        report
    }
}

impl Lab for Puppets {
    fn members(&mut self) -> Result<Vec<Member>, LabError> {
        let member = |(name, role): (&&str, &Role)| Member {
            name: (*name).to_owned(),
            role: *role,
        };
        Ok(self.nodes.iter().map(member).collect())
    }

    fn ask(&mut self, node: &str, request: &Request) -> Result<Value, LabError> {
        self.asked.push((node.to_owned(), request.clone()));
        let wrap = |error| LabError::Client {
            node: node.to_owned(),
            error,
        };
        if self.stands_still(node) {
            return Err(wrap(ClientError::Silent));
        }
        match request {
            // A process that was started again counts from nothing.
            Request::Stats if self.pid(node) > 1 => Ok(json!({ "port0.tx_frames": 7 })),
            Request::Stats => Ok(self.stats(node)),
            Request::Info => Ok(json!({ "kind": "nic", "pid": self.pid(node) })),
            Request::Claim(_) => {
                let now = self.clock.get();
                let busy = self.busy.as_ref();
                match busy.filter(|(who, _, until)| *who == node && until.is_none_or(|at| now < at))
                {
                    Some((_, refusal, _)) => {
                        Err(wrap(ClientError::Refused(Box::new(refusal.clone()))))
                    }
                    None => Ok(json!({ "latest_run": self.latest })),
                }
            }
            Request::TrafficStart { spec } => {
                let spec = serde_json::from_value(spec.clone()).expect("a spec");
                self.started.insert(node.to_owned(), spec);
                Ok(json!({}))
            }
            Request::TrafficStatus { .. } => {
                self.looks += 1;
                if self
                    .dies
                    .is_some_and(|(who, when)| who == node && self.looks > when)
                {
                    let knows_nothing = Refusal {
                        code: Some(Code::UnknownRun),
                        ..Refusal::default()
                    };
                    return Err(wrap(ClientError::Refused(Box::new(knows_nothing))));
                }
                Ok(serde_json::to_value(self.report(node)).expect("a report"))
            }
            Request::TrafficStop => Ok(json!({})),
            other => panic!("{other:?} is not asked for"),
        }
    }

    fn state(&mut self, node: &str) -> ProcessState {
        match self.stands_still(node) {
            true => ProcessState::Stopped(4711),
            false => ProcessState::Alive,
        }
    }
}

/// A clock that only moves when someone sleeps.
#[derive(Default)]
struct Sleeper {
    now: Rc<Cell<Duration>>,
    /// Times at which the user asks for an end.
    interrupts: Vec<Duration>,
}

impl Clock for Sleeper {
    fn now(&self) -> Duration {
        self.now.get()
    }

    fn sleep(&self, span: Duration) {
        self.now.set(self.now.get() + span);
    }

    fn stops(&self) -> u32 {
        let past = self.interrupts.iter().filter(|&&at| at <= self.now());
        past.count() as u32
    }
}

fn options(words: &str) -> Options {
    let words = format!("phitwire-msgrate --lab demo {words}");
    Options::try_parse_from(words.split_whitespace()).expect("sensible options")
}

fn run_in(lab: &mut Puppets, words: &str) -> Result<Outcome, RunError> {
    let plan = Plan::new(&options(words), lab)?;
    let clock = clock_of(lab);
    measure(&plan, 8, 77, lab, &clock, |_| {})
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
        let error = run_in(&mut lab, words).expect_err(words);
        assert!(matches!(&error, RunError::Twice(_)), "{words}: {error}");
        assert!(lab.started.is_empty(), "{words}: nobody was told anything");
    }
}

#[test]
fn a_run_without_a_message_is_an_error() {
    let mut lab = Puppets::new();
    lab.spoil = Some(|_, report| (report.sent, report.acknowledged, report.delivered) = (0, 0, 0));
    let error = run_in(&mut lab, "--from n0 --to n0 --seconds 1").expect_err("nobody to send to");
    assert!(matches!(&error, RunError::NothingSent(_)), "{error}");
    assert!(error.to_string().contains("n0 -> n0"), "{error}");
}

#[test]
fn all_network_interfaces_take_part_in_a_pattern() {
    let mut lab = Puppets::new();
    let outcome =
        run_in(&mut lab, "--pattern tornado --seconds 2 --seed 5").expect("all goes well");
    assert!(outcome.is_clean());
    assert_eq!((outcome.sent, outcome.acknowledged), (180, 180));
    assert_eq!(outcome.messages_per_second, 180_000.0);
    assert_eq!(outcome.latency_us.p99, 5.0);
    let spec = TrafficSpec {
        run: 77,
        pattern: Pattern::Tornado,
        processors: vec![0, 1, 2],
        window: 2_048,
        duration_ns: 2_000_000_000,
        seed: 5,
        ..TrafficSpec::default()
    };
    let told: Vec<_> = lab.started.into_iter().collect();
    let everyone = ["n0", "n1", "n2"].map(|name| (name.to_owned(), spec.clone()));
    assert_eq!(told, everyone);
    assert!(
        outcome.links.frames_sent > 0,
        "counters are taken before and after"
    );
    let stats = lab
        .asked
        .iter()
        .filter(|(_, request)| *request == Request::Stats);
    assert_eq!(
        stats.count(),
        8,
        "of every process, routers too, before and after"
    );
}

#[test]
fn named_sources_send_to_named_targets_who_know_the_run() {
    let mut lab = Puppets::new();
    let outcome = run_in(&mut lab, "--from n2 --to n0,n1 --count 60").expect("all goes well");
    assert!(outcome.is_clean());
    assert_eq!(
        lab.started["n2"].pattern,
        Pattern::List {
            destinations: vec![0, 1]
        }
    );
    assert_eq!(
        (lab.started["n2"].count, lab.started["n2"].duration_ns),
        (60, 0)
    );
    for target in ["n0", "n1"] {
        assert_eq!(
            lab.started[target].pattern,
            Pattern::List {
                destinations: vec![]
            }
        );
        assert_eq!(lab.started[target].run, 77);
    }
    let order: Vec<&str> = lab
        .asked
        .iter()
        .filter(|(_, request)| matches!(request, Request::TrafficStart { .. }))
        .map(|(node, _)| node.as_str())
        .collect();
    assert_eq!(
        order,
        ["n0", "n1", "n2"],
        "targets know before sources send"
    );
}

#[test]
fn a_hot_spot_is_the_first_or_the_named() {
    let pattern = |words: &str| {
        let mut lab = Puppets::new();
        run_in(&mut lab, words).expect("all goes well");
        lab.started["n0"].pattern.clone()
    };
    let hotspot = |targets, percent| Pattern::Hotspot { targets, percent };
    assert_eq!(pattern("--pattern hotspot"), hotspot(vec![0], 20));
    assert_eq!(
        pattern("--pattern hotspot --hot n1,n2 --hot-percent 7"),
        hotspot(vec![1, 2], 7)
    );
}

#[test]
fn a_lab_is_held_at_a_rate_and_says_how_it_was_kept() {
    let mut lab = Puppets::new();
    lab.decides = true;
    lab.spoil = Some(|_, report| report.not_offered = 5);
    let outcome = run_in(&mut lab, "--rate 70000 --window 32").expect("all goes well");
    assert_eq!(lab.started["n1"].rate, 70_000);
    let pace = outcome.pace.expect("there is a rate");
    assert_eq!((pace.rate, pace.not_offered), (70_000, 15));
    assert_eq!(pace.offered_per_source, 60_000.0);
    assert_eq!(pace.accepted_per_source, 60_000.0);
    let decisions = outcome.decisions.expect("its router decides");
    assert!(decisions.non_minimal_decisions > 0);
    assert_eq!(decisions.non_minimal_share, Some(0.25));

    let mut lab = Puppets::new();
    let outcome = run_in(&mut lab, "").expect("all goes well");
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
    assert_eq!(spec.pattern, Pattern::GroupAdversarial);
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
        let seen = [
            outcome.lost,
            outcome.duplicated,
            outcome.misordered,
            outcome.corrupted,
        ];
        assert_eq!(seen[index], 1, "damage {index}");
        assert_eq!(seen.iter().sum::<u64>(), 1, "damage {index}");
    }
}

#[test]
fn names_that_will_not_do_are_explained() {
    let message = |words: &str| {
        run_in(&mut Puppets::new(), words)
            .expect_err("a wrong name")
            .to_string()
    };
    assert_eq!(
        message("--from n7 --to n1"),
        "lab `demo` has no node `n7`; its network interfaces are n0, n1, n2"
    );
    assert!(message("--from n0 --to r0").contains("`r0` is a router"));
    let mut lab = Puppets::new();
    lab.nodes.retain(|name, _| *name != "n1" && *name != "n2");
    let alone = run_in(&mut lab, "")
        .expect_err("nobody to send to")
        .to_string();
    assert!(alone.contains("fewer than two"), "{alone}");
}

#[test]
fn a_run_of_somebody_else_is_noticed() {
    let mut lab = Puppets::new();
    lab.spoil = Some(|node, report| {
        if node == "n1" {
            report.run = 9;
        }
    });
    let error = run_in(&mut lab, "").expect_err("another run").to_string();
    assert!(
        error.starts_with("n1 reports on run 9 instead of 77"),
        "{error}"
    );
}

#[test]
fn sources_are_stopped_when_something_goes_wrong() {
    let mut lab = Puppets::new();
    lab.stuck = true;
    let outcome = run_in(&mut lab, "--seconds 1").expect("what is known is told");
    assert_eq!(outcome.unfinished, ["n0", "n1", "n2"]);
    assert_eq!(outcome.acknowledged, 180);
    assert!(!outcome.is_clean());
    assert_eq!(lab.stopped().len(), 3);

    let mut lab = Puppets::new();
    run_in(&mut lab, "").expect("all goes well");
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
                .copied()
                .map(Duration::from_secs)
                .collect(),
        };
        let outcome = measure(&plan, 8, 77, lab, &sleeper, |_| {});
        (outcome, sleeper.now())
    };
    let mut lab = Puppets::new();
    lab.endless = true;
    let (outcome, took) = run(&mut lab, &[2]);
    let outcome = outcome.expect("the sources end when told to");
    assert!(outcome.is_clean());
    assert_eq!(outcome.acknowledged, 180);
    assert_eq!(lab.stopped(), ["n0", "n1", "n2"], "told once");
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
    let phases: Vec<Phase> = seen.iter().map(|progress| progress.phase).collect();
    // In the second look one of the three is still running, so the run is.
    assert_eq!(phases, [Phase::Running, Phase::Running, Phase::Done]);
    assert_eq!(seen[2].elapsed, 2 * LOOK_EVERY);
    assert_eq!(plan.describe(), "3 sources, uniform, 1 s");
}

#[test]
fn a_router_that_was_started_again_is_named_and_counted_by_itself() {
    // The sum of all counters is lower than before, so that nothing seemed to have been sent.
    let mut lab = Puppets::new();
    lab.dies = Some(("r0", 2));
    let outcome = run_in(&mut lab, "").expect("nobody missed it");
    assert_eq!(outcome.fates.processes_restarted, ["r0"]);
    assert_eq!(outcome.fates.uncounted, ["r0"]);
    assert!(outcome.restarted.is_empty() && outcome.is_clean());
    let mut whole = Puppets::new();
    let of_all = run_in(&mut whole, "").expect("all goes well").links;
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
        let mut lab = Puppets::new();
        let from = Duration::from_millis(100);
        lab.still = Some((who, from, seconds(25)));
        let outcome = run_in(&mut lab, &format!("{words} --seconds 1")).expect("it goes on");
        assert!(outcome.is_clean(), "{who}: {outcome:?}");
        assert_eq!(outcome.fates.processes_stopped, [who]);
        assert!(outcome.unfinished.is_empty());
        assert!(lab.clock.get() < seconds(30), "{:?}", lab.clock);

        // Or does not go on.
        let mut lab = Puppets::new();
        lab.still = Some((who, from, seconds(1_000)));
        let outcome = run_in(&mut lab, &format!("{words} --seconds 1")).expect("the others go on");
        assert_eq!(outcome.unfinished, [who]);
        assert_eq!(outcome.fates.processes_stopped, [who]);
        assert_eq!(outcome.fates.uncounted, [who]);
        assert!(
            outcome.sent > 0 && outcome.latency_us.p50 > 0.0,
            "{outcome:?}"
        );
        assert!(!outcome.is_clean());
        assert!(lab.clock.get() < seconds(70), "{:?}", lab.clock);
    }
}

#[test]
fn targets_out_of_reach_are_called_that() {
    let mut lab = Puppets::new();
    lab.spoil = Some(|node, report| {
        if node == "n0" {
            (report.sent, report.acknowledged) = (0, 0);
            (report.unreachable, report.unreached) = (1, vec![1]);
        }
        report.delivered = 0;
    });
    let error = run_in(&mut lab, "--from n0 --to n1").expect_err("nobody is there");
    let text = error.to_string();
    assert!(matches!(error, RunError::Unreachable(..)), "{text}");
    assert!(text.contains("n1 could not be reached"), "{text}");
    let mut lab = Puppets::new();
    lab.spoil = Some(|node, report| {
        if node == "n0" {
            (report.unreachable, report.unreached) = (1, vec![2]);
        }
    });
    let outcome = run_in(&mut lab, "--from n0 --to n1,n2").expect("one is there");
    assert_eq!(outcome.unreached, ["n2"]);
    assert!(!outcome.is_clean());
}

/// They were called out of reach.
#[test]
fn targets_that_refuse_the_run_are_called_that_with_a_remedy() {
    let mut lab = Puppets::new();
    lab.spoil = Some(|node, report| {
        if node == "n0" {
            (report.sent, report.acknowledged) = (0, 0);
            (report.unwilling, report.refusers) = (1, vec![1]);
        } else {
            report.outdated_by = 90;
        }
        report.delivered = 0;
    });
    let error = run_in(&mut lab, "--from n0 --to n1").expect_err("nobody takes part");
    let text = error.to_string();
    assert!(matches!(error, RunError::Refused(..)), "{text}");
    assert!(text.contains("n1 refused the run: run 90 of"), "{text}");
    assert!(text.contains("use one above 90"), "{text}");
    let mut lab = Puppets::new();
    lab.spoil = Some(|node, report| {
        if node == "n0" {
            (report.unwilling, report.refusers) = (1, vec![2]);
        }
    });
    let outcome = run_in(&mut lab, "--from n0 --to n1,n2").expect("one takes part");
    assert_eq!(outcome.refusers, ["n2"]);
    assert_eq!(outcome.unreachable, 0);
    assert!(!outcome.is_clean());
}

/// The one out of reach was passed over.
#[test]
fn one_target_that_refuses_and_one_out_of_reach_are_both_named() {
    let mut lab = Puppets::new();
    lab.spoil = Some(|node, report| {
        if node == "n0" {
            (report.sent, report.acknowledged) = (0, 0);
            (report.unwilling, report.refusers) = (1, vec![1]);
            (report.unreachable, report.unreached) = (1, vec![2]);
        }
        report.delivered = 0;
    });
    let error = run_in(&mut lab, "--from n0 --to n1,n2").expect_err("nobody takes part");
    let text = error.to_string();
    assert!(
        matches!(error, RunError::RefusedOrUnreachable(..)),
        "{text}"
    );
    assert!(text.contains("n1 refused the run: "), "{text}");
    assert!(text.contains("; n2 could not be reached"), "{text}");
}

#[test]
fn who_uses_the_network_interfaces_is_told_and_nothing_is_disturbed() {
    let taken = Refusal {
        text: "phitwire-bench (process 12) measures here".to_owned(),
        code: Some(Code::Taken),
        holder: Some(Holder {
            tool: "phitwire-bench".to_owned(),
            pid: 12,
        }),
        run: None,
    };
    let mut lab = Puppets::new();
    lab.busy = Some(("n1", taken, None));
    let error = run_in(&mut lab, "").expect_err("n1 is taken").to_string();
    assert!(
        error.starts_with("n1: phitwire-bench (process 12) measures here"),
        "{error}"
    );
    assert!(error.contains("kill 12"), "{error}");
    assert!(lab.started.is_empty() && lab.stopped().is_empty());

    // The last answers of a run whose tool has gone are waited for.
    let ending = Refusal {
        text: "traffic run 9 still waits for its last answers".to_owned(),
        code: Some(Code::Ending),
        run: Some((RunKind::Traffic, 9)),
        ..Refusal::default()
    };
    for (until, waited) in [(Some(5), true), (None, false)] {
        let mut lab = Puppets::new();
        lab.busy = Some(("n1", ending.clone(), until.map(Duration::from_secs)));
        let outcome = run_in(&mut lab, "");
        assert_eq!(outcome.is_ok(), waited);
        assert!(
            (5..=31).contains(&lab.clock.get().as_secs()),
            "{:?}",
            lab.clock
        );
    }
}

/// A process of another age, say, which does not know what it is asked: nobody is in its way.
#[test]
fn another_refusal_is_told_as_it_is() {
    let mut lab = Puppets::new();
    let refusal = Refusal::new(Code::NotUnderstood, "not understood: `claim`");
    lab.busy = Some(("n1", refusal, None));
    let error = run_in(&mut lab, "").expect_err("it is refused").to_string();
    assert_eq!(error, "n1: not understood: `claim`");
}

#[test]
fn numbers_of_runs_grow_even_if_the_clock_was_set_back() {
    let mut lab = Puppets::new();
    lab.latest = 1 << 50;
    run_in(&mut lab, "").expect("all goes well");
    assert_eq!(lab.started["n0"].run, (1 << 50) + 1);
}
