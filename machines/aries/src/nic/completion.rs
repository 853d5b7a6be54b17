//! Completion queues: reports to requesters and targets.
//!
//! XC white paper, "Ordering and Completion": events are generated on the source or the target
//! node; they "include both user data and transaction status information".

use phitwire_framing::aries::flit::NodeId;
use phitwire_framing::aries::packet::{MAX_DATA, Status};

use phitwire::time::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The target rejected it for this reason.
    Refused(Status),
    /// No response arrived in time. The operation may or may not have been carried out.
    TimedOut,
    /// The response was damaged in transit. The operation may or may not have been carried out.
    DamagedResponse,
    /// A send found no posted receive in any of its attempts.
    NoReceive,
    /// The source of a message gave up before it had sent all of it.
    Aborted,
    /// The requesting program's memory is unmapped, or does not permit the access.
    LocalMemory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every request was carried out, and requested data is in local memory.
    Done,
    /// The requested data: the first `len` bytes of `data`.
    Data {
        /// Bytes from `len` on are zero.
        data: [u8; MAX_DATA],
        len: u8,
    },
    /// The old value, from a fetching atomic operation.
    Fetched(u64),
    /// At least one part failed.
    Failed(Failure),
}

impl Outcome {
    pub const fn failure(&self) -> Option<Failure> {
        match self {
            Self::Failed(failure) => Some(*failure),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Request {
        node: NodeId,
        handle: u16,
        /// First byte in the target's domain.
        offset: u64,
    },
    Transaction {
        requests: u64,
        /// Number of failed requests; the outcome is the first failure.
        failed: u64,
    },
    Transfer {
        channel: u8,
        /// Number of acknowledged bytes.
        bytes: u64,
    },
}

/// An event in the completion queue of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Value from the requester.
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
    /// The data of a put with an event is in memory.
    Put {
        source: NodeId,
        /// The lower four bits of its transaction's SSID, or 0 outside a transaction.
        ssid: u16,
        /// Memory domain handle after translation.
        handle: u16,
        /// First byte in the domain.
        offset: u64,
        len: u8,
    },
    /// All requests of a transaction with an event were carried out.
    Transaction {
        source: NodeId,
        ssid: u16,
        /// Memory domain handle of the transaction after translation.
        handle: u16,
        /// Payload from the source.
        data: u64,
    },
    /// A posted receive has been filled or has failed.
    Received {
        /// Value from the poster of the receive.
        user: u64,
        source: NodeId,
        /// Number of received bytes.
        bytes: u64,
        /// Why the message is incomplete, if it is.
        failure: Option<Failure>,
    },
}
