//! Errors in the name or value of a register.

use thiserror::Error;

/// Why a register access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RegisterError {
    /// There is no such register, or its tile is not in use.
    #[error("there is no such register")]
    Unknown,
    /// The register is read-only.
    #[error("the register can only be read")]
    ReadOnly,
    /// The register does not accept the value.
    #[error("the register does not take this value: it takes {takes}")]
    BadValue {
        /// The accepted values, in words.
        takes: &'static str,
    },
}
