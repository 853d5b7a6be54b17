//! Reports of a router to the maintenance system.

use phitwire_framing::aries::flit::NodeId;

use phitwire::kit::events::{Interrupt, Interrupts, Wait};
use phitwire::link::LinkEvent;
use phitwire::node::PortId;

/// An interrupt to the maintenance system (XC white paper, "Network Reliability": fatal errors "can
/// be configured to generate interrupts to HSS").
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AriesEvent {
    /// An event of a link end.
    Link { port: PortId, event: LinkEvent },
    /// No packet left by this output tile and virtual channel for the forward-progress time
    /// although some waited; packets for them are discarded from now on.
    ForwardProgress {
        /// The output tile: the port, or from 40 on a processor tile.
        tile: u8,
        vc: u8,
    },
    /// The tile takes packets of the virtual channel again, and discarding ends.
    ForwardProgressRestored {
        /// The output tile.
        tile: u8,
        vc: u8,
    },
    /// No table names a port for a destination.
    Unroutable {
        /// The input tile.
        tile: u8,
        destination: NodeId,
    },
    /// Tables name ports for a destination, but none with an active link.
    NoLivePort {
        /// The input tile.
        tile: u8,
        destination: NodeId,
    },
}

/// The events not fetched yet. Link events belong to the owner.
pub(super) type EventQueue = Interrupts<AriesEvent>;

impl Interrupt for AriesEvent {
    fn wait(&self) -> Wait {
        match self {
            Self::Unroutable { tile, .. } => Wait::First(0, *tile),
            Self::NoLivePort { tile, .. } => Wait::First(1, *tile),
            _ => Wait::Last,
        }
    }
}
