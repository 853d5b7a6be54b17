//! `phitwire topology`: generate, check, show and plan descriptions of networks.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use miette::{IntoDiagnostic, Report, WrapErr, miette};
use phitwire::net::{Effort, Network};
use phitwire_nodes::output;

use super::{channels, generate, import, print};
use crate::description::{Description, open};
use crate::interchange::{self, Written};
use crate::whole_file;

/// Generate, check, show and plan descriptions of networks.
#[derive(Args, Debug)]
pub struct TopologyArgs {
    #[command(subcommand)]
    command: Command,
}

pub(super) const NETWORK: &str = "The description, or the name of a network as `phitwire sim` takes it, such as \
                                  r2-1024; `-` is standard input";

#[derive(Subcommand, Debug)]
enum Command {
    /// Write the description of a network to standard output.
    Generate {
        #[command(subcommand)]
        wanted: generate::Wanted,
    },
    /// Find everything that is wrong with a description; exit status 1 if anything is.
    Check {
        #[arg(help = NETWORK)]
        file: PathBuf,
        /// Print one line FILE:LINE:COLUMN: MESSAGE per mistake instead of excerpts.
        #[arg(long)]
        lines: bool,
        /// Follow every packet to its end, also in networks where that takes minutes.
        #[arg(long)]
        exact: bool,
    },
    /// Show a network.
    ///
    /// Drawings of large networks have a box for all that belongs together (a group, a subtree), and
    /// --expand draws one of these in full.
    Show {
        #[arg(help = NETWORK)]
        file: PathBuf,
        /// As tables, in the language of Graphviz, or as a drawing.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
        /// Rows of each table at most.
        #[arg(long, default_value_t = 200)]
        rows: usize,
        /// Draw this part alone, in full: the number of a group, a subtree or a plane, as the drawing
        /// of the whole names them.
        #[arg(long, value_name = "PART", conflicts_with_all = ["rows", "inventory"])]
        expand: Option<String>,
        /// Count devices and cables instead, with bandwidths, where a machine has that counted.
        #[arg(long, conflicts_with_all = ["format", "rows"])]
        inventory: bool,
    },
    /// Print nodes and links for scripts, separated by tabs.
    ///
    /// `node NAME router|nic` for every node, then `link ID NODE_A PORT_A NODE_B PORT_B IF_A IF_B
    /// ADDR_A ADDR_B` for every link.
    Plan {
        #[arg(help = NETWORK)]
        file: PathBuf,
        /// Also write the description to this file, with all in it that it takes from others.
        #[arg(long, value_name = "FILE")]
        copy: Option<PathBuf>,
    },
    /// Write a network in the format of another tool. What that cannot say is told on standard error.
    Export {
        #[arg(help = NETWORK)]
        file: PathBuf,
        /// Which format.
        #[arg(long, value_enum)]
        format: Written,
    },
    /// Read a network from a file of another tool, and write its description.
    ///
    /// A file that `topology export` has written as GraphML has the description in it. A graph of
    /// others does not say how its routers find their ways: the network that it is a graph of is
    /// searched for among those of all machines, or compared with one that is named, as for `topology
    /// generate`; nodes are matched by their names, their order, or how they are joined. Links that are
    /// missing are told; with `--missing`, which wants the network named or in the file, they are left
    /// out of the description.
    Import(import::ImportArgs),
    /// Search for tables of virtual channels that balance the links of rings, and print them, what they
    /// are worth, and whether packets could wait for each other in a circle; exit status 1 if they could.
    Channels(channels::SearchArgs),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Table,
    Dot,
    Svg,
}

/// Runs `phitwire topology`. The exit status is 1 if a description has errors.
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
            expand,
            inventory,
        } => {
            let network = open(&file)?;
            let text = match format {
                _ if inventory => inventory_of(&*network)?,
                Format::Table | Format::Dot if expand.is_some() => {
                    return Err(miette!(
                        help = "add --format svg",
                        "--expand is for drawings"
                    ));
                }
                Format::Table => network.table(rows),
                Format::Dot => network.dot(),
                Format::Svg => network.drawing(expand.as_deref()).into_diagnostic()?,
            };
            print(&text)
        }
        Command::Plan { file, copy } => plan(&file, copy.as_deref()),
        Command::Export { file, format } => export(&file, format),
        Command::Import(args) => import::run(&args),
        Command::Channels(args) => channels::search(&args),
    }
}

fn plan(file: &Path, copy: Option<&Path>) -> miette::Result<ExitCode> {
    let description = Description::of(file)?;
    let network = description.network()?;
    if let Some(copy) = copy {
        whole_file::write(copy, description.whole(&*network))
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot write {}", copy.display()))?;
    }
    print(&network.plan_lines().into_diagnostic()?)
}

fn export(file: &Path, format: Written) -> miette::Result<ExitCode> {
    let description = Description::of(file)?;
    let network = description.network()?;
    let whole = description.whole(&*network);
    let export = interchange::export(&*network, &String::from_utf8_lossy(&whole), format)?;
    for sentence in &export.left_out {
        output::complain(&format!("note: {sentence}"));
    }
    print(&export.text)
}

fn inventory_of(network: &dyn Network) -> miette::Result<String> {
    let counted = network.inventory();
    counted.ok_or_else(|| miette!("devices and cables of this machine's networks are not counted"))
}

fn check_file(file: &Path, lines: bool, effort: Effort) -> miette::Result<ExitCode> {
    let description = Description::of(file)?;
    match description.read(effort) {
        Ok(read) => {
            let name = description.name();
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
