//! `phitwire schema`: schemas of the commands' JSON output (`--json`).

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use miette::miette;
use phitwire::net::{ChannelReport, short_message};
use phitwire_nodes::nearest::nearest;

use super::{Tool, print};
use crate::input_file::{FileKind, InputFile};
use crate::schema::{Output, Schema};
use crate::sim::json::Points;
use crate::sim::messages::Printed;
use crate::trace::Trace;

/// JSON outputs of the commands of this crate.
const OUTPUTS: [Output; 11] = [
    Output::of::<super::capture::Summary>(
        "capture",
        2,
        "phitwire capture --json",
        "Summary of a capture",
    ),
    Output::of::<ChannelReport>(
        "channels",
        1,
        "phitwire topology channels --json",
        "Virtual-channel tables that a search found",
    ),
    Output::of::<super::manage::PrintedReport>(
        "manage",
        1,
        "phitwire manage reroute|isolate|return --json",
        "Report of a reroute",
    ),
    Output::of::<super::ping::Summary>("ping", 1, "phitwire ping --json", "Round trips"),
    Output::of::<super::reproduce::PrintedTable>(
        "reproduce",
        2,
        "phitwire reproduce TABLE --json",
        "A table of a paper, with the models' values",
    ),
    Output::of::<super::route::Path>(
        "route",
        1,
        "phitwire route --json",
        "Path that a packet would take",
    ),
    Output::of::<Points>(
        "sim",
        2,
        "phitwire sim --json",
        "One point of a simulation, or several",
    ),
    Output::of::<Printed>(
        "sim-messages",
        1,
        "phitwire sim --op --json",
        "Messages or collective operations of network interfaces in virtual time",
    ),
    Output::of::<super::soak::Summary>("soak", 1, "phitwire soak --json", "Result of a soak"),
    Output::of::<super::top::Snapshot>("top", 1, "phitwire top --once --json", "State of a lab"),
    Output::of::<Trace>(
        "trace",
        1,
        "phitwire trace --json",
        "Path that a packet took",
    ),
];

/// Print the schema of a command's --json output (JSON Schema, draft 2020-12)
///
/// Each schema has a version, in `x-version` and at the end of `$id`. The version increases when a
/// key is removed or changes its meaning; new keys may be added without it.
#[derive(Args, Debug)]
pub struct SchemaArgs {
    /// Schema; --list prints the names
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// List all schemas: name, version, command, contents
    #[arg(long, conflicts_with_all = ["name", "check"])]
    list: bool,
    /// Validate this file against the schema instead of printing it; `-` is standard input. Exit
    /// status 1 if it does not match
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
}

/// Runs `phitwire schema`.
///
/// # Errors
/// If there is no schema of this name, or a file cannot be read or is not JSON.
pub fn run(args: &SchemaArgs, tools: &[Tool]) -> miette::Result<ExitCode> {
    let of_tools = tools.iter().flat_map(|tool| tool.outputs);
    let mut outputs: Vec<Output> = OUTPUTS.iter().chain(of_tools).copied().collect();
    outputs.sort_by_key(|output| output.name);
    let Some(name) = &args.name else {
        return print(&outputs.iter().map(line).collect::<String>());
    };
    let output = outputs.iter().find(|output| output.name == name);
    let schema = output.ok_or_else(|| unknown(name, &outputs))?.schema();
    match &args.check {
        None => print(&schema.text()),
        Some(file) => check(&schema, file),
    }
}

/// The line of a schema in the list.
fn line(output: &Output) -> String {
    format!(
        "{:18} {}  {}: {}\n",
        output.name, output.version, output.command, output.title
    )
}

fn unknown(name: &str, outputs: &[Output]) -> miette::Report {
    let names: Vec<&str> = outputs.iter().map(|output| output.name).collect();
    let help = match nearest(name, &names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("available: {}", names.join(", ")),
    };
    miette!(help = help, "unknown schema `{name}`")
}

fn check(schema: &Schema, file: &Path) -> miette::Result<ExitCode> {
    let input = InputFile::open(file, FileKind::JSON)?;
    let (file, text) = (input.name.clone(), input.text()?);
    let value = serde_json::from_str(&text)
        .map_err(|error| miette!("{file} is not JSON: {}", short_message(error.to_string())))?;
    let mistakes: Vec<_> = schema
        .mistakes(&value)
        .into_iter()
        .map(short_message)
        .collect();
    if mistakes.is_empty() {
        let Output { name, version, .. } = schema.output;
        return print(&format!(
            "{file}: valid against `{name}`, version {version}\n"
        ));
    }
    print(&(mistakes.join("\n") + "\n"))?;
    Ok(ExitCode::FAILURE)
}
