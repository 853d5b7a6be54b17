//! What a user asks of an Aries network interface: puts, gets and atomic operations.

use phitwire_framing::aries::flit::Routing;
use phitwire_framing::aries::packet::{AmoOp, EmitError, MAX_DATA, Operands, Width};
use thiserror::Error;

use super::virtual_node::Target;

/// An address of the network: who, which of its memory domains, where in it (white paper, "Address
/// Translation"), and the key that opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddress {
    /// The node.
    pub target: Target,
    /// Memory domain handle, virtual or not.
    pub handle: u16,
    /// Protection key.
    pub key: u16,
    /// Byte in the domain, 40 bits.
    pub offset: u64,
}

/// What to do there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Writes 1 to 64 bytes.
    Put {
        /// The bytes.
        data: &'a [u8],
        /// Whether the target's completion queue gets an event.
        event: bool,
    },
    /// Reads 4 to 64 bytes, in words of four at a multiple of four.
    Get {
        /// How many bytes.
        len: u8,
        /// Where in the local memory they go; `None`: into the completion.
        into: Option<u64>,
        /// An 8-byte flag to be written behind them: its local address and its value.
        flag: Option<(u64, u64)>,
    },
    /// Changes a word at a multiple of its width.
    Atomic {
        /// How.
        op: AmoOp,
        /// The word.
        width: Width,
        /// With what.
        operands: Operands,
        /// Whether the word as it was comes back.
        fetch: bool,
        /// Where in the local memory it goes (little endian, in its width); `None`: into the
        /// completion.
        into: Option<u64>,
    },
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Post<'a> {
    /// Where.
    pub at: RemoteAddress,
    /// What.
    pub operation: Operation<'a>,
    /// How its packet chooses its way: [`Routing::Ordered`] for requests that must arrive in the
    /// order in which they were posted.
    pub routing: Routing,
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PostError {
    /// As many packets as may be are outstanding; or the ids of this period are used up, or belong
    /// to a predecessor: in a few seconds there are others.
    #[error("too many packets are outstanding")]
    TooMany,
    /// The completion queue could not hold the completion.
    #[error("too many completions are due or wait to be fetched")]
    CompletionQueueFull,
    /// The virtual node does not exist.
    #[error("there is no virtual node {0}")]
    VirtualNode(u32),
    /// The number of bytes is no length of such a request.
    #[error("{0} bytes: puts have 1 to {MAX_DATA}, gets multiples of 4 up to {MAX_DATA}")]
    Length(usize),
    /// The handle has more than 12 bits.
    #[error("memory domain handle {0} has more than 12 bits")]
    Handle(u16),
    /// The offset has more than 40 bits.
    #[error("offset {0:#x} has more than 40 bits")]
    Offset(u64),
    /// A local address is not in the local memory.
    #[error("local address {0:#x} is not in the memory")]
    LocalBounds(u64),
    /// The transaction is not open, or all SSIDs are in use.
    #[error("the transaction is not open, or there are too many")]
    Transaction,
    /// The data of requests in a transaction go to the local memory.
    #[error("in a transaction, data need a local address")]
    NoAddress,
    /// The request has no packet.
    #[error("{0}")]
    Emit(EmitError),
}

/// The word of a fetching atomic operation, whose bytes travel big endian.
pub(crate) fn word_of(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |word, &byte| word << 8 | u64::from(byte))
}
