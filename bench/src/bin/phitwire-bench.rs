//! `phitwire bench` under a name of its own.

use std::process::ExitCode;

#[path = "../alias.rs"]
mod alias;

fn main() -> ExitCode {
    alias::run("bench")
}
