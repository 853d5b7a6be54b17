//! The `phitwire` command, whole: what `phitwire-nodes` has, and the tools that measure.

use std::process::ExitCode;

use phitwire_bench::commands::TOOLS;

fn main() -> ExitCode {
    phitwire_nodes::cli::main(TOOLS)
}
