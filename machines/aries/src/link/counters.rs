//! Counters of an Aries link end besides those of every link end.

use phitwire::kit::counters::counters;

counters! {
    /// Events of sets and flits at one link end since its creation. All counters only grow.
    pub struct SetCounters {
        /// Flits taken from the core.
        tx_flits,
        /// Data sets sent, replays included.
        tx_sets,
        /// Data sets resent.
        tx_replayed_sets,
        /// Control sets sent.
        tx_control_sets,
        /// Data sets acknowledged.
        tx_acked_sets,
        /// Replays because the peer sent a nack.
        tx_replays_nacked,
        /// Replays because the peer's acknowledgement number was repeated.
        tx_replays_repeated,
        /// Replays because the timeout expired.
        tx_replays_timeout,
        /// Replays by command, or because the lanes changed.
        tx_replays_forced,
        /// Nacks for sets already being resent.
        tx_nacks_ignored,
        /// Injected bit errors: sets hit.
        tx_injected_errors,
        /// Data sets received in order.
        rx_sets,
        /// Flits of packets handed up.
        rx_flits,
        /// Control sets received.
        rx_control_sets,
        /// Sets with a bad CRC.
        rx_bad_crcs,
        /// Data sets received before.
        rx_duplicate_sets,
        /// Data sets kept after a gap.
        rx_held_sets,
        /// Data sets received early and not kept.
        rx_early_sets,
        /// Nacks sent.
        rx_nacks,
        /// Times the lanes were reinitialised after a run of bad CRCs.
        rx_reinits,
        /// Gaps declared although the missing frame was only late.
        rx_spurious_gaps,
        /// Data sets without a number from a control set.
        rx_unplaced_sets,
        /// Sets with a good CRC but inconsistent contents.
        rx_bad_sets,
        /// Frames dropped while the receive clock was lost.
        rx_clock_lost_frames,
        /// Packets completed with ones because the session ended inside them.
        rx_cut_packets,
        /// Flits without room: the peer ignored its credits.
        rx_refused_flits,
        /// Invalid flits in a head's position.
        rx_malformed_flits,
    }
}
