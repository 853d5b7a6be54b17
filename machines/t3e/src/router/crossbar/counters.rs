use phitwire::kit::counters::counters;

counters! {
    /// Counters of one crossbar since its creation. They only grow.
    pub struct CrossbarCounters {
        /// Flits sent, including to the processor.
        flits,
        /// Packets sent, including to the processor.
        packets,
        /// Packets that went straight through, bypassing the crossbar.
        straight_packets,
        /// Packets sent on an adaptive channel.
        adaptive_packets,
        /// Packets discarded: from the processor but without an entry in the look-up table, or
        /// taken from the network for an unknown processor.
        unroutable_packets,
        /// Packets discarded: no node on their path has the required ordinate, as after undetected
        /// bit errors in the header.
        misdirected_packets,
        /// Packets whose link went down while they were sent; the rest was discarded.
        cut_packets,
        /// Packets discarded: from an isolated port.
        cut_off_packets,
        /// Packets discarded: for an absent processor, beyond the limit of packets kept for it.
        abandoned_packets,
        /// Flits discarded for any of these reasons.
        discarded_flits,
        /// Packets taken from the network because their path has failed.
        kept_packets,
        /// Flits of packets taken from the network.
        kept_flits,
        /// Packets taken from the network that were resent by the look-up table.
        resent_packets,
        /// Cycles in which an input had flits but sent none.
        stalled_input_cycles,
    }
}

impl CrossbarCounters {
    #[inline]
    pub(super) const fn gone_flits(&self) -> u64 {
        self.flits + self.discarded_flits + self.kept_flits
    }
}
