//! The transmitting half of the Aries link control block.

mod packets;

use phitwire_framing::aries::flit::Flit;
use phitwire_framing::aries::set::{
    ControlSet, DATA_FLITS, MAX_UNACKNOWLEDGED, SET_BYTES, Tail, widen_ack, widen_vc_ack,
};

use super::config::AriesLinkConfig;
use super::counters::SetCounters;
use super::credits::SharedCredits;
use super::ranges::Ranges;
use super::replay_buffer::{Acknowledged, ReplayBuffer};
use phitwire::link::LinkCounters;
use phitwire::link::common::Common;
use phitwire::link::outgoing::Outgoing;
use phitwire::link::pacing::LineClock;
use phitwire::time::Time;

/// Maximum number of sets sent after a timeout until something is acknowledged.
const PROBATION_SETS: u64 = 8;
/// Maximum number of sets replayed after repeated acknowledgement numbers if the peer keeps the
/// sets after a gap.
const REPEAT_SETS: u64 = 32;

/// Session terms that the transmitter needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransmitTerms {
    pub window: u16,
    pub private: u32,
    pub common: u32,
    pub lanes: u8,
}

/// The invalid acknowledgement in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadAck {
    Ack,
    VcAck,
}

/// Consecutive sets of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub first: u64,
    pub sets: u64,
    /// The peer requested these sets.
    requested: bool,
}

/// Takes packets from the core and sends them in sets until they are acknowledged.
#[derive(Debug)]
pub(super) struct Transmitter {
    buffer: ReplayBuffer,
    credits: SharedCredits,
    window: u64,
    full_numbers: bool,
    /// No packet may begin while more flits than these are unsent.
    backlog_limit: u32,
    /// Flits still to drop of the current packet.
    swallow: u8,
    /// Command: mark the next packet as damaged.
    poison_next: bool,
    ranges: Ranges,
    line: LineClock,
    burst: u64,
    repeats: u8,
    repeat_limit: u8,
    /// A session has begun and not ended.
    open: bool,
}

impl Transmitter {
    /// Creates a transmitter without a session, which accepts nothing.
    pub fn new(config: &AriesLinkConfig) -> Self {
        let (link, sets) = (&config.link, &config.sets);
        Self {
            buffer: ReplayBuffer::new(sets.window_sets, sets.backlog_flits),
            credits: SharedCredits::default(),
            window: 0,
            full_numbers: sets.full_numbers,
            backlog_limit: sets.backlog_flits,
            swallow: 0,
            poison_next: false,
            ranges: Ranges::default(),
            line: LineClock::new(SET_BYTES as u64 * 8, link.rate, link.clock, 7),
            burst: sets.burst_sets.into(),
            repeats: 0,
            repeat_limit: config.registers.replay_after_repeats,
            open: false,
        }
    }

    /// Starts a session: empty, at set 0, without credits until the peer announces them.
    pub fn start(&mut self, terms: TransmitTerms) {
        debug_assert_eq!(self.buffer.packets(), 0, "the last session was ended");
        self.credits = SharedCredits::new(terms.private, terms.common);
        debug_assert!(!self.open, "the last session was ended");
        self.window = terms.window.into();
        if !self.full_numbers {
            self.window = self.window.min(MAX_UNACKNOWLEDGED as u64);
        }
        self.line.set_lanes(terms.lanes);
        self.ranges.clear();
        self.repeats = 0;
        self.open = true;
    }

    /// Ends a session. Unacknowledged packets are discarded: the peer may have them, and resending
    /// could deliver them twice. Returns their number.
    pub fn stop(&mut self, counters: &mut LinkCounters) -> u64 {
        self.swallow = self.swallow.max(self.buffer.open_left());
        let discarded = self.buffer.discard();
        debug_assert_eq!(self.buffer.packets(), 0, "the buffer is empty");
        counters.tx_discarded_packets += discarded;
        self.ranges.clear();
        self.window = 0;
        self.open = false;
        discarded
    }

    /// Handles a control set: acknowledgements, VC acks and requests in full width. A control set
    /// that acknowledges less than an earlier one is out of date and ignored.
    ///
    /// # Errors
    /// The part that the peer cannot have sent; the whole set is then ignored.
    pub fn control(
        &mut self,
        set: &ControlSet,
        now: Time,
        link: &mut Common,
        sets: &mut SetCounters,
    ) -> Result<(), BadAck> {
        let step = set.ack.wrapping_sub(self.buffer.acked() as u32) as i32;
        let Ok(newly) = u64::try_from(step) else {
            return Ok(());
        };
        let acked = self.buffer.acked() + newly;
        if !self.buffer.could_acknowledge(acked) {
            return Err(BadAck::Ack);
        }
        self.credits
            .check_all(&set.vc_acks)
            .map_err(|_| BadAck::VcAck)?;
        let freed = self.credits.release_all(&set.vc_acks);
        self.acknowledged(acked, freed, now, link, sets);
        if set.nack {
            let from = acked + u64::from(set.missing_from);
            self.nacked(from, set.missing.into(), now, &mut link.out, sets);
        } else if newly == 0 {
            self.repeated(now, &mut link.out, sets);
        }
        Ok(())
    }

