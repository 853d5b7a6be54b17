//! The `phitwire` command.
//!
//! Exit status: 0 done; 1 not done, or not all links up in time; 2 arguments not understood; 141
//! ended before it was done because nobody reads what it prints (`sim` and `soak`).

mod channels;
mod ctl;
mod generate;
mod machine_options;
mod manage;
mod progress;
mod reproduce;
mod run;
mod sim;
mod soak;
mod topology;
mod via;
mod wait;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use miette::{IntoDiagnostic, WrapErr};
use phitwire::net::harmless;
use tracing_subscriber::EnvFilter;

use crate::description::open as read_network;
use crate::output;

/// Routers of Cray's networks and their network interfaces on real network links.
#[derive(Debug, Parser)]
#[command(name = "phitwire", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one node of a topology as a process, in the current network namespace
    Run(run::RunArgs),
    /// Ask a running node, or tell it to do something
    Ctl(ctl::CtlArgs),
    /// Route a running network around what has failed, and load tables into it
    Manage(manage::ManageArgs),
    /// Wait until all links of a lab are up, or say which are not and why. A link whose wire is
    /// dead, or whose other end is silent, is not up
    Wait(wait::WaitArgs),
    /// Run random networks under random harm in virtual time, a seed each
    Soak(soak::SoakArgs),
    /// Generate, check, show and plan topologies
    Topology(topology::TopologyArgs),
    /// Put what the models give beside the paper's tables; exit status 1 if they are too far apart
    Reproduce(reproduce::ReproduceArgs),
    /// Simulate a network in virtual time: latency, accepted load and saturation
    Sim(Box<sim::SimArgs>),
}

/// The whole command: reads the arguments, does it, says how it went.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let filter = EnvFilter::try_from_env("PHITWIRE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        // Of a standard error that nobody reads, there is nobody to tell.
        .log_internal_errors(false)
        .init();
    let result = match cli.command {
        Command::Run(args) => run::run(args),
        Command::Ctl(args) => ctl::run(args),
        Command::Manage(args) => manage::run(args),
        Command::Wait(args) => wait::run(args),
        Command::Soak(args) => soak::run(args),
        Command::Topology(args) => topology::run(args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Sim(args) => sim::run(&args),
    };
    match result {
        Ok(code) => code,
        Err(report) => {
            output::complain(&output::report(&report));
            ExitCode::FAILURE
        }
    }
}

/// Says what is wrong with the arguments, or what was asked for, as clap does; but what would make
/// a terminal do something is written out.
fn refuse(error: &clap::Error) -> ExitCode {
    let plain = error.render().to_string();
    let shown = harmless(&plain);
    if shown == plain || !error.use_stderr() {
        error.exit();
    }
    output::complain(shown.trim_end());
    ExitCode::from(error.exit_code() as u8)
}

/// Prints an answer to standard output.
fn print(text: &str) -> miette::Result<ExitCode> {
    output::print(text)
        .into_diagnostic()
        .wrap_err("cannot write to standard output")?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
