//! Counters of an Aries link end beside those that every link end has.

use phitwire::kit::counters::counters;

counters! {
    /// What happened to sets and flits on one link end since it was made. All counters only grow.
    pub struct SetCounters {
        /// Flits taken from the core.
        tx_flits,
        /// Data sets sent, replays included.
        tx_sets,
        /// Data sets sent again.
        tx_replayed_sets,
        /// Control sets sent.
        tx_control_sets,
        /// Data sets acknowledged.
        tx_acked_sets,
        /// Replays because the peer sent a nack.
        tx_replays_nacked,
        /// Replays because the peer's acknowledgement number was repeated.
        tx_replays_repeated,
        /// Replays because the time-out expired.
        tx_replays_timeout,
        /// Replays by command, or because the lanes changed.
        tx_replays_forced,
        /// Nacks that asked for what was under way already.
        tx_nacks_ignored,
        /// Bit errors made on purpose: sets hit.
        tx_injected_errors,
        /// Data sets received in their turn.
        rx_sets,
        /// Flits of packets handed up.
        rx_flits,
        /// Control sets received.
        rx_control_sets,
        /// Sets with a bad CRC.
        rx_bad_crcs,
        /// Data sets received before.
        rx_duplicate_sets,
        /// Data sets kept because one before them was missing.
        rx_held_sets,
        /// Data sets ahead of their turn and not kept.
        rx_early_sets,
        /// Nacks sent.
        rx_nacks,
        /// Times the lanes were initialised again after a run of bad CRCs.
        rx_reinits,
        /// Gaps declared although the missing frame was only late.
        rx_spurious_gaps,
        /// Data sets that no control set gave a number.
        rx_unplaced_sets,
        /// Sets whose CRC is good but whose contents contradict themselves.
        rx_bad_sets,
        /// Frames dropped while the receive clock was lost.
        rx_clock_lost_frames,
        /// Packets completed with ones because the session ended inside them.
        rx_cut_packets,
        /// Flits without room: the peer did not count its credits.
        rx_refused_flits,
        /// Flits that should have been heads and cannot be.
        rx_malformed_flits,
    }
}
