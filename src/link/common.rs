//! What every link end has, whatever it sends: its names, its state, the handshake, what it
//! reports.

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

/// Frames in a row without a readable control word before the lanes are looked at.
pub(crate) const BAD_WORDS_UNTIL_DOUBT: u32 = 4;

/// Events kept until somebody fetches them.
const MAX_EVENTS: usize = 64;

/// The part of a link control block that is the same for every kind of link.
#[derive(Debug)]
pub struct Common {
    pub config: LinkConfig,
    /// The profile with its times as the driver's clock sees them.
    pub profile: LinkProfile,
    pub state: LinkState,
    pub handshake: Handshake,
    /// Until a frame on the right lanes comes, training frames ask for it.
    pub asks_for_lanes: bool,
    /// The peer's pattern was asked for to see whether a lane has gone. Patterns that nobody asked
    /// for tell nothing: they may have been kept since a lane was noisy.
    pub doubts_lanes: bool,
    /// The lanes that this session began to transmit on.
    pub session_lanes: u8,
    /// The last change of the lanes transmitted on: when, and the number of acknowledged packets
    /// above which the peer is known to receive on them.
    conceded: Option<(Time, u64)>,
    /// Frames, or sets of such frames, in a row of which nothing could be read.
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

    /// Notes the time.
    ///
    /// # Panics
    /// If it ran backwards.
    #[inline]
    pub fn see(&mut self, now: Time) {
        let _ = now.since(self.now);
        self.now = now;
    }

    pub fn report(&mut self, event: LinkEvent) {
        self.counters.events_lost += self.events.push(event);
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<LinkEvent> {
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

    /// Whether a frame of data belongs to this end of this link.
    #[inline]
    pub fn is_ours(&mut self, header: &FrameHeader) -> bool {
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

    /// A session begins in which this end transmits on `lanes`.
    pub fn begin_session(&mut self, lanes: u8, now: Time) {
        self.asks_for_lanes = false;
        self.doubts_lanes = false;
        self.bad_words = 0;
        self.session_lanes = lanes;
        self.conceded = None;
        self.liveness.restart(now);
    }

    /// Asks for the peer's pattern, in which every lane is looked at.
    pub fn doubt_lanes(&mut self) {
        self.doubts_lanes = true;
        self.handshake.answer(false);
    }

    /// The lanes transmitted on change while `open` packets are unacknowledged.
    pub fn concede_lanes(&mut self, open: u64, now: Time) {
        // One more may be open to its end on the way.
        self.conceded = Some((now, self.counters.tx_acked_packets + open + 1));
    }

    /// Whether a request for more lanes than are transmitted on may be right: when some were given
    /// up, and nothing that left since then was acknowledged. Not often, for it may be old all the
    /// same.
    pub fn may_regain_lanes(&self, now: Time) -> bool {
        self.conceded.is_some_and(|(at, proved)| {
            self.counters.tx_acked_packets <= proved
                && at + self.profile.max_training_interval <= now
        })
    }

    pub fn ask_for_lanes(&mut self, now: Time) {
        self.asks_for_lanes = true;
        self.handshake.ask(now);
    }

    /// A frame on the right lanes came.
    pub fn lanes_are_right(&mut self) {
        self.asks_for_lanes = false;
        self.handshake.rest();
    }

    /// The training frame that should go out now, if any, into `buf`.
    pub fn emit_training(&mut self, rx_lanes: u8, now: Time, buf: &mut [u8]) -> Option<usize> {
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

    /// Lets what the lanes carry of a frame go through the cable.
    #[inline]
    pub fn send_through_cable(&self, area: &mut [u8], lanes: u8) {
        swizzle_area(area, lanes, &self.config.cable);
    }
}
