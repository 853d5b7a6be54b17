//! The `phitwire` command.
//!
//! Its `--help` ends with the exit statuses.

mod by_signal;
mod capture;
mod channels;
mod ctl;
mod generate;
mod import;
mod lab;
mod machine_options;
mod manage;
mod metrics;
pub mod pages;
mod ping;
mod plot;
mod progress;
mod record;
mod refusal;
mod report;
mod reproduce;
mod route;
mod run;
mod schema;
mod sim;
mod sim_record;
mod sim_trace;
mod soak;
mod top;
mod topology;
mod trace;
mod via;
mod view;
mod virtual_lab;
mod wait;

pub use lab::own_scripts as scripts;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use miette::{IntoDiagnostic, WrapErr};
use phitwire::catalogue::Catalogue;
use phitwire_nodes::output;
use serde::Serialize;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::description::open as read_network;
use crate::machines;
use crate::schema::Output;

/// The environment variable with the default of `--lab`, which the scripts read, too.
const LAB: &str = "PHITWIRE_LAB";

/// The exit statuses of the command, for its help.
const STATUSES: &str = "Exit status:
  0    success; also Ctrl-C, SIGTERM or SIGHUP for commands that run until stopped: run, view,
       metrics, top, record, capture, ping --count 0, manage reroute --watch
  1    failure, or problems found: errors, failed checks, links that are not up
  2    invalid arguments
  4    not possible on this machine (`lab`); one line says why
  130  interrupted by Ctrl-C, SIGTERM or SIGHUP before completion, including --seconds and --count
  141  the reader of the output went away

PHITWIRE_LAB=NAME is the default of --lab where a lab is required. PHITWIRE_LOG=debug prints more on
standard error; NO_COLOR=1 disables colours. phitwire-msgrate and phitwire-bench are aliases of the
measuring commands.";

/// Routers and NICs of Cray networks, over the links of ordinary Linux machines.
#[derive(Debug, Parser)]
#[command(name = "phitwire", version = pages::VERSION, after_help = STATUSES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one node of a topology as a process, in the current network namespace
    Run(run::RunArgs),
    /// Run a whole lab in virtual time, in one process, for programs at the doors of its network
    /// interfaces (NICs)
    Virtual(virtual_lab::VirtualArgs),
    /// Query or control a running node
    Ctl(ctl::CtlArgs),
    /// Reroute a running network around failures, and load tables into it
    Manage(manage::ManageArgs),
    /// Wait until all links of a lab are up, or report which are not and why. A link whose wire is
    /// dead, or whose other end is silent, is not up
    Wait(wait::WaitArgs),
    /// Watch a running lab: links, nodes, rates, events
    Top(top::TopArgs),
    /// Show a running lab, or a recording, in a browser
    View(view::ViewArgs),
    /// Record the state of a running lab in a file
    Record(record::RecordArgs),
    /// Turn a recording into a self-contained web page
    Report(report::ReportArgs),
    /// Export the state of a running lab in Prometheus' text format
    Metrics(metrics::MetricsArgs),
    Trace(trace::TraceArgs),
    Route(route::RouteArgs),
    Ping(ping::PingArgs),
    /// Run random networks with random faults in virtual time, one per seed
    Soak(soak::SoakArgs),
    /// Generate, check, show and plan topologies
    Topology(topology::TopologyArgs),
    /// Compare values run, counted or computed here with the tables of the papers; exit status 1 if
    /// a row is out of tolerance
    Reproduce(reproduce::ReproduceArgs),
    /// Write the frames on the links of a running lab to a pcapng file, for Wireshark
    Capture(capture::CaptureArgs),
    /// Simulate a network in virtual time: latency, accepted load and saturation
    Sim(Box<sim::SimArgs>),
    /// Redraw the results of `sim --csv`
    Plot(plot::PlotArgs),
    Schema(schema::SchemaArgs),
    /// Bring labs up and down, impair their links, start and stop their nodes: the scripts of
    /// netns-scripts
    Lab(lab::LabArgs),
    /// Print a shell completion script
    Completions(pages::CompletionsArgs),
    /// Print the manual of this command, or write a page for each subcommand
    Man(pages::ManArgs),
}

/// A command of another crate, which parses its own arguments.
pub struct Tool {
    /// The name of the subcommand.
    pub name: &'static str,
    /// Description of the tool in `--help`.
    pub about: &'static str,
    /// Arguments of the tool, for completions and manuals.
    pub command: fn() -> clap::Command,
    /// The tool's outputs with `--json`.
    pub outputs: &'static [Output],
    /// Runs the tool; the first argument is its name.
    pub main: fn(Vec<OsString>) -> ExitCode,
}

/// Runs the command given by the process's arguments, from this crate or from `tools`, for these
/// machines.
pub fn main(machines: Catalogue, tools: &[Tool]) -> ExitCode {
    machines::install(machines);
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let named = arguments.get(1).cloned().unwrap_or_default();
    if let Some(tool) = tools.iter().find(|tool| named == tool.name) {
        arguments.drain(..1);
        return (tool.main)(arguments);
    }
    let arguments = match sim::with_config(arguments) {
        Ok(arguments) => arguments,
        Err(report) => {
            output::print_error(&output::report(&report));
            return ExitCode::FAILURE;
        }
    };
    let cli = match command(tools)
        .try_get_matches_from(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches))
    {
        Ok(cli) => cli,
        Err(error) => return refusal::refuse(&error, &command(tools)),
    };
    let named: Option<Targets> = std::env::var("PHITWIRE_LOG")
        .ok()
        .and_then(|levels| levels.parse().ok());
    let filter = named.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let log = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && colours_are_wanted())
        // Ignore errors of a closed standard error.
        .log_internal_errors(false);
    tracing_subscriber::registry().with(log).with(filter).init();
    let result = match cli.command {
        Command::Run(args) => run::run(args),
        Command::Virtual(args) => virtual_lab::run(&args),
        Command::Ctl(args) => ctl::run(args),
        Command::Manage(args) => manage::run(args),
        Command::Wait(args) => wait::run(args),
        Command::Top(args) => top::run(&args),
        Command::View(args) => view::run(&args),
        Command::Record(args) => record::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Metrics(args) => metrics::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Route(args) => route::run(&args),
        Command::Ping(args) => ping::run(&args),
        Command::Soak(args) => soak::run(args),
        Command::Topology(args) => topology::run(args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Capture(args) => capture::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Plot(args) => plot::run(&args),
        Command::Schema(args) => schema::run(&args, tools),
        Command::Lab(args) => lab::run(args),
        Command::Completions(args) => pages::completions(command(tools), &args),
        Command::Man(args) => pages::manual(command(tools), &args),
    };
    match result {
        Ok(code) => code,
        Err(report) => {
            output::print_error(&output::report(&report));
            ExitCode::FAILURE
        }
    }
}

fn command(tools: &[Tool]) -> clap::Command {
    let all = tools.iter().map(|tool| {
        (tool.command)()
            .name(tool.name)
            .bin_name(format!("phitwire {}", tool.name))
            .about(tool.about)
    });
    Cli::command().subcommands(all)
}

/// Whether the user allows colours: <https://no-color.org>.
fn colours_are_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A value as JSON, with sorted keys.
fn json(value: &impl Serialize) -> miette::Result<String> {
    let value = serde_json::to_value(value).into_diagnostic()?;
    Ok(format!("{value:#}\n"))
}

/// Prints a result to standard output.
fn print(text: &str) -> miette::Result<ExitCode> {
    output::print(text)
        .into_diagnostic()
        .wrap_err("cannot write to standard output")?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
