//! The commands of an endpoint, encoded when the NIC takes them.

use phitwire_client::door::{Command, Local, Request};

use super::super::liveness::probe_request;
use super::super::outbox::{Outgoing, names};
use super::super::slots;
use super::super::wire::SLOT;
use super::Endpoint;

impl Endpoint {
    /// The oldest command that the NIC has not taken; [`Self::command_taken`] removes it.
    pub fn poll_command(&mut self) -> Option<Command<'_>> {
        debug_assert!(self.core.actions.is_empty(), "calls leave no actions");
        while self.encode(self.core.outbox.front()?).is_none() {
            self.core.outbox.pop();
        }
        self.encode(self.core.outbox.front()?)
    }

    /// Removes the command that [`Self::poll_command`] returned, since the NIC has taken it.
    pub fn command_taken(&mut self) {
        self.core.outbox.pop();
    }

    /// Returns `None` if the operation has already ended.
    fn encode(&self, command: Outgoing) -> Option<Command<'_>> {
        let (kind, number, request) = match command {
            Outgoing::Receive(slot) => {
                let into = Local {
                    offset: slots::receive_at(slot),
                    bytes: SLOT as u64,
                };
                (names::RECEIVE, slot as u64, Request::Receive { into })
            }
            Outgoing::Check => (names::CHECK, 0, Request::CancelReceive),
            Outgoing::Send(slot) => {
                let request = self.session.request(&self.core, slot)?;
                (names::SEND, slot as u64, request)
            }
            Outgoing::Fetch(slot) => (names::FETCH, slot as u64, self.pulls.request(slot)?),
            Outgoing::Direct(slot) => (names::DIRECT, slot as u64, self.one_sided.request(slot)?),
            Outgoing::Probe(peer) => (names::PROBE, peer as u64, probe_request(&self.core, peer)),
            Outgoing::Register(number, part, access) => {
                (names::REGISTER, number, Request::Register { part, access })
            }
            Outgoing::Deregister(number, handle) => {
                (names::DEREGISTER, number, Request::Deregister { handle })
            }
        };
        let name = kind | number;
        Some(Command { name, request })
    }
}
