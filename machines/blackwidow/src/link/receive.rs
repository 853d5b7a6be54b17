//! The receiving half of the link control block.

use phitwire_framing::yarc::control::ControlWord;
use phitwire_framing::yarc::crc16::PacketCrc;
use phitwire_framing::yarc::packet::{EopStatus, MAX_PACKET_PHITS, head_vc};
use phitwire_framing::yarc::phit::{Phit, PhitKind};

use super::acks::Acks;
use super::input_queue::{InputQueue, Verdict};
use super::resequencer::{Held, Position, Resequencer};
use phitwire::link::common::Common;
use phitwire::link::config::LinkProfile;
use phitwire::link::credits::Impossible;
use phitwire::link::reorder_hold::ReorderHold;
use phitwire::link::round_trip::RoundTrip;
use phitwire::time::{Duration, Time};

/// Packets rejected in a row before the lanes are checked with their training pattern.
const REJECTS_UNTIL_DOUBT: u32 = 8;

/// The session terms that the receiver needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveTerms {
    /// Number of the session's first packet.
    pub first: u64,
    pub max_packet: u32,
    pub window: u16,
    pub offered: u32,
    /// Maximum number of phits held because they arrived out of order.
    pub reorder_phits: u32,
    /// Phits of an earlier session still in the input queue.
    pub debt: [u32; 2],
}

/// Position of a frame in the stream, by its sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FramePosition {
    At(Position),
    /// More than a window behind: the peer has since sent the packet before the expected one, so
    /// the frame holds no new data and its control word is outdated.
    Stale,
}

/// A gap declared lost, watched in case its frame was only late.
#[derive(Clone, Copy, Debug)]
struct DeclaredLoss {
    at: Position,
    since: Time,
    /// The newest pass seen by then. A frame that fills the gap and belongs to no newer pass was
    /// sent earlier and is late.
    pass: u16,
}

/// Whether `pass` is later than `other`.
#[inline]
fn is_newer(pass: u16, other: u16) -> bool {
    pass.wrapping_sub(other) as i16 > 0
}

/// Receives the stream of packets (BlackWidow sec. 4.3): hands phits up speculatively, checks each
/// packet at its end, and after an error waits for the retransmission.
///
/// The stream has a *position*: packet number and phits of that packet so far. A frame that starts
/// there continues the stream; one that starts before it is skipped up to it, so duplicates and
/// overlapping retransmissions are harmless; one that starts beyond it is held while the gap may
/// still be a late frame.
#[derive(Debug)]
pub(super) struct Receiver {
    here: Position,
    crc: PacketCrc,
    /// The open packet's phits, to compare with its retransmission.
    copy: [Phit; MAX_PACKET_PHITS],
    max_packet: u32,
    window: i64,
    pub acks: Acks,
    /// Error recovery: nothing is accepted until the packet at `here` is resent.
    recovering: bool,
    /// Whether the next frame sent requests a retry.
    pub wants_retry: bool,
    retry_due: Time,
    last_request: Time,
    /// Whether this recovery has requested a resend only once, so that the resend measures a round
    /// trip.
    single_request: bool,
    recovery_time: RoundTrip,
    pub rejects_in_row: u32,
    last_phit: Time,
    silence: Duration,
    held: Resequencer,
    hold: ReorderHold,
    /// The furthest position that an idle frame announced as sent.
    hint: Option<Position>,
    gap_since: Time,
    declared: Option<DeclaredLoss>,
    /// The newest pass of the peer.
    pass: u16,
    /// Until when the resend (frames of a newer pass) may be in flight; zero once it arrived.
    answer_due: Time,
}

impl Receiver {
    pub fn new(terms: ReceiveTerms, profile: &LinkProfile, now: Time) -> Self {
        let quick = Duration::from_ps(profile.min_retry_timeout.as_ps() / 4);
        Self {
            here: Position::head_of(terms.first),
            crc: PacketCrc::new(),
            copy: [Phit::IDLE; MAX_PACKET_PHITS],
            max_packet: terms.max_packet,
            window: terms.window.into(),
            acks: Acks::new(&terms, profile.ack_delay),
            recovering: false,
            wants_retry: false,
            retry_due: Time::NEVER,
            last_request: now,
            single_request: false,
            recovery_time: RoundTrip::new(quick, profile.max_retry_timeout),
            rejects_in_row: 0,
            last_phit: now,
            silence: profile.packet_silence,
            held: Resequencer::new(terms.reorder_phits),
            hold: ReorderHold::new(profile.min_reorder_hold, profile.max_reorder_hold),
            hint: None,
            gap_since: Time::NEVER,
            declared: None,
            pass: 0,
            answer_due: Time::ZERO,
        }
    }

