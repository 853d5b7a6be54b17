//! The sending half of a link of whole packets.

use std::collections::VecDeque;

use super::frame::Control;
use crate::link::MAX_VCS;
use crate::link::outgoing::Outgoing;
use crate::packets::packet::Packet;
use crate::time::{Duration, Time};

/// Sending state of a session.
#[derive(Debug)]
pub(crate) struct Sender<P> {
    /// Packets that the peer has not acknowledged; the first is number `acked`.
    packets: VecDeque<P>,
    acked: u64,
    /// Number of the next packet to send.
    cursor: u64,
    /// Number of the first packet never sent.
    fresh: u64,
    /// Packets, per virtual channel, for which the peer has had buffers. Like the next two, a count
    /// from the start of the session.
    limits: [u64; MAX_VCS],
    /// Packets that the peer took.
    taken: [u64; MAX_VCS],
    /// Packets pushed.
    pushed: [u64; MAX_VCS],
    /// The peer's buffers per virtual channel.
    offered: u64,
    /// The packet whose acknowledgement will be timed, and when it was sent.
    timed: Option<(u64, Time)>,
    rewound: Time,
}

/// The effect of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ControlEffect {
    /// Packets acknowledged.
    pub(crate) acked: u64,
    pub(crate) rewinds: bool,
}

impl<P: Packet> Sender<P> {
    /// Starts a session with a peer that offers `offered` buffers per virtual channel.
    pub(crate) fn new(offered: u64, now: Time) -> Self {
        Self {
            packets: VecDeque::new(),
            acked: 0,
            cursor: 0,
            fresh: 0,
            limits: [0; MAX_VCS],
            taken: [0; MAX_VCS],
            pushed: [0; MAX_VCS],
            offered,
            timed: None,
            rewound: now,
        }
    }

    /// Packets that may be pushed on `vc`.
    #[inline]
    pub(crate) fn room(&self, vc: usize) -> u64 {
        self.limits[vc].saturating_sub(self.pushed[vc])
    }

    pub(crate) fn push(&mut self, packet: P) {
        debug_assert!(
            self.pushed[packet.vc()] < self.limits[packet.vc()],
            "room was checked"
        );
        self.pushed[packet.vc()] += 1;
        self.packets.push_back(packet);
    }

    /// Packets that the peer has not acknowledged.
    pub(crate) fn unacknowledged(&self) -> u64 {
        self.packets.len() as u64
    }

    /// Sequence number for a frame with `packets` packets. A frame without packets carries the
    /// number of the first packet never sent, so that the peer knows what it misses.
    pub(crate) fn first_of(&self, packets: usize) -> u64 {
        if packets == 0 {
            self.fresh
        } else {
            self.cursor
        }
    }

    fn next(&self) -> u64 {
        self.acked + self.unacknowledged()
    }

    pub(crate) fn has_data(&self) -> bool {
        self.cursor < self.next()
    }

    /// Resends everything unacknowledged.
    pub(crate) fn rewind(&mut self, out: &mut Outgoing, now: Time) {
        (self.cursor, self.timed) = (self.acked, None);
        (out.timer_from, self.rewound) = (now, now);
    }

    /// When unacknowledged packets count as lost, or the peer is probed for owed credits.
    pub(crate) fn deadline(&self, out: &Outgoing) -> Time {
        let is_in_use = |vc: usize| self.limits[vc] != self.pushed[vc] + self.offered;
        let credits = !self.has_data() && (0..P::VCS).any(is_in_use);
        out.retry_deadline(self.acked < self.cursor, credits)
    }

    /// Handles the [deadline](Self::deadline). Returns whether anything counts as lost.
    pub(crate) fn time_out(&mut self, out: &mut Outgoing, now: Time) -> bool {
        let lost = out.expire(self.acked < self.cursor, now);
        if lost {
            self.rewind(out, now);
        }
        lost
    }

