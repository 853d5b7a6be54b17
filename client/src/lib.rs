//! A program's way into a network interface of phitwire: puts, gets, atomic operations, block
//! transfers, messages.
//!
//! - [`Nic`]: a network interface that the program is attached to. Commands are posted and flushed,
//!   completions polled or waited for.
//! - [`attach`]: how a program gets in by the door, a Unix socket, and why it may not.
//! - [`ring`]: both ends of the rings of commands and completions: who may write what when, how
//!   room is kept, and how sleepers are woken.
//! - [`mapping`]: the shared memory, which the other side may change at any time.
//! - [`descriptors`]: what comes over the socket, and the events that wake.
//! - [`patience`]: time limits that leave out standstills of the program itself.
//! - [`ffi`]: the interface for C, `include/phitwire.h`.
//! - [`door`]: the formats of commands and completions.
//!
//! `docs/guide/src/door.md` in the guide says what a program can do, and who may do what.
//!
//! # Order and visibility
//! Commands are carried out in any order, unless they ask for order. A put is in the memory of its
//! target when its completion is there; a program that is told so by an event
//! ([`door::Completion::Landed`], [`door::Completion::Told`]), or that sees a flag by
//! [`Nic::word`] with `Acquire`, sees what the network interface wrote to its memory before. The
//! bytes of a put or get are copied word by word: who looks while they come may see some.
//!
//! # Trust
//! The memory cannot shrink under anyone's feet, entries are copied out before they are looked at,
//! and indices are checked: nothing that one side writes there makes the other panic or reach
//! outside of it. A program on the other hand can always keep the events that wake it and its
//! network interface busy, as both have them.
//!
//! The whole in an example, from the README:
#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod attach;
pub mod descriptors;
pub mod ffi;
pub mod mapping;
pub mod nic;
pub mod patience;
pub mod ring;

pub use attach::{AttachError, Options};
pub use mapping::{Mapping, OutOfRange};
pub use nic::{Error, Nic};
pub use phitwire_framing::door;
