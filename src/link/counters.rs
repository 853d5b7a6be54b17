//! Counters of one link end.

use phitwire_framing::carrier::frame::FrameError;
use phitwire_framing::carrier::lanes::MAX_LANES;

use crate::kit::counters::counters;

counters! {
    /// Counters of one link end since it was made; they only grow.
    pub struct LinkCounters {
        /// Frames handed out by `poll_frame`, of any kind.
        tx_frames,
        /// Data frames that carried at least one packet phit.
        tx_data_frames,
        /// Data frames of idles only: acknowledgements, retry requests, probes.
        tx_idle_frames,
        /// Training frames sent.
        tx_training_frames,
        /// Packet phits sent, resends included.
        tx_phits,
        /// Packets taken from the core, complete to their EOP.
        tx_packets,
        /// Packets acknowledged by the peer.
        tx_acked_packets,
        /// Packets of which at least the head was resent.
        tx_retransmitted_packets,
        /// Times the send cursor was rewound at the peer's request.
        tx_rewinds_requested,
        /// Times the send cursor was rewound by the retry timer.
        tx_rewinds_timeout,
        /// Times the send cursor was rewound by command.
        tx_rewinds_forced,
        /// Retry requests ignored because that resend was already under way.
        tx_retry_requests_ignored,
        /// Probes sent: idle frames that ask the peer to acknowledge at once.
        tx_probes,
        /// Packets that failed their check before transmission and were sent marked `soft_error`.
        tx_soft_errors,
        /// Packets longer than the negotiated maximum, cut and marked `soft_error` by the
        /// transmitter.
        tx_oversize_packets,
        /// Packets discarded because the link went down or died, or the peer restarted.
        tx_discarded_packets,
        /// Frames received, valid or not.
        rx_frames,
        /// Data frames accepted.
        rx_data_frames,
        /// Training frames accepted.
        rx_training_frames,
        /// Phits handed up to the input queue.
        rx_phits,
        /// Packets accepted: good CRC, expected position.
        rx_packets,
        /// Packets accepted that an earlier hop had marked `transmit_error` or `soft_error`.
        rx_poisoned_packets,
        /// Packets rejected for a wrong CRC.
        rx_crc_errors,
        /// Packets clipped at the maximum length.
        rx_clipped_packets,
        /// Packets cut short because phits were lost.
        rx_gaps_in_packet,
        /// Packets given up because the rest did not arrive in time.
        rx_silence_in_packet,
        /// Packets with a second head, without a head, or on an unknown channel.
        rx_malformed_packets,
        /// Packets rejected after some phits had left the input queue: the rest is poisoned and
        /// passed on.
        rx_let_go_packets,
        /// Packets rejected because the input queue was full.
        rx_overflows,
        /// Times error recovery was entered.
        rx_recoveries,
        /// Retry requests sent.
        rx_retry_requests,
        /// Lanes given up after too many retries.
        rx_lanes_decommissioned,
        /// Phits skipped because they were already received.
        rx_duplicate_phits,
        /// Data frames dropped unread because they were more than a window late.
        rx_stale_frames,
        /// Frames held because they arrived out of order.
        rx_held_frames,
        /// Held frames used later, in order.
        rx_reordered_frames,
        /// Out-of-order frames for which there was no room.
        rx_hold_overflows,
        /// Gaps declared lost although the missing frame was only late.
        rx_spurious_gaps,
        /// Frames dropped: too short for a header.
        drop_too_short,
        /// Frames dropped: not a phitwire frame.
        drop_bad_magic,
        /// Frames dropped: another version of the wire format.
        drop_bad_version,
        /// Frames dropped: corrupted header, or other fields under its check (kind map, control).
        drop_bad_header_check,
        /// Frames dropped: length does not match the header.
        drop_bad_length,
        /// Frames dropped: neither data nor training.
        drop_bad_kind,
        /// Frames dropped: reserved bits of the header are not zero.
        drop_reserved_header,
        /// Frames dropped: data on no lane.
        drop_no_lanes,
        /// Frames dropped: phit count invalid for this kind of frame.
        drop_bad_phit_count,
        /// Frames of whole packets dropped: reserved bits of the control are not zero.
        drop_reserved_control,
        /// Training frames dropped: reserved bits are not zero.
        drop_reserved_training,
        /// Training frames dropped: a node name is not UTF-8 padded with zeros.
        drop_bad_name,
        /// Frames dropped: invalid number of sets.
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
        /// Frames dropped: no control word of the sideband, or no set, passed its check.
        drop_bad_sideband,
        /// Frames dropped: acknowledgement of packets never sent.
        drop_impossible_ack,
        /// Frames dropped: VC acknowledgement of phits never sent.
        drop_impossible_vc_ack,
        /// Frames dropped: sequence number outside the window, or invalid offset.
        drop_impossible_position,
        /// Frames dropped: the link is down or training.
        drop_not_active,
        /// Training frames dropped: the peer is not the one that the topology names.
        drop_wrong_peer,
        /// Times the peer was silent beyond the profile's `silence` although it was probed.
        silences,
        /// Times the peer was heard, but acknowledged nothing for the profile's `silence`.
        stalls,
        /// Sessions ended by this end because no frame was usable, or a missing one never arrived.
        unusable_sessions,
        /// Sessions given up because the peer acknowledged nothing for `give_up_ms`.
        given_up_sessions,
        /// Events lost because they were not fetched in time.
        events_lost,
        ;
        /// Retries charged to each lane: packets whose rejected copy differed from the good one in
        /// bits of that lane (BlackWidow sec. 7.7).
        lane_retries: ["lane0_retries", "lane1_retries", "lane2_retries", "lane3_retries"],
    }
}

const _: () = assert!(
    LinkCounters::PARTS.len() == MAX_LANES,
    "every lane has a counter of retries"
);

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
