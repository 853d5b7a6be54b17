//! Benchmarks of the collective engines.

use std::time::Duration;

use phitwire::nic::RunPhase;
use phitwire::nic::{Collective, CollectiveReport, CollectiveSpec};
use phitwire_nodes::control::{NodeInfo, Request};
use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

use super::Ending;
use super::options::{Benchmark, CollectiveOptions};
use crate::msgrate::{ClaimError, Clock, Lab, LabError, LatencyUs, Role, ask, claim};

/// Interval of polls during the measurement. Each reply contains every latency, so frequent polls
/// would disturb the measurement.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Interval of polls after the end of the measuring time.
const END_LOOK_EVERY: Duration = Duration::from_millis(50);
/// Time that participants wait for each other. No lab needs that long for an operation.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time limit beyond the participants' patience.
const END_LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug, Error)]
pub enum CollectiveError {
    /// A request to the lab or one of its processes failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The name does not belong to a NIC with a collective engine.
    #[error("lab `{lab}` has no NIC `{name}` with collective operations; available: {nics}")]
    NoSuchNic {
        lab: String,
        name: String,
        /// The valid names.
        nics: String,
    },
    #[error("`{0}` is listed twice")]
    Twice(String),
    /// The NICs are in use or do not reply.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// There are fewer than two participants.
    #[error(
        "a collective operation needs two NICs with collective engines, but lab `{0}` would \
         provide only {1}"
    )]
    Alone(String, usize),
    /// A report is about another run.
    #[error("{0} reports on another run: is someone else measuring this lab?")]
    OtherRun(String),
    /// The participants did not finish.
    #[error("the operations did not end within {0} s of the expected time, at {1}")]
    NeverEnded(u64, String),
    /// The user requested twice to stop.
    #[error("interrupted before the operations ended: no measurement")]
    Interrupted,
}

/// A row of the table; the names are those of the JSON output.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CollectiveRow {
    /// Name of the benchmark.
    pub benchmark: &'static str,
    /// The operation.
    pub op: String,
    /// Bytes per number; 0 for a barrier.
    pub size: u32,
    /// Count of participating NICs.
    pub participants: u32,
    /// Children per node of the tree.
    pub branching: u32,
    /// Operations that all participants completed.
    pub iterations: u64,
    /// Microseconds per operation, at the slowest participant.
    pub mean_us: f64,
    /// Time from joining to the result, over all participants.
    pub latency_us: LatencyUs,
    /// Incorrect results.
    pub wrong: u64,
    /// Operations without a result.
    pub failed: u64,
    /// Operations that timed out.
    pub timed_out: u64,
    /// Why the run failed; null if it did not.
    pub failure: Option<String>,
    /// Whether every participant got the same number of results, all correct.
    pub clean: bool,
}

/// Participants that died or stopped during a run.
#[derive(Clone, Debug, Default)]
struct Fallen {
    died: Vec<String>,
    stopped: Vec<String>,
}

impl Fallen {
    /// Why the run failed, if it did.
    fn reason(&self, failure: Option<&str>) -> Option<String> {
        if !self.died.is_empty() {
            return Some(format!(
                "killed or restarted during the run: {}",
                self.died.join(", ")
            ));
        }
        let failure = failure?;
        Some(match self.stopped.as_slice() {
            [] => failure.to_owned(),
            names => format!("{failure} (stopped during the run: {})", names.join(", ")),
        })
    }
}

/// The operations to measure, one per row.
#[derive(Clone, Debug)]
pub struct CollectiveSuite {
    name: &'static str,
    lab: String,
    /// Names and virtual node numbers, in order of rank.
    nics: Vec<(String, u32)>,
    operations: Vec<Collective>,
    spec: CollectiveSpec,
}