    /// The next expected packet; all before it were accepted.
    #[inline]
    pub fn expected(&self) -> u64 {
        self.here.packet
    }

    /// The packet whose resend was requested and has not begun to arrive.
    #[inline]
    pub fn waits_for(&self) -> Option<u64> {
        self.recovering.then_some(self.here.packet)
    }

    /// Time for which a gap may currently be due to a late frame.
    pub fn reorder_hold(&self) -> Duration {
        self.hold.get()
    }

    /// Whether enough packets were rejected in a row to check the lanes.
    pub fn doubts_lanes(&self) -> bool {
        self.rejects_in_row >= REJECTS_UNTIL_DOUBT
    }

    /// Position in the stream at which a frame with `word` starts.
    ///
    /// # Errors
    /// If no correct peer sends a frame that starts there.
    #[inline]
    pub fn position(&self, word: &ControlWord) -> Result<FramePosition, Impossible> {
        let ahead = word.seq.distance_from(self.here.packet);
        let offset = u32::from(word.offset);
        if ahead > self.window || offset >= self.max_packet {
            return Err(Impossible);
        }
        match self.here.packet.checked_add_signed(ahead) {
            Some(_) if ahead < -self.window => Ok(FramePosition::Stale),
            Some(packet) => Ok(FramePosition::At(Position { packet, offset })),
            None => Err(Impossible),
        }
    }

    /// Accepts the phits of a frame of `pass` that starts at `at`, the result of
    /// [`Self::position`].
    pub fn data(
        &mut self,
        now: Time,
        (at, pass): (Position, u16),
        phits: &[Phit],
        input: &mut InputQueue,
        link: &mut Common,
    ) {
        let before = self.here;
        if is_newer(pass, self.pass) {
            self.pass = pass;
            self.answer_due = Time::ZERO;
        }
        if at > before {
            self.ahead(now, (at, pass), phits, link);
        } else {
            let end = self.run(now, at, phits, input, link);
            self.record_arrival(at, end, pass, now, link);
            if end > at && self.here == before && !self.recovering {
                // The whole frame is a duplicate: an acknowledgement was lost, so send it again.
                self.acks.remind();
            }
            self.drain(now, input, link);
        }
        self.look_for_gap(now, before);
    }

    /// Handles a frame that starts beyond the current position.
    fn ahead(&mut self, now: Time, (at, pass): (Position, u16), phits: &[Phit], link: &mut Common) {
        let end = phits
            .iter()
            .fold(at, |position, phit| position.after(*phit));
        if end == at {
            self.hint = self.hint.max(Some(at));
            return;
        }
        self.record_arrival(at, end, pass, now, link);
        match self.held.hold(at, phits) {
            Held::Stored => link.counters.rx_held_frames += 1,
            Held::Full => link.counters.rx_hold_overflows += 1,
            Held::Duplicate => self.passed_over(now, link),
        }
    }

    /// Handles another copy of a held frame. During recovery this means that the peer has rewound
    /// and the awaited packet was lost again: requests it now rather than at the timeout.
    fn passed_over(&mut self, now: Time, link: &mut Common) {
        let shortest = self.recovery_time.shortest();
        let patience = shortest + self.hold.get();
        if self.recovering && shortest > Duration::ZERO && now.since(self.last_request) > patience {
            self.single_request = false;
            self.request(now, link);
        }
    }

    /// Tests whether a declared loss was only late, now that phits from `start` up to `end`
    /// arrived.
    ///
    /// The pass identifies a copy (as TCP's timestamps do in RFC 3522). If the late frame arrived
    /// before any frame of a newer pass, waiting would have been quicker than requesting, and the
    /// hold grows at once; a later one does not justify so long a hold.
    fn record_arrival(
        &mut self,
        start: Position,
        end: Position,
        pass: u16,
        now: Time,
        link: &mut Common,
    ) {
        if let Some(declared) = self.declared
            && start <= declared.at
            && declared.at < end
            && !is_newer(pass, declared.pass)
        {
            link.counters.rx_spurious_gaps += 1;
            let extent = now.since(declared.since);
            if self.pass == declared.pass {
                self.hold.late(extent);
            } else {
                self.hold.too_short(extent);
            }
            self.declared = None;
        }
    }

