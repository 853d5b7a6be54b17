//! `phitwire manage`: routes a running network around failures, and loads tables into it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use miette::{IntoDiagnostic, WrapErr, miette};
use phitwire::net::Network;
use phitwire_nodes::output;
use phitwire_nodes::run_dir::LabDir;
use phitwire_nodes::stop::Stop;
use schemars::JsonSchema;
use serde::Serialize;

use super::by_signal::ended;
use super::{channels, print, read_network};
use crate::manage::fleet::{PATIENCE, PATIENCE_ONCE};
use crate::manage::{Change, Commanded, ManageError, Manager, Report, report::Status};

#[derive(Debug, Args)]
pub struct ManageArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find failed links and routers, compute route tables without them, and install these:
    /// quiesce, drain, install, release. Also back again when they have returned
    ///
    /// Exit status: 0 all routers have the right tables, whether or not all pairs are connected; 1
    /// some have not; 130 told to stop before that
    Reroute(RerouteArgs),
    /// Cut a router off with its processors, and route around it: its processes can be ended and
    /// started again while the others go on. It stays cut off until `return`
    Isolate(NodeArgs),
    /// Admit a router again that was isolated
    Return(NodeArgs),
    /// Let a spare network interface have the number of another, which has failed: who sends to that
    /// number reaches the spare from then on
    Rename(RenameArgs),
    /// Load tables of virtual channels from a file into the routers, and read them back. `reroute` puts
    /// those of the description back
    Channels(channels::LoadArgs),
}

