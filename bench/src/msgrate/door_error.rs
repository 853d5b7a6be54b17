//! Why programs at doors measured nothing.

use phitwire::nic::SpecError;
use phitwire_client::door::Status;
use phitwire_client::{AttachError, Error as NicError, OutOfRange};
use phitwire_nodes::run_dir::RunDirError;
use thiserror::Error;

use super::programs::{MOST_DATA, MOST_WINDOW, PATIENCE};

/// Why programs measured nothing.
#[derive(Debug, Error)]
pub enum DoorError {
    /// The lab has no such place.
    #[error(transparent)]
    Dir(#[from] RunDirError),
    /// A program was not let in.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// What went wrong with a network interface.
    #[error("{node}: {error}")]
    Nic {
        /// Where.
        node: String,
        /// What.
        error: NicError,
    },
    /// A place that is none.
    #[error(transparent)]
    Outside(#[from] OutOfRange),
    /// The pattern is none for so many.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The network interfaces have no such operation.
    #[error("--op amo: the network interfaces of this machine have none for programs")]
    NoAtomics,
    /// Additions are of words.
    #[error("--size {0}: an addition is of 8 bytes")]
    AmoSize(u32),
    /// Blocks where there are none.
    #[error("--size {0}: the network interfaces of this machine move 1 to {1} bytes for programs")]
    Size(u32, usize),
    /// Too many at a time.
    #[error("--window: programs have up to {MOST_WINDOW} messages outstanding")]
    Window,
    /// More memory than can be registered.
    #[error(
        "each program would need {0} bytes for the messages of {1} others, where {MOST_DATA} are possible: use a smaller \
         --window or --size, or fewer sources (--from, --to)"
    )]
    Memory(u64, usize),
    /// The memory was not registered.
    #[error("{0}: the memory was not registered: {1}")]
    Register(String, Status),
    /// No answer to the first request.
    #[error("{0}: the network interface has not registered the memory after {limit} s", limit = PATIENCE.as_secs())]
    Silent(String),
    /// Nothing but refusals.
    #[error("all messages were refused: {0}")]
    Refused(Status),
}
