//! How commands exit after a signal.

use std::process::ExitCode;

/// Exit status of a command that a signal ended early, as shells report SIGINT.
pub const INTERRUPTED: u8 = 130;

/// The exit status of a successful command that a signal ended: [`INTERRUPTED`] if the command
/// would have ended without the signal (`has_end`), otherwise success.
pub fn ended(has_end: bool) -> ExitCode {
    match has_end {
        true => INTERRUPTED.into(),
        false => ExitCode::SUCCESS,
    }
}
