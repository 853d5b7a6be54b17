//! Packet tracing in routers: watches and their records.
//!
//! Packets have no bit to mark them. A [`Flow`] names the two NICs (network interfaces) between
//! which a packet travels, as every header does. A router that watches a flow keeps a [`Passage`]
//! of each of its packets, and the caller finds its packet by its [identity](Passage::identity),
//! such as the number that its NIC gave it. A router without a watch performs one test per packet
//! and stage.
//!
//! A [`Watch`] is bounded: it drops the oldest passages. Machines name their stages and the
//! [`QueueId`]s where packets wait.

mod outlook;
mod passage;
mod watch;

pub use outlook::{Onward, Outlook, Outlooks, Question};
pub use passage::{Candidate, Choice, Departure, Passage, Step};
pub use watch::{Opening, QueueId, Stage, Watch};

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Packets between two NICs, by the numbers that routers use: requests in one direction, responses
/// in the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Source of requests, destination of responses.
    pub from: u32,
    /// Destination of requests, source of responses.
    pub to: u32,
}

impl Flow {
    /// Destination of its responses or requests.
    #[inline]
    pub const fn destination(self, response: bool) -> u32 {
        if response { self.from } else { self.to }
    }
}

/// The records of a router so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Whether the router still watches: a watch ends after a time.
    pub armed: bool,
    /// The passages, oldest first; those of packets still inside come last.
    pub passages: Vec<Passage>,
    /// Passages dropped for lack of room.
    pub dropped: u64,
}

/// A router that can watch packets pass.
pub trait Tracing {
    /// Watches the packets of `flow`, at most until `until`. Earlier records are dropped.
    fn watch(&mut self, now: Time, flow: Flow, until: Time);

    /// The records of packets with `identity` or without one, or of all packets. Reading does not
    /// remove them.
    fn watched(&mut self, now: Time, identity: Option<u64>) -> Watched;

    /// From now on keeps only packets with `identity` or without one, and drops other records.
    fn want(&mut self, identity: u64);

    /// Stops watching, and drops all records.
    fn unwatch(&mut self);
}
