//! The interface between a traffic run and its NIC.

use super::checker::ANNOUNCEMENT_BYTES;
use super::stamp::{Found, Stamp};

/// A request of a run, from which the NIC makes a packet.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// Announces the run to a target, or asks whether it knows the run.
    Announce(&'a [u8; ANNOUNCEMENT_BYTES]),
    Put {
        address: u64,
        data: &'a [u8],
    },
    Get {
        address: u64,
        len: u8,
    },
    Block(Block),
    /// Adds one to the word and returns the old value.
    Add {
        address: u64,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub is_get: bool,
    pub address: u64,
    /// Index of `address` among the announced addresses.
    pub index: u32,
    /// Address in the source's own memory.
    pub local: u64,
    pub len: u32,
    /// Stamps the payload of a written block.
    pub stamp: Stamp,
    pub sequence: u32,
}

/// Identifies a request of a run when it completes, by the index of its target. It has eight bytes,
/// so that it passes between calls in a register; written to memory and read back, it would wait
/// for all earlier stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(8))]
pub enum RunRequest {
    Announcement(u32),
    /// A repeated announcement. The run does not wait for the response, which may arrive during the
    /// next run; hence `serial`. 16 bits suffice for `index`, since all targets are different
    /// processors (`MAX_PROCESSOR`).
    Repetition {
        index: u16,
        serial: u32,
    },
    /// Asks whether a target still knows the run.
    Question(u32),
    Message(u32),
}

const _: () = assert!(size_of::<RunRequest>() == 8);

#[derive(Clone, Copy, Debug)]
pub enum Answered<'a> {
    Unknown,
    /// Not sent: the target has been silent for a whole timeout.
    Unsent,
    /// The message was damaged in flight and not carried out.
    Damaged,
    Refused,
    Written,
    Read(&'a [u8]),
    /// A block was read, with this result.
    ReadBlock(Found),
    /// The old value of the word.
    Added(u64),
}

/// The interface of a NIC for a run at its source.
pub trait Issuer {
    /// Whether a request to `address` can be sent now.
    fn can_go(&self, address: u64) -> bool;
    /// Whether a request to another address may be possible when one to this address is not.
    fn has_alternative_paths(&self) -> bool;
    /// Sends a request to `processor`; returns false if that is not possible now.
    fn issue(&mut self, processor: u16, request: RunRequest, message: &Message<'_>) -> bool;
}