    /// The packets to send now, at most `most`.
    pub(crate) fn due(&self, most: usize) -> impl ExactSizeIterator<Item = &P> {
        debug_assert!(
            self.acked <= self.cursor,
            "acknowledged packets are not sent again"
        );
        let from = (self.cursor - self.acked) as usize;
        let count = most.min(self.packets.len() - from);
        self.packets.range(from..from + count)
    }

    /// Records that `count` due packets leave now. Returns the number of resent ones.
    pub(crate) fn sent(&mut self, count: u64, out: &mut Outgoing, now: Time) -> u64 {
        let again = self
            .fresh
            .min(self.cursor + count)
            .saturating_sub(self.cursor);
        out.wants_probe &= count > 0;
        if count > 0 {
            out.sent(self.acked < self.cursor, now);
            self.cursor += count;
            self.fresh = self.fresh.max(self.cursor);
            debug_assert!(self.fresh <= self.next(), "only pushed packets are sent");
            // Do not time a resent packet: its acknowledgement may be for its first transmission.
            if again < count {
                self.timed = self.timed.or(Some((self.cursor - 1, now)));
            }
        }
        again
    }

    /// Packets that a peer expecting packet `ack` has taken, per virtual channel.
    fn taken_at(&self, ack: u64) -> [u64; MAX_VCS] {
        let mut taken = self.taken;
        for packet in self
            .packets
            .iter()
            .take(ack.saturating_sub(self.acked) as usize)
        {
            taken[packet.vc()] += 1;
        }
        taken
    }

    /// Whether a correct peer can send `said`, given the packets sent so far.
    pub(crate) fn is_possible(&self, said: &Control) -> bool {
        let most = self.taken_at(said.ack).map(|taken| taken + self.offered);
        said.ack <= self.fresh
            && said
                .limits
                .iter()
                .zip(most)
                .all(|(limit, most)| *limit <= most)
    }

    /// Processes a state that passed [`is_possible`](Self::is_possible).
    pub(crate) fn handle_control(
        &mut self,
        out: &mut Outgoing,
        now: Time,
        said: &Control,
    ) -> ControlEffect {
        out.heard(!self.packets.is_empty());
        debug_assert!(self.is_possible(said), "the caller checked");
        if said.ack < self.acked {
            return ControlEffect::default(); // Overtaken by a newer frame.
        }
        let acked = said.ack - self.acked;
        self.taken = self.taken_at(said.ack);
        self.packets.drain(..acked as usize);
        (self.acked, self.cursor) = (said.ack, self.cursor.max(said.ack));
        let mut has_room = false;
        for (limit, new) in self.limits.iter_mut().zip(said.limits) {
            has_room |= new > *limit;
            *limit = new.max(*limit);
        }
        if let Some((_, at)) = self.timed.take_if(|(number, _)| *number < said.ack) {
            out.measured(now.since(at), now);
        }
        let rewinds = said.missing && now.since(self.rewound) >= under_way(out);
        if rewinds {
            self.rewind(out, now);
        }
        // New room alone does not prove that packets in flight have arrived.
        if acked > 0 || has_room && self.acked == self.cursor {
            out.acknowledged(self.acked < self.cursor, now);
        }
        debug_assert!(
            self.acked <= self.cursor && self.cursor <= self.next() && self.fresh <= self.next(),
            "acknowledged, sent and pushed packets are in this order"
        );
        ControlEffect { acked, rewinds }
    }

    /// Ends the session. Returns the discarded packets.
    pub(crate) fn stop(&mut self) -> VecDeque<P> {
        core::mem::take(&mut self.packets)
    }
}

/// Time after a rewind for which a resend request may concern packets still in flight. Before the
/// first measurement the probe timeout is assumed: otherwise each resent frame could draw another
/// request.
fn under_way(out: &Outgoing) -> Duration {
    match out.round_trip.smoothed() {
        Some(_) => out.round_trip.shortest(),
        None => out.round_trip.probe_timeout(),
    }
}