    /// Handles the tenth flit of a data set that is known to be new.
    ///
    /// # Errors
    /// The part that the peer cannot have sent.
    pub fn tail(
        &mut self,
        tail: &Tail,
        now: Time,
        link: &mut Common,
        sets: &mut SetCounters,
    ) -> Result<(), BadAck> {
        let known = self.buffer.acked() as u32;
        let step = widen_ack(known, tail.ack).wrapping_sub(known);
        let acked = self.buffer.acked() + u64::from(step);
        if !self.buffer.could_acknowledge(acked) {
            return Err(BadAck::Ack);
        }
        let mut freed = 0;
        if self.credits.is_announced() {
            let vc = tail.vc();
            let count = widen_vc_ack(self.credits.freed(vc), tail.vc_ack);
            freed = self.credits.release(vc, count).map_err(|_| BadAck::VcAck)?;
        }
        self.acknowledged(acked, freed, now, link, sets);
        if tail.nack {
            self.nacked(acked, 0, now, &mut link.out, sets);
        } else if step == 0 {
            self.repeated(now, &mut link.out, sets);
        }
        Ok(())
    }

    #[inline]
    fn acknowledged(
        &mut self,
        set: u64,
        freed: u32,
        now: Time,
        link: &mut Common,
        sets: &mut SetCounters,
    ) {
        let Acknowledged {
            sets: done,
            packets,
            round_trip,
        } = self.buffer.acknowledge(set, now);
        if done > 0 {
            link.counters.tx_acked_packets += packets;
            sets.tx_acked_sets += done;
            link.out.probation = false;
            self.repeats = 0;
            if let Some(round_trip) = round_trip {
                link.out.measured(round_trip, now);
            }
        }
        if done > 0 || freed > 0 {
            link.out.acknowledged(self.buffer.awaits(), now);
        }
    }

    /// Handles a request of the peer for `missing` sets from `from` on; 0 requests everything.
    fn nacked(
        &mut self,
        from: u64,
        missing: u64,
        now: Time,
        out: &mut Outgoing,
        sets: &mut SetCounters,
    ) {
        if missing == 0 || !self.full_numbers {
            let oldest = self.buffer.acked();
            if out.is_answered(oldest, now) {
                sets.tx_nacks_ignored += 1;
            } else if self.rewind() {
                sets.tx_replays_nacked += 1;
                out.answer(oldest, now);
            }
            return;
        }
        // Sets beyond the cursor are sent anyway.
        let to = (from + missing).min(self.buffer.cursor());
        if from >= to {
            return;
        }
        let at = self.buffer.sent_at(from);
        let shortest = out.round_trip.shortest();
        if self.buffer.was_repeated(from) && now.since(at.min(now)) < shortest {
            sets.tx_nacks_ignored += 1;
            return;
        }
        if !self.ranges.add(from, to) {
            self.rewind();
        }
        sets.tx_replays_nacked += 1;
        out.again(now);
    }

    /// Handles an acknowledgement that acknowledges nothing new. On Aries, as is publicly known,
    /// repeated acknowledgement numbers also trigger a replay. Here a repetition counts only if the
    /// oldest set should have been acknowledged by then.
    #[inline]
    fn repeated(&mut self, now: Time, out: &mut Outgoing, sets: &mut SetCounters) {
        if self.repeat_limit == 0 || self.buffer.in_flight() == 0 {
            return;
        }
        let acked = self.buffer.acked();
        let Some(patience) = out.round_trip.measured() else {
            return;
        };
        if self.buffer.sent_at(acked) + patience > now {
            return;
        }
        self.repeats += 1;
        if self.repeats < self.repeat_limit {
            return;
        }
        self.repeats = 0;
        sets.tx_replays_repeated += 1;
        out.timer_from = now;
        if !self.full_numbers {
            self.rewind();
            return;
        }
        // The peer has kept the later sets that it received.
        let most = self.buffer.cursor().min(acked + REPEAT_SETS);
        let late = |set: &u64| self.buffer.sent_at(*set) + patience <= now;
        let to = (acked..most)
            .take_while(late)
            .last()
            .map_or(acked, |set| set + 1);
        if !self.ranges.add(acked, to) {
            self.rewind();
        }
    }

    fn rewind(&mut self) -> bool {
        self.ranges.clear();
        self.buffer.rewind()
    }

    /// Changes the lanes and rewinds, since the peer will drop everything in flight.
    pub fn set_lanes(&mut self, lanes: u8, now: Time, out: &mut Outgoing, sets: &mut SetCounters) {
        out.lanes = lanes;
        self.line.set_lanes(lanes);
        self.force_retry(now, out, sets);
        out.again(now);
    }

    /// Command: rewinds as if the peer had requested it.
    pub fn force_retry(&mut self, now: Time, out: &mut Outgoing, sets: &mut SetCounters) {
        if self.rewind() {
            sets.tx_replays_forced += 1;
            out.timer_from = now;
        }
    }

