//! Messages between collective engines: control requests (`docs/guide/src/wire-format.md`).
//!
//! ```text
//! argument   0 contribution, to the parent; 1 result, to a child; 2 failure, to all neighbours
//! MDH        the engine, 0 to 3          key  the communicator
//! address    39:32 the operation, 31:0 its number on this engine
//! data       22 bytes, big endian: word 8, location 8, epoch 4, outcome 1, mark 1
//!            if it also completes a request of its receiver, six more: zero 2, zero and echo 2,
//!            zero and packet id 2
//! ```
//!
//! If the outcome is a failure, the word is the failing node and the location the status.

use phitwire_framing::aries::flit::NodeId;
use phitwire_framing::aries::packet::{ECHO_BITS, Status};
use thiserror::Error;

use super::super::outstanding::{PacketId, RequestName};
use phitwire::nic::{Collective, Operand};

/// Data bytes of a message: a size that a control request has without padding.
pub(super) const MESSAGE_BYTES: usize = 22;
/// Data bytes of a message that also completes a request: one flit more.
pub(super) const ANSWERING_BYTES: usize = MESSAGE_BYTES + 6;

/// Why a collective operation has no result. The named node is the one for which the first
/// participant to notice the failure was waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum CollectiveFailure {
    /// Only this operation is affected, not the next.
    #[error("participants joined different operations")]
    Mismatch,
    #[error("no contribution from {0:?}")]
    NoContribution(NodeId),
    #[error("no result from {0:?}")]
    NoResult(NodeId),
    #[error("{0:?} does not answer")]
    Unreachable(NodeId),
    #[error("{0:?} does not have this tree")]
    NotReady(NodeId),
    /// The neighbour has another key, or its tree does not contain the sender as neighbour.
    #[error("{0:?} refused: {1}")]
    Refused(NodeId, Status),
    /// The participant stopped using the tree.
    #[error("{0:?} left the tree")]
    Stopped(NodeId),
}

impl CollectiveFailure {
    fn fields(self) -> (u8, u64, u64) {
        match self {
            Self::Mismatch => (1, 0, 0),
            Self::NoContribution(node) => (2, node.bits().into(), 0),
            Self::NoResult(node) => (3, node.bits().into(), 0),
            Self::Unreachable(node) => (4, node.bits().into(), 0),
            Self::NotReady(node) => (5, node.bits().into(), 0),
            Self::Refused(node, status) => (6, node.bits().into(), status as u64),
            Self::Stopped(node) => (7, node.bits().into(), 0),
        }
    }

    fn from_fields(code: u8, node: u64, status: u64) -> Option<Self> {
        let node = NodeId::from_bits(node as u32);
        Some(match code {
            1 => Self::Mismatch,
            2 => Self::NoContribution(node),
            3 => Self::NoResult(node),
            4 => Self::Unreachable(node),
            5 => Self::NotReady(node),
            6 => {
                let known = Status::ALL.into_iter();
                Self::Refused(node, known.into_iter().find(|&s| s as u64 == status)?)
            }
            7 => Self::Stopped(node),
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Contribution = 0,
    Result = 1,
    Abort = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub kind: Kind,
    /// The operation's number on its engine.
    pub sequence: u32,
    pub collective: Collective,
    pub outcome: Result<Operand, CollectiveFailure>,
    pub mark: bool,
}

impl Message {
    /// Combines this contribution with another, in this order.
    pub(super) fn with(self, other: &Self) -> Self {
        let outcome = match (self.outcome, other.outcome) {
            (Ok(_), Ok(_)) if self.collective != other.collective => {
                Err(CollectiveFailure::Mismatch)
            }
            (Ok(first), Ok(second)) => Ok(self.collective.combine(first, second)),
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
        };
        Self {
            outcome,
            mark: self.mark | other.mark,
            ..self
        }
    }

    pub(super) fn address(&self) -> u64 {
        u64::from(self.collective.code()) << 32 | u64::from(self.sequence)
    }

    /// The data and its length, for a message in a tree of `epoch` that also says "done" to request
    /// `answers` of its receiver.
    pub(super) fn data(
        &self,
        epoch: u32,
        answers: Option<RequestName>,
    ) -> ([u8; ANSWERING_BYTES], usize) {
        let (outcome, word, location) = match self.outcome {
            Ok(operand) => (0, operand.bits, operand.location),
            Err(failure) => failure.fields(),
        };
        let mut data = [0; ANSWERING_BYTES];
        data[..8].copy_from_slice(&word.to_be_bytes());
        data[8..16].copy_from_slice(&location.to_be_bytes());
        data[16..20].copy_from_slice(&epoch.to_be_bytes());
        (data[20], data[21]) = (outcome, self.mark.into());
        let Some((id, echo)) = answers else {
            return (data, MESSAGE_BYTES);
        };
        data[25] = echo;
        data[26..].copy_from_slice(&id.bits().to_be_bytes());
        (data, ANSWERING_BYTES)
    }

    /// Parses a message, its epoch, and the receiver's request that it completes; `None` if
    /// invalid.
    pub(super) fn parse(
        code: u8,
        address: u64,
        data: &[u8],
    ) -> Option<(u32, Self, Option<RequestName>)> {
        let kind = match code {
            0 => Kind::Contribution,
            1 => Kind::Result,
            2 => Kind::Abort,
            _ => return None,
        };
        let (data, behind) = data.split_first_chunk::<MESSAGE_BYTES>()?;
        let answers = answered(behind)?;
        let number = |bytes: &[u8]| bytes.iter().fold(0, |n, &byte| n << 8 | u64::from(byte));
        let (bits, location) = (number(&data[..8]), number(&data[8..16]));
        let collective = Collective::from_code((address >> 32) as u8)?;
        let outcome = match (kind, data[20]) {
            (Kind::Abort, 0) => return None,
            (_, 0) => Ok(collective.normal(Operand { bits, location })),
            (_, outcome) => Err(CollectiveFailure::from_fields(outcome, bits, location)?),
        };
        let mark = match data[21] {
            0 => false,
            1 => true,
            _ => return None,
        };
        let message = Self {
            kind,
            sequence: address as u32,
            collective,
            outcome,
            mark,
        };
        Some((number(&data[16..20]) as u32, message, answers))
    }
}

/// Parses the request identified by the bytes after a message; `None` if they are invalid.
fn answered(bytes: &[u8]) -> Option<Option<RequestName>> {
    match *bytes {
        [] => Some(None),
        [0, 0, 0, echo, high, low] if echo >> ECHO_BITS == 0 && high >> 4 == 0 => {
            let id = PacketId::from_bits(u16::from_be_bytes([high, low]));
            Some(Some((id, echo)))
        }
        _ => None,
    }
}
