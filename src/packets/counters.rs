//! Counters of NICs.

use crate::kit::counters::counters;

counters! {
    /// Counts of one NIC since it was made. All counters only grow.
    pub struct TransferNicCounters {
        /// Requests that got a reply.
        requests_done,
        /// Received packets that are not transfers of NICs.
        discard_malformed,
        /// Requests that arrived damaged, and were not served.
        damaged_requests,
        /// Replies that arrived damaged: their contents are unknown.
        damaged_answers,
        /// Replies to requests that had been given up, or do not exist.
        late_responses,
        /// Replies without the data requested; the request keeps waiting.
        mismatched_responses,
        /// Puts served.
        puts_served,
        /// Atomic operations served.
        atomics_served,
        /// Messages accepted into queues.
        messages_taken,
        /// Rejected messages: the queue was full, or not open.
        messages_refused,
        /// Events lost because they were not fetched in time.
        events_lost,
    }
}
