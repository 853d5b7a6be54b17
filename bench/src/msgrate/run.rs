//! The course of a measurement.

use std::time::{Duration, Instant};

use phitwire::nic::{Operation, Pattern, Phase, TrafficReport, TrafficSpec};
use serde_json::json;
use thiserror::Error;

use super::lab::{Lab, LabError, Member, Role};
use super::options::{Op, Options, PatternName};
use super::outcome::{LinkWork, Outcome};

/// Time between two looks at the sources.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Time that the last answers, or their time-outs, may take. A request times out after seconds to
/// minutes, by topology.
const DRAIN_LIMIT: Duration = Duration::from_secs(120);
/// Time that messages whose sources have given them up may take to arrive all the same.
const STRAGGLER_LIMIT: Duration = Duration::from_secs(3);

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum RunError {
    /// The lab or one of its processes did not do as asked.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A name is not that of a node.
    #[error("lab `{lab}` has no node `{name}`; its network interfaces are {nics}")]
    NoSuchNode {
        /// The lab.
        lab: String,
        /// The name.
        name: String,
        /// The names that would do.
        nics: String,
    },
    /// A router was named where a network interface belongs.
    #[error("`{0}` is a router: messages go from network interface to network interface")]
    IsRouter(String),
    /// Fewer than two participants.
    #[error("lab `{0}` has fewer than two network interfaces: nobody to send to")]
    Alone(String),
    /// A report cannot be read.
    #[error("{node}: the traffic report is malformed: {source}")]
    Report {
        /// The node.
        node: String,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A report is of another run: somebody else measures the same lab.
    #[error("{node} reports on run {found} instead of {run}: is someone else measuring this lab?")]
    OtherRun {
        /// The node.
        node: String,
        /// Its run.
        found: u32,
        /// This run.
        run: u32,
    },
    /// The sources did not come to an end.
    #[error("messages are still unanswered {0} s after the end of the run, at {1}")]
    NeverDrained(u64, String),
}

/// A network interface that takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Nic {
    name: String,
    processor: u16,
}

/// What is to be measured, in terms of a lab.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The lab.
    pub lab: String,
    /// Messages that each source keeps outstanding.
    pub window: u32,
    everybody: Vec<String>,
    sources: Vec<Nic>,
    /// Network interfaces that only receive.
    targets: Vec<Nic>,
    spec: TrafficSpec,
    pattern: String,
}

impl Plan {
    /// Finds the participants in `lab`.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn new(options: &Options, lab: &mut dyn Lab) -> Result<Self, RunError> {
        let members = lab.members()?;
        let nics: Vec<Nic> = members.iter().filter_map(as_nic).collect();
        let find = |names: &[String]| -> Result<Vec<Nic>, RunError> {
            names
                .iter()
                .map(|name| find_nic(&options.lab, name, &members, &nics))
                .collect()
        };
        let numbers = |nics: &[Nic]| nics.iter().map(|nic| nic.processor).collect::<Vec<u16>>();
        let (sources, targets, pattern, shown);
        if options.from.is_empty() {
            if nics.len() < 2 {
                return Err(RunError::Alone(options.lab.clone()));
            }
            let hot = match find(&options.hot)? {
                hot if hot.is_empty() => vec![nics[0].clone()],
                hot => hot,
            };
            pattern = named_pattern(options, numbers(&hot));
            shown = clap::ValueEnum::to_possible_value(&options.pattern)
                .map_or_else(String::new, |value| value.get_name().to_owned());
            sources = nics;
            targets = Vec::new();
        } else {
            sources = find(&options.from)?;
            targets = find(&options.to)?;
            pattern = Pattern::List {
                destinations: numbers(&targets),
            };
            shown = format!("{} -> {}", options.from.join(","), options.to.join(","));
        }
        let spec = TrafficSpec {
            pattern,
            processors: numbers(&sources),
            op: match options.op {
                Op::Put => Operation::Put,
                Op::Get => Operation::Get,
            },
            window: options.window,
            duration_ns: options.duration_ns(),
            count: options.count.unwrap_or(0),
            seed: options.seed,
            ..TrafficSpec::default()
        };
        let targets = targets
            .into_iter()
            .filter(|nic| !sources.contains(nic))
            .collect();
        let everybody = members.into_iter().map(|member| member.name).collect();
        let (lab, window) = (options.lab.clone(), options.window);
        Ok(Self {
            lab,
            window,
            everybody,
            sources,
            targets,
            spec,
            pattern: shown,
        })
    }

    /// Whether the messages are gets.
    pub fn is_get(&self) -> bool {
        self.spec.op == Operation::Get
    }

    /// How long the sources send, if that is limited.
    pub fn duration(&self) -> Option<Duration> {
        (self.spec.duration_ns > 0).then(|| Duration::from_nanos(self.spec.duration_ns))
    }

    /// Who sends to whom and how much, for the head of the table.
    pub fn describe(&self) -> String {
        let mut text = format!("{} sources, {}", self.sources.len(), self.pattern);
        if let Some(duration) = self.duration() {
            text.push_str(&format!(", {} s", duration.as_secs_f64()));
        }
        if self.spec.count > 0 {
            text.push_str(&format!(", {} messages each", self.spec.count));
        }
        text
    }
}

