//! State that terminals share, independent of the packet format.

use std::collections::VecDeque;

use super::exchange::{Arrivals, Exchange};
use super::message_trace::MessageTrace;
use super::model::{CycleModel, NO_SLOT};
use super::pattern::Destinations;
use super::source::{Births, NEVER, Source};
use super::tally::{Latencies, Tally};
use crate::kit::RoundRobin;
use crate::sim::TraceHash;

/// State shared by all terminals of a partition.
#[derive(Clone, Debug)]
pub struct Shared<M: CycleModel> {
    pub births: Births,
    pub destinations: Destinations,
    pub request_reply: bool,
    /// The machine's packet format.
    pub format: M::Format,
    /// Messages born in this range are measured.
    pub(crate) measured: core::ops::Range<u64>,
    pub tally: Tally,
    /// Latencies of packets born in that range.
    pub(crate) latencies: Latencies,
    /// Latencies of packets that arrived in that range.
    pub(crate) arrived_latencies: Latencies,
    /// The flow being traced, if any.
    pub message_trace: Option<Box<MessageTrace>>,
}

impl<M: CycleModel> Shared<M> {
    pub fn new(births: Births, destinations: Destinations, reply: bool, format: M::Format) -> Self {
        Self {
            births,
            destinations,
            request_reply: reply,
            format,
            measured: 0..0,
            tally: Tally::default(),
            latencies: Latencies::new(),
            arrived_latencies: Latencies::new(),
            message_trace: None,
        }
    }

    /// Measures only messages born in this range from now on.
    pub(crate) fn begin_measurement(&mut self, measured: core::ops::Range<u64>) {
        self.measured = measured;
        self.tally.measured_sent = 0;
        self.tally.measured_arrived = 0;
        for latencies in [&mut self.latencies, &mut self.arrived_latencies] {
            latencies.clear();
        }
    }

    /// The source of a terminal, starting in cycle `begin`.
    pub fn source(&self, seed: u64, number: u64, begin: u64) -> Source {
        let silent = self.destinations.is_silent(number);
        let mut source = Source::new(seed, number, silent, &self.births);
        source.reschedule(0, begin);
        source
    }

    /// Counts a message, born in cycle `born`, whose last packet arrived in cycle `now`.
    #[inline]
    pub fn message_arrived(&mut self, born: u64, now: u64) {
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

    /// Counts a request with this key, born in cycle `born`, that starts to be sent.
    #[inline]
    pub fn request_sent(&mut self, key: u64, born: u64) {
        let tally = &mut self.tally;
        tally.sent_keys = tally.sent_keys.wrapping_add(key);
        tally.sent_births = tally.sent_births.wrapping_add(born);
        tally.requests_sent += 1;
        tally.measured_sent += u64::from(self.measured.contains(&born));
    }

    /// Counts a reply with this key that starts to be sent.
    #[inline]
    pub fn reply_sent(&mut self, key: u64) {
        let tally = &mut self.tally;
        tally.sent_keys = tally.sent_keys.wrapping_add(key);
        tally.replies_sent += 1;
    }
}

/// State that every terminal has.
#[derive(Debug)]
pub struct Common<M: CycleModel> {
    /// Number among all terminals: slice times processors plus position of the processor.
    pub number: u64,
    pub source: Source,
    pub trace: TraceHash,
    /// Window for which the calendar holds this terminal.
    pub(crate) scheduled: u64,
    pub sent_phits: u64,
    /// Replies to send, with the first cycle in which they may leave.
    pub replies: VecDeque<(u64, M::Reply)>,
    /// Whether a request or a reply is next.
    pub turn: RoundRobin,
    /// The packet being sent on a direct link, and how many of its phits have left.
    pub packet: Option<(M::Packet, u8)>,
    /// Slot of the direct link's other end.
    pub peer: u32,
    /// Whether the terminal's link accepts packets.
    pub is_up: bool,
}

impl<M: CycleModel> Common<M> {
    /// A terminal without a direct link.
    pub fn new(number: u64, source: Source) -> Self {
        Self {
            number,
            source,
            trace: TraceHash::default(),
            scheduled: NEVER,
            sent_phits: 0,
            replies: VecDeque::new(),
            turn: RoundRobin::new(),
            packet: None,
            peer: NO_SLOT,
            is_up: true,
        }
    }

    /// First cycle in which the next reply may be sent; [`NEVER`] if there is none.
    pub fn reply_due(&self) -> u64 {
        self.replies.front().map_or(NEVER, |&(ready, _)| ready)
    }

    /// The first cycle with something to send, not before `end`, the end of a window.
    pub fn next_cycle(&self, end: u64) -> u64 {
        if self.packet.is_some() {
            return end;
        }
        self.source.head().birth.min(self.reply_due()).max(end)
    }

