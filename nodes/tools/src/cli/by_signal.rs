//! How commands end that a signal ends: one rule for all.

use std::process::ExitCode;

/// Exit status of what a signal has ended before its own end, as shells have it for SIGINT.
pub const INTERRUPTED: u8 = 130;

/// The exit status of what a signal has ended and that went well: what goes on until it is told to end
/// is done then; what `has_end` of its own is not.
pub fn ended(has_end: bool) -> ExitCode {
    match has_end {
        true => INTERRUPTED.into(),
        false => ExitCode::SUCCESS,
    }
}
