//! A program's interface to a phitwire network interface (NIC): puts, gets, atomic operations,
//! block transfers, messages.
//!
//! - [`Nic`]: a NIC that the program is attached to. Commands are posted and flushed; completions
//!   are polled or waited for.
//! - [`attach`]: attaching through the door, a Unix socket, and the reasons of a refusal.
//! - [`doors`]: the doors of a lab.
//! - [`ring`]: both ends of the rings of commands and completions, with their rules for writing,
//!   reserving room and waking sleepers.
//! - [`mapping`]: the shared memory, which the other side may change at any time.
//! - [`descriptors`]: passing descriptors over the socket, and the events that wake sleepers.
//! - [`patience`]: time limits that exclude suspensions of the program.
//! - [`ffi`]: the C interface, `include/phitwire.h`.
//! - [`door`]: the formats of commands and completions.
//!
//! `docs/guide/src/door.md` in the guide describes what a program can do and its rights.
//!
//! # Order and visibility
//! Commands execute in any order, unless they request order. When a put completes, its data are in
//! the target's memory. A program that gets an event ([`door::Completion::PutEvent`],
//! [`door::Completion::BlockEvent`]), or that sees a flag by [`Nic::word`] with `Acquire`, sees
//! everything that the NIC wrote to its memory before. The bytes of a put or get are copied word by
//! word: a concurrent reader may see some of them.
//!
//! # Trust
//! The memory cannot shrink while it is mapped, entries are copied before they are parsed, and
//! indices are checked. So neither side can make the other panic or access memory outside of the
//! segment. But a program can always trigger the events that wake it and its NIC, since both hold
//! them.
//!
//! A complete example, from the README:
#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod attach;
pub mod descriptors;
pub mod doors;
pub mod ffi;
pub mod mapping;
pub mod nic;
pub mod patience;
pub mod ring;
mod turns;

pub use attach::{AttachError, Options};
pub use mapping::{Mapping, OutOfRange};
pub use nic::{Error, Nic};
pub use phitwire_framing::door;
pub use turns::{VirtualClock, pause_after};
