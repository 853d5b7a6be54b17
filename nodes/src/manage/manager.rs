//! One reroute after the other.

use std::thread::sleep;
use std::time::{Duration, Instant};

use phitwire::machine::aries::manage::plan_reroute;
use phitwire::machine::aries::router::digest;
use phitwire::machine::aries::topology::{Dragonfly, DragonflyWiring, Faults, Routed};
use phitwire::manage::Phase;
use phitwire::net::NodeRef;

use super::execute::execute;
use super::fleet::{Fleet, Routers, ask};
use super::report::{Report, Status};
use super::survey::Survey;
use crate::control::{Request, TableSet};
use crate::manage::tables::shared_tables;
use crate::run_dir::{Claim, LabDir, RunDirError};

/// How often tables are computed again because something failed or came back meanwhile, before that is left to the
/// next call.
const MOST_ROUNDS: u32 = 5;
/// What fails together is not noticed together: two surveys so far apart have to agree before a watcher acts.
const SETTLE: Duration = Duration::from_millis(150);
/// It acts after so many surveys though, if links never come to rest.
const MOST_SURVEYS: u32 = 10;
/// How soon a watcher tries again what it could not do.
const RETRY: Duration = Duration::from_secs(1);
/// A signal is heard after so long at most.
const STEP: Duration = Duration::from_millis(25);

/// Under this name a manager has its place in the lab's directory.
const PLACE: &str = "manage";

/// Why nothing can be managed.
#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    /// Another manager is at work.
    #[error(
        "lab `{lab}` is managed by process {pid} already, and two managers would undo each other's work; end that one \
         (kill {pid}), or wait until it is done"
    )]
    Busy {
        /// The lab.
        lab: String,
        /// The other manager.
        pid: String,
    },
    /// The lab's directory.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// There is nobody to ask.
    #[error(
        "no router of lab `{lab}` answers: `netns-scripts/status.sh --lab {lab}` says how it stands. {why}"
    )]
    AllSilent {
        /// The lab.
        lab: String,
        /// What was said by one of them.
        why: String,
    },
    /// The lab was taken down meanwhile.
    #[error("lab `{0}` is gone: nothing is left to watch, or another lab has its name")]
    Gone(String),
}

/// The manager of a lab: there is one at a time.
#[derive(Debug)]
pub struct Manager {
    lab: LabDir,
    fleet: Fleet,
    tables: Tables,
    place: Claim,
}

/// How a [`watch`](Manager::watch) is done.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// Between two looks at the lab.
    pub interval: Duration,
}

impl Manager {
    /// Becomes the manager of `lab`, which runs `network`.
    ///
    /// # Errors
    /// See [`ManageError`].
    pub fn new(lab: LabDir, network: Dragonfly) -> Result<Self, ManageError> {
        let place = lab.claim(PLACE).map_err(|error| match error {
            RunDirError::Running { lab, pid, .. } => ManageError::Busy { lab, pid },
            error => error.into(),
        })?;
        Ok(Self {
            fleet: Fleet::new(lab.clone(), &network)?,
            lab,
            tables: Tables::new(network),
            place,
        })
    }

    /// Finds what has failed or come back, and installs the tables for that. `told_to_stop` is asked now and then.
    ///
    /// # Errors
    /// [`ManageError::AllSilent`]
    pub fn reroute(
        &mut self,
        dry_run: bool,
        told_to_stop: &dyn Fn() -> bool,
    ) -> Result<Report, ManageError> {
        let report = reroute(&mut self.tables, &mut self.fleet, dry_run, told_to_stop);
        report
            .map(|report| Report {
                lab: self.lab.lab().to_owned(),
                ..report
            })
            .map_err(|why| ManageError::AllSilent {
                lab: self.lab.lab().to_owned(),
                why,
            })
    }

    /// Reroutes whenever something has failed or come back, until told to stop. `tell` gets a report each time, and
    /// one at the beginning.
    ///
    /// # Errors
    /// [`ManageError::Gone`]
    pub fn watch(
        &mut self,
        how: Watch,
        told_to_stop: &dyn Fn() -> bool,
        mut tell: impl FnMut(&Report),
    ) -> Result<(), ManageError> {
        let mut told: Option<Survey> = None;
        while !told_to_stop() {
            // Another lab of the name is another network: its routers know nothing of these tables.
            let is_deserted =
                !self.lab.path().join("topology.toml").exists() && self.lab.nodes()?.is_empty();
            if is_deserted || !self.place.is_held() {
                return Err(ManageError::Gone(self.lab.lab().to_owned()));
            }
            let survey = self.survey();
            let known = told.as_ref().is_some_and(|told| told.is_like(&survey));
            if known && self.tables.changed(&survey).is_empty() || survey.digests.is_empty() {
                nap(how.interval, told_to_stop);
                continue;
            }
            let survey = self.settled(survey, told_to_stop);
            if survey.digests.is_empty() || told_to_stop() {
                continue;
            }
            let Ok(report) = self.reroute(false, told_to_stop) else {
                continue;
            };
            tell(&report);
            if report.status == Status::Incomplete {
                nap(RETRY, told_to_stop);
            }
            told = Some(self.survey());
        }
        Ok(())
    }

