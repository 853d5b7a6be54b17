use phitwire_framing::yarc::memory::DecodeError;

use phitwire::kit::counters::counters;
use phitwire::nic::checker::Purpose;
use phitwire::packets::transfer::Kind;
use phitwire::packets::{Count, NicCounting, Refusal};

counters! {
    /// Counters of one NIC since its creation. They only grow.
    pub struct NicCounters {
        /// Writes requested by this processor.
        writes_posted,
        /// Reads requested by this processor.
        reads_posted,
        /// Writes answered.
        writes_done,
        /// Reads answered.
        reads_done,
        /// Requests that the target rejected.
        requests_refused,
        /// Requests that timed out unanswered.
        requests_timed_out,
        /// Requests that timed out before the link accepted them and were never sent.
        requests_unsent,
        /// Responses that arrived after their request had timed out.
        late_responses,
        /// Responses to requests that do not exist or no longer exist.
        unknown_responses,
        /// Responses to requests of another period: very late, or to a predecessor.
        stale_responses,
        /// Responses of the wrong kind or length for their request.
        mismatched_responses,
        /// Writes of other processors executed in this memory.
        writes_served,
        /// Reads of other processors executed in this memory.
        reads_served,
        /// Announcements of traffic runs accepted.
        runs_announced,
        /// Rejected requests of other processors: outside this memory.
        refused_out_of_range,
        /// Rejected requests of other processors: unknown operation, or a malformed announcement.
        refused_unsupported,
        /// Rejected requests of other processors: no room for another traffic run.
        refused_busy,
        /// Rejected requests of other processors: announcement of a traffic run older than the
        /// latest of its source.
        refused_outdated,
        /// Rejected requests of other processors: question about a traffic run that is unknown or
        /// forgotten.
        refused_unknown_run,
        /// Times that requests stayed in the input queue because responses could not be sent.
        response_stalls,
        /// Messages and announcements of traffic runs that a later run of their source had
        /// replaced.
        run_stragglers,
        /// Packets discarded: marked `soft_error` (BlackWidow sec. 4.3).
        discard_soft_error,
        /// Packets discarded: marked `transmit_error`, and so resent.
        discard_transmit_error,
        /// Packets discarded: addressed to another processor.
        discard_misrouted,
        /// Packets discarded: source-routed, although a NIC has no registers.
        discard_source_routed,
        /// Packets discarded: no end of packet before the next head.
        discard_cut,
        /// Packets discarded: phits without a head.
        discard_headless,
        /// Packets discarded: longer than a packet can be.
        discard_overlong,
        /// Packets discarded: fewer phits than a packet can have, or reserved bits in the EOP.
        discard_shape,
        /// Packets discarded: `v`, `h`, `a` or `r` does not fit their contents.
        discard_routing_bits,
        /// Packets discarded: unknown operation.
        discard_operation,
        /// Packets discarded: hash bits in a response.
        discard_hash_bits,
        /// Packets discarded: byte mask empty or with holes.
        discard_byte_mask,
        /// Packets discarded: data extends beyond the line.
        discard_data_length,
        /// Packets discarded: unknown status.
        discard_status,
        /// Packets discarded: number of phits does not match the fields.
        discard_size,
        /// Packets discarded: nonzero padding.
        discard_padding,
        /// Events lost because they were not fetched in time.
        events_lost,
    }
}

impl NicCounters {
    #[cold]
    pub(super) fn malformed(&mut self, error: DecodeError) {
        let counter = match error {
            DecodeError::Packet(_) | DecodeError::Unhealthy(_) => &mut self.discard_shape,
            DecodeError::Routing => &mut self.discard_routing_bits,
            DecodeError::Operation => &mut self.discard_operation,
            DecodeError::Hash => &mut self.discard_hash_bits,
            DecodeError::Mask => &mut self.discard_byte_mask,
            DecodeError::Length => &mut self.discard_data_length,
            DecodeError::Status => &mut self.discard_status,
            DecodeError::Size => &mut self.discard_size,
            DecodeError::Padding => &mut self.discard_padding,
        };
        *counter += 1;
    }
}

impl NicCounting for NicCounters {
    #[inline]
    fn count(&mut self, what: Count) {
        let counter = match what {
            Count::Posted(Kind::Get) => &mut self.reads_posted,
            Count::Posted(_) => &mut self.writes_posted,
            Count::Ended(_, Kind::Refused) => &mut self.requests_refused,
            Count::Ended(Kind::Get, _) => &mut self.reads_done,
            Count::Ended(..) => &mut self.writes_done,
            Count::TimedOut => &mut self.requests_timed_out,
            Count::Unsent => &mut self.requests_unsent,
            Count::Late => &mut self.late_responses,
            Count::Stale => &mut self.stale_responses,
            Count::Unknown => &mut self.unknown_responses,
            Count::Mismatched => &mut self.mismatched_responses,
            Count::Misrouted => &mut self.discard_misrouted,
            Count::Served(Kind::Get) => &mut self.reads_served,
            Count::Served(_) => &mut self.writes_served,
            Count::Announced(Purpose::Begin) => &mut self.runs_announced,
            Count::Refused(_, refusal) => match refusal {
                Refusal::OutOfRange => &mut self.refused_out_of_range,
                Refusal::Unsupported => &mut self.refused_unsupported,
                Refusal::Full => &mut self.refused_busy,
                Refusal::Outdated => &mut self.refused_outdated,
                Refusal::UnknownRun => &mut self.refused_unknown_run,
            },
            Count::EventsLost(events) => {
                self.events_lost += events;
                return;
            }
            // Malformed packets are counted by reason where they are decoded; none has damaged
            // data only.
            Count::Announced(Purpose::Ask)
            | Count::Probed
            | Count::Malformed
            | Count::DamagedRequest
            | Count::DamagedReply => return,
        };
        *counter += 1;
    }

    fn set_stragglers(&mut self, number: u64) {
        self.run_stragglers = number;
    }

    fn puts_served(&self) -> u64 {
        self.writes_served
    }

    fn for_each(&self, visit: &mut dyn FnMut(&str, u64)) {
        Self::for_each(self, visit);
    }
}
