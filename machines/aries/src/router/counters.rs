//! Counters of a router core.

use phitwire::kit::counters::counters;

counters! {
    /// What happened in a router since it was made, its links apart. All counters only grow.
    pub struct AriesCounters {
        /// Cycles in which at least one stage had something to do.
        executed_cycles,
        /// Flits handed to output ports: flit-hops.
        flits_forwarded,
        /// Packets handed to output ports.
        packets_forwarded,
        /// Packets handed to output ports whose head is marked as damaged.
        poisoned_packets_forwarded,
        /// Packets of the NICs that began a minimal way.
        minimal_decisions,
        /// Packets of the NICs that began a non-minimal way.
        non_minimal_decisions,
        /// Adaptive packets on a minimal path that this router diverted to a non-minimal one.
        diverted_decisions,
        /// Adaptive packets on a non-minimal path that this router returned to a minimal one.
        returned_decisions,
        /// Packets for which this router was the root of their non-minimal way.
        root_decisions,
        /// Packets that had to take the other kind of way than they would have: no live port of
        /// their own kind.
        fallback_decisions,
        /// Of those, packets that took a non-minimal path.
        fallback_up_decisions,
        /// Packets to a NIC of this router.
        eject_decisions,
        /// Packets swallowed: no table names a port for them.
        unroutable_packets,
        /// Packets swallowed: no port that a table names for them has an active link.
        no_live_port_packets,
        /// Flits swallowed because they did not begin with a head.
        headless_flits,
        /// Flits of all swallowed packets.
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
        /// Changes of the load that neighbours are told.
        load_changes,
        /// Times that registers were replaced.
        installs,
        /// Events lost because nobody fetched them.
        events_lost,
    }
}
