//! `phitwire report`: a recording as one self-contained page.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use miette::{IntoDiagnostic, WrapErr};

use super::print;
use super::view::{open, secret};
use crate::view;
use crate::whole_file;

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Recording
    file: PathBuf,
    /// Output page
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

pub fn run(args: &ReportArgs) -> miette::Result<ExitCode> {
    let recording = open(&args.file)?;
    let page = view::report(&recording.header.name, &recording.packed, secret()?);
    whole_file::write(&args.output, &page)
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot write {}", args.output.display()))?;
    print(&format!(
        "{}: {} samples, {} kB\n",
        args.output.display(),
        recording.moments,
        page.len() / 1_000
    ))
}