    /// Sends and counts a window's phits and credits on a lane of the direct link.
    pub fn send(
        &mut self,
        lane: u32,
        out: Arrivals<M::Direct>,
        exchange: &mut Exchange<M::Direct>,
        shared: &mut Shared<M>,
    ) {
        if out != Arrivals::default() {
            let phits = u64::from(out.phits.count_ones());
            self.sent_phits += phits;
            shared.tally.sent_phits += phits;
            exchange.send(self.peer + lane, out);
        }
    }
}

/// The last request of each flow that arrived at a terminal. A flow is what the machine keeps in
/// order: requests of one source on one path.
///
/// Only a packet in flight at the same time can overtake another, so the flows of recent requests
/// suffice: 256 of them, in pairs whose older entry is replaced. Flows with keys below 256 never
/// replace each other.
#[derive(Debug)]
pub struct LastSeen {
    pairs: Box<[[Seen; 2]; PAIRS]>,
    /// If set, the next request is held back until another of its flow arrives, which then
    /// overtakes it.
    #[cfg(any(test, feature = "testing"))]
    swaps: Option<Option<(u32, u32)>>,
}

/// The key of a flow, and the number of its last request.
type Seen = (u32, u32);

/// Pairs of flows kept per terminal.
const PAIRS: usize = 128;

impl Default for LastSeen {
    fn default() -> Self {
        Self::new()
    }
}

impl LastSeen {
    /// No requests have been seen.
    pub fn new() -> Self {
        Self {
            pairs: Box::new([[(u32::MAX, 0); 2]; PAIRS]),
            #[cfg(any(test, feature = "testing"))]
            swaps: None,
        }
    }

    /// Whether request `sequence` of the flow `key` arrived after a later one. Numbers have the
    /// bits of `mask`.
    pub fn is_overtaken(&mut self, key: u32, sequence: u32, mask: u32) -> bool {
        #[cfg(any(test, feature = "testing"))]
        let Some((key, sequence)) = self.swapped(key, sequence, mask) else {
            return false;
        };
        self.check(key, sequence, mask)
    }

    fn check(&mut self, key: u32, sequence: u32, mask: u32) -> bool {
        let spread = key ^ (key >> 16).wrapping_mul(0x9e37_79b9) >> 20;
        let [newer, older] = &mut self.pairs[spread as usize % PAIRS];
        if newer.0 != key {
            core::mem::swap(newer, older);
        }
        let (last_key, last) = core::mem::replace(newer, (key, sequence));
        let ahead = sequence.wrapping_sub(last) & mask;
        last_key == key && (ahead == 0 || ahead > mask / 2)
    }

    /// The request to check instead of this one; `None` if this one is held back. When a later
    /// request of its flow arrives, checks that here and returns the held one.
    #[cfg(any(test, feature = "testing"))]
    fn swapped(&mut self, key: u32, sequence: u32, mask: u32) -> Option<(u32, u32)> {
        match self.swaps {
            Some(None) => {
                self.swaps = Some(Some((key, sequence)));
                None
            }
            Some(Some(held)) if held.0 == key => {
                self.swaps = None;
                self.check(key, sequence, mask);
                Some(held)
            }
            _ => Some((key, sequence)),
        }
    }

    /// Swaps the next request with the one after it in its flow, as if that had overtaken it.
    #[cfg(any(test, feature = "testing"))]
    pub fn swap_next(&mut self) {
        self.swaps = Some(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overtaking_within_256_flows_is_noticed() {
        let mut seen = LastSeen::new();
        for key in 0..256 {
            assert!(!seen.is_overtaken(key, 10, u32::MAX));
        }
        for key in 0..256 {
            assert!(!seen.is_overtaken(key, 12, u32::MAX), "{key}");
            assert!(seen.is_overtaken(key, 11, u32::MAX), "{key}");
        }
    }

    #[test]
    fn the_flows_of_the_last_packets_are_known_whatever_their_keys() {
        // 20 other flows arrive between two packets of one flow, with keys of 10,000 sources and 32
        // paths. They rarely evict it.
        let mut rng = crate::rng::Rng::new(1, 1);
        let mut key = || rng.next_u64() as u32 & 0x001f_3fff;
        let mut seen = LastSeen::new();
        let mut found = 0;
        for _ in 0..1_000 {
            let flow = key();
            seen.is_overtaken(flow, 2, u32::MAX);
            for number in 0..20 {
                seen.is_overtaken(key(), number, u32::MAX);
            }
            found += u32::from(seen.is_overtaken(flow, 1, u32::MAX));
        }
        assert!(found > 970, "{found}");
    }
}
