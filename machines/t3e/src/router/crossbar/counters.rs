//! What happens in a crossbar, counted.

use phitwire::kit::counters::counters;

counters! {
    /// What happened in one crossbar since it was made. All counters only grow.
    pub struct CrossbarCounters {
        /// Flits that left, also to the processor.
        flits,
        /// Packets that left, also to the processor.
        packets,
        /// Packets that went straight through, past the crossbar.
        straight_packets,
        /// Packets that left on an adaptive channel.
        adaptive_packets,
        /// Packets of the processor for which the look-up table has no entry: discarded.
        unroutable_packets,
        /// Packets that look for an ordinate which nobody on their way has, as those may whose header
        /// has more wrong bits than are noticed: discarded.
        misdirected_packets,
        /// Packets whose link went down while they were sent: their rest was discarded.
        cut_packets,
        /// Packets that came by a port that is cut off: discarded.
        cut_off_packets,
        /// Packets for a processor that is gone, of which too many wait already: discarded.
        abandoned_packets,
        /// Flits discarded for one of these reasons.
        discarded_flits,
        /// Packets taken out of the network because their way is dead.
        kept_packets,
        /// Their flits.
        kept_flits,
        /// Those of them that were sent again by the look-up table.
        resent_packets,
        /// Cycles in which an input had flits and none of them went.
        stalled_input_cycles,
    }
}

impl CrossbarCounters {
    /// Flits that are no longer where they were.
    #[inline]
    pub(super) const fn gone_flits(&self) -> u64 {
        self.flits + self.discarded_flits + self.kept_flits
    }
}
