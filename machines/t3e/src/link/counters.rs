//! Counters of flits at a link end.

use phitwire::kit::counters::counters;

counters! {
    /// Counters of flits at one link end, above the carrier, since its creation. All only grow.
    pub struct FlitCounters {
        /// Flits of packets accepted for sending.
        tx_flits,
        /// Flits of packets received.
        rx_flits,
        /// Accepted flits of packets given up because the session ended, including those in
        /// unacknowledged bursts, which may have arrived.
        tx_discarded_flits,
        /// Bits flipped by noise in flits sent.
        tx_flipped_bits,
        /// Header flits with a bit error that their check corrects.
        rx_header_errors,
        /// Unreadable header flits: their packets are discarded.
        rx_unreadable_headers,
        /// Packets whose words do not match their check.
        rx_data_errors,
        /// Packets corrected at their destination, in header or words.
        rx_corrected_packets,
        /// Packets beyond correction at their destination.
        rx_hopeless_packets,
        /// Flits discarded for lack of a header before them.
        rx_headless_flits,
        /// Packets whose rest does not arrive, completed with words that fail every check: the
        /// session has ended, another packet begins, or a packet whose header had a wrong bit has
        /// timed out.
        rx_truncated_packets,
        /// Flits without a free slot.
        rx_overflows,
        /// Credits that no correct peer can return.
        rx_impossible_credits,
        /// Idle flits whose word has unknown bits set.
        rx_bad_idle_words,
        /// Barrier and maintenance flits not taken in time.
        rx_urgent_lost,
    }
}
