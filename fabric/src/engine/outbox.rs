//! Commands on their way to the NIC, in order.

use std::collections::VecDeque;

use phitwire_client::door::{Access, Command, Local, Remote, Request};

use super::endpoint::Endpoint;
use super::slots::{self, PROBES_AT};
use super::wire::SLOT;

/// Names of commands: a kind, and a number below it.
pub mod names {
    pub const RECEIVE: u64 = 1 << 40;
    pub const SEND: u64 = 2 << 40;
    pub const FETCH: u64 = 3 << 40;
    pub const REGISTER: u64 = 4 << 40;
    pub const PROBE: u64 = 5 << 40;
    pub const DIRECT: u64 = 6 << 40;
    pub const DEREGISTER: u64 = 7 << 40;
    pub const KINDS: u64 = !0 << 40;
}

/// A command that the NIC has not taken yet. Slots stand for what is encoded when it is taken, so
/// that an operation that has failed in between is not carried out.
#[derive(Clone, Copy, Debug)]
pub enum Outgoing {
    /// A receive, by slot.
    Receive(usize),
    /// A message, by slot.
    Send(usize),
    /// A fetch, by slot.
    Fetch(usize),
    /// A piece of a one-sided operation, by slot.
    Direct(usize),
    /// A probe of a peer.
    Probe(usize),
    /// Opens memory to other NICs; with the number in the command's name.
    Register(u64, Local, Access),
    /// Closes it; with the number in the command's name, and the handle.
    Deregister(u64, u16),
}

/// The queue of an endpoint's commands.
#[derive(Debug, Default)]
pub struct Outbox {
    queue: VecDeque<Outgoing>,
}

impl Outbox {
    pub(super) fn push(&mut self, command: Outgoing) {
        self.queue.push_back(command);
    }
}

impl Endpoint {
    /// The oldest command that the NIC has not taken; [`Self::command_taken`] removes it.
    pub fn poll_command(&mut self) -> Option<Command<'_>> {
        while let Some(&next) = self.outbox.queue.front()
            && self.encode(next).is_none()
        {
            self.outbox.queue.pop_front();
        }
        self.encode(*self.outbox.queue.front()?)
    }

    /// The NIC has taken the command of [`Self::poll_command`].
    pub fn command_taken(&mut self) {
        self.outbox.queue.pop_front();
    }

    /// `None` if the operation has ended in between.
    fn encode(&self, command: Outgoing) -> Option<Command<'_>> {
        let (kind, number, request) = match command {
            Outgoing::Receive(slot) => {
                let into = Local {
                    offset: slots::receive_at(slot),
                    bytes: SLOT as u64,
                };
                (names::RECEIVE, slot as u64, Request::Receive { into })
            }
            Outgoing::Send(slot) => (names::SEND, slot as u64, self.send_request(slot)?),
            Outgoing::Fetch(slot) => {
                let fetch = self.fetches.get(slot)?;
                let into = fetch.into.unwrap_or(Local {
                    offset: slots::fetch_at(slot),
                    bytes: fetch.bytes as u64,
                });
                let request = Request::BlockGet {
                    from: fetch.from,
                    into,
                    fence: false,
                };
                (names::FETCH, slot as u64, request)
            }
            Outgoing::Direct(slot) => (names::DIRECT, slot as u64, self.direct_request(slot)?),
            Outgoing::Probe(peer) => (names::PROBE, peer as u64, self.probe_request(peer)),
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

    fn send_request(&self, slot: usize) -> Option<Request<'static>> {
        let sending = self.sends.get(slot)?;
        let to = self.peers.all[sending.peer].address;
        let from = Local {
            offset: slots::send_at(slot),
            bytes: sending.bytes as u64,
        };
        Some(Request::Send {
            processor: to.processor,
            member: to.member,
            from,
        })
    }

    /// Gets one word of the memory that the peer's program has opened.
    fn probe_request(&self, peer: usize) -> Request<'static> {
        let to = self.peers.all[peer].address;
        let from = Remote {
            processor: to.processor,
            handle: to.handle(),
            offset: 0,
        };
        let into = Local {
            offset: PROBES_AT,
            bytes: 4,
        };
        Request::Get {
            from,
            into,
            ordered: false,
        }
    }
}
