//! State that every link end has: configuration, link state, handshake, lanes, retry timer,
//! counters, events.

use phitwire_framing::carrier::frame::{FrameHeader, FrameKind};
use phitwire_framing::carrier::training::PATTERN_AT;

use super::config::{LinkConfig, LinkProfile};
use super::counters::LinkCounters;
use super::event::{LinkEvent, LinkState};
use super::lanes::LaneWatch;
use super::liveness::Liveness;
use super::outgoing::Outgoing;
use super::training::{Handshake, Refusal, Terms};
use crate::kit::Events;
use crate::time::Time;

/// Number of consecutive frames without a readable control word after which the lanes are
/// inspected.
pub const BAD_WORDS_UNTIL_DOUBT: u32 = 4;

/// Maximum number of queued events; a new one then displaces the oldest.
const MAX_EVENTS: usize = 64;

/// The part of a link end's state that the links of all machines have.
#[derive(Debug)]
pub struct Common {
    pub config: LinkConfig,
    /// The profile, with its times in driver time.
    pub profile: LinkProfile,
    pub state: LinkState,
    pub handshake: Handshake,
    /// Transmit lanes and retry timers.
    pub out: Outgoing,
    /// Receive lanes.
    pub lanes: LaneWatch,
    /// Training frames are sent until a frame arrives on the wanted lanes.
    pub(crate) asks_for_lanes: bool,
    /// We requested the peer's pattern to inspect the lanes. Unsolicited patterns prove nothing:
    /// they may be replays from when a lane was noisy.
    pub(crate) doubts_lanes: bool,
    /// Transmit lanes at the start of the session.
    pub(crate) session_lanes: u8,
    /// When the transmit lanes last changed, and the count of acknowledged packets above which the
    /// peer is known to receive on the new lanes.
    conceded: Option<(Time, u64)>,
    /// Consecutive unreadable frames (or sets, on links whose frames carry sets).
    pub bad_words: u32,
    pub counters: LinkCounters,
    pub(crate) liveness: Liveness,
    pub now: Time,
    events: Events<LinkEvent>,
}

impl Common {
    /// An end in training that offers `terms`.
    pub fn new(config: LinkConfig, terms: Terms, now: Time) -> Self {
        let profile = config.profile.dilated(config.clock.dilation());
        Self {
            handshake: Handshake::new(&config, terms, &profile, now),
            out: Outgoing::new(0, &profile, now),
            lanes: LaneWatch::new(config.standard.lanes, 0, config.lane_retry_threshold),
            state: LinkState::Training,
            asks_for_lanes: false,
            doubts_lanes: false,
            session_lanes: 0,
            conceded: None,
            bad_words: 0,
            counters: LinkCounters::default(),
            liveness: Liveness::new(&profile, now),
            events: Events::new(MAX_EVENTS),
            now,
            config,
            profile,
        }
    }

