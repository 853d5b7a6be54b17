use phitwire::kit::counters::counters;

counters! {
    /// Counters of a router since its creation, without its links. They only grow.
    pub struct RouterCounters {
        /// Cycles in which at least one stage had work.
        executed_cycles,
        /// Phits passed to output ports: phit-hops.
        phits_forwarded,
        /// Packets passed to output ports, including damaged ones.
        packets_forwarded,
        /// Packets passed to output ports that end with `transmit_error` or `soft_error`.
        poisoned_packets_forwarded,
        /// Packets that chose their column adaptively.
        adaptive_packets,
        /// Packets dropped: no route to the destination.
        unroutable_packets,
        /// Packets dropped: from an uplink to a link other than a downlink.
        up_down_violations,
        /// Packets dropped: the path leaves the virtual router.
        virtual_router_violations,
        /// Packets dropped because they did not begin with a head.
        headless_packets,
        /// Phits of all dropped packets.
        swallowed_phits,
        /// Heads within a packet, forwarded as body.
        stray_heads,
        /// Packets discarded at an output whose link is not active.
        dead_port_packets,
        /// Phits discarded at an output whose link is not active.
        dead_port_phits,
        /// Packets discarded at an output virtual channel whose forward-progress timer had expired.
        stalled_port_packets,
        /// Phits discarded at an output virtual channel whose forward-progress timer had expired.
        stalled_port_phits,
        /// Forward-progress timers that expired.
        forward_progress_timeouts,
        /// Maintenance packets forwarded to another router.
        maintenance_forwarded,
        /// Register reads executed for maintenance packets.
        maintenance_reads,
        /// Register writes executed for maintenance packets.
        maintenance_writes,
        /// Register accesses rejected.
        maintenance_refused,
        /// Maintenance packets dropped: damaged.
        maintenance_damaged,
        /// Maintenance packets dropped: invalid at a router, or a response.
        maintenance_malformed,
        /// Events lost because they were not fetched in time.
        events_lost,
    }
}
