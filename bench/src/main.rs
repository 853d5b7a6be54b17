//! The complete `phitwire` command: that of `phitwire-nodes` and the measuring tools.

use std::process::ExitCode;

use phitwire_bench::commands::TOOLS;

fn main() -> ExitCode {
    phitwire_nodes::cli::main(TOOLS)
}
