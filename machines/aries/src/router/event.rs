//! Reports of a router to the maintenance system.

use phitwire_framing::aries::flit::NodeId;

use phitwire::kit::events::{Interrupt, Interrupts, QueueRule};
use phitwire::link::LinkEvent;
use phitwire::node::PortId;

/// An interrupt to the maintenance system (XC white paper, "Network Reliability": fatal errors "can
/// be configured to generate interrupts to HSS").
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AriesEvent {
    Link {
        port: PortId,
        event: LinkEvent,
    },
    /// Packets waited for this output tile and virtual channel, but none left by it for the
    /// forward-progress time. From now on they are discarded.
    ForwardProgress {
        /// The output tile: the number of a port, or from 40 on a processor tile.
        tile: u8,
        vc: u8,
    },
    /// The tile accepts packets of the virtual channel again, and discarding ends.
    ForwardProgressRestored {
        tile: u8,
        vc: u8,
    },
    Unroutable {
        tile: u8,
        destination: NodeId,
    },
    /// Tables have ports for a destination, but none with an active link.
    NoLivePort {
        tile: u8,
        destination: NodeId,
    },
}

/// Events that are not fetched yet. Link events belong to the owner.
pub(super) type EventQueue = Interrupts<AriesEvent>;

impl Interrupt for AriesEvent {
    fn queue_rule(&self) -> QueueRule {
        match self {
            Self::Unroutable { tile, .. } => QueueRule::First(0, *tile),
            Self::NoLivePort { tile, .. } => QueueRule::First(1, *tile),
            _ => QueueRule::Last,
        }
    }
}
