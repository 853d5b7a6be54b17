//! `phitwire trace`: the path of one packet, and its time at each step.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use miette::miette;
use phitwire::nic::{Operation, ProbeSpec};
use phitwire_nodes::output::complain;

use super::{json, print};
use crate::trace::live::{self, Lab};
use crate::trace::{Trace, perfetto, table};
use crate::whole_file;

/// Send one operation of no consequence from a network interface to another, and show where its
/// packet and the answer went: every router with ports and virtual channels, how long it was in
/// each stage, and every decision with its candidates, their loads and the winner
///
/// It changes no memory and runs beside other traffic. What is lost is shown up to where it was last
/// seen. Exit status: 0 the operation was done; 1 it was not, or the answer has not come.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The lab
    #[arg(long)]
    lab: String,
    /// The network interface that sends, such as nic0
    #[arg(long)]
    from: String,
    /// The one that it sends to
    #[arg(long)]
    to: String,
    #[command(flatten)]
    probe: ProbeArgs,
    /// How long to wait for the answer, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    wait: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a file that ui.perfetto.dev and chrome://tracing open
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
}

/// What is asked for.
#[derive(Debug, Args)]
pub(super) struct ProbeArgs {
    /// What to do: get some bytes nobody looks at, put some that are thrown away, or add zero
    /// atomically, where the machine has that
    #[arg(long, value_enum, default_value_t)]
    op: OpName,
    /// Bytes to put or get
    #[arg(long, value_name = "BYTES", default_value_t = 8)]
    size: u32,
    /// The address, where machines route by it; of gets and atomic operations also what is read
    #[arg(long, value_name = "ADDRESS", default_value = "0", value_parser = super::ctl::parse_value)]
    address: u64,
    /// Ask for the way of ordered packets, where the machine has a choice
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
        complain(&format!("written: {}", file.display()));
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