    /// Sets that may be sent, regardless of pacing.
    #[inline]
    fn sendable(&self, out: &Outgoing) -> u64 {
        let again = self.buffer.next() - self.buffer.cursor();
        let mut sets = again + self.buffer.new_sets(self.window);
        if out.probation {
            sets = sets.min(PROBATION_SETS.saturating_sub(self.buffer.in_flight()));
        }
        if !self.ranges.is_empty() {
            sets += self.ranges.sets(self.buffer.acked());
        }
        sets
    }

    /// Whether to call [`Self::allowance`].
    #[inline]
    pub fn has_data(&self, out: &Outgoing, now: Time) -> bool {
        if !self.line.is_paced() {
            return self.sendable(out) > 0;
        }
        let sendable = self.sendable(out);
        if self.line.is_idle() {
            return sendable > 0 || self.buffer.backlog() > 0;
        }
        sendable > 0 && self.line.sent_at(sendable.min(self.burst)) <= now
    }

    /// Number of sets for a frame that leaves now, at most `most`.
    pub fn allowance(&mut self, out: &Outgoing, now: Time, most: u64) -> u64 {
        let sendable = self.sendable(out);
        if !self.line.is_paced() {
            return sendable.min(most);
        }
        // Flits of an incomplete packet occupy the line as they come.
        let waiting = sendable.max(u64::from(self.buffer.backlog() > 0));
        let sent = self.line.sent(waiting, now).min(sendable);
        if sent < sendable.min(self.burst) {
            return 0;
        }
        sent.min(most)
    }

    /// The next run of at most `most` sets, if there is anything to send.
    pub fn next_run(&mut self, most: u64) -> Option<Run> {
        if !self.ranges.is_empty()
            && let Some((from, to)) = self.ranges.front(self.buffer.acked())
        {
            debug_assert!(
                from < to && to <= self.buffer.cursor(),
                "the peer requests only sets that were sent"
            );
            let run = Run {
                first: from,
                sets: (to - from).min(most),
                requested: true,
            };
            return (run.sets > 0).then_some(run);
        }
        let first = self.buffer.cursor();
        while self.buffer.next() < first + most && self.buffer.cut_next(self.window) {}
        let sets = (self.buffer.next() - first).min(most);
        (sets > 0).then_some(Run {
            first,
            sets,
            requested: false,
        })
    }

    /// See [`ReplayBuffer::flits_of`]; `set` belongs to a run.
    #[inline]
    pub fn flits_of<'a>(
        &'a self,
        set: u64,
        buffer: &'a mut [Flit; DATA_FLITS],
    ) -> &'a [Flit; DATA_FLITS] {
        self.buffer.flits_of(set, buffer)
    }

    /// Records a run sent at `now`.
    pub fn sent(&mut self, run: Run, now: Time, out: &mut Outgoing, sets: &mut SetCounters) {
        if self.line.is_paced() {
            let sendable = self.sendable(out);
            self.line.hand_out(run.sets, sendable);
            if run.sets >= sendable {
                self.line.catch_up(now);
            }
        }
        debug_assert!(
            run.first + run.sets <= self.buffer.next(),
            "its sets were cut"
        );
        debug_assert!(
            self.buffer.next() - self.buffer.acked() <= self.window,
            "the window bounds the unacknowledged sets"
        );
        let waited = self.buffer.in_flight() > 0;
        for set in run.first..run.first + run.sets {
            sets.tx_replayed_sets += u64::from(self.buffer.sent(set, now));
        }
        sets.tx_sets += run.sets;
        if run.requested {
            self.ranges.sent(run.first, run.sets);
        }
        out.sent(waited, now);
    }

    /// Number of the first set not sent yet.
    #[inline]
    pub fn sent_up_to(&self) -> u64 {
        self.buffer.next()
    }

    /// When to probe for what the peer owes: an acknowledgement, or credits.
    #[inline]
    fn retry_deadline(&self, out: &Outgoing) -> Time {
        let outstanding = self.buffer.in_flight() > 0;
        out.retry_deadline(outstanding, self.credits.is_owed())
    }

    /// The earliest deadline: a retry timer, or sets that have passed a paced line.
    #[inline]
    pub fn deadline(&self, out: &Outgoing) -> Time {
        let retry = self.retry_deadline(out);
        if !self.line.is_paced() || self.line.is_idle() {
            return retry;
        }
        match self.sendable(out) {
            0 => retry,
            sets => retry.min(self.line.sent_at(sets.min(self.burst))),
        }
    }

    /// Records that the peer is alive; it owes acknowledgements only for sets already sent.
    #[inline]
    pub fn heard(&self, out: &mut Outgoing) {
        out.heard(self.buffer.awaits());
    }

    /// Expires the retry timer.
    pub fn handle_timers(&mut self, now: Time, out: &mut Outgoing, sets: &mut SetCounters) {
        if self.retry_deadline(out) > now {
            return;
        }
        if out.expire(self.buffer.in_flight() > 0, now) {
            self.rewind();
            sets.tx_replays_timeout += 1;
        }
    }

    #[inline]
    pub fn credits(&self) -> &SharedCredits {
        &self.credits
    }

    #[inline]
    pub fn buffer(&self) -> &ReplayBuffer {
        &self.buffer
    }
}
