//! `phitwire wait`: waits until all links of a lab are up.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use miette::miette;
use phitwire_client::patience::Patience;
use phitwire_nodes::control::{self, ClientError, LinkReport, Request};
use phitwire_nodes::output;
use phitwire_nodes::run_dir::LabDir;
use serde_json::Value;

use super::read_network;

/// Interval of polls.
const INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub struct WaitArgs {
    /// Lab
    #[arg(long, env = super::LAB, hide_env_values = true)]
    lab: String,
    /// Give up after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    timeout: f64,
    /// Also wait for nodes of this topology that have no control socket yet
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
}

pub fn run(args: WaitArgs) -> miette::Result<ExitCode> {
    let dir = LabDir::new(&args.lab).map_err(|error| miette!("{error}"))?;
    let expected = expected_nodes(&args)?;
    let timeout = Duration::try_from_secs_f64(args.timeout)
        .map_err(|_| miette!("invalid --timeout {}: expected seconds", args.timeout))?;
    if Instant::now().checked_add(timeout).is_none() {
        miette::bail!("--timeout {} is too large", args.timeout);
    }
    let mut patience = Patience::new(timeout);
    let mut asleep = Duration::ZERO;
    let mut settled = BTreeSet::new();
    let mut was_there = false;
    loop {
        let is_there = dir.path().exists();
        if was_there && !is_there {
            output::print_error(&format!("lab `{}` has been taken down", args.lab));
            return Ok(ExitCode::FAILURE);
        }
        was_there = is_there;
        let mut nodes: BTreeSet<String> = dir
            .nodes()
            .map_err(|error| miette!("{error}"))?
            .into_iter()
            .collect();
        nodes.extend(expected.iter().cloned());
        let mut missing = Vec::new();
        let asked_all = settled.is_empty();
        let asked: Vec<String> = nodes.difference(&settled).cloned().collect();
        let left = patience.left(asleep).unwrap_or_default();
        // Longest intended sleep of a round.
        asleep = control::TIMEOUT + INTERVAL;
        let answers = control::ask_all(
            &args.lab,
            &asked,
            &Request::Links,
            left.min(control::TIMEOUT),
        );
        for (node, answer) in asked.into_iter().zip(answers) {
            match not_up(&node, answer) {
                Ok(links) if links.is_empty() => {
                    settled.insert(node);
                }
                Ok(links) => missing.extend(links),
                Err(error) => missing.push(format!("{node}: {error}")),
            }
        }
        if missing.is_empty() && !nodes.is_empty() {
            if asked_all {
                return Ok(ExitCode::SUCCESS);
            }
            // All nodes have been up at some time; check again whether they are now.
            settled.clear();
            continue;
        }
        if left.is_zero() {
            if nodes.is_empty() {
                missing.push(format!("no node of lab `{}` is running", args.lab));
            }
            output::print_error(&format!("not up after {} s:", args.timeout));
            for line in &missing {
                output::print_error(&format!("  {line}"));
            }
            return Ok(ExitCode::FAILURE);
        }
        sleep(INTERVAL);
    }
}

fn expected_nodes(args: &WaitArgs) -> miette::Result<BTreeSet<String>> {
    let Some(path) = &args.topology else {
        return Ok(BTreeSet::new());
    };
    Ok(read_network(path)?.node_names().into_iter().collect())
}

/// Lines for the links of `node` that are not up, according to its reply.
fn not_up(node: &str, answer: Result<Value, ClientError>) -> Result<Vec<String>, ClientError> {
    let links: Vec<LinkReport> = serde_json::from_value(answer?)?;
    Ok(links
        .into_iter()
        .filter(|link| !link.up)
        .map(|link| {
            let why = link.why.unwrap_or_default();
            format!(
                "{node} port {} to {}: {}: {why}",
                link.port, link.peer, link.state
            )
        })
        .collect())
}
