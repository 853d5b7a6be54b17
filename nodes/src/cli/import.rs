//! `phitwire topology import`: networks from files of other tools.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use miette::{IntoDiagnostic, WrapErr, miette};
use phitwire::machine;

use super::{generate, print};
use crate::description;
use crate::interchange::{self, Graph, InterchangeError, Readable};

#[derive(Args, Debug)]
pub struct ImportArgs {
    /// The file; `-` is standard input.
    file: PathBuf,
    /// Which format.
    #[arg(long, value_enum)]
    format: Readable,
    #[command(subcommand)]
    network: Option<generate::Wanted>,
}

/// Runs `phitwire topology import`.
///
/// # Errors
/// A file with mistakes, or that is not the network it is said to be.
pub fn run(args: &ImportArgs) -> miette::Result<ExitCode> {
    let (name, bytes) = description::bytes_of(&args.file)?;
    let text = String::from_utf8(bytes)
        .into_diagnostic()
        .wrap_err_with(|| format!("{name} is no text"))?;
    let (graph, described) = interchange::read(&name, &text, args.format)?;
    let described = match (&args.network, described) {
        (Some(wanted), _) => {
            let network = wanted.network()?;
            compared(&args.file, &graph, &*network)?;
            generate::description(&*network)?
        }
        (None, Some(described)) => {
            let network = machine::read(&name, &described)?;
            compared(&args.file, &graph, &*network)?;
            described
        }
        (None, None) => {
            let (routers, nics) = graph.counts();
            return Err(InterchangeError::Nameless { routers, nics }.into());
        }
    };
    print(&described)
}

fn compared(
    file: &Path,
    graph: &Graph,
    network: &dyn phitwire::net::Network,
) -> miette::Result<()> {
    graph.compare(network).map_err(|difference| {
        miette!(
            help = "links that are missing are named in a description: change that, and export it again",
            "{} is another network: {difference}",
            file.display()
        )
    })
}
