//! A libfabric provider: unmodified MPI and one-sided programs over a NIC of phitwire.
//!
//! libfabric loads it from `FI_PROVIDER_PATH`, where its name ends in `fi.so`. It offers reliable
//! unconnected endpoints (`FI_EP_RDM`) with messages, tagged messages, one-sided operations, atomic
//! operations and counters, to every libfabric from 1.17 on. `docs/guide/src/mpi.md` in the guide
//! describes how to run programs with it.
//!
//! | module | contents |
//! |---|---|
//! | [`abi`] | libfabric's structures and calls, and all `unsafe` code |
//! | [`place`] | this program's door and job |
//! | [`engine`] | operations: messages between endpoints, matching, transfers |
//!
//! Every call ends in the [`engine`], behind one lock per domain. Progress is manual: reading a
//! completion queue or a counter moves everything in flight, and sleeps briefly after a while
//! without work, so that polling programs leave the core to NICs and routers.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod abi;
pub mod engine;
pub mod place;
