//! The receiving half of a link of whole packets.

use super::frame::{Carried, Control};
use super::input::PacketInput;
use crate::link::LinkCounters;
use crate::link::lanes::LaneWatch;
use crate::packets::packet::{MAX_VCS, Packet};
use crate::time::{Duration, Time};

/// What is received.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) lanes: LaneWatch,
    /// When the peer has to be told something.
    pub(crate) tell: Time,
    /// The peer asked. It is answered in a frame of its own: long ones may be swallowed.
    pub(crate) asked: bool,
    delay: Duration,
    /// Buffers of a virtual channel.
    buffers: u64,
    /// The number of the packet expected next.
    expected: u64,
    /// How many packets of each virtual channel there are buffers for in the whole session, how
    /// many came, and for how many there were buffers as the peer was told last.
    limits: [u64; MAX_VCS],
    taken: [u64; MAX_VCS],
    told: [u64; MAX_VCS],
    missing: bool,
    /// The packet that the peer has been asked for.
    asked_for: Option<u64>,
}

impl Receiver {
    /// Nothing received, with that many buffers for each virtual channel, of which those of `limits`
    /// are free.
    pub(crate) fn new(
        (buffers, limits): (u64, [u64; MAX_VCS]),
        lanes: LaneWatch,
        delay: Duration,
        now: Time,
    ) -> Self {
        Self {
            lanes,
            tell: now,
            asked: false,
            delay,
            buffers,
            expected: 0,
            limits,
            taken: [0; MAX_VCS],
            told: [0; MAX_VCS],
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

    /// The number of the packet that does not come, if one is missing.
    pub(crate) fn missing(&self) -> Option<u64> {
        self.missing.then_some(self.expected)
    }

    /// The peer has to be told of a change: at once if it may be waiting for that.
    pub(crate) fn changed(&mut self, now: Time) {
        let waits = |vc: usize| {
            let (limit, told, taken) = (self.limits[vc], self.told[vc], self.taken[vc]);
            // No more than one buffer left as far as it knows, or many more than it knows.
            limit > 0 && (told <= taken + 1 || limit - told >= self.buffers.div_ceil(4))
        };
        let asks = self.missing && self.missing() != self.asked_for;
        let waits = asks || (0..MAX_VCS).any(waits);
        let at = if waits { now } else { now + self.delay };
        self.tell = at.min(self.tell);
    }

    /// `freed` buffers of `vc` are free again.
    pub(crate) fn freed(&mut self, vc: usize, freed: u32, now: Time) {
        self.limits[vc] += u64::from(freed);
        self.changed(now);
    }

    /// Whether a peer that was told so can have begun a frame with packet `seq`.
    pub(crate) fn is_possible(&self, seq: u64) -> bool {
        seq <= self.limits.iter().sum()
    }

    /// Says how things stand, in a frame that leaves now.
    pub(crate) fn say(&mut self) -> Control {
        (self.told, self.tell, self.asked) = (self.limits, Time::NEVER, false);
        self.asked_for = self.missing();
        Control {
            ack: self.expected,
            missing: self.missing,
            limits: self.limits,
            ..Control::default()
        }
    }

    /// Takes packets, the first of which is number `seq`. Returns whether all could be read that
    /// could be used.
    pub(crate) fn take<'a, P: Packet>(
        &mut self,
        now: Time,
        seq: u64,
        packets: impl Iterator<Item = Carried<'a>>,
        input: &mut PacketInput<P>,
        counters: &mut LinkCounters,
    ) -> bool {
        self.missing = seq > self.expected;
        let (mut any, mut readable) = (false, true);
        for (number, carried) in (seq..).zip(packets) {
            any = true;
            if number != self.expected {
                continue;
            }
            let Some(packet) = carried.read::<P>() else {
                counters.rx_crc_errors += 1;
                let charged = self.lanes.rejected(number, carried.words());
                self.lanes.note(charged, 1, counters);
                (self.missing, readable) = (true, false);
                break;
            };
            if self.lanes.waits() {
                let charged = self.lanes.accepted(number, carried.words());
                self.lanes.note(charged, 1, counters);
            }
            let vc = packet.vc();
            // No correct peer sends a packet that has no place; one that is correct sends it again.
            if vc >= P::VCS {
                counters.rx_malformed_packets += 1;
                break;
            }
            if self.taken[vc] == self.limits[vc] {
                counters.rx_overflows += 1;
                break;
            }
            input.push(packet);
            self.expected += 1;
            self.taken[vc] += 1;
            counters.rx_packets += 1;
        }
        if self.missing || any {
            self.changed(now);
        }
        readable
    }
}
