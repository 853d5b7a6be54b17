//! Single and repeated reroutes of a lab.

use std::collections::BTreeMap;
use std::fmt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use phitwire::manage::ReroutePhase;
use phitwire::net::{Faults, Network, NodeRef, Reroutable, RoutedTables};
use phitwire_nodes::control::Request;
use phitwire_nodes::run_dir::{Claim, LabDir, RunDirError};
use serde_json::Value;

use super::commanded::Commanded;
use super::execute::execute;
use super::fleet::{Fleet, Routers, ask};
use super::numbers::renumber;
use super::report::{Report, Status};
use super::routers;
use super::survey::Survey;

/// Maximum number of times that tables are recomputed because a component failed or recovered
/// during a reroute. The next call handles later changes.
const MOST_ROUNDS: u32 = 5;
/// Delay between two surveys that must agree before a watcher acts, since simultaneous failures are
/// not noticed at the same time.
const SETTLE: Duration = Duration::from_millis(150);
/// Maximum number of surveys before a watcher acts, even if links never settle.
const MOST_SURVEYS: u32 = 10;
/// Delay before a watcher retries a failed reroute.
const RETRY: Duration = Duration::from_secs(1);
/// Longest time until a signal is noticed.
const STEP: Duration = Duration::from_millis(25);

/// Name of the manager's claim in the lab's directory.
const CLAIM_NAME: &str = "manage";

#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    /// Another manager is running.
    #[error(
        "lab `{lab}` is already managed by process {pid}, and two managers would undo each other's \
         work; stop that one (kill {pid}), or wait until it is done"
    )]
    Busy {
        lab: String,
        /// Process id of the other manager.
        pid: String,
    },
    /// An error with the lab's directory.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// No router replies.
    #[error(
        "no router of lab `{lab}` answers: `netns-scripts/status.sh --lab {lab}` shows its state. \
         {why}"
    )]
    AllSilent {
        lab: String,
        /// The error of one of the routers.
        why: String,
    },
    /// The routers of this machine have no route tables that can be recomputed.
    #[error("the routers of this network have no route tables to recompute around faults")]
    NoTables,
    /// The lab was taken down.
    #[error("lab `{0}` is gone: it was taken down, or another lab took its name")]
    Gone(String),
}

/// The manager of a lab, of which only one runs at a time.
#[derive(Debug)]
pub struct Manager<'n> {
    lab: LabDir,
    fleet: Fleet,
    tables: Tables<'n>,
    claim: Claim,
}

/// Claims the management of a lab.
///
/// # Errors
/// [`ManageError::Busy`], or an error with the lab's directory.
pub fn claim(lab: &LabDir) -> Result<Claim, ManageError> {
    lab.claim(CLAIM_NAME).map_err(|error| match error {
        RunDirError::Running { lab, pid, .. } => ManageError::Busy { lab, pid },
        error => error.into(),
    })
}

impl<'n> Manager<'n> {
    /// Becomes the manager of `lab`, which runs `network`, with `patience` as timeout of replies.
    ///
    /// # Errors
    /// See [`ManageError`].
    pub fn new(
        lab: LabDir,
        network: &'n dyn Network,
        patience: Duration,
    ) -> Result<Self, ManageError> {
        let planner = network.reroute().ok_or(ManageError::NoTables)?;
        let claim = claim(&lab)?;
        Ok(Self {
            fleet: Fleet::new(lab.clone(), network)?.patient(patience),
            lab,
            tables: Tables::new(network, planner),
            claim,
        })
    }

    /// Finds failed and recovered components, and installs tables to match, polling `should_stop`.
    ///
    /// # Errors
    /// [`ManageError::AllSilent`]
    pub fn reroute(
        &mut self,
        dry_run: bool,
        should_stop: &dyn Fn() -> bool,
    ) -> Result<Report, ManageError> {
        let commanded = Commanded::read(&self.lab);
        let report = reroute(
            &mut self.tables,
            (&mut self.fleet, &commanded),
            dry_run,
            should_stop,
        );
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

    /// Surveys the lab at this interval, and reroutes when a component has failed or recovered,
    /// until a stop is requested. Calls `report_to` with a report each time, and once at the
    /// beginning.
    ///
    /// # Errors
    /// [`ManageError::Gone`]
    pub fn watch(
        &mut self,
        interval: Duration,
        should_stop: &dyn Fn() -> bool,
        mut report_to: impl FnMut(&Report),
    ) -> Result<(), ManageError> {
        let mut reported: Option<Survey> = None;
        while !should_stop() {
            // Another lab of the same name is another network, for which these tables are useless.
            let is_deserted =
                !self.lab.path().join("topology.toml").exists() && self.lab.nodes()?.is_empty();
            if is_deserted || !self.claim.is_held() {
                return Err(ManageError::Gone(self.lab.lab().to_owned()));
            }
            let survey = self.survey();
            let known = reported
                .as_ref()
                .is_some_and(|reported| reported.is_like(&survey));
            if known && self.tables.changed(&survey).is_empty() || survey.digests.is_empty() {
                nap(interval, should_stop);
                continue;
            }
            let survey = self.settled(survey, should_stop);
            if survey.digests.is_empty() || should_stop() {
                continue;
            }
            let Ok(report) = self.reroute(false, should_stop) else {
                continue;
            };
            report_to(&report);
            if report.status == Status::Incomplete {
                nap(RETRY, should_stop);
            }
            reported = Some(self.survey());
        }
        Ok(())
    }

    fn survey(&mut self) -> Survey {
        // Read the commands again each time, since other processes write them during a watch.
        let commanded = Commanded::read(&self.lab);
        Survey::take(self.tables.network, &mut self.fleet, &commanded)
    }

    /// Repeats the survey until nothing changes any more.
    fn settled(&mut self, mut survey: Survey, should_stop: &dyn Fn() -> bool) -> Survey {
        for _ in 0..MOST_SURVEYS {
            nap(SETTLE, should_stop);
            let next = self.survey();
            let rests = next.is_like(&survey);
            survey = next;
            if rests || should_stop() {
                break;
            }
        }
        survey
    }
}

fn nap(length: Duration, should_stop: &dyn Fn() -> bool) {
    let end = Instant::now() + length;
    while !should_stop() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        sleep(left.min(STEP));
    }
}

