//! Counters of one link end.

use phitwire_framing::carrier::frame::FrameError;

use crate::kit::counters::counters;

counters! {
    /// What happened on one link end since it was made. All counters only grow.
    pub struct LinkCounters {
        /// Frames handed out by `poll_frame`, of any kind.
        tx_frames,
        /// Data frames that carried at least one packet phit.
        tx_data_frames,
        /// Data frames of idles only: acknowledgements, retry requests, probes.
        tx_idle_frames,
        /// Training frames sent.
        tx_training_frames,
        /// Packet phits sent, retransmissions included.
        tx_phits,
        /// Packets taken from the core, complete to their EOP.
        tx_packets,
        /// Packets acknowledged by the peer.
        tx_acked_packets,
        /// Packets of which at least the head was sent again.
        tx_retransmitted_packets,
        /// Times the send cursor went back because the peer asked for it.
        tx_rewinds_requested,
        /// Times the send cursor went back because the retry timer expired.
        tx_rewinds_timeout,
        /// Times the send cursor went back by command.
        tx_rewinds_forced,
        /// Retry requests ignored because the same retransmission was under way.
        tx_retry_requests_ignored,
        /// Probes sent: idle frames that ask the peer to acknowledge at once.
        tx_probes,
        /// Packets that failed their check before transmission and left marked `soft_error`.
        tx_soft_errors,
        /// Packets longer than the negotiated maximum, cut and marked `soft_error` by the
        /// transmitter.
        tx_oversize_packets,
        /// Packets discarded because the link went down, died or the peer restarted.
        tx_discarded_packets,
        /// Frames handed in, of any kind and however bad.
        rx_frames,
        /// Data frames accepted.
        rx_data_frames,
        /// Training frames accepted.
        rx_training_frames,
        /// Phits handed up to the input queue.
        rx_phits,
        /// Packets accepted: CRC good, position right.
        rx_packets,
        /// Packets accepted that an earlier hop had marked `transmit_error` or `soft_error`.
        rx_poisoned_packets,
        /// Packets rejected because the CRC was wrong.
        rx_crc_errors,
        /// Packets clipped at the maximum length.
        rx_clipped_packets,
        /// Packets cut short because phits were lost.
        rx_gaps_in_packet,
        /// Packets given up because their rest did not arrive in time.
        rx_silence_in_packet,
        /// Packets with a head inside or without a head, or of a channel that there is not.
        rx_malformed_packets,
        /// Packets rejected after some of their phits had left the input queue: poisoned and let
        /// go.
        rx_let_go_packets,
        /// Packets rejected because the input queue was full.
        rx_overflows,
        /// Times error recovery was entered.
        rx_recoveries,
        /// Retry requests sent.
        rx_retry_requests,
        /// Lanes given up because of too many retries.
        rx_lanes_decommissioned,
        /// Phits skipped because they had been received before.
        rx_duplicate_phits,
        /// Data frames that came more than a window late, and were passed over unread.
        rx_stale_frames,
        /// Frames that arrived ahead of their turn and were held.
        rx_held_frames,
        /// Held frames used later, in order.
        rx_reordered_frames,
        /// Frames ahead of their turn that found no room to be held.
        rx_hold_overflows,
        /// Gaps declared although the missing frame was only late.
        rx_spurious_gaps,
        /// Frames dropped: too short for a header.
        drop_too_short,
        /// Frames dropped: not a phitwire frame.
        drop_bad_magic,
        /// Frames dropped: another version of the wire format.
        drop_bad_version,
        /// Frames dropped: header, or what is checked with it (kind map, control), corrupted.
        drop_bad_header_check,
        /// Frames dropped: length does not match the header.
        drop_bad_length,
        /// Frames dropped: neither data nor training.
        drop_bad_kind,
        /// Frames dropped: reserved bits of the header are not zero.
        drop_reserved_header,
        /// Frames dropped: data on no lane.
        drop_no_lanes,
        /// Frames dropped: a number of phits that this kind of frame cannot have.
        drop_bad_phit_count,
        /// Frames of whole packets dropped: reserved bits of the control are not zero.
        drop_reserved_control,
        /// Training frames dropped: reserved bits are not zero.
        drop_reserved_training,
        /// Training frames dropped: a node name is not UTF-8 padded with zeros.
        drop_bad_name,
        /// Frames dropped: number of sets not allowed.
        drop_bad_set_count,
        /// Frames dropped: sent by the same end of the cable (reflected).
        drop_wrong_end,
        /// Frames dropped: another link's.
        drop_wrong_link,
        /// Frames dropped: another fabric's.
        drop_wrong_fabric,
        /// Frames dropped: another incarnation of this end or of the peer.
        drop_wrong_epoch,
        /// Frames dropped: sent on lanes that this end no longer receives on.
        drop_wrong_lanes,
        /// Frames dropped: no control word of the sideband, or no set, had a good check.
        drop_bad_sideband,
        /// Frames dropped: an acknowledgement of packets never sent.
        drop_impossible_ack,
        /// Frames dropped: VC acknowledgements of phits never sent.
        drop_impossible_vc_ack,
        /// Frames dropped: sequence number outside the window, or offset no packet can have.
        drop_impossible_position,
        /// Frames dropped: the link is down or training.
        drop_not_active,
        /// Training frames dropped: the peer is not the one that the topology names.
        drop_wrong_peer,
        /// Times the peer was silent for longer than the profile's `silence` although it was asked.
        silences,
        /// Times the peer was heard, but acknowledged nothing for longer than the profile's
        /// `silence`.
        stalls,
        /// Sessions ended by this end because frames came and none could be used, or never the one
        /// that was missing.
        unusable_sessions,
        /// Sessions given up because the peer acknowledged nothing for `give_up_ms`.
        given_up_sessions,
        /// Events lost because nobody fetched them.
        events_lost,
        ;
        /// Retries charged to each lane: packets whose rejected copy differed from the good one
        /// in bits of that lane (paper, section 7.7).
        lane_retries: ["lane0_retries", "lane1_retries", "lane2_retries"],
    }
}

impl LinkCounters {
    /// Counts a frame that could not be parsed.
    pub(crate) fn dropped(&mut self, error: FrameError) {
        *match error {
            FrameError::TooShort => &mut self.drop_too_short,
            FrameError::BadMagic => &mut self.drop_bad_magic,
            FrameError::BadVersion => &mut self.drop_bad_version,
            FrameError::BadKind => &mut self.drop_bad_kind,
            FrameError::BadLength => &mut self.drop_bad_length,
            FrameError::BadHeaderCheck => &mut self.drop_bad_header_check,
            FrameError::ReservedHeader => &mut self.drop_reserved_header,
            FrameError::NoLanes => &mut self.drop_no_lanes,
            FrameError::BadPhitCount => &mut self.drop_bad_phit_count,
            FrameError::ReservedControl => &mut self.drop_reserved_control,
            FrameError::ReservedTraining => &mut self.drop_reserved_training,
            FrameError::BadName => &mut self.drop_bad_name,
            FrameError::BadSetCount => &mut self.drop_bad_set_count,
        } += 1;
    }

    /// Frames dropped for any reason.
    pub fn dropped_frames(&self) -> u64 {
        let mut sum = 0;
        self.for_each(|name, value| sum += if name.starts_with("drop_") { value } else { 0 });
        sum
    }
}
