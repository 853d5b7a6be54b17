use phitwire::kit::counters::counters;

counters! {
    /// Counters of a router since its creation, without its links. They only grow.
    pub struct AriesCounters {
        /// Cycles in which at least one stage had work.
        executed_cycles,
        /// Flits passed to output ports: flit-hops.
        flits_forwarded,
        /// Packets passed to output ports.
        packets_forwarded,
        /// Packets passed to output ports whose head is marked as damaged.
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
        /// Packets that took the other kind of path because their own kind had no live port.
        fallback_decisions,
        /// The part of those packets that took a non-minimal path.
        fallback_up_decisions,
        /// Packets to a NIC of this router.
        eject_decisions,
        /// Packets dropped: no table has a port for them.
        unroutable_packets,
        /// Packets dropped: none of the ports that the tables have for them has an active link.
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
        /// Replacements of the registers.
        installs,
        /// Events lost because they were not fetched in time.
        events_lost,
    }
}
