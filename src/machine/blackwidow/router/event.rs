//! What a router reports to the maintenance controller.

use std::collections::VecDeque;

use phitwire_framing::yarc::packet::Vc;

use crate::kit::below;
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

/// Register writes that wait to be fetched; further ones are lost and counted.
const MAX_WRITES: usize = 256;

/// The events that wait to be fetched.
///
/// No burst of one kind keeps another from being seen. Of packets without a way the first of its kind
/// and port waits and counters have the rest; of an output that stops and goes on again, the last
/// word of each kind waits; register writes have room of their own. Link events are the owner's.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    queue: VecDeque<RouterEvent>,
    /// Ports, per kind of refusal, of which an event waits.
    refused: [u64; 3],
    writes: usize,
    pub(super) lost: u64,
}

/// The kind and port of an event of a packet without a way.
fn refusal(event: &RouterEvent) -> Option<(usize, u64)> {
    let (kind, port) = match event {
        RouterEvent::Unroutable { port, .. } => (0, port),
        RouterEvent::UpDownViolation { port, .. } => (1, port),
        RouterEvent::VirtualRouterViolation { port, .. } => (2, port),
        _ => return None,
    };
    Some((kind, 1 << below::<64>(usize::from(*port))))
}

impl EventQueue {
    /// Adds an event, unless it says nothing new or has no room.
    #[cold]
    pub(super) fn push(&mut self, event: RouterEvent) {
        if let Some((kind, port)) = refusal(&event) {
            if self.refused[kind] & port != 0 {
                return;
            }
            self.refused[kind] |= port;
        } else if matches!(event, RouterEvent::RegisterWritten { .. }) {
            if self.writes == MAX_WRITES {
                self.lost += 1;
                return;
            }
            self.writes += 1;
        } else {
            // At most two per output and virtual channel, in the order in which they hold.
            self.queue.retain(|waiting| *waiting != event);
        }
        self.queue.push_back(event);
    }

    /// The oldest event.
    pub(super) fn pop(&mut self) -> Option<RouterEvent> {
        let event = self.queue.pop_front()?;
        if let Some((kind, port)) = refusal(&event) {
            self.refused[kind] &= !port;
        } else if matches!(event, RouterEvent::RegisterWritten { .. }) {
            self.writes -= 1;
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::super::core::Core;
    use super::super::harness::{Bench, flat_chip, head, packet};
    use super::*;
    use crate::time::{Duration, Time};

    fn events(core: &mut Core) -> Vec<RouterEvent> {
        core::iter::from_fn(|| core.poll_event()).collect()
    }

    /// However many packets have no way, the controller learns that a port has stopped.
    #[test]
    fn a_burst_of_lost_packets_does_not_hide_an_output_that_stopped() {
        let (mut core, mut bench) = (Core::new(flat_chip()), Bench::default());
        for port in [3, 4] {
            for id in 0..300 {
                bench.inject(
                    &mut core,
                    port,
                    &packet(head(100 + port as u16, Vc::Request), 0, id, 4),
                );
            }
        }
        bench.blocked[0] = 1 << 8;
        bench.inject(&mut core, 9, &packet(head(8, Vc::Request), 0, 0, 4));
        bench.drain(&mut core);
        core.check_forward_progress(Time::ZERO);
        core.check_forward_progress(Time::ZERO + Duration::from_ms(1));
        let unroutable = |port: PortId| RouterEvent::Unroutable {
            port,
            destination: 100 + u16::from(port),
        };
        let stopped = RouterEvent::ForwardProgress {
            port: 8,
            vc: Vc::Request,
        };
        assert_eq!(
            events(&mut core),
            [unroutable(3), unroutable(4), stopped],
            "the first of a kind and port is enough"
        );
        assert_eq!(core.counters().unroutable_packets, 600);
        assert_eq!(core.counters().events_lost, 0);
        // What happens after the controller has looked is said again.
        bench.inject(&mut core, 3, &packet(head(103, Vc::Request), 0, 0, 4));
        bench.drain(&mut core);
        assert_eq!(events(&mut core), [unroutable(3)]);
    }

    /// The last word on an output is the true one.
    #[test]
    fn an_output_that_stops_again_is_reported_last() {
        let mut queue = EventQueue::default();
        let (port, vc) = (5, Vc::Response);
        let stopped = RouterEvent::ForwardProgress { port, vc };
        let restored = RouterEvent::ForwardProgressRestored { port, vc };
        for _ in 0..1_000 {
            queue.push(stopped.clone());
            queue.push(restored.clone());
        }
        queue.push(stopped.clone());
        let seen: Vec<_> = core::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(seen, [restored, stopped]);
        assert_eq!(queue.lost, 0);
    }

    #[test]
    fn only_register_writes_are_ever_lost() {
        let mut queue = EventQueue::default();
        let write = |address| RouterEvent::RegisterWritten { address, value: 1 };
        for address in 0..MAX_WRITES as u16 + 9 {
            queue.push(write(address));
        }
        let violation = RouterEvent::UpDownViolation {
            port: 63,
            destination: 7,
        };
        queue.push(violation.clone());
        assert_eq!(queue.lost, 9);
        for address in 0..MAX_WRITES as u16 {
            assert_eq!(queue.pop(), Some(write(address)));
        }
        assert_eq!(queue.pop(), Some(violation));
        assert_eq!(queue.pop(), None);
        queue.push(write(1));
        assert_eq!(queue.pop(), Some(write(1)));
    }
}
