//! What is done with the operations of a domain's end points.
//!
//! An end point is a client of the network interface. Its segment has pools of posted receives, of
//! messages on their way, of staged parts of long transfers, and of places where such parts are
//! fetched to ([`slots`]).
//!
//! * Messages between end points ([`wire`]) have sequence numbers, are carried out in their order,
//!   each once, and are sent again where it is not known whether they arrived ([`transmit`]). So all
//!   requests, atomic ones too, are safe to send again as long as the other end lives.
//! * Nobody has more messages on their way to an end point than its share of the posted receives;
//!   acknowledgements go back with other messages, or alone.
//! * Short transfers go in one message. A long one is announced, matched, and then fetched in parts by
//!   block gets of the receiver, from the sender's memory into its own ([`transfers`]).
//! * Tags are matched here ([`matching`]).
//! * Those who are waited for and say nothing are asked for a sign of life, and given up when there
//!   is none ([`liveness`]).
//! * Registered memory is opened to other network interfaces where it is ([`reach`]), so that
//!   one-sided and atomic operations are theirs ([`direct`]).
//! * Operations that they do not have, and memory that they do not reach, are requests that the
//!   other end carries out when it makes progress ([`requests`]); atomic ones by its own network
//!   interface, so that both kinds go together ([`serving`]).

pub mod direct;
pub mod elements;
pub mod endpoint;
pub mod liveness;
pub mod matching;
pub mod peers;
pub mod reach;
pub mod requests;
pub mod serving;
pub mod shared;
pub mod slots;
pub mod transfers;
pub mod transmit;
pub mod wire;

use std::sync::{Mutex, MutexGuard};

use endpoint::Endpoint;
use shared::Shared;
use slots::Slab;

/// Most end points of a domain.
const MOST_ENDPOINTS: usize = 64;

/// A domain: what its objects share, below one lock.
#[derive(Debug, Default)]
pub struct Domain {
    state: Mutex<State>,
}

/// What is below the lock.
#[derive(Debug)]
pub struct State {
    /// What end points share.
    pub shared: Shared,
    /// The end points.
    pub endpoints: Slab<Endpoint>,
    /// Calls in a row that have moved nothing.
    pub idle: u32,
}

impl Default for State {
    fn default() -> Self {
        Self {
            shared: Shared::default(),
            endpoints: Slab::new(MOST_ENDPOINTS),
            idle: 0,
        }
    }
}

impl Domain {
    /// Takes the lock; `None` after a panic below it.
    pub fn lock(&self) -> Option<MutexGuard<'_, State>> {
        self.state.lock().ok()
    }
}

impl State {
    /// Moves all that is under way; whether anything has moved.
    pub fn progress(&mut self) -> bool {
        let mut moved = false;
        for endpoint in self.endpoints.iter_mut() {
            moved |= endpoint.progress(&mut self.shared);
        }
        self.idle = if moved {
            0
        } else {
            self.idle.saturating_add(1)
        };
        moved
    }
}

#[cfg(test)]
mod tests;
