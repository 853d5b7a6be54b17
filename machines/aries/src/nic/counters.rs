//! Counters of one Aries NIC.

use phitwire_framing::aries::packet::{Command, PacketError, Status};

use phitwire::kit::counters::counters;

counters! {
    /// Events at one Aries NIC since its creation. All counters only grow.
    pub struct AriesNicCounters {
        /// Puts requested by this node, block transfers included.
        puts_posted,
        /// Gets requested by this node, block transfers included.
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
        /// Requests that timed out before the link took them and were never sent.
        requests_unsent,
        /// Responses to requests that were given up.
        late_responses,
        /// Responses to requests that do not exist (any more).
        unknown_responses,
        /// Responses to requests of another period: very late, or a predecessor's.
        stale_responses,
        /// Responses with the wrong amount of data for their request.
        mismatched_responses,
        /// Responses poisoned or with a wrong packet CRC.
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
        /// Requests of other nodes rejected: unknown memory domain handle, or message.
        refused_bad_mdh,
        /// Requests of other nodes rejected: wrong protection key.
        refused_bad_key,
        /// Requests of other nodes rejected: beyond the end of the domain, or of the receive.
        refused_out_of_bounds,
        /// Requests of other nodes rejected: not aligned.
        refused_misaligned,
        /// Requests of other nodes rejected: not permitted in the domain, or no such operation.
        refused_unsupported,
        /// Requests of other nodes rejected: wrong packet CRC.
        refused_bad_crc,
        /// Requests of other nodes rejected: poisoned.
        refused_poisoned,
        /// Messages rejected: no receive posted.
        refused_not_ready,
        /// Requests of other nodes rejected: no room for them now.
        refused_busy,
        /// Of these, announcements of traffic runs older than the latest of their source.
        runs_outdated,
        /// Requests whose virtual handle was translated.
        handles_translated,
        /// Atomic operations on a word in the AMO cache.
        amo_cache_hits,
        /// Atomic operations on a word that was not in the AMO cache.
        amo_cache_misses,
        /// Words written to memory by lazy updates.
        amo_cache_writebacks,
        /// Events put into the target's completion queue.
        target_events,
        /// Events for which the target's completion queue had no room.
        target_event_overflows,
        /// Transactions that ended with every request done.
        transactions_done,
        /// Transactions that ended with a failure.
        transactions_failed,
        /// Block transfers that ended with every byte acknowledged.
        transfers_done,
        /// Block transfers that failed.
        transfers_failed,
        /// Announcements of messages repeated because no receive was posted.
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
        /// Contributions and results accepted before, or of a removed tree.
        collective_duplicates,
        /// Contributions and results of nodes outside the tree, or with a wrong key.
        collective_strangers,
        /// Messages to neighbours in a reduction tree repeated.
        collective_retries,
        /// Messages to neighbours answered by their next message.
        collective_answered,
        /// Delayed answers to neighbours sent as responses because no message carried them.
        collective_answers,
        /// Reduction trees that failed.
        collective_breaks,
        /// Responses sent as part of another one.
        responses_joined,
        /// Times that requests stayed in the input buffer because responses could not leave.
        response_stalls,
        /// Packets discarded: for another node.
        discard_misrouted,
        /// Flits discarded: no head where a packet should begin.
        discard_no_head,
        /// Packets discarded: number of flits differs from the head's.
        discard_length,
        /// Packets discarded: a response among requests, or the reverse.
        discard_direction,
        /// Packets discarded: number of flits does not match the command or status.
        discard_shape,
        /// Packets discarded: reserved command.
        discard_command,
        /// Packets discarded: reserved status.
        discard_status,
        /// Packets discarded: padding not zero despite a good CRC.
        discard_padding,
        /// Requests discarded: poisoned, or wrong CRC, with a header that names nobody to answer.
        discard_damaged,
        /// Events lost because nobody fetched them.
        events_lost,
    }
}

impl AriesNicCounters {
    /// Counts an unreadable packet.
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

    /// Counts a request of this node.
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
