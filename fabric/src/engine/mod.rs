//! The operations of a domain's endpoints.
//!
//! An endpoint is a client of the NIC. Its segment holds pools of slots ([`slots`]): posted
//! receives, messages in flight, staged parts of long transfers, and buffers into which such parts
//! are fetched.
//!
//! * Messages between endpoints ([`wire`]) carry sequence numbers, are processed in order and
//!   exactly once, and are resent when their fate is unknown ([`transmit`]). So every request,
//!   atomic ones included, is safe to resend as long as the peer lives.
//! * No endpoint has more messages in flight to another than its share of the posted receives;
//!   acknowledgements are piggybacked, or sent alone.
//! * A short transfer is one message. A long one is announced, matched, and fetched in parts by
//!   block gets of the receiver, from the sender's memory into its own ([`transfers`]).
//! * Tags are matched here ([`matching`]).
//! * Silent peers that an operation depends on are probed, and given up if they do not reply
//!   ([`liveness`]).
//! * Registered memory is opened to other NICs in place ([`reach`]), so that they carry out
//!   one-sided and atomic operations ([`direct`]).
//! * Operations that NICs lack, and memory that they do not reach, become requests that the peer
//!   carries out when it makes progress ([`requests`]); atomic ones through its own NIC, so that
//!   both kinds may be mixed ([`serving`]).

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

/// Maximum number of endpoints of a domain.
const MOST_ENDPOINTS: usize = 64;

/// A domain: the state that its objects share, behind one lock.
#[derive(Debug, Default)]
pub struct Domain {
    state: Mutex<State>,
}

/// The state behind the lock.
#[derive(Debug)]
pub struct State {
    /// State that the endpoints share.
    pub shared: Shared,
    /// The endpoints.
    pub endpoints: Slab<Endpoint>,
    /// Consecutive calls without progress.
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
    /// Takes the lock; `None` if it is poisoned by a panic.
    pub fn lock(&self) -> Option<MutexGuard<'_, State>> {
        self.state.lock().ok()
    }
}

impl State {
    /// Makes progress on everything in flight. Returns whether anything moved.
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
