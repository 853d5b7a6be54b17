//! The participants of a measurement, with their instructions.

use std::collections::BTreeSet;
use std::time::Duration;

use phitwire::nic::{Gaps, Operation, TrafficPattern, TrafficSpec};
use phitwire_nodes::nearest::did_you_mean;

use super::lab::{Lab, Member, Role};
use super::options::{Op, Options, PairOp, PatternName};
use super::run::RunError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nic {
    pub(super) name: String,
    pub(super) processor: u16,
    pub(super) group: Option<u16>,
}

/// A measurement planned for a lab.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub lab: String,
    /// Messages that each source keeps outstanding.
    pub window: u32,
    /// All processes of the lab.
    pub(super) everybody: Vec<String>,
    pub(super) sources: Vec<Nic>,
    /// NICs that only receive.
    pub(super) targets: Vec<Nic>,
    pub(super) spec: TrafficSpec,
    pub(super) pattern: String,
    /// Whether each source sends to a single target, the first to the first.
    pub(super) paired: bool,
    /// The operation of the programs that send instead of the NICs.
    pub(super) programs: Option<PairOp>,
}

/// The traffic described by the options, without participants.
fn asked_for(options: &Options) -> TrafficSpec {
    TrafficSpec {
        rate: options.rate.unwrap_or(0),
        gaps: options.gaps.into(),
        op: match options.op {
            Op::Put => Operation::Put,
            Op::Get => Operation::Get,
            Op::Amo => Operation::Amo,
        },
        ways: options.routing.map(Into::into),
        window: options.window(),
        duration_ns: options.duration_ns(),
        count: options.count.unwrap_or(0),
        seed: options.seed,
        ..TrafficSpec::default()
    }
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
            if let Some(name) = named_twice(names) {
                return Err(RunError::Twice(name.to_owned()));
            }
            names
                .iter()
                .map(|name| match lab.dead().contains(name) {
                    true => Err(RunError::Dead(name.clone(), options.lab.clone())),
                    false => find_nic(&options.lab, name, &members, &nics),
                })
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
            pattern = TrafficPattern::List {
                destinations: numbers(&targets),
            };
            shown = format!("{} -> {}", options.from.join(","), options.to.join(","));
        }
        let groups = match pattern {
            TrafficPattern::GroupAdversarial => groups_of(&options.lab, &shown, &sources)?,
            _ => Vec::new(),
        };
        let spec = TrafficSpec {
            pattern,
            processors: numbers(&sources),
            groups,
            ..asked_for(options)
        };
        let targets = targets
            .into_iter()
            .filter(|nic| !sources.contains(nic))
            .collect();
        let everybody = members.into_iter().map(|member| member.name).collect();
        let (lab, window) = (options.lab.clone(), options.window());
        Ok(Self {
            lab,
            window,
            everybody,
            sources,
            targets,
            spec,
            pattern: shown,
            paired: false,
            programs: options.client.then(|| options.op.into()),
        })
    }

    /// Makes each source send to a single target, the first to the first. Their numbers must be
    /// equal.
    pub fn pair_up(&mut self) {
        self.paired = true;
        self.pattern = format!("{} pairs, {}", self.sources.len(), self.pattern);
    }

    /// Makes a program at the source send to one at the target by `op`.
    pub fn between_programs(&mut self, op: PairOp) {
        self.paired = true;
        self.programs = Some(op);
        let names: Vec<&str> = self.participants().map(|nic| nic.name.as_str()).collect();
        let [to, from] = names[..] else {
            return;
        };
        self.pattern = format!("programs at {from} and {to}, --op {}", op.name());
    }

    /// Whether programs send instead of the NICs.
    pub fn is_by_programs(&self) -> bool {
        self.programs.is_some()
    }

    pub(super) fn program_op(&self) -> PairOp {
        self.programs.unwrap_or_default()
    }

    /// This plan with `count` messages of each source instead of a duration.
    pub fn of_count(&self, count: u64) -> Self {
        let mut plan = self.clone();
        plan.spec.count = count;
        plan.spec.duration_ns = 0;
        plan
    }

    /// A short run from the first source to one target, one message at a time, which measures the
    /// latency without queueing. `None` if this plan already does that, has a rate, or has no
    /// target.
    pub fn unloaded(&self, duration: Duration) -> Option<Self> {
        let from = self.sources.first()?.clone();
        let to = self.targets.first().or(self.sources.last())?.clone();
        if self.window == 1 || self.spec.rate > 0 || from == to {
            return None;
        }
        let mut plan = self.clone();
        plan.spec = TrafficSpec {
            pattern: TrafficPattern::List {
                destinations: vec![to.processor],
            },
            processors: vec![from.processor],
            groups: Vec::new(),
            window: 1,
            count: 0,
            duration_ns: duration.as_nanos() as u64,
            ..self.spec.clone()
        };
        plan.pattern = format!("{} -> {}", from.name, to.name);
        (plan.sources, plan.targets) = (vec![from], vec![to]);
        (plan.window, plan.paired) = (1, false);
        Some(plan)
    }

    /// All participants, starting with those that only receive.
    pub(super) fn participants(&self) -> impl Iterator<Item = &Nic> + Clone {
        self.targets.iter().chain(&self.sources)
    }

    /// The instructions of the source with this index.
    pub(super) fn spec_of(&self, source: usize, spec: &TrafficSpec) -> TrafficSpec {
        let mut spec = spec.clone();
        if let (true, TrafficPattern::List { destinations }) = (self.paired, &mut spec.pattern) {
            *destinations = destinations.get(source).copied().into_iter().collect();
        }
        spec
    }

    /// The names of participating processors.
    pub(super) fn names_of(&self, processors: &[u16]) -> Vec<String> {
        let named = |processor: &u16| {
            let nic = self.participants().find(|nic| nic.processor == *processor);
            nic.map_or_else(|| format!("processor {processor}"), |nic| nic.name.clone())
        };
        processors.iter().map(named).collect()
    }

    pub fn operation(&self) -> Operation {
        self.spec.op
    }

    /// Messages per second that each source issues; 0: as many as the window allows.
    pub fn rate(&self) -> u64 {
        self.spec.rate
    }

    pub fn source_count(&self) -> usize {
        self.sources.len()
    }

    /// Makes every source choose targets at random, with `addresses` addresses at each.
    pub fn update_at_random(&mut self, addresses: u16) {
        self.spec.pattern = TrafficPattern::Uniform;
        self.spec.addresses = addresses;
        self.pattern = "uniform".to_owned();
    }

    /// Duration of sending, if limited.
    pub fn duration(&self) -> Option<Duration> {
        (self.spec.duration_ns > 0).then(|| Duration::from_nanos(self.spec.duration_ns))
    }

    /// The sources and targets, in one line.
    pub fn ends(&self) -> &str {
        &self.pattern
    }

    /// The sources, targets and traffic, for the head of the table.
    pub fn describe(&self) -> String {
        let who = if self.is_by_programs() {
            "programs as "
        } else {
            ""
        };
        let mut text = match self.paired {
            true => self.pattern.clone(),
            false => format!("{who}{} sources, {}", self.sources.len(), self.pattern),
        };
        if self.spec.rate > 0 {
            let gaps = match self.spec.gaps {
                Gaps::Even => "",
                Gaps::Random => " at random intervals",
            };
            text.push_str(&format!(", {} messages/s each{gaps}", self.spec.rate));
        }
        if let Some(duration) = self.duration() {
            text.push_str(&format!(", {} s", duration.as_secs_f64()));
        }
        if self.spec.count > 0 {
            text.push_str(&format!(", {} messages each", self.spec.count));
        }
        text
    }
}

