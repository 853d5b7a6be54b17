//! The output files of a run.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use miette::miette;
use phitwire::net::Network;
use phitwire_nodes::output::print_error;

use super::SimArgs;
use crate::hgrm;
use crate::sim::sweep::{self, Sample, Setting};
use crate::sim::{Measured, plot};
use crate::whole_file;

/// Reads the name of a picture, which is SVG whatever its name: another ending would mislead.
pub(super) fn picture() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|file| match file.extension() {
        Some(ending) if !ending.eq_ignore_ascii_case("svg") => {
            Err("pictures are SVG: specify a file that ends in .svg")
        }
        _ => Ok(file),
    })
}

/// Whether two paths name the same file, so that one output would overwrite the other.
fn is_one_file(a: &Path, b: &Path) -> bool {
    let file = |path| std::fs::metadata(path).ok().filter(|file| file.is_file());
    let [a, b] = [a, b].map(|path| file(path).map(|file| (file.dev(), file.ino())));
    a.is_some() && a == b
}

fn cannot_write(file: &Path, error: std::io::Error) -> miette::Report {
    miette::Report::msg(error).wrap_err(format!("cannot write {}", file.display()))
}

/// The optional files and the options that name them.
const fn named(args: &SimArgs) -> [(&'static str, &Option<PathBuf>); 3] {
    [
        ("--csv", &args.csv),
        ("--plot", &args.plot),
        ("--hgrm", &args.hgrm),
    ]
}

/// Whether the run writes files that remain.
pub(super) fn are_left(args: &SimArgs) -> bool {
    named(args).iter().any(|(_, file)| file.is_some())
}

/// Rejects outputs that would overwrite the files that the run reads.
fn check_inputs(args: &SimArgs) -> miette::Result<()> {
    let topology = Path::new(&args.topology);
    let inputs = [Some(topology), args.config.as_deref()];
    let others = [
        ("--record", &args.record.file),
        ("--capture", &args.capture),
        ("--perfetto", &args.traced.perfetto),
    ];
    for (option, file) in named(args).into_iter().chain(others) {
        let Some(file) = file else { continue };
        let mut read = inputs.into_iter().flatten();
        if read.any(|input| is_one_file(input, file)) {
            return Err(miette!(
                help = "specify a different file",
                "{option} {}: the run reads this file",
                file.display()
            ));
        }
    }
    Ok(())
}

/// Rejects files that cannot be written, before a run that may take hours.
pub(super) fn check(args: &SimArgs) -> miette::Result<()> {
    check_inputs(args)?;
    let files = named(args)
        .into_iter()
        .filter_map(|(option, file)| Some((option, file.as_ref()?)));
    let files: Vec<_> = files.collect();
    let mut made = Vec::new();
    for (_, file) in &files {
        if !file.exists() {
            made.push(file);
        }
        let opened = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(file);
        opened.map_err(|error| cannot_write(file, error))?;
    }
    for (number, (option, file)) in files.iter().enumerate() {
        let mut before = files[..number].iter();
        if let Some((other, _)) = before.find(|(_, other)| is_one_file(other, file)) {
            return Err(miette!(
                "{other} and {option} both write {}: specify different files",
                file.display()
            ));
        }
    }
    // Remove files created by the check: the outputs may have derived names instead.
    for file in made {
        let _ = std::fs::remove_file(file);
    }
    Ok(())
}

pub(super) fn write(args: &SimArgs, network: &dyn Network, all: &[Measured]) -> miette::Result<()> {
    let written = |file: &Path| print_error(&format!("written: {}", file.display()));
    let write = |file: &Path, text: String| {
        whole_file::write(file, text).map_err(|error| cannot_write(file, error))?;
        written(file);
        Ok::<_, miette::Report>(())
    };
    let setting = Setting {
        topology: network.name().to_owned(),
        network: sweep::fingerprint(&network.write()),
        traffic: args.traffic.to_string(),
        options: args.given.chosen(all),
    };
    if let Some(file) = &args.hgrm {
        let name = |one: &Measured| match one.routing {
            Some(routing) => format!("{}-{}", routing.replace(", ", "-"), one.load.fraction()),
            None => one.load.fraction().to_string(),
        };
        let rows = all
            .iter()
            .map(|one| (name(one), &one.first().report.latency_counts));
        hgrm::write(file, rows, 1.0).map_err(|(file, error)| cannot_write(&file, error))?;
        match all {
            [_] => written(file),
            _ => all
                .iter()
                .for_each(|one| written(&hgrm::file_of(file, &name(one)))),
        }
    }
    if let Some(file) = &args.csv {
        let command = |of: &Measured, seed| {
            let arguments = args.given.command(args, of, seed);
            format!("phitwire sim {arguments}")
        };
        write(file, sweep::csv(&setting, all, command))?;
    }
    if let Some(file) = &args.plot {
        let samples = all.iter().flat_map(|one| Sample::of(&setting, one));
        let samples: Vec<_> = samples.collect();
        write(file, plot::svg(&samples)?)?;
    }
    Ok(())
}
