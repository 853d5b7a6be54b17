//! The nodes of a partition whose routers have encoded links.

use super::TerminalNode;
use crate::node::{Node, PortId, Wakeup};
use crate::sim::direct::model::CycleModel;
use crate::time::Time;

pub(super) enum EncodedNode<M: CycleModel> {
    Router(Box<M::Router>),
    /// A terminal behind a link.
    TerminalNode(Box<TerminalNode<M>>),
}

macro_rules! each {
    ($member:expr, $node:ident => $call:expr) => {
        match $member {
            EncodedNode::Router($node) => $call,
            EncodedNode::TerminalNode($node) => $call,
        }
    };
}

impl<M: CycleModel> Node for EncodedNode<M> {
    /// Router events are discarded: the run's own checkers inspect all of the state.
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
            Self::TerminalNode(_) => None,
        }
    }
}

impl<M: CycleModel> EncodedNode<M> {
    pub(super) fn router(&self) -> Option<&M::Router> {
        match self {
            Self::Router(router) => Some(router),
            Self::TerminalNode(_) => None,
        }
    }

    pub(super) fn end(&self, port: PortId) -> Option<&M::End> {
        match self {
            Self::Router(router) => M::end(router, port),
            Self::TerminalNode(endpoint) => endpoint.end(port),
        }
    }
}
