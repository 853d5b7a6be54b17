//! What a traffic run asks of its network interface, and what it is told.

use super::checker::ANNOUNCEMENT_BYTES;
use super::stamp::{Found, Stamp};

/// A request of a run, for the network interface to make a packet of.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// Tells a target of the run, or asks it about that.
    Announce(&'a [u8; ANNOUNCEMENT_BYTES]),
    /// Writes.
    Put { address: u64, data: &'a [u8] },
    /// Reads.
    Get { address: u64, len: u8 },
    /// Writes or reads a block: see [`Block`].
    Block(Block),
    /// Adds one to the word there, and answers what it was.
    Add { address: u64 },
}

/// A message that is a block transfer.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Whether it reads.
    pub is_get: bool,
    /// At the target.
    pub address: u64,
    /// The same as a number: which of the announced addresses it is.
    pub place: u32,
    /// In the source's own memory.
    pub local: u64,
    pub len: u32,
    /// What a block that is written carries.
    pub stamp: Stamp,
    pub sequence: u32,
}

/// Which request of a run has ended, by the index of its target. Eight bytes, which go from call to
/// call in a register: written to memory and read again, they would be waited for behind all that
/// was written before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(8))]
pub enum RunRequest {
    Announcement(u32),
    /// A repeated announcement. The run does not wait for its answer, which may come during the next
    /// run: `serial` tells them apart. All targets are different processors (`MAX_PROCESSOR`).
    Repetition {
        index: u16,
        serial: u32,
    },
    /// The question whether a target still knows of the run.
    Question(u32),
    Message(u32),
}

const _: () = assert!(size_of::<RunRequest>() == 8);

/// How a message ended.
#[derive(Clone, Copy, Debug)]
pub enum Answered<'a> {
    /// Nobody knows whether it was carried out.
    Unknown,
    /// Not sent: its target has been silent for a whole time-out.
    Unsent,
    /// It was damaged on its way and not carried out.
    Damaged,
    /// It was not.
    Refused,
    Written,
    Read(&'a [u8]),
    /// A block was read, and this found.
    ReadBlock(Found),
    /// What the word was before.
    Added(u64),
}

/// The network interface, as a run at its source needs it.
pub trait Issuer {
    /// Whether a request to `address` can go now.
    fn can_go(&self, address: u64) -> bool;
    /// Whether a request to another address may go although one cannot.
    fn has_other_ways(&self) -> bool;
    /// Sends a request to `processor`; false if it cannot go now.
    fn issue(&mut self, processor: u16, request: RunRequest, message: &Message<'_>) -> bool;
}