impl CollectiveSuite {
    /// Finds the participants in `lab`.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn new(benchmark: &Benchmark, lab: &mut dyn Lab) -> Result<Self, CollectiveError> {
        let (options, operations) = match benchmark {
            Benchmark::Allreduce(options) => (&options.collective, options.op.clone()),
            Benchmark::Barrier(options) => (&options.collective, vec![Collective::Barrier]),
            _ => unreachable!("other benchmarks use messages"),
        };
        let nics = participants(options, lab)?;
        let spec = CollectiveSpec {
            nics: nics.iter().map(|(_, number)| *number).collect(),
            branching: options.branching,
            engine: options.engine,
            duration_ns: (options.common.seconds * 1e9) as u64,
            patience_ns: PATIENCE.as_nanos() as u64,
            ..CollectiveSpec::default()
        };
        Ok(Self {
            name: benchmark.name(),
            lab: options.common.lab.clone(),
            nics,
            operations,
            spec,
        })
    }

    /// Participants and tree, for the head of the table.
    pub fn describe(&self) -> String {
        format!(
            "{} NICs, tree of branching {}, engine {}",
            self.nics.len(),
            self.spec.branching,
            self.spec.engine
        )
    }

    /// Measures all operations and passes each row to `show`, until a stop is requested.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn run(
        &self,
        lab: &mut dyn Lab,
        clock: &dyn Clock,
        mut run_number: impl FnMut() -> u32,
        mut show: impl FnMut(&CollectiveRow),
    ) -> Result<Ending, CollectiveError> {
        let names = self.nics.iter().map(|(name, _)| name.as_str());
        claim(&self.lab, names, lab, clock)?;
        let mut ending = Ending::Clean;
        for &op in &self.operations {
            let spec = CollectiveSpec {
                run: run_number(),
                op,
                ..self.spec.clone()
            };
            let mut started = 0;
            let measured = self
                .start(&spec, lab, &mut started)
                .and_then(|()| self.wait(&spec, lab, clock));
            if measured.is_err() {
                // Abort only participants that this run started; others work for another tool.
                self.abort(lab, started);
            }
            let (report, fallen) = measured?;
            let row = self.row(op, &report, &fallen);
            if !row.clean {
                ending = Ending::Damaged;
            }
            show(&row);
            if clock.stops() > 0 && ending == Ending::Clean {
                ending = Ending::Interrupted;
            }
            if ending != Ending::Clean {
                break;
            }
        }
        Ok(ending)
    }

    fn start(
        &self,
        spec: &CollectiveSpec,
        lab: &mut dyn Lab,
        started: &mut usize,
    ) -> Result<(), CollectiveError> {
        let spec = Box::new(spec.clone());
        let request = Request::CollectiveStart { spec };
        for (name, _) in &self.nics {
            lab.ask(name, &request)?;
            *started += 1;
        }
        Ok(())
    }

    /// Stops the first `participants` participants after the next operation.
    fn stop_all(&self, lab: &mut dyn Lab, participants: usize) {
        for (name, _) in &self.nics[..participants] {
            // Ignore an error: a participant that does not reply does not act.
            let _ = lab.ask(name, &Request::CollectiveStop);
        }
    }

    /// Ends the operation of the first participants, even if others never join.
    fn abort(&self, lab: &mut dyn Lab, participants: usize) {
        self.stop_all(lab, participants);
        self.stop_all(lab, participants);
    }

    /// Waits until the run has ended everywhere.
    fn wait(
        &self,
        spec: &CollectiveSpec,
        lab: &mut dyn Lab,
        clock: &dyn Clock,
    ) -> Result<(CollectiveReport, Fallen), CollectiveError> {
        let mut fallen = Fallen::default();
        let limit = Duration::from_nanos(spec.duration_ns + spec.patience_ns) + END_LIMIT;
        let (begin, mut stopped) = (clock.now(), false);
        loop {
            let mut merged = CollectiveReport::default();
            let mut slow = Vec::new();
            for (name, _) in &self.nics {
                if fallen.died.contains(name) {
                    continue;
                }
                let status = ask(lab, name, &Request::CollectiveStatus);
                let report: CollectiveReport = match status {
                    Ok(report) => report,
                    Err(error) if error.reports_death() => {
                        // Give up, since the run cannot finish without a dead participant.
                        fallen.died.push(name.clone());
                        self.abort(lab, self.nics.len());
                        continue;
                    }
                    Err(error) if error.is_silent() => {
                        // Continue, since a stopped participant may resume while the others still
                        // wait.
                        if !fallen.stopped.contains(name) {
                            fallen.stopped.push(name.clone());
                        }
                        slow.push(name.as_str());
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                if report.run != spec.run {
                    return Err(CollectiveError::OtherRun(name.clone()));
                }
                if report.phase != RunPhase::Done {
                    slow.push(name.as_str());
                }
                merged.merge(&report);
            }
            if slow.is_empty() {
                return Ok((merged, fallen));
            }
            match clock.stops() {
                0 => {}
                1 if stopped => {}
                1 => {
                    self.stop_all(lab, self.nics.len());
                    stopped = true;
                }
                _ => return Err(CollectiveError::Interrupted),
            }
            if clock.now() - begin > limit {
                let seconds = END_LIMIT.as_secs();
                return Err(CollectiveError::NeverEnded(seconds, slow.join(", ")));
            }
            let left = Duration::from_nanos(spec.duration_ns).saturating_sub(clock.now() - begin);
            clock.sleep(left.clamp(END_LOOK_EVERY, LOOK_EVERY));
        }
    }

    fn row(&self, op: Collective, report: &CollectiveReport, fallen: &Fallen) -> CollectiveRow {
        CollectiveRow {
            benchmark: self.name,
            op: op.to_string(),
            size: match op {
                Collective::Reduce(_, number) => number.bytes() as u32,
                Collective::Barrier => 0,
            },
            participants: report.participants,
            branching: self.spec.branching,
            iterations: report.iterations,
            mean_us: report.elapsed_ns as f64 / 1e3 / report.iterations.max(1) as f64,
            latency_us: LatencyUs::of(&report.latency),
            wrong: report.wrong,
            failed: report.failed,
            timed_out: report.timed_out,
            failure: fallen.reason(report.failure.as_deref()),
            clean: fallen.died.is_empty() && report.is_clean() && report.iterations > 0,
        }
    }
}

/// Names and virtual node numbers of the participants.
fn participants(
    options: &CollectiveOptions,
    lab: &mut dyn Lab,
) -> Result<Vec<(String, u32)>, CollectiveError> {
    let name = &options.common.lab;
    let mut nics = Vec::new();
    for member in lab.members()? {
        let Role::Nic { processor, .. } = member.role else {
            continue;
        };
        let info: NodeInfo = ask(lab, &member.name, &Request::Info)?;
        if info.collectives {
            nics.push((member.name, u32::from(processor)));
        }
    }
    nics.sort_by_key(|(_, number)| *number);
    if let Some(twice) =
        (1..options.nics.len()).find(|&n| options.nics[..n].contains(&options.nics[n]))
    {
        return Err(CollectiveError::Twice(options.nics[twice].clone()));
    }
    if !options.nics.is_empty() {
        let known = nics;
        let find = |wanted: &String| {
            let found = known.iter().find(|(nic, _)| nic == wanted).cloned();
            found.ok_or_else(|| CollectiveError::NoSuchNic {
                lab: name.clone(),
                name: wanted.clone(),
                nics: known
                    .iter()
                    .map(|(nic, _)| nic.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
            })
        };
        nics = options.nics.iter().map(find).collect::<Result<_, _>>()?;
    }
    match nics.len() {
        0 | 1 => Err(CollectiveError::Alone(name.clone(), nics.len())),
        _ => Ok(nics),
    }
}
