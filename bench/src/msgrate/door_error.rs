//! Why a run of programs at doors failed.

use phitwire::nic::SpecError;
use phitwire_client::door::Status;
use phitwire_client::{AttachError, Error as NicError, OutOfRange};
use phitwire_nodes::run_dir::RunDirError;
use thiserror::Error;

use super::program::PATIENCE;
use super::programs::MOST_DATA;

#[derive(Debug, Error)]
pub enum DoorError {
    /// The lab has no such door.
    #[error(transparent)]
    Dir(#[from] RunDirError),
    /// A program could not attach.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// An operation of a NIC failed.
    #[error("{node}: {error}")]
    Nic { node: String, error: NicError },
    /// An access outside of a program's data.
    #[error(transparent)]
    Outside(#[from] OutOfRange),
    /// The pattern does not suit the number of programs.
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error("--op {0}: the NICs of this machine have no such operation for programs")]
    Operation(&'static str),
    /// `--op amo` was given with a size other than that of a word.
    #[error("--size {0}: atomic additions have 8 bytes")]
    AmoSize(u32),
    /// The NICs do not support the size.
    #[error("--size {0}: programs can move 1 to {1} bytes through the NICs of this machine")]
    Size(u32, usize),
    /// The window exceeds the limit of programs.
    #[error("--window: programs can have at most {0} outstanding messages")]
    Window(u32),
    /// The messages need more memory than can be registered.
    #[error(
        "each program would need {0} bytes for the messages of {1} others, but the limit is \
         {MOST_DATA}: use a smaller --window or --size, or fewer sources (--from, --to)"
    )]
    Memory(u64, usize),
    /// The registration was refused.
    #[error("{0}: cannot register memory: {1}")]
    Register(String, Status),
    /// The registration got no reply.
    #[error("{0}: registering memory timed out after {limit} s", limit = PATIENCE.as_secs())]
    Silent(String),
    #[error("{0}: receives did not end within {limit} s", limit = PATIENCE.as_secs())]
    Receives(String),
    #[error("all messages were refused: {0}")]
    Refused(Status),
}
