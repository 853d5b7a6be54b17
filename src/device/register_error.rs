//! Errors in the name or value of a register.

use thiserror::Error;

/// Why a register access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RegisterError {
    /// The register does not exist, or its tile is not in use.
    #[error("no such register")]
    Unknown,
    #[error("the register is read-only")]
    ReadOnly,
    #[error("invalid value: expected {takes}")]
    BadValue {
        /// The accepted values, in words.
        takes: &'static str,
    },
}
