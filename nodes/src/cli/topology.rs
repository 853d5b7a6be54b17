//! `phitwire topology`: generate, check, show and plan descriptions of networks.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use miette::{IntoDiagnostic, Report, miette};
use phitwire::machine;
use phitwire::net::{Effort, Network};

use super::{generate, print};
use crate::description::{bytes_of, open};

/// Generate, check, show and plan descriptions of networks.
#[derive(Args, Debug)]
pub struct TopologyArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Write the description of a network to standard output.
    Generate {
        #[command(subcommand)]
        wanted: generate::Wanted,
    },
    /// Find everything that is wrong with a description; exit status 1 if anything is.
    Check {
        /// The description; `-` is standard input.
        file: PathBuf,
        /// Print one line FILE:LINE:COLUMN: MESSAGE per mistake instead of excerpts.
        #[arg(long)]
        lines: bool,
        /// Follow every packet to its end, also in networks where that takes minutes.
        #[arg(long)]
        exact: bool,
    },
    /// Show a network.
    Show {
        /// The description; `-` is standard input.
        file: PathBuf,
        /// As tables, in the language of Graphviz, or as a drawing.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
        /// Rows of each table at most.
        #[arg(long, default_value_t = 200)]
        rows: usize,
        /// Count devices and cables instead, with bandwidths, where a machine has that counted.
        #[arg(long, conflicts_with_all = ["format", "rows"])]
        inventory: bool,
    },
    /// Print nodes and links for scripts, separated by tabs.
    ///
    /// `node NAME router|nic` for every node, then `link ID NODE_A PORT_A NODE_B PORT_B IF_A IF_B
    /// ADDR_A ADDR_B` for every link.
    Plan {
        /// The description; `-` is standard input.
        file: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Table,
    Dot,
    Svg,
}

/// Runs `phitwire topology`. The exit status is 1 if a description has mistakes.
///
/// # Errors
/// A file that cannot be read, or a network that cannot be generated, shown or planned.
pub fn run(args: TopologyArgs) -> miette::Result<ExitCode> {
    match args.command {
        Command::Generate { wanted } => generate::run(&wanted),
        Command::Check { file, lines, exact } => {
            let effort = if exact {
                Effort::Exact
            } else {
                Effort::Bounded
            };
            check_file(&file, lines, effort)
        }
        Command::Show {
            file,
            format,
            rows,
            inventory,
        } => {
            let network = open(&file)?;
            let text = match format {
                _ if inventory => inventory_of(&*network)?,
                Format::Table => network.table(rows),
                Format::Dot => network.dot(),
                Format::Svg => network.svg().into_diagnostic()?,
            };
            print(&text)
        }
        Command::Plan { file } => print(&open(&file)?.plan_lines().into_diagnostic()?),
    }
}

fn inventory_of(network: &dyn Network) -> miette::Result<String> {
    let counted = network.inventory();
    counted.ok_or_else(|| miette!("devices and cables of this machine's networks are not counted"))
}

fn check_file(file: &Path, lines: bool, effort: Effort) -> miette::Result<ExitCode> {
    let (name, bytes) = bytes_of(file)?;
    match machine::read_with(&name, &bytes, effort) {
        Ok(read) => {
            let summary = read.network.summary();
            let rest = match read.followed {
                true => "",
                false => "; not every way was followed, which --exact does",
            };
            print(&format!("{name}: ok, {summary}{rest}\n"))
        }
        Err(problems) if lines => {
            print(&problems.lines())?;
            Ok(ExitCode::FAILURE)
        }
        Err(problems) => Err(Report::new(problems)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_with_mistakes_is_reported_with_its_place() {
        let file = tempfile::NamedTempFile::new().expect("a scratch file");
        std::fs::write(file.path(), "nmae = \"x\"\n").expect("it can be written");
        let report = open(file.path()).expect_err("a mistake");
        assert!(
            format!("{report:?}").contains("did you mean `name`?"),
            "{report:?}"
        );
        let status = check_file(file.path(), true, Effort::Bounded).expect("it can be read");
        assert_eq!(status, ExitCode::FAILURE);
    }
}
