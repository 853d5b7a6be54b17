//! Translates requests, operations and completions to and from the terms of the client
//! [rings](phitwire_framing::door).

use phitwire_framing::aries::flit::Routing;
use phitwire_framing::aries::packet::{AmoOp, Status as Refused};
use phitwire_framing::door::{AtomicOp, Command, Completion as DoorCompletion, Status};

use super::completion::{Completion, Ended, Failure, Outcome};
use super::{BlockError, PostError};
use phitwire::nic::local::Client;

/// Position of the client number in a request's user value.
const CLIENT_SHIFT: u32 = u64::BITS - 8;

/// The user value that encodes a client's request `name`.
pub(super) const fn tagged(client: Client, name: u64) -> u64 {
    (client.0 as u64) << CLIENT_SHIFT | name_of(name)
}

/// The client's name for a request.
pub(super) const fn name_of(user: u64) -> u64 {
    user & ((1 << Command::NAME_BITS) - 1)
}

/// The client of a request, if any.
pub(super) const fn client_of(user: u64) -> Option<Client> {
    match (user >> CLIENT_SHIFT) as u8 {
        0 => None,
        client => Some(Client(client)),
    }
}

pub(super) const fn routing(ordered: bool) -> Routing {
    if ordered {
        Routing::Ordered
    } else {
        Routing::Adaptive0
    }
}

pub(super) const fn amo_of(op: AtomicOp) -> AmoOp {
    match op {
        AtomicOp::And => AmoOp::And,
        AtomicOp::Or => AmoOp::Or,
        AtomicOp::Xor => AmoOp::Xor,
        AtomicOp::Add => AmoOp::Add,
        AtomicOp::AndXor => AmoOp::AndXor,
        AtomicOp::Swap => AmoOp::Swap,
        AtomicOp::CompareSwap => AmoOp::CompareSwap,
        AtomicOp::SignedMin => AmoOp::IntMin,
        AtomicOp::SignedMax => AmoOp::IntMax,
        AtomicOp::FloatAdd => AmoOp::FloatAdd,
        AtomicOp::FloatMin => AmoOp::FloatMin,
        AtomicOp::FloatMax => AmoOp::FloatMax,
    }
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::TimedOut => Self::TimedOut,
            Failure::DamagedResponse => Self::DamagedAnswer,
            Failure::NoReceive => Self::NoReceive,
            Failure::Aborted => Self::Aborted,
            Failure::LocalMemory => Self::Unreachable,
            Failure::Refused(refused) => match refused {
                Refused::Done => Self::Done,
                Refused::BadMdh => Self::NoHandle,
                Refused::BadKey => Self::WrongKey,
                Refused::OutOfBounds => Self::OutOfBounds,
                Refused::Misaligned => Self::Misaligned,
                Refused::Unsupported => Self::Forbidden,
                Refused::BadCrc | Refused::Poisoned => Self::Damaged,
                Refused::NotReady => Self::NoReceive,
                Refused::Busy => Self::Busy,
            },
        }
    }
}

/// The status for a rejection at this end; `None` if the client must retry later.
pub(super) fn refusal_of_post(error: &PostError) -> Option<Status> {
    Some(match error {
        PostError::TooMany | PostError::CompletionQueueFull => return None,
        PostError::VirtualNode(_) => Status::NoProcessor,
        PostError::Length(_) | PostError::Emit(_) => Status::Length,
        PostError::Handle(_) => Status::NoHandle,
        PostError::Offset(_) => Status::Offset,
        PostError::LocalBounds(_) => Status::NotInSegment,
        PostError::Transaction | PostError::NoAddress => Status::Unsupported,
    })
}

pub(super) fn refusal_of_block(error: &BlockError) -> Option<Status> {
    Some(match error {
        BlockError::QueueFull => return None,
        BlockError::Channel(_) => Status::Unsupported,
        BlockError::Length(_) => Status::Length,
        BlockError::LocalBounds => Status::NotInSegment,
        BlockError::VirtualNode(_) => Status::NoProcessor,
        BlockError::Offset => Status::Offset,
    })
}

/// Converts a completion of a request or transfer for the client.
pub(super) fn door_completion(completion: &Completion) -> DoorCompletion {
    let status = match completion.outcome {
        Outcome::Failed(failure) => failure.into(),
        _ => Status::Done,
    };
    let word = match completion.outcome {
        Outcome::Fetched(word) => word,
        _ => 0,
    };
    let bytes = match completion.ended {
        Ended::Transfer { bytes, .. } => bytes,
        _ => 0,
    };
    DoorCompletion::End {
        name: name_of(completion.user),
        status,
        word,
        bytes,
    }
}
