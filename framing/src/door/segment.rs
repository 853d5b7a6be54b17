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

/// Offset of command `index`.
pub const fn command_at(index: u64) -> usize {
    COMMANDS_AT + (index % COMMANDS) as usize * COMMAND_BYTES
}

/// Offset of completion `index`.
pub const fn completion_at(index: u64) -> usize {
    COMPLETIONS_AT + (index % COMPLETIONS) as usize * COMPLETION_BYTES
}
