//! What became of a packet in a router: the watch that a router has while somebody asks, and what
//! it writes down.
//!
//! Packets have no bit to mark them by. A [`Flow`] says between which two network interfaces a
//! packet goes, which every header tells as far as routers need it; a router that watches a flow
//! keeps a [`Passage`] of each of its packets, and who asked finds the one he means by its
//! [identity](Passage::identity), such as the number that its network interface gave it. A router
//! that watches nothing asks itself so once per packet and stage.
//!
//! A [`Watch`] is bounded: of the passages that nobody fetches, the oldest go. Machines say by which
//! [`Place`] of theirs a packet waits, and what their stages are called.

mod outlook;
mod passage;
mod watch;

pub use outlook::{Onward, Outlook, Outlooks, Question};
pub use passage::{Candidate, Choice, Departure, Passage, Step};
pub use watch::{Opening, Place, Stage, Watch};

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Packets between two network interfaces: requests one way, their answers the other. By the numbers
/// that routers know them by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Where requests come from, and answers go to.
    pub from: u32,
    /// Where requests go to, and answers come from.
    pub to: u32,
}

impl Flow {
    /// Where its packets of that kind go.
    #[inline]
    pub const fn destination(self, response: bool) -> u32 {
        if response { self.from } else { self.to }
    }
}

/// What a router has written down so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Whether it still watches: it stops by itself after a time.
    pub armed: bool,
    /// The passages, oldest first; those of packets that are still inside come last.
    pub passages: Vec<Passage>,
    /// Passages that were dropped for want of room.
    pub dropped: u64,
}

/// A router that can watch packets pass.
pub trait Tracing {
    /// Watches the packets of `flow` until `until` at the latest. What was watched before is
    /// forgotten.
    fn watch(&mut self, now: Time, flow: Flow, until: Time);

    /// What has been written down of packets with that identity, or of all. It stays there.
    fn watched(&mut self, now: Time, identity: Option<u64>) -> Watched;

    /// Keeps packets of that identity alone from now on, and of those that it has written down.
    fn want(&mut self, identity: u64);

    /// Watches no more, and forgets all.
    fn unwatch(&mut self);
}
