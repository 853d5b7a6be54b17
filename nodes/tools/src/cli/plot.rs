//! `phitwire plot`: redraws latency-load curves.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use miette::{Context, IntoDiagnostic, miette};
use phitwire::net::short_message;

use crate::input_file::{FileKind, InputFile};
use crate::sim::plot::{self, Choices, LoadUnit};
use crate::sim::sweep;
use crate::whole_file;

/// Redraw the results of `phitwire sim --csv`.
///
/// Several files make one drawing. Results of one network, traffic pattern and options are drawn in
/// cycles and fractions of a port's rate; others in ns and GB/s, with the differences in the
/// legend. Scales are logarithmic if capacities differ by more than a factor of 4.
#[derive(Args, Debug)]
pub struct PlotArgs {
    /// CSV files
    #[arg(required = true, value_name = "FILE.csv")]
    files: Vec<PathBuf>,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE.svg")]
    output: Option<PathBuf>,
    /// Title of the drawing [default: the settings that all results share]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Unit of loads [default: `load` for one network, pattern and options, otherwise `gbytes`]
    #[arg(long)]
    units: Option<LoadUnit>,
}

/// Runs `phitwire plot`.
///
/// # Errors
/// If a file cannot be read or written, has no points, or lacks the units needed to compare results
/// of several networks; or if the drawing would go to a terminal.
pub fn run(args: &PlotArgs) -> miette::Result<ExitCode> {
    check_output(args.output.as_deref())?;
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
    let choices = Choices {
        title: args.title.clone(),
        units: args.units,
    };
    let drawing = plot::svg_with(&samples, &choices)?;
    let Some(file) = &args.output else {
        return super::print(&drawing);
    };
    whole_file::write(file, drawing)
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot write {}", file.display()))?;
    // The line would follow the drawing in /dev/stdout.
    match file.starts_with("/dev") {
        true => Ok(ExitCode::SUCCESS),
        false => {
            let points = match samples.len() {
                1 => "1 point".to_owned(),
                count => format!("{count} points"),
            };
            super::print(&format!("{}: {points}\n", file.display()))
        }
    }
}

/// Rejects outputs that could not be read as a drawing.
fn check_output(output: Option<&Path>) -> miette::Result<()> {
    let Some(file) = output else {
        return match io::stdout().is_terminal() {
            true => Err(miette!(
                help = "write it to a file, `-o FILE.svg`, or redirect it to a file or into a pipe",
                "refusing to write a drawing to a terminal"
            )),
            false => Ok(()),
        };
    };
    match file.extension() {
        Some(ending) if !ending.eq_ignore_ascii_case("svg") => Err(miette!(
            help = "use a name that ends in .svg; other programs convert the file, such as \
                    `rsvg-convert FILE.svg -o FILE.png`",
            "cannot write {}: drawings are SVG",
            file.display()
        )),
        _ => Ok(()),
    }
}