/// Which lab, and how to tell what was done.
#[derive(Debug, Args)]
pub(super) struct LabArgs {
    /// The lab
    #[arg(long)]
    pub(super) lab: String,
    /// Print JSON: one object, or with --watch one per line
    #[arg(long)]
    pub(super) json: bool,
    /// The description that the lab runs, if up.sh has not brought it up
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct NodeArgs {
    #[command(flatten)]
    lab: LabArgs,
    /// The router, such as r5
    node: String,
}

#[derive(Debug, Args)]
struct RenameArgs {
    #[command(flatten)]
    lab: LabArgs,
    /// The network interface whose number it is, such as nic5
    nic: String,
    /// The spare one that takes it
    #[arg(required_unless_present = "back", conflicts_with = "back")]
    spare: Option<String>,
    /// Give it back to whose it was
    #[arg(long)]
    back: bool,
}

#[derive(Debug, Args)]
struct RerouteArgs {
    #[command(flatten)]
    lab: LabArgs,
    /// Go on, and reroute whenever something fails or comes back, until Ctrl-C
    #[arg(long, conflicts_with = "dry_run")]
    watch: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// With --watch: look at the lab this often. Interfaces that go down are seen at the next look,
    /// a router that is killed too; one that stands still is waited for 750 ms
    #[arg(long, value_name = "MS", default_value_t = 200, requires = "watch")]
    interval: u64,
}

pub fn run(args: ManageArgs) -> miette::Result<ExitCode> {
    match args.command {
        Command::Reroute(args) => reroute(&args),
        Command::Isolate(args) => change(&args.lab, &Change::Isolate(args.node)),
        Command::Return(args) => change(&args.lab, &Change::Return(args.node)),
        Command::Rename(args) => {
            let change_to = match args.spare {
                Some(to) => Change::Rename { from: args.nic, to },
                None => Change::RenameBack(args.nic),
            };
            change(&args.lab, &change_to)
        }
        Command::Channels(args) => channels::load_into(&args),
    }
}

/// The lab and its network, which can be rerouted.
fn open(args: &LabArgs) -> miette::Result<(LabDir, Box<dyn Network>)> {
    let (lab, network) = running(args)?;
    if network.reroute().is_none() {
        return Err(miette!(
            help = format!(
                "its routers choose their ways by themselves; `phitwire ctl --lab {} NODE set` \
                 writes single registers",
                args.lab
            ),
            "the network of lab `{}` is of a machine whose networks are not rerouted",
            args.lab
        ));
    }
    Ok((lab, network))
}

/// The lab and its network.
pub(super) fn running(args: &LabArgs) -> miette::Result<(LabDir, Box<dyn Network>)> {
    let lab = LabDir::new(&args.lab).map_err(|error| miette!("{error}"))?;
    let file = match &args.topology {
        Some(file) => file.clone(),
        None => lab.path().join("topology.toml"),
    };
    if lab.nodes().map_err(|error| miette!("{error}"))?.is_empty() {
        return Err(miette!(
            help = format!(
                "netns-scripts/up.sh TOPOLOGY --lab {} brings it up. A lab is its user's alone: run this as the user \
                 who did that (with sudo, or inside the same rootless.sh)",
                args.lab
            ),
            "lab `{}` is not running: {} has no control sockets",
            args.lab,
            lab.path().display()
        ));
    }
    if !file.exists() {
        return Err(miette!(
            help = "--topology FILE names it; up.sh leaves a copy there",
            "the description that lab `{}` runs is not known: {} is not there",
            args.lab,
            file.display()
        ));
    }
    Ok((lab, read_network(&file)?))
}

/// Stores a command, and reroutes unless a watcher will.
fn change(args: &LabArgs, change: &Change) -> miette::Result<ExitCode> {
    let (lab, network) = open(args)?;
    let mut commanded = Commanded::read(&lab);
    commanded
        .change(&*network, change)
        .map_err(|error| miette!("{error}"))?;
    commanded.write(&lab).map_err(|error| miette!("{error}"))?;
    match Manager::new(lab, &*network, PATIENCE_ONCE) {
        Err(ManageError::Busy { pid, .. }) => {
            print(&format!("process {pid} manages this lab, and does it\n"))
        }
        manager => once(args, manager.map_err(|error| miette!("{error}"))?, false),
    }
}

pub(super) fn stop_at_signals() -> miette::Result<Stop> {
    Stop::at_signals()
        .into_diagnostic()
        .wrap_err("the signal handler")
}

fn reroute(args: &RerouteArgs) -> miette::Result<ExitCode> {
    let (lab, network) = open(&args.lab)?;
    let patience = if args.watch { PATIENCE } else { PATIENCE_ONCE };
    let mut manager = Manager::new(lab, &*network, patience).map_err(|error| miette!("{error}"))?;
    if !args.watch {
        return once(&args.lab, manager, args.dry_run);
    }
    let stop = stop_at_signals()?;
    let interval = Duration::from_millis(args.interval.max(10));
    let mut printed = Ok(ExitCode::SUCCESS);
    let tell = |report: &Report| printed = show(report, args.lab.json, true);
    manager
        .watch(interval, &|| stop.requests() > 0, tell)
        .map_err(|error| miette!("{error}"))?;
    printed
}

fn once(args: &LabArgs, mut manager: Manager<'_>, dry_run: bool) -> miette::Result<ExitCode> {
    let stop = stop_at_signals()?;
    let report = manager
        .reroute(dry_run, &|| stop.requests() > 0)
        .map_err(|error| miette!("{error}"))?;
    show(&report, args.json, false)?;
    Ok(match report.status {
        Status::NothingToDo | Status::Done | Status::Planned => ExitCode::SUCCESS,
        Status::Incomplete => ExitCode::FAILURE,
        Status::Interrupted => ended(true),
    })
}

/// A report as JSON.
#[derive(Serialize, JsonSchema)]
pub(super) struct PrintedReport<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// When the report was made, in UTC; of several reports only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    time: Option<String>,
}

/// Prints a report; one of several with its time.
fn show(report: &Report, is_json: bool, several: bool) -> miette::Result<ExitCode> {
    let now = humantime::format_rfc3339_millis(SystemTime::now());
    let text = match (is_json, several) {
        (true, true) => {
            let time = Some(now.to_string());
            let report = serde_json::to_value(PrintedReport { report, time }).into_diagnostic()?;
            format!("{report}\n")
        }
        (true, false) => {
            let report = PrintedReport { report, time: None };
            serde_json::to_string_pretty(&report).into_diagnostic()? + "\n"
        }
        (false, true) => format!("{now} {}\n", report.text()),
        (false, false) => report.text(),
    };
    if report.status == Status::Incomplete {
        output::complain("some routers do not have the right tables");
    }
    print(&text)
}
