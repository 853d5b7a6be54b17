//! Requests of an Aries NIC's users: puts, gets and atomic operations.

use phitwire_framing::aries::flit::Routing;
use phitwire_framing::aries::packet::{AmoOp, EmitError, MAX_DATA, Operands, Width};
use thiserror::Error;

use super::virtual_node::Target;

/// A network address: node, memory domain, offset (XC white paper, "Address Translation"), and the
/// protection key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddress {
    pub target: Target,
    /// Memory domain handle, possibly virtual.
    pub handle: u16,
    pub key: u16,
    /// Byte offset in the domain, 40 bits.
    pub offset: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Writes 1 to 64 bytes.
    Put {
        data: &'a [u8],
        /// Whether the target's completion queue gets an event.
        event: bool,
    },
    /// Reads 4 to 64 bytes: words of four bytes at a multiple of four.
    Get {
        len: u8,
        /// Local address for the bytes; `None` for the completion.
        into: Option<u64>,
        /// Local address and value of an 8-byte flag that is written after the data.
        flag: Option<(u64, u64)>,
    },
    /// Updates a word at a multiple of its width.
    Atomic {
        op: AmoOp,
        width: Width,
        operands: Operands,
        /// Whether to return the old word.
        fetch: bool,
        /// Local address for the old word (little endian, in its width); `None` for the completion.
        into: Option<u64>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Post<'a> {
    pub at: RemoteAddress,
    pub operation: Operation<'a>,
    /// Routing mode of the packet. Requests that must arrive in posting order need
    /// [`Routing::Ordered`].
    pub routing: Routing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PostError {
    /// The limit of outstanding packets is reached, or this period has no more ids for this NIC.
    /// New ids become available after a few seconds.
    #[error("too many packets are outstanding")]
    TooMany,
    #[error("too many completions are pending or not yet fetched")]
    CompletionQueueFull,
    #[error("virtual node {0} does not exist")]
    VirtualNode(u32),
    /// Invalid length for this kind of request.
    #[error("{0} bytes: a put has 1 to {MAX_DATA}, a get a multiple of 4 up to {MAX_DATA}")]
    Length(usize),
    #[error("memory domain handle {0} exceeds 12 bits")]
    Handle(u16),
    #[error("offset {0:#x} exceeds 40 bits")]
    Offset(u64),
    #[error("local address {0:#x} is outside the memory")]
    LocalBounds(u64),
    /// The transaction is not open, or all SSIDs are in use.
    #[error("the transaction is not open, or too many are open")]
    Transaction,
    #[error("data in a transaction need a local address")]
    NoAddress,
    #[error("{0}")]
    Emit(EmitError),
}

/// The word of a fetching atomic operation, big endian in packets.
pub(crate) fn word_of(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |word, &byte| word << 8 | u64::from(byte))
}
