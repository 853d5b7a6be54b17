//! The nodes of a simulated dragonfly.

use crate::link::{AriesInput, AriesLcb};
use crate::nic::aries::{AriesNic, AriesNicEvent};
use crate::node::{Node, PortId, Wakeup};
use crate::router::aries::{Aries, AriesEvent};
use crate::time::Time;

/// A node of a dragonfly.
#[derive(Debug)]
pub enum AriesMachine {
    /// A router chip.
    Router(Box<Aries>),
    /// A network interface.
    Nic(Box<AriesNic>),
}

/// What a node of a dragonfly reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AriesMachineEvent {
    /// From a router.
    Router(AriesEvent),
    /// From a network interface.
    Nic(AriesNicEvent),
}

macro_rules! each {
    ($machine:expr, $node:ident => $call:expr) => {
        match $machine {
            AriesMachine::Router($node) => $call,
            AriesMachine::Nic($node) => $call,
        }
    };
}

impl Node for AriesMachine {
    type Event = AriesMachineEvent;

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

    fn poll_event(&mut self) -> Option<AriesMachineEvent> {
        match self {
            Self::Router(node) => node.poll_event().map(AriesMachineEvent::Router),
            Self::Nic(node) => node.poll_event().map(AriesMachineEvent::Nic),
        }
    }
}

impl AriesMachine {
    /// The router, if it is one.
    pub fn router(&self) -> Option<&Aries> {
        match self {
            Self::Router(router) => Some(router),
            Self::Nic(_) => None,
        }
    }

    /// The network interface, if it is one.
    pub fn nic(&self) -> Option<&AriesNic> {
        match self {
            Self::Nic(nic) => Some(nic),
            Self::Router(_) => None,
        }
    }

    /// The network interface, if it is one, to command it.
    pub fn nic_mut(&mut self) -> Option<&mut AriesNic> {
        match self {
            Self::Nic(nic) => Some(nic),
            Self::Router(_) => None,
        }
    }

    /// The link control block of a port, if it has one.
    pub fn lcb(&self, port: PortId) -> Option<&AriesLcb> {
        match self {
            Self::Router(router) => router.lcb(port),
            Self::Nic(nic) => (port == 0).then(|| nic.lcb()),
        }
    }

    /// Lets `command` act on the link control block of a port; `None` if it has none.
    pub fn with_lcb<R>(
        &mut self,
        now: Time,
        port: PortId,
        command: impl FnOnce(&mut AriesLcb, &mut AriesInput) -> R,
    ) -> Option<R> {
        match self {
            Self::Router(router) => router.with_lcb(now, port, command),
            Self::Nic(nic) => (port == 0).then(|| {
                let (lcb, input) = nic.lcb_mut();
                command(lcb, input)
            }),
        }
    }
}
