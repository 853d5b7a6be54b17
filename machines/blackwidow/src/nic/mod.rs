//! The NIC of a BlackWidow processor.
//!
//! A [`BlackWidowNic`] connects a processor to its 1 to 4 links into the network, one per slice
//! (BlackWidow sec. 2.2). It turns writes and reads of other processors' memories into request
//! packets and matches the responses ([`outstanding`](Tid)), serves the requests of others from the
//! local [`Memory`](phitwire::nic::Memory), and runs self-checking synthetic traffic
//! ([`TrafficSpec`](phitwire::nic::TrafficSpec)).
//!
//! - Requests use virtual channel 0 and deterministic routing with address bits 20:6 as hash bits,
//!   so that requests to one address stay in order. Responses use virtual channel 1 and adaptive
//!   routing (BlackWidow sec. 4.2, 5 and 7.8.2).
//! - The slice of a request is a hash of its address above the 64-byte block whose requests share
//!   their hash bits, so that the order per address holds across slices too ([`slice_of`]). A
//!   response takes the slice of its request.
//! - Responses are always consumed. Requests are consumed only while their responses can be sent or
//!   queued. If responses are held up, requests back up into the network; responses never wait for
//!   requests, so there is no deadlock (BlackWidow sec. 4.2).
//! - A packet that ends with `soft_error` is discarded here, at its destination (BlackWidow sec.
//!   4.3), and its requester times out.
//!
//! Nothing is allocated per message.

use phitwire::nic::Abilities;

mod config;
mod counters;
mod device;
mod node;
mod outstanding;
mod port;
mod requester;
mod responder;

pub use config::{MAX_PROCESSOR, MAX_SLICES, NicConfig, NicConfigBuilder, NicConfigError};
pub use counters::NicCounters;
pub use node::{BlackWidowNic, NicEvent};
pub use outstanding::{MAX_OUTSTANDING, Tid};
pub use phitwire_framing::yarc::memory::{Request, Status};
pub use requester::{Completion, Outcome, PostError, slice_of};

/// The message sizes and operations of runs.
pub const ABILITIES: Abilities = Abilities::puts_and_gets(32);

#[cfg(test)]
mod nic_tests;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod test_bench;
