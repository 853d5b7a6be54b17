//! Counters of NICs.

use core::fmt::Debug;

use super::transfer::{Kind, Refusal};
use crate::kit::counters::counters;
use crate::nic::checker::Purpose;

/// An occurrence that a NIC may count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// A request of this kind was accepted for sending.
    Posted(Kind),
    /// A request of the first kind ended with a reply of the second.
    Ended(Kind, Kind),
    /// A request ended without a reply.
    TimedOut,
    /// A request timed out in the queue of its link, and was not sent.
    Unsent,
    /// A reply arrived after its request had timed out.
    Late,
    /// A reply names a request of another period.
    Stale,
    /// A reply names no request.
    Unknown,
    /// A reply does not fit its request, which keeps waiting.
    Mismatched,
    /// An arrived packet holds no transfer.
    Malformed,
    /// An arrived transfer is addressed to another NIC.
    Misrouted,
    DamagedRequest,
    DamagedReply,
    /// A request of this kind was served in the memory or a queue.
    Served(Kind),
    /// The put of a probe was served.
    Probed,
    /// An announcement was accepted.
    Announced(Purpose),
    /// A request of this kind was rejected.
    Refused(Kind, Refusal),
    /// This many events were lost.
    EventsLost(u64),
}

/// The counters of a machine's NICs.
pub trait NicCounting: Clone + Debug + Default + Send + Sync + 'static {
    /// Counts an occurrence, if the machine has a counter for it.
    fn count(&mut self, what: Count);

    /// Sets the number of messages that arrived from replaced traffic runs.
    fn set_stragglers(&mut self, _: u64) {}

    /// Puts of other NICs served here.
    fn puts_served(&self) -> u64;

    /// Calls `visit` with the name and value of every counter.
    fn for_each(&self, visit: &mut dyn FnMut(&str, u64));
}

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

impl NicCounting for TransferNicCounters {
    #[inline]
    fn count(&mut self, what: Count) {
        let counter = match what {
            Count::Ended(..) => &mut self.requests_done,
            Count::Late | Count::Stale | Count::Unknown => &mut self.late_responses,
            Count::Mismatched => &mut self.mismatched_responses,
            Count::Malformed => &mut self.discard_malformed,
            Count::DamagedRequest => &mut self.damaged_requests,
            Count::DamagedReply => &mut self.damaged_answers,
            Count::Served(Kind::Put) | Count::Probed | Count::Announced(_) => &mut self.puts_served,
            Count::Served(Kind::Message) => &mut self.messages_taken,
            Count::Served(Kind::Get) => return,
            Count::Served(_) => &mut self.atomics_served,
            Count::Refused(Kind::Message, Refusal::Full) => &mut self.messages_refused,
            Count::EventsLost(events) => {
                self.events_lost += events;
                return;
            }
            _ => return,
        };
        *counter += 1;
    }

    fn puts_served(&self) -> u64 {
        self.puts_served
    }

    fn for_each(&self, visit: &mut dyn FnMut(&str, u64)) {
        Self::for_each(self, visit);
    }
}
