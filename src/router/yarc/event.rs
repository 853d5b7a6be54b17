//! What a router reports to the maintenance controller.

use std::collections::VecDeque;

use phitwire_framing::packet24::Vc;

use crate::link::LinkEvent;
use crate::node::PortId;

/// An interrupt to the maintenance controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouterEvent {
    /// A link end reports something (paper, sections 4.3, 4.4 and 7.7).
    Link {
        /// The port of the link.
        port: PortId,
        /// What it reports.
        event: LinkEvent,
    },
    /// No packet left by this port and virtual channel for the forward-progress time although some
    /// waited; packets for them are discarded from now on (section 7.7).
    ForwardProgress {
        /// The output port.
        port: PortId,
        /// The virtual channel.
        vc: Vc,
    },
    /// The port takes packets of the virtual channel again and nothing is discarded any more.
    ForwardProgressRestored {
        /// The output port.
        port: PortId,
        /// The virtual channel.
        vc: Vc,
    },
    /// A packet from an uplink would have left by something else than a downlink (section 7.7).
    UpDownViolation {
        /// The input port.
        port: PortId,
        /// Its destination; not to be trusted, the packet's check was not known yet.
        destination: u16,
    },
    /// A packet would have left its virtual router (section 7.4).
    VirtualRouterViolation {
        /// The input port.
        port: PortId,
        /// Its destination; not to be trusted, the packet's check was not known yet.
        destination: u16,
    },
    /// No route leads to the destination.
    Unroutable {
        /// The input port.
        port: PortId,
        /// The destination; not to be trusted, the packet's check was not known yet.
        destination: u16,
    },
    /// A maintenance packet changed a register.
    RegisterWritten {
        /// The register's address.
        address: u16,
        /// Its new value.
        value: u64,
    },
}

/// Events that wait to be fetched; further ones are lost and counted.
const CAPACITY: usize = 256;

/// A bounded queue of events.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    queue: VecDeque<RouterEvent>,
    pub(super) lost: u64,
}

impl EventQueue {
    /// Adds an event, or counts it as lost when the queue is full.
    #[cold]
    pub(super) fn push(&mut self, event: RouterEvent) {
        if self.queue.len() < CAPACITY {
            self.queue.push_back(event);
        } else {
            self.lost += 1;
        }
    }

    /// The oldest event.
    pub(super) fn pop(&mut self) -> Option<RouterEvent> {
        self.queue.pop_front()
    }
}
