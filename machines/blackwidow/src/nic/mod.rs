//! The NIC of a BlackWidow processor.
//!
//! A [`BlackWidowNic`] connects a processor to its 1 to 4 links into the network, one per slice
//! (BlackWidow sec. 2.2). It turns writes and reads of other processors' memories into request
//! packets and matches the responses ([`outstanding`](Tid)), serves the requests of others from
//! the local [`Memory`](phitwire::nic::Memory), and runs self-checking synthetic traffic
//! ([`TrafficSpec`](phitwire::nic::TrafficSpec)).
//!
//! - Requests travel on virtual channel 0, routed deterministically with address bits 20:6 as hash
//!   bits, so that requests to one address stay in order; responses travel on virtual channel 1,
//!   routed adaptively (BlackWidow sec. 4.2, 5 and 7.8.2).
//! - The slice of a request is a hash of its address above the 64-byte block that shares its hash
//!   bits, so order per address also holds across slices ([`slice_of`]). The response takes the
//!   slice of its request.
//! - Responses are always consumed. Requests are consumed only while their response can be sent or
//!   queued: when responses are held up, requests back up into the network, and since responses
//!   never wait for requests, there is no deadlock (BlackWidow sec. 4.2).
//! - A packet whose end says `soft_error` is discarded here, at its destination (BlackWidow
//!   sec. 4.3); the requester times out.
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

/// The messages that runs may use.
pub const ABILITIES: Abilities = Abilities::puts_and_gets(32);

#[cfg(test)]
mod nic_tests;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod test_bench;
