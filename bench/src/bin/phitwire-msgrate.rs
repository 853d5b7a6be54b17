//! `phitwire msgrate` under its own name.

use std::process::ExitCode;

#[path = "../alias.rs"]
mod alias;

fn main() -> ExitCode {
    alias::run("msgrate")
}
