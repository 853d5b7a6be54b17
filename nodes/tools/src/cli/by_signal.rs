//! How commands exit after a signal.

use std::process::ExitCode;

/// Exit status of a command that a signal ended early, as shells report SIGINT.
pub const INTERRUPTED: u8 = 130;

/// The exit status of a successful command that a signal ended: early if it `has_end` of its own,
/// otherwise in order.
pub fn ended(has_end: bool) -> ExitCode {
    match has_end {
        true => INTERRUPTED.into(),
        false => ExitCode::SUCCESS,
    }
}
