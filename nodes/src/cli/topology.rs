//! `phitwire topology`: generate, check, show and plan descriptions of networks.

use std::process::ExitCode;

use clap::Args;

/// Generate, check, show and plan descriptions of networks.
#[derive(Args, Debug)]
pub struct TopologyArgs {}

pub fn run(_args: TopologyArgs) -> miette::Result<ExitCode> {
    Err(miette::miette!("not built in"))
}
