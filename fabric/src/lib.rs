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
//! | `driver` | drives endpoints: NIC and clock of each, and the domain's lock |
//! | `engine` | operations: messages between endpoints, matching, transfers; no I/O |
//! | `place` | this program's door and job |
//! | `memory`, `flags` | memory of the program, and libfabric's flags |
//!
//! `unsafe` code is in [`abi`] and `memory`. Every call ends in the engine, behind one lock per
//! domain. The engine gets calls, completions, memory and the time handed in, so that its tests run
//! several endpoints over a network in virtual time (`engine::tests`). Its parts own their fields
//! and do not refer to each other (`engine`). Progress is manual: reading a completion queue or a
//! counter moves everything in flight, and sleeps briefly after a while without work, so that
//! polling programs leave the core to NICs and routers.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod abi;
mod driver;
mod engine;
mod flags;
mod memory;
mod place;
