//! `phitwire topology channels` and `phitwire manage channels`: searches for virtual channel
//! tables, and loads them.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use miette::{IntoDiagnostic as _, Report, WrapErr as _, miette};
use phitwire::net::{ChannelSearch, NO_CHANNEL_TABLES, Network, TunableChannels};
use phitwire_nodes::output;
use phitwire_nodes::run_dir::LabDir;

use super::by_signal::ended;
use super::manage::{LabArgs, running, stop_at_signals};
use super::progress::Shown;
use super::topology::NETWORK;
use super::via::{Maintenance, ViaArgs};
use super::{json, print};
use crate::description::open;
use crate::input_file::{FileKind, InputFile};
use crate::manage::channels::{How, LINKS_UNSEEN, LoadError, Loaded, Registers, load};
use crate::manage::fleet::{Fleet, PATIENCE_ONCE};
use crate::manage::{Commanded, manager, survey::Survey};
use crate::whole_file;

/// Maximum number of changes per search run: a large ring takes some minutes.
const MOST_STEPS: i64 = 100_000_000;

#[derive(Args, Debug)]
pub struct SearchArgs {
    #[arg(help = NETWORK)]
    file: PathBuf,
    /// Only rings in this dimension; may be repeated
    #[arg(long = "ring", value_name = "DIMENSION")]
    rings: Vec<String>,
    /// Seed of the search; the same seed finds the same tables
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Changes tried per search run [default: as many as for the tables of `channels =
    /// "optimised"`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_STEPS))]
    steps: Option<u32>,
    /// Also write the tables to this file, for `vc_tables` of a description and `phitwire manage
    /// channels`
    #[arg(long, value_name = "TABLES")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
pub struct LoadArgs {
    #[command(flatten)]
    lab: LabArgs,
    /// Tables, as written by `phitwire topology channels --output`; `-` is standard input
    tables: PathBuf,
    #[command(flatten)]
    via: ViaArgs,
    /// Load the tables even if they allow a deadlock, or the lab is rerouted around faults
    #[arg(long)]
    force: bool,
}

fn tunable(network: &dyn Network) -> miette::Result<&dyn TunableChannels> {
    network
        .tunable_channels()
        .ok_or_else(|| miette!("`{}`: {NO_CHANNEL_TABLES}", network.name()))
}

/// Runs `phitwire topology channels`. The exit status is 1 if packets could deadlock in a cycle.
///
/// # Errors
/// If the description cannot be read or lacks the rings, or a file cannot be written.
pub fn search(args: &SearchArgs) -> miette::Result<ExitCode> {
    let network = open(&args.file)?;
    if let Some(output) = &args.output
        && let (Ok(to), Ok(from)) = (output.canonicalize(), args.file.canonicalize())
        && to == from
    {
        return Err(miette!(
            "{}: the tables would overwrite the description",
            output.display()
        ));
    }
    let wanted = ChannelSearch {
        rings: args.rings.clone(),
        seed: args.seed,
        steps: args.steps,
    };
    let shown = Shown::new("phitwire topology channels", "{spinner} {msg}, {elapsed}");
    shown.show("searching for tables", 0, 0, "");
    let found = tunable(&*network)?.search_channels(&wanted);
    drop(shown);
    let found = found.map_err(|why| miette!("{why}"))?;
    if let Some(file) = &args.output {
        whole_file::write(file, &found.file)
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot write {}", file.display()))?;
    }
    print(&match args.json {
        true => json(&found.report)?,
        false => found.text,
    })?;
    Ok(match found.report.circle {
        None => ExitCode::SUCCESS,
        Some(_) => ExitCode::FAILURE,
    })
}

/// Runs `phitwire manage channels`. The exit status is 1 if a register does not hold its intended
/// value.
///
/// # Errors
/// If the lab is not running, or the tables have errors or are rejected.
pub fn load_into(args: &LoadArgs) -> miette::Result<ExitCode> {
    let (lab, network) = running(&args.lab)?;
    let tunable = tunable(&*network)?;
    let tables = InputFile::open(&args.tables, FileKind::DESCRIPTION)?;
    let (name, bytes) = (tables.name.clone(), tables.bytes()?);
    let new = tunable
        .read_channel_tables(&name, &bytes)
        .map_err(Report::new)?;
    // Exclude watchers, which would restore the description's tables.
    let _claim = manager::claim(&lab).map_err(|error| miette!("{error}"))?;
    let from = args.via.router()?;
    let doubt = doubt(&lab, &*network, from.is_some())?;
    let loaded = match from {
        Some(from) => {
            let mut maintenance = Maintenance::new(&args.lab.lab, &*network, from)?;
            into(&*network, tunable, &new, &mut maintenance, doubt, args)
        }
        None => {
            let mut fleet = fleet(lab, &*network)?;
            into(&*network, tunable, &new, &mut fleet, doubt, args)
        }
    }?;
    let loaded = Loaded {
        unseen: from.map(|_| LINKS_UNSEEN),
        ..loaded
    };
    if !loaded.is_whole() {
        output::print_error("some registers do not hold the new tables");
    }
    print(&match args.lab.json {
        true => serde_json::to_string_pretty(&loaded).into_diagnostic()? + "\n",
        false => loaded.text(),
    })?;
    Ok(match loaded.is_whole() {
        _ if loaded.interrupted => ended(true),
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn into(
    network: &dyn Network,
    tunable: &dyn TunableChannels,
    new: &[phitwire::net::RegisterValue],
    registers: &mut dyn Registers,
    doubt: Option<String>,
    args: &LoadArgs,
) -> miette::Result<Loaded> {
    let stop = stop_at_signals()?;
    let how = How {
        doubt,
        force: args.force,
        stop: &|| stop.requests() > 0,
    };
    match load((network, tunable), new, registers, how) {
        Ok(loaded) => Ok(Loaded {
            lab: args.lab.lab.clone(),
            ..loaded
        }),
        Err(error @ LoadError::Unsafe(_)) => Err(miette!(
            help = "nothing was written; --force loads the tables anyway",
            "cannot load the tables: {error}"
        )),
        Err(error) => Err(miette!(help = "nothing was written", "{error}")),
    }
}

fn fleet(lab: LabDir, network: &dyn Network) -> miette::Result<Fleet> {
    let fleet = Fleet::new(lab, network).map_err(|error| miette!("{error}"))?;
    Ok(fleet.patient(PATIENCE_ONCE))
}

/// The reason why tables cannot be checked, if packets take paths other than the description's.
/// With maintenance packets only one control socket is available, so the links of the other routers
/// are not examined, and the report says so.
fn doubt(
    lab: &LabDir,
    network: &dyn Network,
    by_maintenance: bool,
) -> miette::Result<Option<String>> {
    let commanded = Commanded::read(lab);
    let faults = match by_maintenance {
        true => !commanded.isolated.is_empty() || !commanded.replaced.is_empty(),
        false => {
            let mut fleet = fleet(lab.clone(), network)?;
            !Survey::take(network, &mut fleet, &commanded)
                .faults
                .is_empty()
        }
    };
    let why = "some links or routers of the lab have failed, are isolated or replaced, but tables \
               are checked against the routes of the description";
    Ok(faults.then(|| String::from(why)))
}
