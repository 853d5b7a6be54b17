//! Replaces this process with a tool of the `phitwire` binary in the same directory.
//!
//! Links no other library, so that the binary is small.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Runs `phitwire TOOL` with this process's arguments. Returns only on failure.
pub fn run(tool: &str) -> ExitCode {
    let beside = std::env::current_exe().map(|own| own.with_file_name("phitwire"));
    let error = match &beside {
        Ok(phitwire) => Command::new(phitwire)
            .arg(tool)
            .args(std::env::args_os().skip(1))
            .exec()
            .to_string(),
        Err(error) => error.to_string(),
    };
    let phitwire = beside.unwrap_or_else(|_| "phitwire".into());
    eprintln!(
        "phitwire-{tool} is an alias of `phitwire {tool}` and needs that binary: {}: {error}",
        phitwire.display()
    );
    ExitCode::from(2)
}
