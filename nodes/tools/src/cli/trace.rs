//! `phitwire trace`: the path of one packet, and its time at each step.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use miette::miette;
use phitwire::nic::{Operation, ProbeSpec};
use phitwire_nodes::output::print_error;

use super::{json, print};
use crate::trace::live::{self, Lab};
use crate::trace::{Trace, perfetto, table};
use crate::whole_file;

/// Send one no-op operation from a NIC to another, and show the routes of its packet and of the
/// answer: every router with ports and virtual channels, the time in each stage, and every decision
/// with its candidates, their loads and the winner
///
/// It changes no memory and runs alongside other traffic. A lost packet is shown up to where it was
/// last seen. Exit status: 0 if the operation completed; 1 if it failed or the answer has not
/// arrived.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Lab
    #[arg(long, env = super::LAB, hide_env_values = true)]
    lab: String,
    /// Sending NIC, such as nic0
    #[arg(long)]
    from: String,
    /// Target NIC
    #[arg(long)]
    to: String,
    #[command(flatten)]
    probe: ProbeArgs,
    /// Timeout of the answer, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    wait: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a file for ui.perfetto.dev and chrome://tracing
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
}

/// The requested operation.
#[derive(Debug, Args)]
pub(super) struct ProbeArgs {
    /// Operation: get some bytes that nobody reads, put some that are discarded, or atomically add
    /// zero, where the machine supports it
    #[arg(long, value_enum, default_value_t)]
    op: OpName,
    /// Bytes to put or get
    #[arg(long, value_name = "BYTES", default_value_t = 8)]
    size: u32,
    /// Address, on machines that route by address; gets and atomic operations also read it
    #[arg(long, value_name = "ADDRESS", default_value = "0", value_parser = super::ctl::parse_value)]
    address: u64,
    /// Request the route of ordered packets, where the machine has a choice
    #[arg(long)]
    ordered: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum OpName {
    #[default]
    Put,
    Get,
    Amo,
}

impl ProbeArgs {
    /// The probe for a NIC; the caller fills in `to`.
    pub(super) fn spec(&self) -> ProbeSpec {
        ProbeSpec {
            to: 0,
            op: match self.op {
                OpName::Put => Operation::Put,
                OpName::Get => Operation::Get,
                OpName::Amo => Operation::Amo,
            },
            bytes: self.size,
            address: self.address,
            ordered: self.ordered,
        }
    }
}

/// Writes traces for Perfetto.
pub(super) fn write_perfetto(file: &Path, traces: &[Trace]) -> miette::Result<()> {
    let text = perfetto::render(traces).to_string();
    whole_file::write(file, text)
        .map_err(|error| miette!("cannot write {}: {error}", file.display()))
}

pub fn run(args: &TraceArgs) -> miette::Result<ExitCode> {
    let lab = Lab::open(&args.lab)?;
    let (spec, limit) = (args.probe.spec(), Duration::from_millis(args.wait));
    let trace = live::trace(&lab, (&args.from, &args.to), &spec, limit)?;
    if let Some(file) = &args.perfetto {
        write_perfetto(file, core::slice::from_ref(&trace))?;
        print_error(&format!("written: {}", file.display()));
    }
    let text = match args.json {
        true => json(&trace)?,
        false => table::render(&trace),
    };
    print(&text)?;
    Ok(match trace.outcome.as_str() {
        "done" => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
