//! Benchmarks of the hardware's barrier units, several at once.
//!
//! The tree of each unit is computed from the lab's description and its working links, and written
//! to all routers. The NICs' processes carry out the runs. Only one tool at a time uses a unit.
//! Units are independent of the rest of the NIC, where runs of messages may continue.

use std::collections::BTreeSet;
use std::time::Duration;

use phitwire::net::{Network, RegisterValue, SideNetworks};
use phitwire::nic::{BarrierReport, BarrierSpec, RunPhase};
use phitwire_nodes::control::{LinkReport, NodeInfo, Register, Request};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use super::Ending;
use super::options::Benchmark;
use crate::msgrate::{Clock, Lab, LabError, LatencyUs, Role, ask, holder};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Time that participants wait for each other, as in collective operations. With 30 % of all frames
/// lost, in an emulated machine with one CPU, a barrier of 27 takes 8 s.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time limit beyond the participants' patience.
const END_LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug, Error)]
pub enum UnitError {
    /// A request to the lab or one of its processes failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    #[error("lab `{0}` has no barrier units: omit --unit to use collective engines")]
    NoUnits(String),
    /// The name does not belong to a NIC with barrier units.
    #[error("lab `{lab}` has no NIC `{name}` with barrier units; available: {nics}")]
    NoSuchNic {
        lab: String,
        name: String,
        /// The valid names.
        nics: String,
    },
    #[error("{0} is listed twice")]
    Twice(String),
    #[error("cannot build a barrier among these NICs: {0}")]
    NoTree(String),
    #[error("the barriers did not end within {0} s of the expected time")]
    NeverEnded(u64),
    /// The user requested twice to stop.
    #[error("interrupted before the barriers ended: no measurement")]
    Interrupted,
}

/// A row of the table; the names are those of the JSON output.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UnitRow {
    /// Name of the benchmark.
    pub benchmark: &'static str,
    /// Number of the barrier unit.
    pub unit: u8,
    /// Count of participating NICs.
    pub participants: u32,
    /// The tree as text.
    pub tree: String,
    /// Barriers that all participants completed.
    pub barriers: u64,
    /// Eurekas among them.
    pub eurekas: u64,
    /// Mean latency of barriers, or of eurekas.
    pub mean_us: f64,
    /// Microseconds per barrier, or per eureka with its two barriers, at the slowest participant.
    pub period_us: f64,
    /// Time from joining until the barrier completed, over all participants.
    pub latency_us: LatencyUs,
    /// Time from signalling a eureka until it was reported.
    pub eureka_latency_us: LatencyUs,
    /// Compared words of other participants.
    pub checks: u64,
    /// Words that showed a barrier or eureka too early.
    pub early: u64,
    /// Words that showed one that did not arrive.
    pub lost: u64,
    /// Barriers and eurekas that timed out.
    pub timed_out: u64,
    /// Why the run failed; null if it did not.
    pub failure: Option<String>,
    /// Whether all participants had equally many barriers, without faults.
    pub clean: bool,
}

/// The units to measure, one per row.
#[derive(Debug)]
pub struct UnitSuite<'n> {
    name: &'static str,
    network: &'n dyn Network,
    side: &'n dyn SideNetworks,
    /// Names and processor numbers, in order of rank.
    nics: Vec<(String, u16)>,
    routers: BTreeSet<String>,
    units: Vec<u8>,
    spec: BarrierSpec,
}

/// Names and processor numbers of NICs.
type Nics = Vec<(String, u16)>;

/// The NICs with barrier units, by number, and the routers of a lab.
fn members(lab: &mut dyn Lab) -> Result<(Nics, BTreeSet<String>), UnitError> {
    let mut nics = Vec::new();
    let mut routers = BTreeSet::new();
    for member in lab.members()? {
        match member.role {
            Role::Nic { processor, .. } => {
                let info: NodeInfo = ask(lab, &member.name, &Request::Info)?;
                if info.barrier_units.is_some() {
                    nics.push((member.name, processor));
                }
            }
            Role::Router => {
                routers.insert(member.name);
            }
            Role::Spare | Role::Silent => {}
        }
    }
    nics.sort_by_key(|(_, number)| *number);
    Ok((nics, routers))
}

