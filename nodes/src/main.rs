//! The `phitwire` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    phitwire_nodes::cli::main()
}
