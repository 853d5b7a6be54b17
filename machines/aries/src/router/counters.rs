//! Counters of a router core.

use phitwire::kit::counters::counters;

counters! {
    /// Events in a router since its creation, without its links. All counters only grow.
    pub struct AriesCounters {
        /// Cycles in which at least one stage had something to do.
        executed_cycles,
        /// Flits handed to output ports: flit-hops.
        flits_forwarded,
        /// Packets handed to output ports.
        packets_forwarded,
        /// Packets handed to output ports whose head is marked as damaged.
        poisoned_packets_forwarded,
        /// Packets of the NICs that started on a minimal path.
        minimal_decisions,
        /// Packets of the NICs that started on a non-minimal path.
        non_minimal_decisions,
        /// Adaptive packets on a minimal path that this router diverted to a non-minimal one.
        diverted_decisions,
        /// Adaptive packets on a non-minimal path that this router returned to a minimal one.
        returned_decisions,
        /// Packets for which this router was the root of their non-minimal path.
        root_decisions,
        /// Packets that took the other kind of path: their own kind had no live port.
        fallback_decisions,
        /// Of those, packets that took a non-minimal path.
        fallback_up_decisions,
        /// Packets to a NIC of this router.
        eject_decisions,
        /// Packets dropped: no table names a port for them.
        unroutable_packets,
        /// Packets dropped: no port that a table names for them has an active link.
        no_live_port_packets,
        /// Flits dropped because they did not begin with a head.
        headless_flits,
        /// Flits of all dropped packets.
        swallowed_flits,
        /// Packets discarded at an output whose link is not active.
        dead_port_packets,
        /// Flits discarded at an output whose link is not active.
        dead_port_flits,
        /// Packets discarded at an output virtual channel whose forward-progress timer had expired.
        stalled_port_packets,
        /// Flits discarded at an output virtual channel whose forward-progress timer had expired.
        stalled_port_flits,
        /// Forward-progress timers that expired.
        forward_progress_timeouts,
        /// Times that a NIC had a packet and no processor tile had room for it.
        netlink_stalls,
        /// Changes of the load reported to neighbours.
        load_changes,
        /// Times that registers were replaced.
        installs,
        /// Events lost because nobody fetched them.
        events_lost,
    }
}