impl<'n> UnitSuite<'n> {
    /// Finds the participants in `lab`, which runs `network`.
    ///
    /// # Errors
    /// See [`UnitError`].
    ///
    /// # Panics
    /// If `benchmark` is neither a barrier nor a eureka.
    pub fn new(
        benchmark: &Benchmark,
        network: &'n dyn Network,
        lab: &mut dyn Lab,
    ) -> Result<Self, UnitError> {
        let (chosen, units, count, skew_ns) = match benchmark {
            Benchmark::Barrier(options) => (
                &options.collective.nics,
                &options.unit,
                options.count,
                options.skew_ns,
            ),
            Benchmark::Eureka(options) => {
                (&options.nics, &options.unit, options.count, options.skew_ns)
            }
            _ => unreachable!("other benchmarks do not use units"),
        };
        let common = benchmark.common();
        let no_units = || UnitError::NoUnits(common.lab.clone());
        let side = network.side_networks().ok_or_else(no_units)?;
        let (mut nics, routers) = members(lab)?;
        if let Some(twice) = twice(chosen) {
            return Err(UnitError::Twice(format!("`{twice}`")));
        }
        if let Some(twice) = twice(units) {
            return Err(UnitError::Twice(format!("unit {twice}")));
        }
        if !chosen.is_empty() {
            let find = |wanted: &String| {
                let found = nics.iter().find(|(nic, _)| nic == wanted).cloned();
                found.ok_or_else(|| UnitError::NoSuchNic {
                    lab: common.lab.clone(),
                    name: wanted.clone(),
                    nics: nics
                        .iter()
                        .map(|(nic, _)| nic.as_str())
                        .collect::<Vec<_>>()
                        .join(", "),
                })
            };
            nics = chosen.iter().map(find).collect::<Result<_, _>>()?;
        }
        if nics.is_empty() {
            return Err(no_units());
        }
        let spec = BarrierSpec {
            processors: nics.iter().map(|(_, number)| *number).collect(),
            eureka: matches!(benchmark, Benchmark::Eureka(_)),
            count: count.unwrap_or(0),
            duration_ns: match count {
                Some(_) => 0,
                None => (common.seconds * 1e9) as u64,
            },
            skew_ns,
            patience_ns: PATIENCE.as_nanos() as u64,
            ..BarrierSpec::default()
        };
        Ok(Self {
            name: benchmark.name(),
            network,
            side,
            nics,
            routers,
            units: units.clone(),
            spec,
        })
    }

    /// The participants, for the head of the table.
    pub fn describe(&self) -> String {
        let units: Vec<String> = self.units.iter().map(u8::to_string).collect();
        let units = units.join(", ");
        format!("{} NICs, units {units}", self.nics.len())
    }

    /// Measures on all units at once.
    ///
    /// # Errors
    /// See [`UnitError`].
    pub fn run(
        &self,
        lab: &mut dyn Lab,
        clock: &dyn Clock,
        number: u32,
    ) -> Result<(Vec<UnitRow>, Ending), UnitError> {
        for &unit in &self.units {
            for (name, _) in &self.nics {
                let holder = holder();
                lab.ask(name, &Request::ClaimUnit { unit, holder })?;
            }
        }
        let trees = self.configure(lab)?;
        let measured = self.measure(lab, clock, number);
        if measured.is_err() {
            self.stop_all(lab);
            self.stop_all(lab);
        }
        // Free the units in all routers that reply.
        for &unit in &self.units {
            if let Ok(plan) = self.side.barrier(unit, &[], &|_| true) {
                for value in &plan.registers {
                    let _ = self.write(lab, value);
                }
            }
        }
        let reports = measured?;
        let rows: Vec<_> = (reports.iter().zip(trees))
            .map(|(report, tree)| UnitRow::of(self.name, report, tree))
            .collect();
        let ending = match (rows.iter().all(|row| row.clean), clock.stops()) {
            (false, _) => Ending::Damaged,
            (true, 0) => Ending::Clean,
            (true, _) => Ending::Interrupted,
        };
        Ok((rows, ending))
    }

    /// Writes the trees of all units to all routers and enables the units; returns the trees as
    /// text.
    fn configure(&self, lab: &mut dyn Lab) -> Result<Vec<String>, UnitError> {
        let mut down = BTreeSet::new();
        for router in &self.routers {
            let links: Vec<LinkReport> = ask(lab, router, &Request::Links)?;
            let dead = links.iter().filter(|link| !link.up);
            down.extend(dead.map(|link| usize::from(link.link)));
        }
        let nodes = self.network.nodes();
        let named = |name: &str| {
            let mut nodes = nodes.iter().copied();
            nodes.find(|&node| self.network.node_name(node) == name)
        };
        let node = |(name, number): &(String, u16)| Some((named(name)?, *number));
        let nics: Option<Vec<_>> = self.nics.iter().map(node).collect();
        let nics = nics.ok_or_else(|| {
            UnitError::NoTree(
                "the lab runs a description other than the one in its directory".to_owned(),
            )
        })?;
        let mut trees = Vec::new();
        for &unit in &self.units {
            let works = |link: usize| !down.contains(&link);
            let plan = self.side.barrier(unit, &nics, &works);
            let plan = plan.map_err(UnitError::NoTree)?;
            for value in &plan.registers {
                self.write(lab, value)?;
            }
            for (name, _) in &self.nics {
                lab.ask(name, &Request::BarrierPrepare { unit })?;
            }
            trees.push(plan.summary);
        }
        Ok(trees)
    }