    /// Accepts phits that start at `at`, not beyond the current position. Returns where they end.
    fn run(
        &mut self,
        now: Time,
        at: Position,
        phits: &[Phit],
        input: &mut InputQueue,
        link: &mut Common,
    ) -> Position {
        let (mut rest, mut position) = (phits, at);
        while position < self.here {
            let Some((phit, behind)) = rest.split_first() else {
                break;
            };
            link.counters.rx_duplicate_phits += u64::from(phit.kind() != PhitKind::Idle);
            position = position.after(*phit);
            rest = behind;
        }
        if position != self.here {
            return position;
        }
        while let Some((phit, behind)) = rest.split_first() {
            if phit.kind() == PhitKind::Idle {
                rest = behind;
                continue;
            }
            if self.recovering {
                self.recovered(now);
            }
            if !self.phit(now, *phit, input, link) {
                return self.keep_rest(if phit.is_head() { rest } else { behind });
            }
            self.last_phit = now;
            rest = behind;
        }
        self.here
    }

    /// After an error, holds the packets that follow in the same frame: they may be good.
    fn keep_rest(&mut self, rest: &[Phit]) -> Position {
        let next = Position::head_of(self.here.packet + 1);
        let Some(head) = rest.iter().position(|phit| phit.is_head()) else {
            return next;
        };
        // Ignore the result: the frame was not early, and a full buffer only causes a resend.
        self.held.hold(next, &rest[head..]);
        rest[head..]
            .iter()
            .fold(next, |position, phit| position.after(*phit))
    }

    /// Accepts the next phit of the stream. Returns false if it led to error recovery.
    #[inline]
    fn phit(&mut self, now: Time, phit: Phit, input: &mut InputQueue, link: &mut Common) -> bool {
        let offset = self.here.offset;
        if phit.is_head() != (offset == 0) {
            link.counters.rx_malformed_packets += 1;
            self.fault(now, input, link);
            return false;
        }
        if phit.is_eop() {
            return self.end(now, phit, input, link);
        }
        if offset + 1 >= self.max_packet {
            // BlackWidow sec. 4.3: the LCB clips packets that exceed the maximum length.
            link.counters.rx_clipped_packets += 1;
            self.fault(now, input, link);
            return false;
        }
        if offset == 0 {
            self.crc = PacketCrc::new();
        }
        self.crc.update(phit.content());
        self.copy[offset as usize] = phit;
        input.phit(phit);
        self.here.offset = offset + 1;
        link.counters.rx_phits += 1;
        true
    }

    /// Accepts or rejects the open packet at its end.
    fn end(&mut self, now: Time, eop: Phit, input: &mut InputQueue, link: &mut Common) -> bool {
        let Position { packet, offset } = self.here;
        let phits = offset + 1;
        debug_assert!(phits <= self.max_packet, "longer packets were clipped");
        self.copy[offset as usize] = eop;
        let copy = &self.copy[..phits as usize];
        let Ok(status) = self.crc.verify(eop.content()) else {
            link.counters.rx_crc_errors += 1;
            link.unit_rejected(packet, contents(copy));
            self.fault(now, input, link);
            return false;
        };
        if link.lanes.waits() {
            link.unit_accepted(packet, contents(copy));
        }
        if !input.end(eop, Verdict::Accepted) {
            // BlackWidow sec. 4.3: the input queue excised it; the sender will time out and
            // retransmit. Do not request it sooner: the queue has no room.
            link.counters.rx_overflows += 1;
            link.counters.rx_recoveries += 1;
            self.here.offset = 0;
            self.recovering = true;
            self.gap_since = Time::NEVER;
            self.retry_due = now + self.recovery_time.timeout();
            self.single_request = false;
            return false;
        }
        self.rejects_in_row = 0;
        link.counters.rx_phits += 1;
        link.counters.rx_packets += 1;
        link.counters.rx_poisoned_packets += u64::from(status != EopStatus::Healthy);
        self.here = Position::head_of(packet + 1);
        self.acks
            .accepted(head_vc(self.copy[0].content()), phits, packet + 1, now);
        true
    }

    /// Closes the open packet, if any, with a `transmit_error` end and a corrected CRC, and enters
    /// error recovery (BlackWidow sec. 4.3).
    fn fault(&mut self, now: Time, input: &mut InputQueue, link: &mut Common) {
        link.counters.rx_let_go_packets += u64::from(input.has_begun());
        self.poison(input);
        link.counters.rx_recoveries += 1;
        self.rejects_in_row += 1;
        self.recovering = true;
        self.gap_since = Time::NEVER;
        self.single_request = true;
        self.request(now, link);
    }

