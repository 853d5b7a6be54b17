//! What terminals have in common, whatever their packets look like.

use super::model::CycleModel;
use super::pattern::Destinations;
use super::source::{Births, Source};
use super::tally::{Latencies, Tally};
use crate::sim::TraceHash;

/// What all terminals of a partition share.
#[derive(Clone, Debug)]
pub struct Shared<M: CycleModel> {
    pub(crate) births: Births,
    pub(crate) destinations: Destinations,
    pub(crate) request_reply: bool,
    /// What packets look like.
    pub(crate) format: M::Format,
    /// Births in this range are measured.
    pub(crate) measured: core::ops::Range<u64>,
    pub(crate) tally: Tally,
    /// Latencies of the packets born in that range.
    pub(crate) latencies: Latencies,
    /// Latencies of the packets that arrived in that range.
    pub(crate) arrived_latencies: Latencies,
}

impl<M: CycleModel> Shared<M> {
    pub(crate) fn new(
        births: Births,
        destinations: Destinations,
        reply: bool,
        format: M::Format,
    ) -> Self {
        Self {
            births,
            destinations,
            request_reply: reply,
            format,
            measured: 0..0,
            tally: Tally::default(),
            latencies: Latencies::new(),
            arrived_latencies: Latencies::new(),
        }
    }

    /// The last packet of a message that was born in cycle `born` has arrived in cycle `now`.
    #[inline]
    pub(crate) fn message_arrived(&mut self, born: u64, now: u64) {
        self.tally.latency_cycles += now - born;
        self.tally.latency_packets += 1;
        self.tally.arrived_births = self.tally.arrived_births.wrapping_add(born);
        if self.measured.contains(&now) {
            self.arrived_latencies.record(now - born);
        }
        if self.measured.contains(&born) {
            self.tally.measured_arrived += 1;
            self.latencies.record(now - born);
        }
    }

    /// A request with that key, born in cycle `born`, is begun to be sent.
    #[inline]
    pub(crate) fn request_sent(&mut self, key: u64, born: u64) {
        let tally = &mut self.tally;
        tally.sent_keys = tally.sent_keys.wrapping_add(key);
        tally.sent_births = tally.sent_births.wrapping_add(born);
        tally.requests_sent += 1;
        tally.measured_sent += u64::from(self.measured.contains(&born));
    }

    /// A reply with that key is begun to be sent.
    #[inline]
    pub(crate) fn reply_sent(&mut self, key: u64) {
        let tally = &mut self.tally;
        tally.sent_keys = tally.sent_keys.wrapping_add(key);
        tally.replies_sent += 1;
    }
}

/// What every terminal has.
#[derive(Debug)]
pub struct Common {
    /// Number among all terminals: slice times processors plus place of the processor.
    pub(crate) number: u64,
    pub(crate) source: Source,
    pub(crate) trace: TraceHash,
    /// Window for which the calendar has this terminal.
    pub(crate) scheduled: u64,
    pub(crate) sent_phits: u64,
}

impl Common {
    pub(crate) fn new(number: u64, source: Source) -> Self {
        Self {
            number,
            source,
            trace: TraceHash::default(),
            scheduled: super::source::NEVER,
            sent_phits: 0,
        }
    }
}
