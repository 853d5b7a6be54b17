//! Errors in the name or value of a register.

use thiserror::Error;

/// Why a register access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RegisterError {
    /// The register does not exist, or its tile is not in use.
    #[error("there is no such register")]
    Unknown,
    #[error("the register can only be read")]
    ReadOnly,
    #[error("the register does not take this value: it takes {takes}")]
    BadValue {
        /// The accepted values, in words.
        takes: &'static str,
    },
}