fn named_twice(names: &[String]) -> Option<&str> {
    let mut known = BTreeSet::new();
    let twice = names.iter().find(|name| !known.insert(name.as_str()))?;
    Some(twice)
}

fn as_nic(member: &Member) -> Option<Nic> {
    match member.role {
        Role::Nic { processor, group } => Some(Nic {
            name: member.name.clone(),
            processor,
            group,
        }),
        Role::Router | Role::Spare | Role::Silent => None,
    }
}

fn find_nic(lab: &str, name: &str, members: &[Member], nics: &[Nic]) -> Result<Nic, RunError> {
    if let Some(nic) = nics.iter().find(|nic| nic.name == name) {
        return Ok(nic.clone());
    }
    if let Some(member) = members.iter().find(|member| member.name == name) {
        return Err(match member.role {
            Role::Silent => RunError::Silent(name.to_owned()),
            Role::Spare => RunError::Spare(name.to_owned()),
            _ => RunError::IsRouter(name.to_owned()),
        });
    }
    let names: Vec<&str> = nics.iter().map(|nic| nic.name.as_str()).collect();
    Err(RunError::NoSuchNode {
        lab: lab.into(),
        name: name.into(),
        nics: names.join(", "),
        near: did_you_mean(name, &names),
    })
}

/// The group of each of `nics`, for patterns from group to group.
fn groups_of(lab: &str, pattern: &str, nics: &[Nic]) -> Result<Vec<u16>, RunError> {
    let no_groups = |groups| RunError::NoGroups {
        pattern: pattern.to_owned(),
        lab: lab.to_owned(),
        groups,
    };
    let groups: Option<Vec<u16>> = nics.iter().map(|nic| nic.group).collect();
    let groups = groups.ok_or_else(|| no_groups("no groups"))?;
    match groups.iter().collect::<BTreeSet<_>>().len() {
        0 | 1 => Err(no_groups("one group")),
        _ => Ok(groups),
    }
}

fn named_pattern(options: &Options, hot: Vec<u16>) -> TrafficPattern {
    match options.pattern {
        PatternName::Uniform => TrafficPattern::Uniform,
        PatternName::Neighbour => TrafficPattern::Neighbour,
        PatternName::BitComplement => TrafficPattern::BitComplement,
        PatternName::BitReverse => TrafficPattern::BitReverse,
        PatternName::Shuffle => TrafficPattern::Shuffle,
        PatternName::Transpose => TrafficPattern::Transpose,
        PatternName::Tornado => TrafficPattern::Tornado,
        PatternName::Permutation => TrafficPattern::Permutation,
        PatternName::GroupAdversarial => TrafficPattern::GroupAdversarial,
        PatternName::Hotspot => TrafficPattern::Hotspot {
            targets: hot,
            percent: options.hot_percent,
        },
    }
}
