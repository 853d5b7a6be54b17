//! What happened to flits at one end of a link.

use phitwire::kit::counters::counters;

counters! {
    /// What happened to flits at one end of a link, above the carrier, since it was made. All
    /// counters only grow.
    pub struct FlitCounters {
        /// Flits of packets that were handed over to be sent.
        tx_flits,
        /// Flits of packets that came.
        rx_flits,
        /// Flits of packets that were handed over and given up because the session ended, also those
        /// in bursts that were not acknowledged: these may or may not have arrived.
        tx_discarded_flits,
        /// Bits that noise flipped in what was sent.
        tx_flipped_bits,
        /// Header flits with a wrong bit that their check corrects.
        rx_header_errors,
        /// Header flits that cannot be read: their packets are discarded.
        rx_unreadable_headers,
        /// Packets whose words do not go with their check.
        rx_data_errors,
        /// Packets corrected where they end, whether in their header or their words.
        rx_corrected_packets,
        /// Packets that cannot be corrected where they end.
        rx_hopeless_packets,
        /// Flits discarded because no header came before them.
        rx_headless_flits,
        /// Packets whose rest does not come, which go on with words that no check takes for right:
        /// the session has ended, another packet begins, or nothing comes for long of one whose
        /// header had a wrong bit.
        rx_truncated_packets,
        /// Flits for which there was no place.
        rx_overflows,
        /// Credits that no correct peer has to give.
        rx_impossible_credits,
        /// Idle flits whose word has bits that mean nothing.
        rx_bad_idle_words,
        /// Barrier and maintenance flits that nobody took in time.
        rx_urgent_lost,
    }
}