    fn survey(&mut self) -> Survey {
        Survey::take(&self.tables.network, &mut self.fleet)
    }

    /// Waits until nothing changes any more.
    fn settled(&mut self, mut survey: Survey, told_to_stop: &dyn Fn() -> bool) -> Survey {
        for _ in 0..MOST_SURVEYS {
            nap(SETTLE, told_to_stop);
            let next = self.survey();
            let rests = next.is_like(&survey);
            survey = next;
            if rests || told_to_stop() {
                break;
            }
        }
        survey
    }
}

fn nap(length: Duration, told_to_stop: &dyn Fn() -> bool) {
    let end = Instant::now() + length;
    while !told_to_stop() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        sleep(left.min(STEP));
    }
}

/// The tables that a network should have, computed when its faults change.
#[derive(Debug)]
pub(super) struct Tables {
    pub network: Dragonfly,
    wiring: DragonflyWiring,
    faults: Faults,
    routed: Routed,
    digests: Vec<String>,
}

impl Tables {
    pub fn new(network: Dragonfly) -> Self {
        let wiring = DragonflyWiring::new(&network);
        let faults = Faults::default();
        let routed = network.route_with(&wiring, &faults);
        let digests = digests(&routed);
        Self {
            network,
            wiring,
            faults,
            routed,
            digests,
        }
    }

    fn for_faults(&mut self, faults: &Faults) {
        if self.faults != *faults {
            self.faults = faults.clone();
            self.routed = self.network.route_with(&self.wiring, faults);
            self.digests = digests(&self.routed);
        }
    }

    /// Living routers that have other tables than they should.
    pub fn changed(&mut self, survey: &Survey) -> Vec<u32> {
        self.for_faults(&survey.faults);
        let differs =
            |router: &u32| survey.digests.get(router) != self.digests.get(*router as usize);
        survey.living(&self.network).filter(differs).collect()
    }
}

fn digests(routed: &Routed) -> Vec<String> {
    let of_one = |registers: &phitwire::machine::aries::route::registers::AriesRegisters| {
        digest(&registers.tables)
    };
    routed.registers.iter().map(of_one).collect()
}

/// One reroute, in as many rounds as it takes. An error says why no router can be asked.
pub(super) fn reroute(
    tables: &mut Tables,
    routers: &mut impl Routers,
    dry_run: bool,
    told_to_stop: &dyn Fn() -> bool,
) -> Result<Report, String> {
    let mut report = Report::default();
    loop {
        let survey = Survey::take(&tables.network, routers);
        if survey.digests.is_empty() {
            return Err(survey.silent.into_values().next().unwrap_or_default());
        }
        let changed = tables.changed(&survey);
        report.found(&tables.network, &survey, &tables.routed);
        let name = |&router: &u32| tables.network.node_name(NodeRef::Chip(router));
        for name in changed.iter().map(name) {
            if !report.changed_routers.contains(&name) {
                report.changed_routers.push(name);
            }
        }
        if changed.is_empty() {
            if report.rounds > 0 {
                report.status = Status::Done;
            }
            return Ok(report);
        }
        if report.rounds == 0 {
            report.restored_pairs = restored(tables, &survey, routers);
        }
        if dry_run {
            report.status = Status::Planned;
            return Ok(report);
        }
        if told_to_stop() {
            report.status = Status::Interrupted;
            return Ok(report);
        }
        if report.rounds == MOST_ROUNDS {
            report.status = Status::Incomplete;
            return Ok(report);
        }
        report.rounds += 1;
        let living: Vec<u32> = survey.living(&tables.network).collect();
        let registers = &tables.routed.registers;
        let done = execute(routers, &living, &changed, registers, told_to_stop);
        report.did(&tables.network, &done);
        if done.outcome.abandoned {
            report
                .took_ms
                .remove(super::report::phase_name(Phase::Install));
            report.status = Status::Interrupted;
            return Ok(report);
        }
    }
}

/// How many pairs the new tables help, against those that the routers have now.
fn restored(tables: &Tables, survey: &Survey, routers: &mut impl Routers) -> Option<usize> {
    let network = &tables.network;
    let mut installed = network.route_with(&tables.wiring, &Faults::default());
    for router in survey.living(network) {
        // One that does not answer now will be noticed when its tables are installed.
        let Ok(own) = ask::<[TableSet; 4]>(routers, router, &Request::Tables) else {
            continue;
        };
        if let Some(registers) = installed.registers.get_mut(router as usize) {
            registers.tables = shared_tables(own);
        }
    }
    let plan = plan_reroute(network, &installed, &survey.faults);
    plan.report.restored.map(|pairs| pairs.len())
}
