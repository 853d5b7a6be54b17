//! Counters of a router core.

use phitwire::kit::counters::counters;

counters! {
    /// What happened in a router since it was made, its links apart. All counters only grow.
    pub struct RouterCounters {
        /// Cycles in which at least one stage had something to do.
        executed_cycles,
        /// Phits handed to output ports: phit-hops.
        phits_forwarded,
        /// Packets handed to output ports, poisoned ones included.
        packets_forwarded,
        /// Packets handed to output ports whose end says `transmit_error` or `soft_error`.
        poisoned_packets_forwarded,
        /// Packets that chose their column adaptively.
        adaptive_packets,
        /// Packets swallowed: no route to the destination.
        unroutable_packets,
        /// Packets swallowed: from an uplink to something else than a downlink.
        up_down_violations,
        /// Packets swallowed: the way leads out of the virtual router.
        virtual_router_violations,
        /// Packets swallowed because they did not begin with a head.
        headless_packets,
        /// Phits of all swallowed packets.
        swallowed_phits,
        /// Heads in the middle of a packet, passed on as body.
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
        /// Maintenance packets sent on towards another router.
        maintenance_forwarded,
        /// Register reads executed for maintenance packets.
        maintenance_reads,
        /// Register writes executed for maintenance packets.
        maintenance_writes,
        /// Register accesses answered with a refusal.
        maintenance_refused,
        /// Maintenance packets dropped: damaged, so nothing of them is believed.
        maintenance_damaged,
        /// Maintenance packets dropped: not a form that a router understands, or a response.
        maintenance_malformed,
        /// Events lost because nobody fetched them.
        events_lost,
    }
}