fn as_nic(member: &Member) -> Option<Nic> {
    match member.role {
        Role::Nic { processor } => Some(Nic {
            name: member.name.clone(),
            processor,
        }),
        Role::Router => None,
    }
}

fn find_nic(lab: &str, name: &str, members: &[Member], nics: &[Nic]) -> Result<Nic, RunError> {
    if let Some(nic) = nics.iter().find(|nic| nic.name == name) {
        return Ok(nic.clone());
    }
    if members.iter().any(|member| member.name == name) {
        return Err(RunError::IsRouter(name.to_owned()));
    }
    let names: Vec<&str> = nics.iter().map(|nic| nic.name.as_str()).collect();
    Err(RunError::NoSuchNode {
        lab: lab.into(),
        name: name.into(),
        nics: names.join(", "),
    })
}

fn named_pattern(options: &Options, hot: Vec<u16>) -> Pattern {
    match options.pattern {
        PatternName::Uniform => Pattern::Uniform,
        PatternName::Neighbour => Pattern::Neighbour,
        PatternName::BitComplement => Pattern::BitComplement,
        PatternName::BitReverse => Pattern::BitReverse,
        PatternName::Shuffle => Pattern::Shuffle,
        PatternName::Transpose => Pattern::Transpose,
        PatternName::Tornado => Pattern::Tornado,
        PatternName::Permutation => Pattern::Permutation,
        PatternName::Hotspot => Pattern::Hotspot {
            targets: hot,
            percent: options.hot_percent,
        },
    }
}

/// How far a measurement has come, for a progress line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Messages sent so far.
    pub sent: u64,
    /// Messages acknowledged so far.
    pub acknowledged: u64,
    /// The earliest phase of all sources.
    pub phase: Phase,
}

/// What a measurement needs of the outside world besides the lab.
pub trait Clock {
    /// Time since some start.
    fn now(&self) -> Duration;
    /// Waits.
    fn sleep(&self, span: Duration);
}

/// The machine's own clock.
#[derive(Debug)]
pub struct RealClock(Instant);

impl Default for RealClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for RealClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, span: Duration) {
        std::thread::sleep(span);
    }
}

/// Measures messages of `size` bytes as `plan` says. `run` names the run within the lab; it
/// differs from that of any other measurement and is not zero.
///
/// # Errors
/// See [`RunError`]. What goes wrong with messages is no error but part of the outcome.
pub fn measure(
    plan: &Plan,
    size: u8,
    run: u32,
    lab: &mut dyn Lab,
    clock: &dyn Clock,
    mut watch: impl FnMut(Progress),
) -> Result<Outcome, RunError> {
    let before = link_work(plan, lab);
    let spec = TrafficSpec {
        run,
        size,
        ..plan.spec.clone()
    };
    // A network interface that only receives is told as well, with nobody to send to: what it
    // reports is then of this run and of no other.
    let silent = TrafficSpec {
        pattern: Pattern::List {
            destinations: Vec::new(),
        },
        ..spec.clone()
    };
    let started =
        start(&plan.targets, &silent, lab).and_then(|()| start(&plan.sources, &spec, lab));
    let drained = started
        .map_err(RunError::from)
        .and_then(|()| drain(plan, run, lab, clock, &mut watch));
    if drained.is_err() {
        // Whatever went wrong, nobody is left sending.
        for nic in &plan.sources {
            let _ = lab.ask(&nic.name, json!({ "cmd": "traffic-stop" }));
        }
    }
    drained?;
    let report = settle(plan, run, lab, clock)?;
    let links = link_work(plan, lab).since(&before);
    Ok(Outcome::new(&report, size, links))
}

