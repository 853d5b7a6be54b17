//! `phitwire topology import`: networks from files of other tools.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::machines::machines;
use clap::Args;
use miette::{WrapErr, miette};
use phitwire::net::Network;
use phitwire_nodes::output;

use super::{generate, print};
use crate::input_file::{FileKind, InputFile};
use crate::interchange::{self, Difference, Readable, Same};

const MOST_NAMED: usize = 5;

#[derive(Args, Debug)]
pub struct ImportArgs {
    /// Input file; `-` is standard input
    file: PathBuf,
    /// Format of the file
    #[arg(long, value_enum)]
    format: Readable,
    /// Accept a file that lacks links, and describe them as absent or broken
    #[arg(long)]
    missing: bool,
    #[command(subcommand)]
    network: Option<generate::Wanted>,
}

/// Runs `phitwire topology import`.
///
/// # Errors
/// If the file has errors, or does not match the network that it is declared to be.
pub fn run(args: &ImportArgs) -> miette::Result<ExitCode> {
    let input = InputFile::open(&args.file, FileKind::GRAPH)?;
    let (name, text) = (input.name.clone(), input.text()?);
    let (graph, described) = interchange::read(&name, &text, args.format)?;
    let described = match (&args.network, described) {
        (Some(wanted), _) => {
            let network = wanted.network()?;
            match graph.compare_all(&*network) {
                Ok(same) => named(&*network, &same, generate::description(&*network)?),
                Err(difference) => differs(args, &*network, &difference)?,
            }
        }
        (None, Some(described)) => {
            let network = machines().read(&name, &described)?;
            match graph.compare(&*network) {
                Ok(_) => described,
                Err(difference) => differs(args, &*network, &difference)?,
            }
        }
        (None, None) => {
            let found = interchange::find(&graph)?;
            output::print_error(&format!("note: this is the network `{}`", found.name));
            let described = generate::description(&*found.network)?;
            named(&*found.network, &found.same, described)
        }
    };
    print(&described)
}

/// A description, preceded by the names of its nodes in the file unless their order or names match.
fn named(network: &dyn Network, same: &Same, described: String) -> String {
    let Same::ByLinks([routers, nics]) = same else {
        return described;
    };
    let mut text = String::from("# Nodes, and their names in the imported file:\n");
    let theirs = routers.iter().chain(nics);
    for (node, their) in network.node_names().iter().zip(theirs) {
        // Escape foreign names, which may contain anything. Writing to a String cannot fail.
        let _ = writeln!(text, "# {node} = {}", their.escape_debug());
    }
    text + "\n" + &described
}

/// Handles a file that differs from the network. If requested and possible, returns the network
/// without the links that the file lacks.
fn differs(
    args: &ImportArgs,
    network: &dyn Network,
    difference: &Difference,
) -> miette::Result<String> {
    let file = args.file.display();
    let Difference::Missing(links) = difference else {
        return Err(miette!("{file} does not match: {difference}"));
    };
    let lack = missing(network, links);
    if !args.missing {
        return Err(miette!(
            help = "--missing describes the missing links as absent or broken",
            "{file} does not match: {lack}"
        ));
    }
    let without = network.without(links);
    let without = without.ok_or_else(|| {
        let name = network.name();
        miette!("{lack}; a description of {name} cannot express missing links")
    })?;
    output::print_error(&format!("note: {lack}"));
    generate::description(&*without)
        .wrap_err_with(|| format!("{file}: without the missing links this is not a valid network"))
}

/// The names of the missing links.
fn missing(network: &dyn Network, links: &BTreeSet<usize>) -> String {
    let named = links.iter().take(MOST_NAMED).map(|&link| {
        let (a, b) = network.ends(link);
        let [from, to] = [a, b].map(|end| network.node_name(end.node).into_owned());
        format!(
            "link {link} between {from} and {to} (ports {}, {})",
            a.port, b.port
        )
    });
    let mut text = named.collect::<Vec<_>>().join(", ");
    if links.len() > MOST_NAMED {
        let _ = write!(text, " and {} more", links.len() - MOST_NAMED);
    }
    format!("the file lacks these links of {}: {text}", network.name())
}
