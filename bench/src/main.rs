//! The complete `phitwire` command: the commands of `phitwire-tools` and the measuring tools.

use std::process::ExitCode;

use phitwire_bench::commands::TOOLS;
use phitwire_machines::CATALOGUE;

fn main() -> ExitCode {
    phitwire_tools::cli::main(CATALOGUE, TOOLS)
}
