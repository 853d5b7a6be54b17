//! The `phitwire` command for the toy machine and those that come with phitwire.

use std::process::ExitCode;

use phitwire::catalogue::{Catalogue, Machine};
use phitwire_bench::commands::TOOLS;
use phitwire_machines::MACHINES;

static ALL: [&Machine; 4] = [
    MACHINES[0],
    MACHINES[1],
    MACHINES[2],
    &phitwire_toy::MACHINE,
];

fn main() -> ExitCode {
    phitwire_tools::cli::main(Catalogue::new(&ALL), TOOLS)
}
