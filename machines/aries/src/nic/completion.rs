//! Completion queues: reports to requesters and targets.
//!
//! XC white paper, "Ordering and Completion": events are generated on the source or the target
//! node; they "include both user data and transaction status information".

use phitwire_framing::aries::flit::NodeId;
use phitwire_framing::aries::packet::{MAX_DATA, Status};

use phitwire::time::Time;

/// Why a request, transaction or transfer failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The target rejected it, for this reason.
    Refused(Status),
    /// No response arrived in time. It may or may not have been carried out.
    TimedOut,
    /// The response was damaged in transit. It may or may not have been carried out.
    DamagedResponse,
    /// A send found no posted receive in any attempt.
    NoReceive,
    /// The source of a message gave up before all of it was sent.
    Aborted,
    /// The requesting program's memory is gone, or does not allow the access.
    LocalMemory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every request was carried out; requested data is in local memory.
    Done,
    /// The requested data: the first `len` bytes of `data`.
    Data {
        /// Bytes from `len` on are zero.
        data: [u8; MAX_DATA],
        /// Number requested.
        len: u8,
    },
    /// The former value, of a fetching atomic operation.
    Fetched(u64),
    /// Not everything was done.
    Failed(Failure),
}

impl Outcome {
    /// The reason for a failure, if any.
    pub const fn failure(&self) -> Option<Failure> {
        match self {
            Self::Failed(failure) => Some(*failure),
            _ => None,
        }
    }
}

/// The ended operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A single request.
    Request {
        /// Target of the request.
        node: NodeId,
        handle: u16,
        /// First byte in the domain.
        offset: u64,
    },
    /// A transaction.
    Transaction {
        /// Number of requests.
        requests: u64,
        /// Number of failed requests; the outcome has the first failure.
        failed: u64,
    },
    /// A block transfer.
    Transfer {
        channel: u8,
        /// Bytes acknowledged.
        bytes: u64,
    },
}

/// An event in the completion queue of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The requester's value.
    pub user: u64,
    pub ended: Ended,
    /// When the request was posted, the transaction opened or the transfer queued.
    pub posted: Time,
    /// Time of the last response or of the timeout.
    pub completed: Time,
    pub outcome: Outcome,
}

/// An event in the completion queue of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetEvent {
    /// A put with an event is in memory.
    Put {
        /// Node that put.
        source: NodeId,
        /// The lower four bits of its transaction's SSID, 0 outside a transaction.
        ssid: u16,
        /// The memory domain handle, translated.
        handle: u16,
        /// First byte in the domain.
        offset: u64,
        len: u8,
    },
    /// All requests of a transaction with an event were carried out.
    Transaction {
        /// Node of the transaction.
        source: NodeId,
        /// SSID of the transaction.
        ssid: u16,
        /// The memory domain handle that it names, translated.
        handle: u16,
        /// Payload from the source.
        data: u64,
    },
    /// A posted receive was used up.
    Received {
        /// The poster's value.
        user: u64,
        /// Node that sent the message.
        source: NodeId,
        /// Bytes of the message that arrived.
        bytes: u64,
        /// Why bytes are missing.
        failure: Option<Failure>,
    },
}
