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

pub(super) const NETWORK: &str = "Description, or the name of a network as for `phitwire sim`, \
                                  such as r2-1024; `-` is standard input";

#[derive(Subcommand, Debug)]
enum Command {
    /// Write the description of a network to standard output.
    Generate {
        #[command(subcommand)]
        wanted: generate::Wanted,
    },
    /// Find all errors in a description; exit status 1 if there are any.
    Check {
        #[arg(help = NETWORK)]
        file: PathBuf,
        /// Print one line FILE:LINE:COLUMN: MESSAGE per error instead of excerpts.
        #[arg(long)]
        lines: bool,
        /// Follow every packet to its end, even in networks where that takes minutes.
        #[arg(long)]
        exact: bool,
    },
    /// Show a network.
    ///
    /// Drawings of large networks have a box for each group or subtree; --expand draws one of these
    /// in full.
    Show {
        #[arg(help = NETWORK)]
        file: PathBuf,
        /// Format: tables, Graphviz' dot language, or a drawing.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
        /// Maximum number of rows per table.
        #[arg(long, default_value_t = 200)]
        rows: usize,
        /// Draw only this part, in full: the number of a group, a subtree or a plane, as in the
        /// drawing of the whole.
        #[arg(long, value_name = "PART", conflicts_with_all = ["rows", "inventory"])]
        expand: Option<String>,
        /// Count devices and cables instead, with bandwidths, on machines that support it.
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
        /// Also write the description to this file, with the contents of other files that it uses.
        #[arg(long, value_name = "FILE")]
        copy: Option<PathBuf>,
    },
    /// Write a network in the format of another tool. Warns on standard error about anything that
    /// the format cannot express.
    Export {
        #[arg(help = NETWORK)]
        file: PathBuf,
        /// Output format.
        #[arg(long, value_enum)]
        format: Written,
    },
    /// Read a network from a file of another tool, and write its description.
    ///
    /// GraphML written by `topology export` contains the description. Other graphs do not say how
    /// their routers route: the matching network is searched for among those of all machines, or,
    /// if specified as for `topology generate`, compared with the graph; nodes are matched by name,
    /// by order, or by their links. Missing links are reported; with `--missing`, which needs the
    /// network specified or in the file, they are omitted from the description.
    Import(import::ImportArgs),
    /// Search for virtual channel tables that balance the links of rings. Prints the tables, how
    /// well they balance, and whether packets could deadlock in a cycle; exit status 1 if so.
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
/// If a file cannot be read, or a network cannot be generated, shown or planned.
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
                        "--expand applies only to drawings"
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
        output::print_error(&format!("note: {sentence}"));
    }
    print(&export.text)
}

fn inventory_of(network: &dyn Network) -> miette::Result<String> {
    let counted = network.inventory();
    counted.ok_or_else(|| miette!("devices and cables are not counted for this machine"))
}

fn check_file(file: &Path, lines: bool, effort: Effort) -> miette::Result<ExitCode> {
    let description = Description::of(file)?;
    match description.read(effort) {
        Ok(read) => {
            let name = description.name();
            let summary = read.network.summary();
            let rest = match read.followed {
                true => "",
                false => "; not every route was checked (--exact does)",
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
    fn a_description_with_mistakes_is_reported_with_their_location() {
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
