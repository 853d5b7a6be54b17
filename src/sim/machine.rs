//! The nodes of a simulated network: routers, network interfaces, and whatever a test brings along.

use super::direct::Endpoint;
use crate::link::{InputQueue, Lcb};
use crate::nic::{BlackwidowNic, NicEvent};
use crate::node::{Node, PortId, Wakeup};
use crate::router::yarc::{RouterEvent, Yarc};
use crate::time::Time;

/// A node of any kind.
pub enum Machine {
    /// A router chip.
    Router(Box<Yarc>),
    /// A network interface.
    Nic(Box<BlackwidowNic>),
    /// A processor's terminals behind encoded links.
    Endpoint(Box<Endpoint>),
    /// Something else, whose events are texts.
    User(Box<dyn Node<Event = String> + Send>),
}

/// What a node of any kind reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineEvent {
    /// From a router.
    Router(RouterEvent),
    /// From a network interface.
    Nic(NicEvent),
    /// From something else.
    User(String),
}

macro_rules! each {
    ($machine:expr, $node:ident => $call:expr) => {
        match $machine {
            Machine::Router($node) => $call,
            Machine::Nic($node) => $call,
            Machine::Endpoint($node) => $call,
            Machine::User($node) => $call,
        }
    };
}

impl Node for Machine {
    type Event = MachineEvent;

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

    fn poll_event(&mut self) -> Option<MachineEvent> {
        match self {
            Self::Router(node) => node.poll_event().map(MachineEvent::Router),
            Self::Nic(node) => node.poll_event().map(MachineEvent::Nic),
            Self::Endpoint(_) => None,
            Self::User(node) => node.poll_event().map(MachineEvent::User),
        }
    }
}

impl Machine {
    /// The router, if it is one.
    pub fn router(&self) -> Option<&Yarc> {
        match self {
            Self::Router(router) => Some(router),
            _ => None,
        }
    }

    /// The router, if it is one, to command it.
    pub fn router_mut(&mut self) -> Option<&mut Yarc> {
        match self {
            Self::Router(router) => Some(router),
            _ => None,
        }
    }

    /// The network interface, if it is one.
    pub fn nic(&self) -> Option<&BlackwidowNic> {
        match self {
            Self::Nic(nic) => Some(nic),
            _ => None,
        }
    }

    /// The network interface, if it is one, to command it.
    pub fn nic_mut(&mut self) -> Option<&mut BlackwidowNic> {
        match self {
            Self::Nic(nic) => Some(nic),
            _ => None,
        }
    }

    /// The link control block of a port, if it has one.
    pub fn lcb(&self, port: PortId) -> Option<&Lcb> {
        match self {
            Self::Router(router) => router.lcb(port),
            Self::Nic(nic) => nic.lcb(port),
            Self::Endpoint(endpoint) => endpoint.lcb(port),
            Self::User(_) => None,
        }
    }

    /// Lets `command` act on the link control block of a port; `None` if it has none.
    pub fn with_lcb<R>(
        &mut self,
        now: Time,
        port: PortId,
        command: impl FnOnce(&mut Lcb, &mut InputQueue) -> R,
    ) -> Option<R> {
        match self {
            Self::Router(router) => router.with_lcb(now, port, command),
            Self::Nic(nic) => nic.lcb_mut(port).map(|(lcb, input)| command(lcb, input)),
            Self::Endpoint(_) | Self::User(_) => None,
        }
    }
}
