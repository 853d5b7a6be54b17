//! What a router reports to the maintenance system.

use std::collections::VecDeque;

use phitwire_framing::aries::flit::NodeId;

use crate::kit::below;
use crate::link::LinkEvent;
use crate::node::PortId;

/// An interrupt to the maintenance system (white paper, "Network Reliability": fatal errors "can be configured to
/// generate interrupts to HSS").
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AriesEvent {
    /// A link end reports something.
    Link {
        /// The port of the link.
        port: PortId,
        /// What it reports.
        event: LinkEvent,
    },
    /// No packet left by this output tile and virtual channel for the forward-progress time although some
    /// waited; packets for them are discarded from now on.
    ForwardProgress {
        /// The output tile: the port, or from 40 on a processor tile.
        tile: u8,
        /// The virtual channel.
        vc: u8,
    },
    /// The tile takes packets of the virtual channel again and nothing is discarded any more.
    ForwardProgressRestored {
        /// The output tile.
        tile: u8,
        /// The virtual channel.
        vc: u8,
    },
    /// No table names a port for a destination.
    Unroutable {
        /// The input tile.
        tile: u8,
        /// The destination.
        destination: NodeId,
    },
    /// Tables name ports for a destination, but none with an active link.
    NoLivePort {
        /// The input tile.
        tile: u8,
        /// The destination.
        destination: NodeId,
    },
}

/// The events that wait to be fetched.
///
/// No burst of one kind keeps another from being seen. Of packets without a way the first of its kind and
/// tile waits and counters have the rest; of an output that stops and goes on again, the last word of each kind
/// waits. So their number is bounded and none is lost. Link events are the owner's.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    queue: VecDeque<AriesEvent>,
    /// Tiles, per kind of refusal, of which an event waits.
    refused: [u64; 2],
}

/// The kind and tile of an event of a packet without a way.
fn refusal(event: &AriesEvent) -> Option<(usize, u64)> {
    let (kind, tile) = match event {
        AriesEvent::Unroutable { tile, .. } => (0, tile),
        AriesEvent::NoLivePort { tile, .. } => (1, tile),
        _ => return None,
    };
    Some((kind, 1 << below::<64>(usize::from(*tile))))
}

impl EventQueue {
    /// Adds an event, unless it says nothing new.
    #[cold]
    pub(super) fn push(&mut self, event: AriesEvent) {
        if let Some((kind, tile)) = refusal(&event) {
            if self.refused[kind] & tile != 0 {
                return;
            }
            self.refused[kind] |= tile;
        } else {
            self.queue.retain(|waiting| *waiting != event);
        }
        self.queue.push_back(event);
    }

    /// The oldest event.
    pub(super) fn pop(&mut self) -> Option<AriesEvent> {
        let event = self.queue.pop_front()?;
        if let Some((kind, tile)) = refusal(&event) {
            self.refused[kind] &= !tile;
        }
        Some(event)
    }
}
