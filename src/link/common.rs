//! State that every link end has: configuration, link state, handshake, counters, events.

use phitwire_framing::carrier::frame::{FrameHeader, FrameKind};
use phitwire_framing::carrier::lanes::swizzle_area;
use phitwire_framing::carrier::training::PATTERN_AT;

use super::config::{LinkConfig, LinkProfile};
use super::counters::LinkCounters;
use super::event::{LinkEvent, LinkState};
use super::liveness::Liveness;
use super::training::{Handshake, Terms};
use crate::kit::Events;
use crate::time::Time;

/// Consecutive frames without a readable control word before the lanes are inspected.
pub const BAD_WORDS_UNTIL_DOUBT: u32 = 4;

/// Maximum number of queued events; a new one then displaces the oldest.
const MAX_EVENTS: usize = 64;

/// The part of a link control block that all kinds of links share.
#[derive(Debug)]
pub struct Common {
    pub config: LinkConfig,
    /// The profile, with its times in driver time.
    pub profile: LinkProfile,
    pub state: LinkState,
    pub handshake: Handshake,
    /// Training frames are sent until a frame arrives on the wanted lanes.
    pub(crate) asks_for_lanes: bool,
    /// We requested the peer's pattern to inspect the lanes. Unsolicited patterns prove nothing:
    /// they may be replays from when a lane was noisy.
    pub(crate) doubts_lanes: bool,
    /// Transmit lanes at the start of the session.
    pub(crate) session_lanes: u8,
    /// The last change of the transmit lanes: when, and the count of acknowledged packets above
    /// which the peer is known to receive on them.
    conceded: Option<(Time, u64)>,
    /// Consecutive unreadable frames, or sets where frames carry sets.
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
            handshake: Handshake::new(config.epoch, terms, &profile, now),
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
    pub(crate) fn begin_session(&mut self, lanes: u8, now: Time) {
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
        self.counters.tx_frames += 1;
        self.counters.tx_training_frames += 1;
        Some(length)
    }

    /// Applies the cable's permutation to the lane area of a frame.
    #[inline]
    pub fn send_through_cable(&self, area: &mut [u8], lanes: u8) {
        swizzle_area(area, lanes, &self.config.cable);
    }
}
