//! Completion queues: how requesters and targets learn what has happened.
//!
//! White paper, "Ordering and Completion": events are generated on the source or the target node;
//! they "include both user data and transaction status information".

use phitwire_framing::aries::flit::NodeId;
use phitwire_framing::aries::packet::{MAX_DATA, Status};

use phitwire::time::Time;

/// Why a request, transaction or transfer did not do all it was to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The target did not carry it out, and says why.
    Refused(Status),
    /// No response came in time. It may or may not have been carried out.
    TimedOut,
    /// The response was damaged on its way. It may or may not have been carried out.
    DamagedResponse,
    /// A send found no posted receive, as often as it tried.
    NoReceive,
    /// The source of a message gave up before all of it was sent.
    Aborted,
    /// Memory of the program that asked is not there any more, or not for that.
    LocalMemory,
}

/// How a request, transaction or transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is done; data that was asked for is in the local memory.
    Done,
    /// The data asked for: the first `len` bytes of `data`.
    Data {
        /// The bytes; those from `len` on are zero.
        data: [u8; MAX_DATA],
        /// How many were asked for.
        len: u8,
    },
    /// The value that a fetching atomic operation found.
    Fetched(u64),
    /// Not all is done.
    Failed(Failure),
}

impl Outcome {
    /// Why it failed, if it did.
    pub const fn failure(&self) -> Option<Failure> {
        match self {
            Self::Failed(failure) => Some(*failure),
            _ => None,
        }
    }
}

/// What has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A single request.
    Request {
        /// Whom it asked.
        node: NodeId,
        /// The memory domain handle.
        handle: u16,
        /// The first byte in the domain.
        offset: u64,
    },
    /// A transaction.
    Transaction {
        /// Its requests.
        requests: u64,
        /// Those that failed; the outcome has the first failure.
        failed: u64,
    },
    /// A block transfer.
    Transfer {
        /// The channel.
        channel: u8,
        /// Bytes whose arrival has been acknowledged.
        bytes: u64,
    },
}

/// An event in the completion queue of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The value that the requester gave.
    pub user: u64,
    /// What has ended.
    pub ended: Ended,
    /// When it was posted, opened or queued.
    pub posted: Time,
    /// When the last response was seen, or the time-out.
    pub completed: Time,
    /// How it ended.
    pub outcome: Outcome,
}

/// An event in the completion queue of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetEvent {
    /// A put that asked for an event is in the memory.
    Put {
        /// Who put.
        source: NodeId,
        /// The lower four bits of its transaction's SSID, 0 if it is of none.
        ssid: u16,
        /// The memory domain handle, translated.
        handle: u16,
        /// First byte in the domain.
        offset: u64,
        /// Bytes.
        len: u8,
    },
    /// All requests of a transaction that asked for an event have been carried out.
    Transaction {
        /// Whose transaction.
        source: NodeId,
        /// Its SSID.
        ssid: u16,
        /// The memory domain handle that it names, translated.
        handle: u16,
        /// What the source says.
        data: u64,
    },
    /// A posted receive has been used up.
    Received {
        /// The value that the poster gave.
        user: u64,
        /// Whose message.
        source: NodeId,
        /// Bytes of the message that have arrived.
        bytes: u64,
        /// Why not all have.
        failure: Option<Failure>,
    },
}
