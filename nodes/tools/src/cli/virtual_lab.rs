//! `phitwire virtual`: a whole lab in virtual time, in one process.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use miette::{IntoDiagnostic, miette};
use phitwire::catalogue::OptionValues;
use phitwire::net::{HostUse, Network};
use phitwire::sim::World;
use phitwire::time::Duration;
use phitwire_nodes::output;
use phitwire_nodes::run_dir::LabDir;
use phitwire_nodes::stop::Stop;
use phitwire_nodes::virtual_lab::VirtualLab;

use super::read_network;
use crate::machines::machines;

/// Time allowed for links to train.
const TRAINING: Duration = Duration::from_ms(100);

#[derive(Debug, Args)]
pub struct VirtualArgs {
    /// Topology description
    #[arg(value_name = "TOPOLOGY")]
    topology: PathBuf,
    /// Lab: the directory of the doors and control sockets
    #[arg(long, env = super::LAB, hide_env_values = true)]
    lab: String,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Let hosts take no time: only links, routers and the ends of links count
    #[arg(long)]
    no_host: bool,
    /// Remove the lab's directory at the end, with everything in it
    #[arg(long, hide = true)]
    remove: bool,
}

/// Runs until SIGINT, SIGTERM or SIGHUP, then prints a summary.
///
/// # Errors
/// If the network cannot be simulated, or the lab's directory is in use.
pub fn run(args: &VirtualArgs) -> miette::Result<ExitCode> {
    let network = read_network(&args.topology)?;
    let stop = Stop::at_signals().into_diagnostic()?;
    let directory = LabDir::new(&args.lab).into_diagnostic()?;
    let world = world(args, network)?;
    let mut lab = VirtualLab::new(&directory, world, stop).into_diagnostic()?;
    let end = lab.run().into_diagnostic();
    output::print(&lab.summary()).into_diagnostic()?;
    if args.remove {
        lab.remove(&directory);
    }
    end?;
    Ok(ExitCode::SUCCESS)
}

/// The network in the machine's time, with its links up.
fn world(args: &VirtualArgs, network: Box<dyn Network>) -> miette::Result<World<dyn Network>> {
    let all = machines().machines().iter();
    let mut simulations = all.filter_map(|machine| machine.simulation);
    let machine = simulations
        .find(|machine| (machine.is_of)(&*network))
        .ok_or_else(|| miette!("network {} cannot be simulated", network.name()))?;
    let chosen = (machine.choose)(&OptionValues::default());
    let chosen = chosen.map_err(|error| miette!("{error}"))?;
    let one = chosen.first().ok_or_else(|| miette!("no simulator"))?;
    let wires = one.wires(&*network).into_diagnostic()?;
    let has_host = network.has_host_times() && !args.no_host;
    let host = has_host.then(HostUse::default);
    let mut world = World::with_hosts(network, args.seed, &wires, host).into_diagnostic()?;
    if !world.bring_up(TRAINING) {
        let links = world.link_states();
        return Err(miette!("links did not come up:\n{}", links.trim_end()));
    }
    Ok(world)
}
