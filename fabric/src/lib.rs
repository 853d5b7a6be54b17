//! A libfabric provider: unmodified MPI and one-sided programs over a NIC of phitwire.
//!
//! libfabric loads it from `FI_PROVIDER_PATH`, where its name ends in `fi.so`. It offers reliable
//! unconnected endpoints (`FI_EP_RDM`) with messages, tagged messages, one-sided operations, atomic
//! operations and counters, to every libfabric from 1.17 on. `docs/guide/src/mpi.md` in the guide
//! describes how to run programs with it.
//!
//! | module | contents |
//! |---|---|
//! | [`abi`] | libfabric's structures and calls |
//! | `domain` | endpoints and their shared state, behind one lock; sleeping callers |
//! | `driver` | runs an endpoint with its NIC and the clock |
//! | `wait` | the descriptors on which callers sleep |
//! | `limit` | time limits, in virtual labs of virtual time |
//! | `progress` | the thread of domains with automatic progress |
//! | `event_queue` | events of the program; no I/O |
//! | `engine` | operations: messages between endpoints, matching, transfers; no I/O |
//! | `attach_target` | this program's door and job |
//! | `memory`, `flags` | memory of the program, and libfabric's flags |
//!
//! `unsafe` code is in [`abi`] and `memory`. Every call ends in the engine, behind one lock per
//! domain. Calls, completions, memory and the time are passed to the engine, so that its tests can
//! run several endpoints over a network in virtual time (`engine::tests`). Its parts own their
//! fields and do not refer to each other (`engine`). Progress is manual by default: reading a
//! completion queue or a counter makes progress on everything in flight, and sleeps briefly after a
//! while without work, so that polling programs leave the core to NICs and routers. If a program
//! requests automatic progress, a thread of the domain does the same under the same lock.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod abi;
mod attach_target;
mod domain;
mod driver;
mod engine;
mod event_queue;
#[cfg(test)]
#[path = "../../client/tests/fake/mod.rs"]
mod fake;
mod flags;
mod limit;
mod memory;
mod progress;
mod wait;
