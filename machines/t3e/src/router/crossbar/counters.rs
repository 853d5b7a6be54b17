//! Counters of a crossbar.

use phitwire::kit::counters::counters;

counters! {
    /// Counters of one crossbar since its creation. All only grow.
    pub struct CrossbarCounters {
        /// Flits sent, including to the processor.
        flits,
        /// Packets sent, including to the processor.
        packets,
        /// Packets that went straight through, past the crossbar.
        straight_packets,
        /// Packets sent on an adaptive channel.
        adaptive_packets,
        /// Packets of the processor without an entry in the look-up table, or taken out of the
        /// network for an unknown processor: discarded.
        unroutable_packets,
        /// Packets for an ordinate that no node on their path has, as after undetected bit errors
        /// in the header: discarded.
        misdirected_packets,
        /// Packets whose link went down during sending: the rest was discarded.
        cut_packets,
        /// Packets from an isolated port: discarded.
        cut_off_packets,
        /// Packets for an absent processor beyond the limit of packets kept for it: discarded.
        abandoned_packets,
        /// Flits discarded for any of these reasons.
        discarded_flits,
        /// Packets taken out of the network because their path is dead.
        kept_packets,
        /// Flits of these packets.
        kept_flits,
        /// Packets of these that were resent by the look-up table.
        resent_packets,
        /// Cycles in which an input had flits and sent none.
        stalled_input_cycles,
    }
}

impl CrossbarCounters {
    /// Flits sent, discarded or kept.
    #[inline]
    pub(super) const fn gone_flits(&self) -> u64 {
        self.flits + self.discarded_flits + self.kept_flits
    }
}
