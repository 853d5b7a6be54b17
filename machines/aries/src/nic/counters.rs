use phitwire_framing::aries::packet::{Command, PacketError, Status};

use phitwire::kit::counters::counters;

counters! {
    /// Counters of one Aries NIC since its creation. They only grow.
    pub struct AriesNicCounters {
        /// Puts requested by this node, including those of block transfers.
        puts_posted,
        /// Gets requested by this node, including those of block transfers.
        gets_posted,
        /// Atomic operations requested by this node.
        atomics_posted,
        /// Pieces of messages sent by this node.
        messages_posted,
        /// Control requests of this node: collectives, transaction events, and announcements and
        /// queries of traffic runs.
        controls_posted,
        /// Requests that the target carried out.
        requests_done,
        /// Requests that the target rejected.
        requests_refused,
        /// Requests that timed out.
        requests_timed_out,
        /// Requests that timed out before the link accepted them and were never sent.
        requests_unsent,
        /// Responses that arrived after their request was given up.
        late_responses,
        /// Responses to requests that do not exist or no longer exist.
        unknown_responses,
        /// Responses to requests of another period: very late, or to a predecessor.
        stale_responses,
        /// Responses whose amount of data does not match their request.
        mismatched_responses,
        /// Responses that were poisoned or had a wrong packet CRC.
        damaged_responses,
        /// Flag words written with the data of a get.
        flags_written,
        /// Puts of other nodes carried out in this memory.
        puts_served,
        /// Gets of other nodes carried out in this memory.
        gets_served,
        /// Atomic operations of other nodes carried out in this memory.
        atomics_served,
        /// Pieces of messages received into posted receives.
        messages_served,
        /// Control requests of other nodes accepted.
        controls_served,
        /// Rejected requests of other nodes: unknown memory domain handle, or unknown message.
        refused_bad_mdh,
        /// Rejected requests of other nodes: wrong protection key.
        refused_bad_key,
        /// Rejected requests of other nodes: beyond the end of the domain or of the receive.
        refused_out_of_bounds,
        /// Rejected requests of other nodes: not aligned.
        refused_misaligned,
        /// Rejected requests of other nodes: not permitted in the domain, or unknown operation.
        refused_unsupported,
        /// Rejected requests of other nodes: wrong packet CRC.
        refused_bad_crc,
        /// Rejected requests of other nodes: poisoned.
        refused_poisoned,
        /// Rejected messages: no receive was posted.
        refused_not_ready,
        /// Rejected requests of other nodes: no room at present.
        refused_busy,
        /// Among the rejected requests, announcements of traffic runs that a later run of their
        /// source had replaced.
        runs_outdated,
        /// Requests whose virtual handle was translated.
        handles_translated,
        /// Atomic operations on a word in the AMO cache.
        amo_cache_hits,
        /// Atomic operations on a word that was not in the AMO cache.
        amo_cache_misses,
        /// Words written to memory by lazy updates.
        amo_cache_writebacks,
        /// Events added to the target's completion queue.
        target_events,
        /// Events lost because the target's completion queue was full.
        target_event_overflows,
        /// Transactions that ended with every request carried out.
        transactions_done,
        /// Transactions that ended with a failure.
        transactions_failed,
        /// Block transfers that ended with every byte acknowledged.
        transfers_done,
        /// Block transfers that failed.
        transfers_failed,
        /// Repeated announcements of messages for which no receive was posted.
        sends_retried,
        /// Posted receives filled by a message.
        receives_done,
        /// Posted receives whose message did not arrive whole.
        receives_failed,
        /// Collective operations joined by this node.
        collectives_joined,
        /// Collective operations that ended here with a result.
        collectives_done,
        /// Collective operations that ended here without a result.
        collectives_failed,
        /// Contributions of children accepted.
        collective_contributions,
        /// Results of parents accepted.
        collective_results,
        /// Contributions and results that had been accepted before, or belong to a removed tree.
        collective_duplicates,
        /// Contributions and results from nodes outside the tree, or with a wrong key.
        collective_strangers,
        /// Repeated messages to neighbours in a reduction tree.
        collective_retries,
        /// Messages to neighbours that their next message answered.
        collective_answered,
        /// Delayed responses to neighbours that were sent separately because no message carried
        /// them.
        collective_answers,
        /// Reduction trees that failed.
        collective_breaks,
        /// Responses that were sent as part of another one.
        responses_joined,
        /// Times that requests stayed in the input buffer because responses could not be sent.
        response_stalls,
        /// Packets discarded: addressed to another node.
        discard_misrouted,
        /// Flits discarded: no head at the start of a packet.
        discard_no_head,
        /// Packets discarded: number of flits differs from the length in the head.
        discard_length,
        /// Packets discarded: a response in a request channel, or the reverse.
        discard_direction,
        /// Packets discarded: number of flits does not fit the command or status.
        discard_shape,
        /// Packets discarded: reserved command.
        discard_command,
        /// Packets discarded: reserved status.
        discard_status,
        /// Packets discarded: padding is not zero despite a correct CRC.
        discard_padding,
        /// Requests discarded: poisoned or with a wrong CRC, and without a valid source to answer.
        discard_damaged,
        /// Events lost because they were not fetched in time.
        events_lost,
    }
}

impl AriesNicCounters {
    #[cold]
    pub(super) fn malformed(&mut self, error: PacketError) {
        let counter = match error {
            PacketError::NoHead => &mut self.discard_no_head,
            PacketError::Length => &mut self.discard_length,
            PacketError::Direction => &mut self.discard_direction,
            PacketError::Shape => &mut self.discard_shape,
            PacketError::ReservedCommand => &mut self.discard_command,
            PacketError::ReservedStatus => &mut self.discard_status,
            PacketError::Padding => &mut self.discard_padding,
            PacketError::Poisoned | PacketError::Crc => &mut self.discard_damaged,
        };
        *counter += 1;
    }

    #[inline]
    pub(super) fn posted(&mut self, command: Command) {
        let counter = match command {
            Command::Put { .. } => &mut self.puts_posted,
            Command::Get { .. } => &mut self.gets_posted,
            Command::Amo { .. } => &mut self.atomics_posted,
            Command::Message { .. } => &mut self.messages_posted,
            Command::Control { .. } => &mut self.controls_posted,
        };
        *counter += 1;
    }

    /// Counts a request of another node by its outcome.
    #[inline]
    pub(super) fn served(&mut self, command: Command, status: Status) {
        let counter = match (status, command) {
            (Status::Done, Command::Put { .. }) => &mut self.puts_served,
            (Status::Done, Command::Get { .. }) => &mut self.gets_served,
            (Status::Done, Command::Amo { .. }) => &mut self.atomics_served,
            (Status::Done, Command::Message { .. }) => &mut self.messages_served,
            (Status::Done, Command::Control { .. }) => &mut self.controls_served,
            (Status::BadMdh, _) => &mut self.refused_bad_mdh,
            (Status::BadKey, _) => &mut self.refused_bad_key,
            (Status::OutOfBounds, _) => &mut self.refused_out_of_bounds,
            (Status::Misaligned, _) => &mut self.refused_misaligned,
            (Status::Unsupported, _) => &mut self.refused_unsupported,
            (Status::BadCrc, _) => &mut self.refused_bad_crc,
            (Status::Poisoned, _) => &mut self.refused_poisoned,
            (Status::NotReady, _) => &mut self.refused_not_ready,
            (Status::Busy, _) => &mut self.refused_busy,
        };
        *counter += 1;
    }
}
