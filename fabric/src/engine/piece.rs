//! Pieces of one-sided operations: single commands of the NIC, and how each may be repeated.

use phitwire_client::door::{Local, Remote, Request, Status};

use super::amo::Amo;
use super::shared::{Failure, Why};

/// Maximum number of bytes of a block transfer; a NIC allows up to 4 GB.
const MOST_BLOCK: usize = 1 << 30;
/// Maximum number of bytes of a put that is one packet.
const PACKET: u64 = 64;

/// The action of a piece.
#[derive(Clone, Debug)]
pub enum Act {
    /// Writes a few bytes.
    Put(Vec<u8>),
    /// Reads a few words.
    Get(Local),
    /// Writes from memory of the program, or from the stage with this number.
    BlockPut(Local, Option<usize>),
    /// Reads into memory of the program.
    BlockGet(Local),
    /// Changes a word.
    Atomic(Amo),
}

/// One command of an operation.
#[derive(Debug)]
pub struct Piece {
    /// The number of the operation.
    pub(super) whole: usize,
    pub(super) at: Remote,
    pub(super) act: Act,
    /// Whether a try may have changed the peer's memory.
    pub(super) may_have_arrived: bool,
}

impl Act {
    /// Whether a block transfer carries it out.
    pub(super) const fn is_block(&self) -> bool {
        matches!(self, Self::BlockPut(..) | Self::BlockGet(_))
    }

    /// Whether it writes in several packets, which may end differently. The NIC reports the first
    /// failure; a later packet may still be in the network.
    const fn is_long_put(&self) -> bool {
        matches!(self, Self::BlockPut(from, _) if from.bytes > PACKET)
    }

    /// Whether a piece that ended with this status is repeated at once. Then either nothing of it
    /// was carried out, or repeating it is harmless.
    pub(super) const fn is_repeatable(&self, status: Status) -> bool {
        match status {
            Status::Damaged | Status::Busy => !self.is_long_put(),
            Status::TimedOut | Status::DamagedAnswer => match self {
                Self::Get(_) | Self::BlockGet(_) => true,
                Self::Put(_) | Self::BlockPut(..) => {
                    matches!(status, Status::DamagedAnswer) && !self.is_long_put()
                }
                // An OR with 0 changes nothing.
                Self::Atomic(amo) => amo.changes_nothing(),
            },
            _ => false,
        }
    }

    /// Whether a piece that ended with this status is repeated with another handle.
    pub(super) const fn needs_renewal(&self, status: Status) -> bool {
        match status {
            Status::TimedOut | Status::Aborted => matches!(self, Self::Put(_) | Self::BlockPut(..)),
            Status::Damaged | Status::DamagedAnswer | Status::Busy => self.is_long_put(),
            // The owner reports whether the memory is still there.
            Status::NoHandle => true,
            _ => false,
        }
    }

    /// Whether a piece that ended with this status may have changed the peer's memory, perhaps in
    /// part.
    pub(super) const fn may_have_arrived(&self, status: Status) -> bool {
        match status {
            Status::Done | Status::TimedOut | Status::DamagedAnswer => {
                !matches!(self, Self::Get(_) | Self::BlockGet(_))
            }
            Status::Aborted | Status::Damaged | Status::Busy | Status::Unreachable => {
                self.is_long_put()
            }
            _ => false,
        }
    }
}

impl Piece {
    /// The request for the NIC.
    pub(super) fn request(&self) -> Request<'_> {
        let (at, ordered) = (self.at, false);
        match &self.act {
            Act::Put(data) => Request::Put {
                to: at,
                data,
                event: false,
                ordered,
            },
            Act::Get(into) => Request::Get {
                from: at,
                into: *into,
                ordered,
            },
            Act::BlockPut(from, _) => Request::BlockPut {
                to: at,
                from: *from,
                event: None,
                fence: false,
            },
            Act::BlockGet(into) => Request::BlockGet {
                from: at,
                into: *into,
                fence: false,
            },
            Act::Atomic(amo) => Request::Atomic {
                at,
                op: amo.op,
                width: amo.width,
                operands: amo.operands,
                fetch: amo.fetch,
                ordered: true,
            },
        }
    }
}

/// Splits memory of the program into block transfers, each with its offset.
pub(super) fn blocks(address: u64, bytes: usize) -> impl Iterator<Item = (usize, Local)> {
    (0..bytes).step_by(MOST_BLOCK).map(move |skip| {
        let bytes = MOST_BLOCK.min(bytes - skip);
        debug_assert!(bytes > 0, "no block is empty");
        (skip, Local::own(address + skip as u64, bytes as u64))
    })
}

/// The address `bytes` further on.
pub(super) const fn behind(at: Remote, bytes: usize) -> Remote {
    Remote {
        offset: at.offset + bytes as u64,
        ..at
    }
}

/// The failure of an operation of which a part may have been carried out.
pub(super) const fn perhaps_carried_out(failure: Failure) -> Failure {
    Failure {
        errno: match failure.why {
            Why::Unreachable => libc::ETIMEDOUT,
            _ => failure.errno,
        },
        why: Why::Unknown,
    }
}

/// The failure of an operation whose piece ended with `status`.
pub(super) const fn failure_of(status: Status) -> Failure {
    let (errno, why) = match status {
        Status::TimedOut | Status::DamagedAnswer => (libc::ETIMEDOUT, Why::Unknown),
        Status::Unreachable | Status::NotInSegment => (libc::EFAULT, Why::OwnMemory),
        Status::NoHandle
        | Status::WrongKey
        | Status::OutOfBounds
        | Status::Misaligned
        | Status::Forbidden
        | Status::Offset => (libc::EREMOTEIO, Why::Refused),
        _ => (libc::EHOSTUNREACH, Why::Unreachable),
    };
    Failure { errno, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_cut_into_blocks_that_a_network_interface_has() {
        for bytes in [1, MOST_BLOCK - 1, MOST_BLOCK, MOST_BLOCK + 1, 5 << 30] {
            let mut next = 0;
            for (skip, local) in blocks(4096, bytes) {
                assert_eq!(skip, next);
                assert_eq!(local.own_address(), Some(4096 + skip as u64));
                assert!((1..=MOST_BLOCK as u64).contains(&local.bytes));
                next += local.bytes as usize;
            }
            assert_eq!(next, bytes);
        }
        assert_eq!(blocks(4096, 0).count(), 0);
    }
}