    fn write(&self, lab: &mut dyn Lab, value: &RegisterValue) -> Result<Value, LabError> {
        let node = self.network.node_name(value.node);
        if !self.routers.contains(&*node) {
            // Skip a router that does not run, since it is not part of the tree.
            return Ok(Value::Null);
        }
        let request = Request::Set {
            register: Register::Name(value.register.clone()),
            value: value.value,
        };
        lab.ask(&node, &request)
    }

    /// Stops all participants after the next barrier.
    fn stop_all(&self, lab: &mut dyn Lab) {
        for &unit in &self.units {
            for (name, _) in &self.nics {
                // Ignore an error: a participant that does not reply does not act.
                let _ = lab.ask(name, &Request::BarrierStop { unit });
            }
        }
    }

    /// Runs all units to the end.
    fn measure(
        &self,
        lab: &mut dyn Lab,
        clock: &dyn Clock,
        number: u32,
    ) -> Result<Vec<BarrierReport>, UnitError> {
        for &unit in &self.units {
            let spec = Box::new(BarrierSpec {
                run: number,
                unit,
                ..self.spec.clone()
            });
            let request = Request::BarrierStart { spec };
            for (name, _) in &self.nics {
                lab.ask(name, &request)?;
            }
        }
        let limit = Duration::from_nanos(self.spec.duration_ns) + PATIENCE + END_LIMIT;
        let (begin, mut stopped) = (clock.now(), false);
        loop {
            clock.sleep(LOOK_EVERY);
            let mut reports = Vec::new();
            for &unit in &self.units {
                let mut merged = BarrierReport::default();
                for (name, _) in &self.nics {
                    let request = Request::BarrierStatus { unit };
                    merged.merge(&ask(lab, name, &request)?);
                }
                merged.unit = unit;
                reports.push(merged);
            }
            if reports.iter().all(|report| report.phase == RunPhase::Done) {
                return Ok(reports);
            }
            match clock.stops() {
                0 => {}
                1 if stopped => {}
                1 => {
                    self.stop_all(lab);
                    stopped = true;
                }
                _ => return Err(UnitError::Interrupted),
            }
            if self.spec.count == 0 && clock.now() - begin > limit {
                return Err(UnitError::NeverEnded(END_LIMIT.as_secs()));
            }
        }
    }
}

impl UnitRow {
    fn of(benchmark: &'static str, report: &BarrierReport, tree: String) -> Self {
        let (latency, count) = match benchmark {
            "eureka" => (&report.eureka_latency, report.eurekas),
            _ => (&report.latency, report.barriers),
        };
        Self {
            benchmark,
            unit: report.unit,
            participants: report.participants,
            tree,
            barriers: report.barriers,
            eurekas: report.eurekas,
            mean_us: latency.mean() as f64 / 1e3,
            period_us: report.elapsed_ns as f64 / 1e3 / count.max(1) as f64,
            latency_us: LatencyUs::of(&report.latency),
            eureka_latency_us: LatencyUs::of(&report.eureka_latency),
            checks: report.checks,
            early: report.early,
            lost: report.lost,
            timed_out: report.timed_out,
            failure: report.failure.clone(),
            clean: report.is_clean() && report.barriers > 0,
        }
    }
}

/// The first element that occurs twice.
fn twice<T: PartialEq>(all: &[T]) -> Option<&T> {
    (1..all.len()).find_map(|n| all[..n].contains(&all[n]).then_some(&all[n]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire::nic::LatencyCounts;

    /// Each eureka is measured with two barriers, and with some time between them.
    #[test]
    fn the_mean_matches_the_listed_latencies() {
        let counts = |all: &[u64]| LatencyCounts {
            buckets: all.iter().map(|ns| (*ns, 1)).collect(),
            max_ns: all.iter().copied().max().unwrap_or(0),
        };
        let report = BarrierReport {
            barriers: 4,
            eurekas: 2,
            elapsed_ns: 100_000,
            latency: counts(&[6_000, 7_000, 8_000, 9_000]),
            eureka_latency: counts(&[1_000, 3_000]),
            ..BarrierReport::default()
        };
        let of = |benchmark| {
            let row = UnitRow::of(benchmark, &report, String::new());
            (row.mean_us, row.period_us)
        };
        assert_eq!(of("barrier"), (7.5, 25.0));
        assert_eq!(of("eureka"), (2.0, 50.0));
    }
}