    /// Whether data flows: `link_active` of BlackWidow sec. 7.7.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.state == LinkState::Active
    }

    /// Advances `now`.
    ///
    /// # Panics
    /// If time ran backwards.
    #[inline]
    pub fn see(&mut self, now: Time) {
        let _ = now.since(self.now);
        self.now = now;
    }

    pub fn report(&mut self, event: LinkEvent) {
        self.counters.events_lost += self.events.push(event);
    }

    /// The next event, oldest first.
    pub(crate) fn poll_event(&mut self) -> Option<LinkEvent> {
        self.events.pop()
    }

    /// The header of a frame of `kind` in this session, on `lanes`.
    #[inline]
    pub fn header(&self, kind: FrameKind, lanes: u8) -> FrameHeader {
        FrameHeader {
            kind,
            end: self.config.end,
            link: self.config.link,
            fabric: self.config.fabric,
            tx_epoch: self.handshake.epoch,
            rx_epoch: self.handshake.peer_epoch,
            lanes,
            units: 0,
        }
    }

    /// Whether a data frame is for this end of this link; counts the drop if not.
    #[inline]
    pub(crate) fn is_ours(&mut self, header: &FrameHeader) -> bool {
        let counters = &mut self.counters;
        if header.fabric != self.config.fabric {
            counters.drop_wrong_fabric += 1;
        } else if header.link != self.config.link {
            counters.drop_wrong_link += 1;
        } else if header.end == self.config.end {
            counters.drop_wrong_end += 1;
        } else {
            return true;
        }
        false
    }

    /// Starts a session in which this end transmits on `lanes`.
    pub(super) fn begin_session(&mut self, lanes: u8, now: Time) {
        debug_assert!(lanes != 0, "a session needs a lane in this direction");
        self.out.restart(lanes, now);
        let (found, config) = (self.handshake.lanes, &self.config);
        self.lanes = LaneWatch::new(config.standard.lanes, found, config.lane_retry_threshold);
        self.lanes.set_announced(self.handshake.announced);
        self.asks_for_lanes = false;
        self.doubts_lanes = false;
        self.bad_words = 0;
        self.session_lanes = lanes;
        self.conceded = None;
        self.liveness.restart(now);
    }

    /// Requests the peer's pattern, to inspect every lane.
    pub fn doubt_lanes(&mut self) {
        self.doubts_lanes = true;
        self.handshake.answer(false);
    }

    /// Records a change of the transmit lanes while `open` packets are unacknowledged.
    pub(crate) fn concede_lanes(&mut self, open: u64, now: Time) {
        debug_assert!(self.is_active(), "lanes change within a session");
        // Another packet may be partly sent.
        self.conceded = Some((now, self.counters.tx_acked_packets + open + 1));
    }

    /// Whether a request for more lanes than we use may be valid: we gave some up, and nothing sent
    /// since then was acknowledged. Rate-limited, since it may still be stale.
    pub(crate) fn may_regain_lanes(&self, now: Time) -> bool {
        self.conceded.is_some_and(|(at, proved)| {
            self.counters.tx_acked_packets <= proved
                && at + self.profile.max_training_interval <= now
        })
    }

    /// A unit failed its check; `words` are its wire words. Charges the lanes on which it differs
    /// from an earlier rejected copy, if one was kept.
    pub fn unit_rejected(&mut self, number: u64, words: impl Iterator<Item = u32> + Clone) {
        let charged = self.lanes.rejected(number, words);
        self.lanes.note(charged, 1, &mut self.counters);
    }

    /// A unit passed its check. Charges the lanes on which a rejected copy of it differs, if one
    /// was kept.
    pub fn unit_accepted(&mut self, number: u64, words: impl Iterator<Item = u32>) {
        let charged = self.lanes.accepted(number, words);
        self.lanes.note(charged, 1, &mut self.counters);
    }

    pub(crate) fn ask_for_lanes(&mut self, now: Time) {
        self.asks_for_lanes = true;
        self.handshake.ask(now);
    }

    /// A frame arrived on the right lanes.
    pub(crate) fn lanes_are_right(&mut self) {
        self.asks_for_lanes = false;
        self.handshake.rest();
    }

    /// Writes the training frame that is due now, if any, into `buf`.
    pub(crate) fn emit_training(
        &mut self,
        rx_lanes: u8,
        now: Time,
        buf: &mut [u8],
    ) -> Option<usize> {
        let training = self
            .handshake
            .frame(&self.config, self.state, rx_lanes, now)?;
        let length = training
            .emit(buf)
            .expect("the buffer holds the longest control frame");
        self.send_through_cable(&mut buf[PATTERN_AT], training.header.lanes);
        debug_assert!(length <= buf.len() && PATTERN_AT.end <= length);
        self.counters.tx_frames += 1;
        self.counters.tx_training_frames += 1;
        Some(length)
    }

    /// Applies the cable's permutation to the lane area of a frame.
    #[inline]
    pub fn send_through_cable(&self, area: &mut [u8], lanes: u8) {
        let config = &self.config;
        config
            .standard
            .lanes
            .swizzle_area(area, lanes, &config.cable);
    }

    /// A data frame was accepted. `missing` is the number of a unit, if any, that was requested
    /// again and has not arrived.
    #[inline]
    pub fn accepted(&mut self, missing: Option<u64>, now: Time) {
        debug_assert!(self.is_active(), "only frames of a session are accepted");
        let owed_since = self.out.owed_since;
        self.liveness.missing(missing, now);
        if let Some(after) = self.liveness.accepted(now, owed_since) {
            self.report(LinkEvent::Heard { after });
        }
    }

    /// An unusable frame arrived that the peer may have sent.
    pub fn unusable(&mut self, now: Time) {
        let round_trip = self.out.round_trip.seen();
        self.liveness.unusable(now, round_trip);
    }

    /// A frame arrived that is old, or counts as old.
    pub fn stale(&mut self, now: Time) {
        let round_trip = self.out.round_trip.seen();
        self.counters.rx_stale_frames += 1;
        self.liveness.stale(now, round_trip);
    }

    /// Something was acknowledged.
    #[inline]
    pub fn moves(&mut self) {
        debug_assert!(
            self.counters.tx_acked_packets <= self.counters.tx_packets,
            "the peer acknowledges only units that were sent"
        );
        if self.liveness.acknowledged() {
            self.report(LinkEvent::Resumed);
        }
    }

    /// A data frame on `lanes` is plausible: settles on these lanes.
    #[inline]
    pub fn settle_lanes(&mut self, lanes: u8) {
        debug_assert!(self.is_active(), "only frames of a session are believed");
        self.lanes.settle(lanes);
        if self.asks_for_lanes {
            self.lanes_are_right();
        }
    }

    /// A frame arrived on lanes other than our receive lanes.
    pub(super) fn on_wrong_lanes(&mut self, lanes: u8, now: Time) {
        let round_trip = self.out.round_trip.seen();
        let is_old = self.lanes.may_be_old(lanes);
        self.counters.drop_wrong_lanes += 1;
        self.ask_for_lanes(now);
        if is_old {
            self.liveness.stale(now, round_trip);
        } else {
            self.liveness.unusable(now, round_trip);
        }
    }

    /// Reports a stall: the peer is heard, but has acknowledged nothing since `owed_since`.
    pub(super) fn watch_progress(&mut self, owed_since: Time, now: Time) {
        if self.liveness.look_for_stall(owed_since, now) {
            self.counters.stalls += 1;
            self.report(LinkEvent::Stalled);
        }
    }

    /// Refuses a frame from the wrong peer. While data flows, a stray frame changes nothing.
    pub(super) fn refuse(&mut self, refusal: Refusal) {
        let counters = &mut self.counters;
        match &refusal {
            Refusal::End(_) => counters.drop_wrong_end += 1,
            Refusal::Fabric(_) => counters.drop_wrong_fabric += 1,
            Refusal::Link(_) => counters.drop_wrong_link += 1,
            Refusal::Peer(_) => counters.drop_wrong_peer += 1,
        }
        match self.state {
            LinkState::Training => self.state.go(LinkState::Refused),
            LinkState::Refused => {}
            _ => return,
        }
        let message = refusal.message();
        if self.handshake.complaint.as_deref() != Some(message) {
            self.handshake.complaint = Some(message.to_owned());
            self.report(LinkEvent::Refused {
                message: message.to_owned(),
            });
        }
    }

    /// Retrains all lanes of a dead end.
    pub(super) fn revive(&mut self, now: Time) {
        debug_assert!(self.state == LinkState::Dead, "only a dead end is revived");
        self.state.go(LinkState::Training);
        self.handshake.restart(now);
    }
}