fn start(nics: &[Nic], spec: &TrafficSpec, lab: &mut dyn Lab) -> Result<(), LabError> {
    for nic in nics {
        lab.ask(&nic.name, json!({ "cmd": "traffic-start", "spec": spec }))?;
    }
    Ok(())
}

/// Waits until all that the sources have sent is answered or given up.
fn drain(
    plan: &Plan,
    run: u32,
    lab: &mut dyn Lab,
    clock: &dyn Clock,
    watch: &mut impl FnMut(Progress),
) -> Result<(), RunError> {
    let begin = clock.now();
    // A run that only a count limits takes what it takes, as long as something is acknowledged.
    let mut deadline = begin + plan.duration().unwrap_or_default() + DRAIN_LIMIT;
    let mut seen = 0;
    loop {
        let mut merged = TrafficReport::default();
        let mut slow = Vec::new();
        for nic in &plan.sources {
            let report = report_of(nic, run, lab)?;
            if report.phase != Phase::Done {
                slow.push(nic.name.as_str());
            }
            merged.merge(&report);
        }
        let now = clock.now();
        watch(Progress {
            elapsed: now - begin,
            sent: merged.sent,
            acknowledged: merged.acknowledged,
            phase: merged.phase,
        });
        if slow.is_empty() {
            return Ok(());
        }
        if plan.duration().is_none() && merged.acknowledged > seen {
            deadline = now + DRAIN_LIMIT;
        }
        seen = merged.acknowledged;
        if now >= deadline {
            return Err(RunError::NeverDrained(
                DRAIN_LIMIT.as_secs(),
                slow.join(", "),
            ));
        }
        clock.sleep(LOOK_EVERY);
    }
}

/// The merged report of all participants, once nothing more is on its way.
fn settle(
    plan: &Plan,
    run: u32,
    lab: &mut dyn Lab,
    clock: &dyn Clock,
) -> Result<TrafficReport, RunError> {
    let begin = clock.now();
    loop {
        let mut merged = TrafficReport::default();
        for nic in plan.sources.iter().chain(&plan.targets) {
            merged.merge(&report_of(nic, run, lab)?);
        }
        if merged.lost() == 0 || clock.now() - begin >= STRAGGLER_LIMIT {
            return Ok(merged);
        }
        clock.sleep(LOOK_EVERY);
    }
}

fn report_of(nic: &Nic, run: u32, lab: &mut dyn Lab) -> Result<TrafficReport, RunError> {
    let answer = lab.ask(&nic.name, json!({ "cmd": "traffic-status" }))?;
    let report: TrafficReport =
        serde_json::from_value(answer).map_err(|source| RunError::Report {
            node: nic.name.clone(),
            source,
        })?;
    if report.run == run {
        Ok(report)
    } else {
        Err(RunError::OtherRun {
            node: nic.name.clone(),
            found: report.run,
            run,
        })
    }
}

/// What the links of all processes have done so far. A process that is gone takes its counts with
/// it and fails nothing: what it held shows as messages timed out.
fn link_work(plan: &Plan, lab: &mut dyn Lab) -> LinkWork {
    let mut work = LinkWork::default();
    for node in &plan.everybody {
        if let Ok(stats) = lab.ask(node, json!({ "cmd": "stats" })) {
            work.add(&stats);
        }
    }
    work
}

#[cfg(test)]
mod tests;
