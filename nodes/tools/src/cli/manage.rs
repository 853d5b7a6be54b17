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
    /// Find failed links and routers, compute route tables that avoid them, and install these:
    /// quiesce, drain, install, release. Also restores routes when links or routers return
    ///
    /// Exit status: 0 if all routers have the right tables, even if some pairs are disconnected; 1
    /// if some routers do not; 130 if interrupted
    Reroute(RerouteArgs),
    /// Isolate a router and its processors, and route around it: its processes can be stopped and
    /// restarted while the others keep running. It stays isolated until `return`
    Isolate(NodeArgs),
    /// Readmit an isolated router
    Return(NodeArgs),
    /// Give the number of a failed NIC to a spare one, which then receives what is sent to that
    /// number
    Rename(RenameArgs),
    /// Load virtual channel tables from a file into the routers, and read them back. `reroute`
    /// restores those of the description
    Channels(channels::LoadArgs),
}

/// Lab and output format.
#[derive(Debug, Args)]
pub(super) struct LabArgs {
    /// Lab
    #[arg(long, env = super::LAB, hide_env_values = true)]
    pub(super) lab: String,
    /// Print JSON: one object, or with --watch one per line
    #[arg(long)]
    pub(super) json: bool,
    /// Description that the lab runs; needed if up.sh did not bring it up
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct NodeArgs {
    #[command(flatten)]
    lab: LabArgs,
    /// Router, such as r5
    node: String,
}

#[derive(Debug, Args)]
struct RenameArgs {
    #[command(flatten)]
    lab: LabArgs,
    /// NIC whose number moves, such as nic5
    nic: String,
    /// Spare NIC that takes the number
    #[arg(required_unless_present = "back", conflicts_with = "back")]
    spare: Option<String>,
    /// Give the number back to its original NIC
    #[arg(long)]
    back: bool,
}

#[derive(Debug, Args)]
struct RerouteArgs {
    #[command(flatten)]
    lab: LabArgs,
    /// Keep running, and reroute whenever something fails or returns, until Ctrl-C
    #[arg(long, conflicts_with = "dry_run")]
    watch: bool,
    /// Print what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// With --watch: polling interval. Interfaces that go down and routers that are killed are
    /// noticed at the next poll; a stopped router is given 750 ms
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

/// Opens the lab and its network, which must support rerouting.
fn open(args: &LabArgs) -> miette::Result<(LabDir, Box<dyn Network>)> {
    let (lab, network) = running(args)?;
    if network.reroute().is_none() {
        return Err(miette!(
            help = format!(
                "its routers choose their routes themselves; `phitwire ctl --lab {} NODE set` \
                 writes single registers",
                args.lab
            ),
            "lab `{}` runs a machine whose networks are not rerouted",
            args.lab
        ));
    }
    Ok((lab, network))
}

/// Opens the lab, which must be running, and its network.
pub(super) fn running(args: &LabArgs) -> miette::Result<(LabDir, Box<dyn Network>)> {
    let lab = LabDir::new(&args.lab).map_err(|error| miette!("{error}"))?;
    let file = match &args.topology {
        Some(file) => file.clone(),
        None => lab.path().join("topology.toml"),
    };
    if lab.nodes().map_err(|error| miette!("{error}"))?.is_empty() {
        return Err(miette!(
            help = format!(
                "bring it up with netns-scripts/up.sh TOPOLOGY --lab {}. Only the user who brought \
                 a lab up can see it: run this as that user (sudo, or in the same rootless.sh)",
                args.lab
            ),
            "lab `{}` is not running: no control sockets in {}",
            args.lab,
            lab.path().display()
        ));
    }
    if !file.exists() {
        return Err(miette!(
            help = "specify --topology FILE; up.sh leaves a copy there",
            "unknown description of lab `{}`: {} does not exist",
            args.lab,
            file.display()
        ));
    }
    Ok((lab, read_network(&file)?))
}

/// Stores a command, and reroutes unless a watcher will do so.
fn change(args: &LabArgs, change: &Change) -> miette::Result<ExitCode> {
    let (lab, network) = open(args)?;
    let mut commanded = Commanded::read(&lab);
    commanded
        .change(&*network, change)
        .map_err(|error| miette!("{error}"))?;
    commanded.write(&lab).map_err(|error| miette!("{error}"))?;
    match Manager::new(lab, &*network, PATIENCE_ONCE) {
        Err(ManageError::Busy { pid, .. }) => {
            print(&format!("process {pid} manages this lab and will do it\n"))
        }
        manager => once(args, manager.map_err(|error| miette!("{error}"))?, false),
    }
}

pub(super) fn stop_at_signals() -> miette::Result<Stop> {
    Stop::at_signals()
        .into_diagnostic()
        .wrap_err("cannot install the signal handler")
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
    let print = |report: &Report| printed = show(report, args.lab.json, true);
    manager
        .watch(interval, &|| stop.requests() > 0, print)
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
    /// When the report was made, in UTC; absent if it is the only report.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    time: Option<String>,
}

/// Prints a report, with its time if it is one of several.
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
        output::print_error("some routers do not have the right tables");
    }
    print(&text)
}
