//! Endpoints: state machines between a program's calls and the commands and completions of a NIC.
//!
//! An endpoint does no I/O. Its owner ([`crate::driver`], or a test) passes in the segment's
//! memory, completions and the time, and takes commands out:
//!
//! 1. [`Endpoint::handle_completion`] for each completion, then [`Endpoint::advance`];
//! 2. [`Endpoint::handle_timeout`] when all completions so far have been handled;
//! 3. [`Endpoint::poll_command`] and [`Endpoint::command_taken`] while the NIC takes commands, also
//!    after every call of the program.
//!
//! Its parts own their fields and do not refer to each other. They share the [`Core`], which each
//! borrows while it works. A part leaves its requests to other parts there, as
//! [`Action`](super::action::Action)s, and the endpoint passes these on before it returns to its
//! caller.

mod calls;
mod commands;
#[cfg(test)]
mod inspect;
mod routes;

use std::time::Duration;

use super::core::{Core, Segment};
use super::liveness::Liveness;
use super::matching::Matching;
use super::offers::Offers;
use super::one_sided::OneSided;
use super::pulls::Pulls;
use super::registration::Registration;
use super::renewal::Renewal;
use super::requests::Requests;
use super::serving::Serving;
use super::session::Session;
use super::shared::Binds;
use super::wire::Address;

/// Maximum number of operations that wait or are in flight.
pub const MOST_OPERATIONS: usize = 1024;

#[derive(Debug)]
pub struct Endpoint {
    /// The requested capabilities.
    pub caps: u64,
    /// Default flags of operations: sends, receives.
    pub op_flags: [u64; 2],
    core: Core,
    session: Session,
    matching: Matching,
    offers: Offers,
    pulls: Pulls,
    requests: Requests,
    serving: Serving,
    one_sided: OneSided,
    renewal: Renewal,
    registration: Registration,
    liveness: Liveness,
}

impl Endpoint {
    /// An endpoint with this address, which keeps `receives` receives posted. `segment` holds
    /// its slots, of which the NIC has opened the stages to peers under the address's handle;
    /// `reaches_own` says whether the NIC also reaches the program's own memory.
    pub fn new(
        address: Address,
        receives: usize,
        segment: Box<dyn Segment>,
        reaches_own: bool,
    ) -> Self {
        let mut core = Core::new(address, segment, reaches_own);
        Self {
            caps: 0,
            op_flags: [0; 2],
            session: Session::new(&mut core, receives),
            core,
            matching: Matching::default(),
            offers: Offers::default(),
            pulls: Pulls::default(),
            requests: Requests::default(),
            serving: Serving::default(),
            one_sided: OneSided::default(),
            renewal: Renewal::default(),
            registration: Registration::default(),
            liveness: Liveness::default(),
        }
    }

    /// Whether all messages have arrived, except those to lost peers, and all operations on opened
    /// memory have ended. Transfers that peers have not fetched yet do not count.
    pub fn is_drained(&self) -> bool {
        self.session.is_drained(&self.core) && self.one_sided.len() == 0
    }

    /// Whether the NIC has ended.
    pub const fn is_gone(&self) -> bool {
        self.core.is_gone
    }

    pub const fn address(&self) -> Address {
        self.core.address
    }

    /// The objects that the endpoint is bound to.
    pub const fn binds(&self) -> &Binds {
        &self.core.binds
    }

    /// The objects that the endpoint is bound to.
    pub const fn binds_mut(&mut self) -> &mut Binds {
        &mut self.core.binds
    }

    /// Bytes of room below which a multi-receive buffer is full.
    pub const fn least_room(&self) -> usize {
        self.matching.least_room()
    }

    /// Sets the bytes of room below which a multi-receive buffer is full.
    pub const fn set_least_room(&mut self, bytes: usize) {
        self.matching.set_least_room(bytes);
    }

    /// Sets how long a peer may leave probes unanswered; zero: no limit.
    pub const fn wait_for(&mut self, patience: Duration) {
        self.core.clock.wait_for(patience);
    }

    /// Begins to check whether the NIC has a receive left for this endpoint.
    pub fn begin_check(&mut self) {
        self.session.receives.begin_check(&mut self.core);
    }

    /// The outcome of the check; `None` until the NIC has ended it.
    pub const fn has_receives(&self) -> Option<bool> {
        self.session.receives.has_any()
    }

    /// The latest peer that appears to be of another job, once.
    pub const fn take_foreign(&mut self) -> Option<Address> {
        self.liveness.foreign.take()
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn deadline(&self) -> Duration {
        self.liveness.deadline()
    }
}
