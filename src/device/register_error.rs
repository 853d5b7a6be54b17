//! What may be wrong with the name or value of a register.

use thiserror::Error;

/// Why a register was not written, or has no such name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RegisterError {
    /// There is no such register, or its tile is not in use.
    #[error("there is no such register")]
    Unknown,
    /// The register can only be read.
    #[error("the register can only be read")]
    ReadOnly,
    /// The register does not take the value.
    #[error("the register does not take this value: it takes {takes}")]
    BadValue {
        /// The values that it takes, in words.
        takes: &'static str,
    },
}
