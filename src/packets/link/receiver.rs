//! The receiving half of a link of whole packets.

use super::frame::{Carried, Control};
use super::input::PacketInput;
use crate::link::MAX_VCS;
use crate::link::common::Common;
use crate::packets::packet::Packet;
use crate::time::{Duration, Time};

/// Receiving state of a session.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// When the peer must be informed.
    pub(crate) announce_at: Time,
    /// The peer probed. The reply carries no packets, since long frames may be lost.
    pub(crate) asked: bool,
    delay: Duration,
    /// Buffers per virtual channel.
    buffers: u64,
    /// Number of the next expected packet.
    expected: u64,
    /// Packets, per virtual channel, for which there have been buffers. Like the next two, a count
    /// from the start of the session.
    limits: [u64; MAX_VCS],
    /// Packets that arrived.
    taken: [u64; MAX_VCS],
    /// The limit last reported to the peer.
    announced: [u64; MAX_VCS],
    missing: bool,
    /// The packet whose resend was requested.
    asked_for: Option<u64>,
}

impl Receiver {
    /// Starts a session with `buffers` buffers per virtual channel, of which `limits` are free.
    pub(crate) fn new(
        (buffers, limits): (u64, [u64; MAX_VCS]),
        delay: Duration,
        now: Time,
    ) -> Self {
        debug_assert!(
            limits.iter().all(|limit| *limit <= buffers),
            "more buffers offered than exist"
        );
        Self {
            announce_at: now,
            asked: false,
            delay,
            buffers,
            expected: 0,
            limits,
            taken: [0; MAX_VCS],
            announced: [0; MAX_VCS],
            missing: false,
            asked_for: None,
        }
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn expected(&self) -> u64 {
        self.expected
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn limits(&self) -> [u64; MAX_VCS] {
        self.limits
    }

    /// Number of the missing packet, if there is one.
    pub(crate) fn missing(&self) -> Option<u64> {
        self.missing.then_some(self.expected)
    }

    /// Schedules a report of a change to the peer: at once if the peer may be waiting for it.
    pub(crate) fn changed(&mut self, now: Time) {
        let waits = |vc: usize| {
            let (limit, announced, taken) = (self.limits[vc], self.announced[vc], self.taken[vc]);
            // Urgent if the peer knows of at most one free buffer, or of many fewer than are free.
            limit > 0 && (announced <= taken + 1 || limit - announced >= self.buffers.div_ceil(4))
        };
        let asks = self.missing && self.missing() != self.asked_for;
        let waits = asks || (0..MAX_VCS).any(waits);
        let at = if waits { now } else { now + self.delay };
        self.announce_at = at.min(self.announce_at);
    }

    /// `freed` buffers of `vc` are free again.
    pub(crate) fn freed(&mut self, vc: usize, freed: u32, now: Time) {
        self.limits[vc] += u64::from(freed);
        debug_assert!(
            self.limits[vc] <= self.taken[vc] + self.buffers,
            "more buffers freed than exist"
        );
        self.changed(now);
    }

    /// Whether a peer that knows these limits can have begun a frame with packet `seq`.
    pub(crate) fn is_possible(&self, seq: u64) -> bool {
        seq <= self.limits.iter().sum()
    }

    /// The current state, for a frame that leaves now.
    pub(crate) fn take_control(&mut self) -> Control {
        debug_assert!(
            self.announced
                .iter()
                .zip(self.limits)
                .all(|(announced, limit)| *announced <= limit),
            "limits only grow"
        );
        (self.announced, self.announce_at, self.asked) = (self.limits, Time::NEVER, false);
        self.asked_for = self.missing();
        Control {
            ack: self.expected,
            missing: self.missing,
            limits: self.limits,
            ..Control::default()
        }
    }

    /// Takes packets, numbered from `seq`. Returns false if an expected packet was unreadable.
    pub(crate) fn take<'a, P: Packet>(
        &mut self,
        now: Time,
        seq: u64,
        packets: impl Iterator<Item = Carried<'a>>,
        input: &mut PacketInput<P>,
        link: &mut Common,
    ) -> bool {
        self.missing = seq > self.expected;
        let (mut any, mut readable) = (false, true);
        for (number, carried) in (seq..).zip(packets) {
            any = true;
            if number != self.expected {
                continue;
            }
            let Some(packet) = carried.read::<P>() else {
                link.counters.rx_crc_errors += 1;
                link.unit_rejected(number, carried.words(P::LANES));
                (self.missing, readable) = (true, false);
                break;
            };
            if link.lanes.waits() {
                link.unit_accepted(number, carried.words(P::LANES));
            }
            let vc = packet.vc();
            // Reject a packet without a valid channel or a buffer: no correct peer sends one. It
            // stays unacknowledged, so the peer resends it.
            if vc >= P::VCS {
                link.counters.rx_malformed_packets += 1;
                break;
            }
            if self.taken[vc] == self.limits[vc] {
                link.counters.rx_overflows += 1;
                break;
            }
            input.push(packet);
            self.expected += 1;
            self.taken[vc] += 1;
            link.counters.rx_packets += 1;
        }
        debug_assert!(
            self.taken
                .iter()
                .zip(self.limits)
                .all(|(n, limit)| *n <= limit),
            "every packet has its buffer"
        );
        debug_assert_eq!(
            self.expected,
            self.taken.iter().sum::<u64>(),
            "packets are numbered by arrival"
        );
        if self.missing || any {
            self.changed(now);
        }
        readable
    }
}
