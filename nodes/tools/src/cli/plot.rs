//! `phitwire plot`: redraws latency-load curves.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use miette::{Context, IntoDiagnostic, miette};
use phitwire::net::short_message;

use crate::input_file::{FileKind, InputFile};
use crate::sim::{plot, sweep};
use crate::whole_file;

/// Redraw the results of `phitwire sim --csv`.
///
/// Several files make one drawing. Results of one network, traffic pattern and options are drawn in
/// cycles and fractions of a port's rate; others in ns and GB/s, with the differences in the
/// legend.
#[derive(Args, Debug)]
pub struct PlotArgs {
    /// CSV files
    #[arg(required = true, value_name = "FILE.csv")]
    files: Vec<PathBuf>,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE.svg")]
    output: Option<PathBuf>,
}

/// Runs `phitwire plot`.
///
/// # Errors
/// If a file cannot be read or written, has no points, or lacks the units needed to compare results
/// of several networks.
pub fn run(args: &PlotArgs) -> miette::Result<ExitCode> {
    let (mut names, mut files) = (Vec::new(), Vec::new());
    for path in &args.files {
        let input = InputFile::open(path, FileKind::POINTS)?;
        names.push(input.name.clone());
        files.push(io::Cursor::new(input.bytes()?));
    }
    let samples = sweep::read(files).map_err(|error| {
        let error = short_message(error.to_string());
        miette!(
            help = "expected the output of `phitwire sim NETWORK --load FROM..TO:STEP --csv FILE`",
            "cannot draw {}: {error}",
            names.join(", ")
        )
    })?;
    let drawing = plot::svg(&samples)?;
    match &args.output {
        None => super::print(&drawing),
        Some(file) => {
            let cannot = || format!("cannot write {}", file.display());
            whole_file::write(file, drawing)
                .into_diagnostic()
                .wrap_err_with(cannot)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