    fn poison(&mut self, input: &mut InputQueue) {
        if self.here.offset != 0 {
            let eop = Phit::new(PhitKind::Eop, self.crc.eop(EopStatus::TransmitError));
            input.end(eop, Verdict::Rejected);
            self.here.offset = 0;
        }
    }

    fn request(&mut self, now: Time, link: &mut Common) {
        link.counters.rx_retry_requests += 1;
        debug_assert!(
            self.last_request <= now && self.recovering,
            "recovery has begun"
        );
        self.wants_retry = true;
        self.last_request = now;
        self.retry_due = now + self.recovery_time.timeout();
        self.answer_due = self.retry_due;
    }

    /// Ends error recovery, because the awaited packet has begun to arrive.
    fn recovered(&mut self, now: Time) {
        self.recovering = false;
        self.wants_retry = false;
        self.retry_due = Time::NEVER;
        // Do not take a late frame as a measurement.
        if self.single_request && self.answer_due == Time::ZERO {
            self.recovery_time.sample(now.since(self.last_request));
        }
    }

    /// Accepts held frames that are now in sequence.
    fn drain(&mut self, now: Time, input: &mut InputQueue, link: &mut Common) {
        while !self.recovering
            && let Some(run) = self.held.pop_ready(self.here)
        {
            link.counters.rx_reordered_frames += 1;
            self.run(now, run.at, &run.phits, input, link);
            self.held.recycle(run);
        }
    }

    /// Tracks since when a received or announced packet has been missing.
    fn look_for_gap(&mut self, now: Time, before: Position) {
        if self.hint.is_some_and(|hint| hint <= self.here) {
            self.hint = None;
        }
        if self.recovering {
            return;
        }
        let gap = !self.held.is_empty() || self.hint.is_some();
        let was = self.gap_since != Time::NEVER;
        if was && (!gap || self.here > before) {
            let extent = now.since(self.gap_since);
            if gap {
                // Another gap follows: reordering continues.
                self.hold.at_least(extent);
            } else {
                self.hold.filled(extent);
            }
            self.gap_since = Time::NEVER;
        }
        if gap && self.gap_since == Time::NEVER {
            self.gap_since = now;
        }
    }

    /// When a gap counts as a loss. Never while a requested resend is due: the peer rewinds once,
    /// which fills every gap of the previous pass.
    #[inline]
    fn gap_deadline(&self) -> Time {
        (self.gap_since + self.hold.get()).max(self.answer_due)
    }

    #[inline]
    pub fn deadline(&self) -> Time {
        if self.recovering {
            return self.retry_due;
        }
        let gap = self.gap_deadline();
        if self.here.offset == 0 {
            gap
        } else {
            gap.min(self.last_phit + self.silence)
        }
    }

    pub fn handle_timers(&mut self, now: Time, input: &mut InputQueue, link: &mut Common) {
        if self.deadline() > now {
            return;
        }
        let in_packet = u64::from(self.here.offset != 0);
        if self.recovering {
            self.recovery_time.back_off();
            self.single_request = false;
            self.request(now, link);
        } else if self.gap_deadline() <= now {
            link.counters.rx_gaps_in_packet += in_packet;
            let declared = DeclaredLoss {
                at: self.here,
                since: self.gap_since,
                pass: self.pass,
            };
            if self.declared.replace(declared).is_some() {
                self.hold.lost();
            }
            self.fault(now, input, link);
        } else {
            link.counters.rx_silence_in_packet += in_packet;
            self.fault(now, input, link);
        }
    }

    /// Handles a dropped lane: everything sent over the old set of lanes is useless, and the peer
    /// rewinds when it learns of the change. Requests nothing, since the peer may have nothing more
    /// to send. The position stays at the head of the packet that was open.
    pub fn lanes_changed(&mut self, input: &mut InputQueue, link: &mut Common) {
        self.held.clear();
        self.hint = None;
        self.gap_since = Time::NEVER;
        link.counters.rx_gaps_in_packet += u64::from(self.here.offset != 0);
        self.poison(input);
    }

    /// Ends the session: closes the open packet.
    pub fn abort(&mut self, input: &mut InputQueue) {
        self.poison(input);
        self.held.clear();
    }
}

/// The phit contents that the lanes carry, without the sideband.
fn contents(phits: &[Phit]) -> impl Iterator<Item = u32> + Clone {
    phits.iter().map(|phit| phit.content())
}
