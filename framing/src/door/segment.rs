//! Layout of the memory that a program and its NIC share.
//!
//! ```text
//!       0 ..   4095  indices and flags, each in a cache line of its own
//!    4096 .. 135167  commands: 1,024 entries of 128 bytes
//!  135168 .. 397311  completions: 4,096 entries of 64 bytes
//!  458752 ..         the program's data
//! ```
//! The indices count entries since the start and never wrap; they are 64-bit words, read and
//! written whole. Entry `n` is at `n` modulo the ring's length. The producer of a ring owns its
//! tail and advances it after writing entries; the consumer owns the head.

use super::{COMMAND_BYTES, COMPLETION_BYTES};

/// Number of slots for commands.
pub const COMMANDS: u64 = 1024;
/// Number of slots for completions.
pub const COMPLETIONS: u64 = 4096;

/// Offset of the index of the next command to write; owned by the program.
pub const COMMANDS_TAIL_AT: usize = 128;
/// Offset of the index of the next command to take; owned by the NIC.
pub const COMMANDS_HEAD_AT: usize = 192;
/// Offset of the index of the next completion to write; owned by the NIC.
pub const COMPLETIONS_TAIL_AT: usize = 256;
/// Offset of the index of the next completion to take; owned by the program.
pub const COMPLETIONS_HEAD_AT: usize = 320;
/// Offset of the reason to wake the NIC: 0 none, it is awake; 1 new commands; 2 also room for
/// completions. Owned by the NIC.
pub const NIC_SLEEPS_AT: usize = 384;
/// Offset of the reason to wake the program: 0 none, it is awake; 1 new completions; 2 also room
/// for commands. Owned by the program.
pub const CLIENT_SLEEPS_AT: usize = 448;
/// Offset of the virtual time in nanoseconds, in a virtual lab; owned by the NIC, as are the two
/// below.
pub const VIRTUAL_NOW_AT: usize = 512;
/// Offset of the number of the program's current turn, from 1. A turn lasts from a wake of the
/// program to its next wait; virtual time stands still meanwhile.
pub const TURN_AT: usize = 520;
/// Offset of the number of programs that have attached to this NIC so far.
pub const ATTACHMENT_AT: usize = 528;
/// Offset of the last turn that the program has ended by a wait; owned by the program, as are the
/// three below, which it writes before.
pub const WAITED_TURN_AT: usize = 576;
/// Offset of what ends the wait: see [`WaitKind`].
pub const WAIT_KIND_AT: usize = 584;
/// Offset of the virtual time in nanoseconds at which the wait ends in any case.
pub const WAIT_UNTIL_AT: usize = 592;
/// Offset of the id of the thread that uses the NIC. A thread that waits for one of its NICs uses
/// none of the others.
pub const THREAD_AT: usize = 600;
/// Offset of the ring of commands.
pub const COMMANDS_AT: usize = 4096;
/// Offset of the ring of completions.
pub const COMPLETIONS_AT: usize = COMMANDS_AT + COMMANDS as usize * COMMAND_BYTES;
/// Offset of the program's data.
pub const DATA_AT: usize = 0x70000;
/// Maximum number of data bytes.
pub const MOST_DATA: u64 = 1 << 32;

const _: () = assert!(COMPLETIONS_AT + COMPLETIONS as usize * COMPLETION_BYTES <= DATA_AT);
const _: () = assert!(COMMANDS.is_power_of_two() && COMPLETIONS.is_power_of_two());

/// What ends a program's wait in a virtual lab, before its time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum WaitKind {
    /// A completion, or room for commands if the program lacks it.
    Completion = 1,
    /// A completion at any NIC that the waiting thread uses; the time is that of a poll without
    /// result.
    Poll = 2,
    /// As for a poll; also a write to the memory of the program.
    Arrival = 3,
    /// Nothing: the program sleeps.
    Sleep = 4,
}

impl WaitKind {
    /// The kind with this number; `None` if there is none.
    pub const fn of(number: u64) -> Option<Self> {
        match number {
            1 => Some(Self::Completion),
            2 => Some(Self::Poll),
            3 => Some(Self::Arrival),
            4 => Some(Self::Sleep),
            _ => None,
        }
    }
}

/// Offset of command `index`.
pub const fn command_at(index: u64) -> usize {
    COMMANDS_AT + (index % COMMANDS) as usize * COMMAND_BYTES
}

/// Offset of completion `index`.
pub const fn completion_at(index: u64) -> usize {
    COMPLETIONS_AT + (index % COMPLETIONS) as usize * COMPLETION_BYTES
}
