//! The door of a NIC: the interface for local programs, and the formats in the memory that both
//! share.
//!
//! A program attaches through a socket ([`hello`]) and gets a memory segment ([`segment`]) with two
//! rings, one for the program's [`Command`]s and one for [`Completion`]s, followed by the program's
//! data. All numbers are little-endian. None of this goes over a wire; the formats are ours.
//!
//! Neither side trusts the other: an entry is copied out of the shared memory before it is parsed,
//! and an [`EntryError`] names the invalid field.

mod collective;
mod command;
mod completion;
pub mod hello;
mod own;
pub mod segment;

pub use collective::{CollectiveRequest, Reduction};
pub use command::{
    Access, AtomicOp, COMMAND_BYTES, Command, Local, MOST_INLINE, Remote, Request, Width,
};
pub use completion::{COMPLETION_BYTES, Completion, Status};

pub use own::{OWN, OWN_END};

use crate::carrier::names::reasons;

reasons! {
    /// Why an entry of a ring, or a message on the socket, is invalid.
    EntryError {
        Kind: "unknown kind of entry",
        Flags: "flag not defined for this kind",
        Code: "unknown operation, status or access",
        Length: "invalid data length for this kind",
        Reserved: "nonzero reserved byte",
        Magic: "missing magic number of the door",
        Version: "unsupported version of the door",
    }
}
crate::listed!(EntryError {
    Kind,
    Flags,
    Code,
    Length,
    Reserved,
    Magic,
    Version
});

/// The `N` bytes at `at`.
fn bytes<const N: usize>(entry: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&entry[at..at + N]);
    out
}

fn u16_at(entry: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes(entry, at))
}

fn u32_at(entry: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes(entry, at))
}

fn u64_at(entry: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes(entry, at))
}

fn store<const N: usize>(entry: &mut [u8], at: usize, value: [u8; N]) {
    entry[at..at + N].copy_from_slice(&value);
}

fn need_zeros(entry: &[u8]) -> Result<(), EntryError> {
    match entry.iter().all(|&byte| byte == 0) {
        true => Ok(()),
        false => Err(EntryError::Reserved),
    }
}
