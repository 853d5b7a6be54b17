//! Events that a router reports to the maintenance controller.

use phitwire_framing::yarc::packet::Vc;

use phitwire::kit::events::{Interrupt, Interrupts, QueueRule};
use phitwire::link::LinkEvent;
use phitwire::node::PortId;

/// An interrupt to the maintenance controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouterEvent {
    Link {
        port: PortId,
        event: LinkEvent,
    },
    /// Packets waited for this port and virtual channel, but none left by it for the
    /// forward-progress time. From now on they are discarded (BlackWidow sec. 7.7).
    ForwardProgress {
        port: PortId,
        vc: Vc,
    },
    /// The port accepts packets of the virtual channel again and stops discarding.
    ForwardProgressRestored {
        port: PortId,
        vc: Vc,
    },
    /// A packet from an uplink would have left by a link other than a downlink (BlackWidow sec.
    /// 7.7).
    UpDownViolation {
        port: PortId,
        /// Destination of the packet; unreliable, because the packet's CRC is not checked yet.
        destination: u16,
    },
    /// A packet would have left its virtual router (BlackWidow sec. 7.4).
    VirtualRouterViolation {
        port: PortId,
        /// Destination of the packet; unreliable, because the packet's CRC is not checked yet.
        destination: u16,
    },
    /// No route leads to the destination.
    Unroutable {
        port: PortId,
        /// Destination of the packet; unreliable, because the packet's CRC is not checked yet.
        destination: u16,
    },
    /// A maintenance packet changed a register.
    RegisterWritten {
        address: u16,
        value: u64,
    },
}

/// Events that are not fetched yet; register writes have separate room. Link events belong to the
/// owner.
pub(super) type EventQueue = Interrupts<RouterEvent>;

impl Interrupt for RouterEvent {
    fn queue_rule(&self) -> QueueRule {
        match self {
            Self::Unroutable { port, .. } => QueueRule::First(0, *port),
            Self::UpDownViolation { port, .. } => QueueRule::First(1, *port),
            Self::VirtualRouterViolation { port, .. } => QueueRule::First(2, *port),
            Self::RegisterWritten { .. } => QueueRule::Each,
            _ => QueueRule::Last,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::core::Core;
    use super::super::harness::{flat, head, packet};
    use super::*;
    use phitwire::time::{Duration, Time};

    fn events(core: &mut Core) -> Vec<RouterEvent> {
        core::iter::from_fn(|| core.poll_event()).collect()
    }

    /// However many packets are unroutable, the controller still learns that a port has stopped.
    #[test]
    fn a_burst_of_lost_packets_does_not_hide_an_output_that_stopped() {
        let (mut core, mut bench) = flat();
        for port in [3, 4] {
            let lost = head(100 + port as u16, Vc::Request);
            bench.inject_all(&mut core, port, 0..300, |id| packet(lost, 0, id, 4));
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
        // After the controller has fetched the events, the same event is reported again.
        bench.inject(&mut core, 3, &packet(head(103, Vc::Request), 0, 0, 4));
        bench.drain(&mut core);
        assert_eq!(events(&mut core), [unroutable(3)]);
    }

    /// The last event of an output reports its current state.
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
        for address in 0..EventQueue::ROOM as u16 + 9 {
            queue.push(write(address));
        }
        let violation = RouterEvent::UpDownViolation {
            port: 63,
            destination: 7,
        };
        queue.push(violation.clone());
        assert_eq!(queue.lost, 9);
        for address in 0..EventQueue::ROOM as u16 {
            assert_eq!(queue.pop(), Some(write(address)));
        }
        assert_eq!(queue.pop(), Some(violation));
        assert_eq!(queue.pop(), None);
        queue.push(write(1));
        assert_eq!(queue.pop(), Some(write(1)));
    }
}
