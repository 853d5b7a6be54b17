//! A libfabric provider: MPI and one-sided programs, unmodified, over a network interface of
//! phitwire.
//!
//! libfabric loads it from `FI_PROVIDER_PATH`, where its name ends in `fi.so`. It offers reliable
//! end points without connections (`FI_EP_RDM`) with messages, tagged messages, one-sided operations,
//! atomic operations and counters, to every libfabric from 1.17 on.
//! `docs/guide/src/mpi.md` in the guide says how programs are run with it.
//!
//! | module | what it is |
//! |---|---|
//! | [`abi`] | libfabric's structures and calls, and all `unsafe` code |
//! | [`place`] | which door is this program's, and which job |
//! | [`engine`] | what is done with operations: messages between end points, matching, transfers |
//!
//! Every call ends in the [`engine`] below one lock per domain. Progress is manual: whoever reads a
//! completion queue or a counter moves all that is under way, and sleeps a little when there has been
//! nothing to do for a while, so that polling programs leave the processor to network interfaces and
//! routers.
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod abi;
pub mod engine;
pub mod place;
