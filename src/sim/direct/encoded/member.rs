//! The nodes of a partition whose routers have encoded links.

use super::Endpoint;
use crate::node::{Node, PortId, Wakeup};
use crate::sim::direct::family::Parts;
use crate::time::Time;

/// A node of either kind.
pub(super) enum Member<F: Parts> {
    /// A router chip.
    Router(Box<F::Router>),
    /// A terminal behind a link.
    Endpoint(Box<Endpoint<F>>),
}

macro_rules! each {
    ($member:expr, $node:ident => $call:expr) => {
        match $member {
            Member::Router($node) => $call,
            Member::Endpoint($node) => $call,
        }
    };
}

impl<F: Parts> Node for Member<F> {
    /// What routers report is not asked for: the run's own checkers look at all of it.
    type Event = ();

    fn ports(&self) -> usize {
        each!(self, node => node.ports())
    }

    fn handle_frame(&mut self, now: Time, port: PortId, bytes: &[u8]) {
        each!(self, node => node.handle_frame(now, port, bytes));
    }

    fn advance(&mut self, now: Time) {
        each!(self, node => node.advance(now));
    }

    fn ready_ports(&self) -> u64 {
        each!(self, node => node.ready_ports())
    }

    fn poll_frame(&mut self, now: Time, port: PortId, buf: &mut [u8]) -> Option<usize> {
        each!(self, node => node.poll_frame(now, port, buf))
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        each!(self, node => node.next_wakeup())
    }

    fn poll_event(&mut self) -> Option<()> {
        match self {
            Self::Router(node) => node.poll_event().map(drop),
            Self::Endpoint(_) => None,
        }
    }
}

impl<F: Parts> Member<F> {
    /// The router, if it is one.
    pub(super) fn router(&self) -> Option<&F::Router> {
        match self {
            Self::Router(router) => Some(router),
            Self::Endpoint(_) => None,
        }
    }

    /// The link end of a port, if it has one.
    pub(super) fn end(&self, port: PortId) -> Option<&F::End> {
        match self {
            Self::Router(router) => F::end(router, port),
            Self::Endpoint(endpoint) => endpoint.end(port),
        }
    }
}
