//! What network interfaces count.

use crate::kit::counters::counters;

counters! {
    /// What happened at one network interface since it was made. All counters only grow.
    pub struct TransferNicCounters {
        /// Requests that were answered.
        requests_done,
        /// What came and is no transfer that network interfaces send.
        discard_malformed,
        /// Requests that came damaged, and were not carried out.
        damaged_requests,
        /// Answers that came damaged: nobody knows what they said.
        damaged_answers,
        /// Answers to requests that had been given up, or do not exist.
        late_responses,
        /// Answers that do not carry what the request asked for; it goes on waiting.
        mismatched_responses,
        /// Puts carried out.
        puts_served,
        /// Atomic operations carried out.
        atomics_served,
        /// Messages taken into queues.
        messages_taken,
        /// Messages refused: the queue was full, or not open.
        messages_refused,
        /// Events lost because nobody fetched them.
        events_lost,
    }
}