/// The tables that a network should have; recomputed when its faults change.
pub(super) struct Tables<'n> {
    pub network: &'n dyn Network,
    pub planner: &'n dyn Reroutable,
    faults: Faults,
    pub routed: Box<dyn RoutedTables>,
    digests: BTreeMap<u32, String>,
}

impl fmt::Debug for Tables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables")
            .field("network", &self.network.name())
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

impl<'n> Tables<'n> {
    pub fn new(network: &'n dyn Network, planner: &'n dyn Reroutable) -> Self {
        let faults = Faults::default();
        let routed = planner.routed(&faults);
        Self {
            digests: digests(network, &*routed),
            network,
            planner,
            faults,
            routed,
        }
    }

    fn for_faults(&mut self, faults: &Faults) {
        if self.faults != *faults {
            self.faults = faults.clone();
            self.routed = self.planner.routed(faults);
            self.digests = digests(self.network, &*self.routed);
        }
    }

    /// Working routers whose tables differ from these.
    pub fn changed(&mut self, survey: &Survey) -> Vec<u32> {
        self.for_faults(&survey.faults);
        let differs = |router: &u32| survey.digests.get(router) != self.digests.get(router);
        survey.living(self.network).filter(differs).collect()
    }
}

fn digests(network: &dyn Network, routed: &dyn RoutedTables) -> BTreeMap<u32, String> {
    let of_one = |router| Some((router, routed.digest(router)?));
    routers(network).filter_map(of_one).collect()
}

/// Reroutes in as many rounds as necessary. The error is the reason why no router replies.
pub(super) fn reroute(
    tables: &mut Tables<'_>,
    (routers, commanded): (&mut impl Routers, &Commanded),
    dry_run: bool,
    should_stop: &dyn Fn() -> bool,
) -> Result<Report, String> {
    let mut report = Report::default();
    loop {
        let survey = Survey::take(tables.network, routers, commanded);
        if survey.digests.is_empty() {
            return Err(survey.silent.into_values().next().unwrap_or_default());
        }
        let changed = tables.changed(&survey);
        report.found(tables, &survey);
        report.refused = tables.routed.refused();
        if report.refused.is_some() {
            report.status = Status::Incomplete;
            return Ok(report);
        }
        let name = |&router: &u32| tables.network.node_name(NodeRef::Chip(router)).into_owned();
        for name in changed.iter().map(name) {
            if !report.changed_routers.contains(&name) {
                report.changed_routers.push(name);
            }
        }
        if changed.is_empty() {
            if !dry_run {
                renumber(&mut report, tables, routers);
            }
            if report.rounds > 0 || !report.renumbered.is_empty() {
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
        if should_stop() {
            report.status = Status::Interrupted;
            return Ok(report);
        }
        if report.rounds == MOST_ROUNDS {
            report.status = Status::Incomplete;
            return Ok(report);
        }
        report.rounds += 1;
        let living: Vec<u32> = survey.living(tables.network).collect();
        let done = execute(routers, &living, &changed, &*tables.routed, should_stop);
        report.did(tables.network, &done);
        if done.outcome.abandoned {
            report
                .took_ms
                .remove(super::report::phase_name(ReroutePhase::Install));
            report.status = Status::Interrupted;
            return Ok(report);
        }
    }
}

/// Number of pairs of routers that the new tables reconnect, compared with the installed ones.
fn restored(tables: &Tables<'_>, survey: &Survey, routers: &mut impl Routers) -> Option<usize> {
    let mut installed = BTreeMap::new();
    for router in survey.living(tables.network) {
        // Skip a router that does not reply; the installation of its tables will report that.
        if let Ok(own) = ask::<Value>(routers, router, &Request::Tables) {
            installed.insert(router, own);
        }
    }
    tables.planner.restored(&installed, &survey.faults)
}
