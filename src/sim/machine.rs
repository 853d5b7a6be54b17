//! The nodes of a partition whose routers have encoded links.

use super::direct::Endpoint;
use crate::link::Lcb;
use crate::node::{Node, PortId, Wakeup};
use crate::router::yarc::Yarc;
use crate::time::Time;

/// A node of either kind.
pub enum Machine {
    /// A router chip.
    Router(Box<Yarc>),
    /// A processor's terminals behind encoded links.
    Endpoint(Box<Endpoint>),
}

macro_rules! each {
    ($machine:expr, $node:ident => $call:expr) => {
        match $machine {
            Machine::Router($node) => $call,
            Machine::Endpoint($node) => $call,
        }
    };
}

impl Node for Machine {
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

impl Machine {
    /// The router, if it is one.
    pub fn router(&self) -> Option<&Yarc> {
        match self {
            Self::Router(router) => Some(router),
            Self::Endpoint(_) => None,
        }
    }

    /// The link control block of a port, if it has one.
    pub fn lcb(&self, port: PortId) -> Option<&Lcb> {
        each!(self, node => node.lcb(port))
    }
}
