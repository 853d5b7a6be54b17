//! Where things are in the memory that a program and its network interface share.
//!
//! ```text
//!       0 ..   4095  indices and flags, each in a cache line of its own
//!    4096 .. 135167  commands: 1,024 entries of 128 bytes
//!  135168 .. 397311  completions: 4,096 entries of 64 bytes
//!  458752 ..         the program's data
//! ```
//! The indices count entries since the beginning and never turn back; they are 64-bit words that
//! are read and written whole. Entry `n` is at `n` modulo the ring's length. Who fills a ring owns
//! its tail and publishes it behind the entries; who empties it owns the head.

use super::{COMMAND_BYTES, COMPLETION_BYTES};

/// Commands that the ring holds.
pub const COMMANDS: u64 = 1024;
/// Completions that the ring holds.
pub const COMPLETIONS: u64 = 4096;

/// Index of the first command that is not written. The program's.
pub const COMMANDS_TAIL_AT: usize = 128;
/// Index of the first command that was not taken. The network interface's.
pub const COMMANDS_HEAD_AT: usize = 192;
/// Index of the first completion that is not written. The network interface's.
pub const COMPLETIONS_TAIL_AT: usize = 256;
/// Index of the first completion that was not taken. The program's.
pub const COMPLETIONS_HEAD_AT: usize = 320;
/// What the network interface wants to be woken for: 0 nothing, it is awake; 1 new commands; 2 also
/// room for completions. Its own.
pub const NIC_SLEEPS_AT: usize = 384;
/// What the program wants to be woken for: 0 nothing, it is awake; 1 new completions; 2 also room
/// for commands. Its own.
pub const CLIENT_SLEEPS_AT: usize = 448;
/// The first command.
pub const COMMANDS_AT: usize = 4096;
/// The first completion.
pub const COMPLETIONS_AT: usize = COMMANDS_AT + COMMANDS as usize * COMMAND_BYTES;
/// The program's data.
pub const DATA_AT: usize = 0x70000;
/// Most bytes of data.
pub const MOST_DATA: u64 = 1 << 32;

const _: () = assert!(COMPLETIONS_AT + COMPLETIONS as usize * COMPLETION_BYTES <= DATA_AT);
const _: () = assert!(COMMANDS.is_power_of_two() && COMPLETIONS.is_power_of_two());

/// Where command `index` is.
pub const fn command_at(index: u64) -> usize {
    COMMANDS_AT + (index % COMMANDS) as usize * COMMAND_BYTES
}

/// Where completion `index` is.
pub const fn completion_at(index: u64) -> usize {
    COMPLETIONS_AT + (index % COMPLETIONS) as usize * COMPLETION_BYTES
}
