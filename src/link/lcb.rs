//! The link control block: one end of a link.

use std::collections::VecDeque;

use phitwire_framing::control::{ControlWord, LinkStatus};
use phitwire_framing::frame::{self, Frame, FrameError, FrameHeader, FrameKind, MIN_FRAME_PHITS};
use phitwire_framing::lanes::swizzle_area;
use phitwire_framing::packet24::Vc;
use phitwire_framing::phit24::Phit;

use super::config::{LinkConfig, LinkProfile};
use super::counters::LinkCounters;
use super::event::{DownReason, LinkEvent, LinkState};
use super::input_queue::InputQueue;
use super::receive::{ReceiveTerms, Receiver};
use super::training::Handshake;
use super::transmit::{TransmitTerms, Transmitter};
use crate::time::{Duration, Time};

/// Events kept until somebody fetches them.
const MAX_EVENTS: usize = 64;
/// Frames in a row without a readable control word before the lanes are looked at.
pub(super) const BAD_WORDS_UNTIL_DOUBT: u32 = 4;

/// Fewest bytes that the buffer of [`Lcb::poll_frame`] may have.
pub const MIN_FRAME_BYTES: usize = frame::frame_len(MIN_FRAME_PHITS);

/// One end of a link (paper, sections 4.3 and 7.7).
///
/// Call order: any number of [`handle_frame`](Self::handle_frame), [`push`](Self::push) and
/// [`vc_freed`](Self::vc_freed), and [`handle_timers`](Self::handle_timers) when
/// [`next_wakeup`](Self::next_wakeup) has come; then [`poll_frame`](Self::poll_frame) until it answers
/// `None`, and [`poll_event`](Self::poll_event) until `None`. The same [`InputQueue`] is handed in every
/// time.
///
/// # Peer restarts
/// When the peer turns out to be another incarnation, every packet in the retry buffer is discarded and
/// counted: it may have been delivered inside the old one, so that sending it again could deliver it twice.
/// End points learn of it by their time-outs. When the peer is merely silent (a cut cable), nothing is
/// discarded: this end tries again at growing intervals for ever, unless the profile's `give_up` says
/// otherwise.
#[derive(Debug)]
pub struct Lcb {
    pub(super) config: LinkConfig,
    pub(super) profile: LinkProfile,
    pub(super) state: LinkState,
    pub(super) handshake: Handshake,
    pub(super) tx: Transmitter,
    pub(super) rx: Receiver,
    /// Until a frame on the right lanes comes, training frames ask for it.
    pub(super) asks_for_lanes: bool,
    pub(super) bad_words: u32,
    pub(super) counters: LinkCounters,
    events: VecDeque<LinkEvent>,
    pub(super) scratch: Vec<Phit>,
    now: Time,
}

impl Lcb {
    /// One end as `config` says, in training.
    pub fn new(config: LinkConfig, now: Time) -> Self {
        let profile = config.profile.dilated(config.clock.dilation());
        Self {
            handshake: Handshake::new(config.epoch, &profile, now),
            tx: Transmitter::new(&config, &profile, now),
            rx: Receiver::new(idle_terms(&config), &profile, now),
            state: LinkState::Training,
            asks_for_lanes: false,
            bad_words: 0,
            counters: LinkCounters::default(),
            events: VecDeque::new(),
            scratch: Vec::new(),
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
    pub(super) fn see(&mut self, now: Time) {
        let _ = now.since(self.now);
        self.now = now;
    }

    pub(super) fn report(&mut self, event: LinkEvent) {
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
            self.counters.events_lost += 1;
        }
        self.events.push_back(event);
    }

    // Receiving.

    /// Takes in the bytes of one link frame, whatever they are. Phits go up into `input`
    /// speculatively; what cannot be used is dropped and counted by reason.
    ///
    /// # Panics
    /// If `now` is earlier than in an earlier call.
    pub fn handle_frame(&mut self, now: Time, bytes: &[u8], input: &mut InputQueue) {
        self.see(now);
        self.counters.rx_frames += 1;
        match frame::parse(bytes) {
            Ok(Frame::Data(data)) => self.on_data(now, data, input),
            Ok(Frame::Training(training)) => self.on_training(now, &training, input),
            // Sets are another machine's.
            Ok(Frame::Sets(_)) => self.counters.dropped(FrameError::BadKind),
            Err(error) => self.counters.dropped(error),
        }
        if self.rx.lanes_charged {
            self.rx.lanes_charged = false;
            self.judge_lanes(now, input);
        }
    }

    /// Expires the deadlines that [`Self::next_wakeup`] names. Calling it early does nothing.
    ///
    /// # Panics
    /// If `now` is earlier than in an earlier call.
    pub fn handle_timers(&mut self, now: Time, input: &mut InputQueue) {
        self.see(now);
        if self.state != LinkState::Active {
            return;
        }
        self.rx.handle_timers(now, input, &mut self.counters);
        if let Some(patience) = self.profile.give_up
            && self.tx.owed_since + patience <= now
        {
            self.leave_active(LinkState::Training, DownReason::Silence, now, input);
            return;
        }
        self.tx.handle_timers(now, &mut self.counters);
    }

    /// When [`Self::handle_timers`] should be called, or [`Self::poll_frame`] will have something to
    /// say, if nothing happens before. May lie in the past.
    pub fn next_wakeup(&self) -> Option<Time> {
        let mut at = self.handshake.deadline();
        if self.state == LinkState::Active {
            at = at
                .min(self.rx.deadline())
                .min(self.rx.acks.due())
                .min(self.tx.deadline());
            if let Some(patience) = self.profile.give_up {
                at = at.min(self.tx.owed_since + patience);
            }
        }
        (at != Time::NEVER).then_some(at)
    }

    // Sending.

    /// Whether [`Self::poll_frame`] has something to send.
    #[inline]
    pub fn wants_to_send(&self, now: Time) -> bool {
        self.handshake.is_due(now)
            || self.state == LinkState::Active
                && (self.tx.has_data(now) || self.rx.wants_retry || self.wants_idle_frame(now))
    }

    #[inline]
    fn wants_idle_frame(&self, now: Time) -> bool {
        self.rx.wants_retry || self.tx.wants_probe || self.rx.acks.is_due(now)
    }

    /// Writes the next frame into `buf`, whose length is the limit of the link, and returns its length.
    ///
    /// A buffer of fewer than [`MIN_FRAME_BYTES`] gets nothing.
    ///
    /// # Panics
    /// If `now` is earlier than in an earlier call.
    pub fn poll_frame(&mut self, now: Time, buf: &mut [u8]) -> Option<usize> {
        self.see(now);
        if buf.len() < MIN_FRAME_BYTES {
            return None;
        }
        if self.handshake.is_due(now)
            && let Some(length) = self.emit_training(now, buf)
        {
            return Some(length);
        }
        if self.state != LinkState::Active {
            return None;
        }
        let count = self.tx.frame_phits(now, frame::max_phits(buf.len()));
        if count == 0 && !self.wants_idle_frame(now) {
            return None;
        }
        let length = self.emit_data(count, buf);
        if count > 0 {
            self.tx.sent(count, now, &mut self.counters);
            self.counters.tx_data_frames += 1;
        } else {
            self.counters.tx_idle_frames += 1;
        }
        self.counters.tx_frames += 1;
        Some(length)
    }

    fn emit_training(&mut self, now: Time, buf: &mut [u8]) -> Option<usize> {
        let training = self
            .handshake
            .frame(&self.config, self.state, self.wanted_lanes(), now)?;
        let length = training
            .emit(buf)
            .expect("the buffer holds the longer data frame");
        self.send_through_cable(&mut buf[..length], training.header.lanes);
        self.counters.tx_frames += 1;
        self.counters.tx_training_frames += 1;
        Some(length)
    }

    fn emit_data(&mut self, count: usize, buf: &mut [u8]) -> usize {
        let word = self.control_word();
        let lanes = self.tx.lanes();
        let header = FrameHeader {
            kind: FrameKind::Data,
            end: self.config.end,
            link: self.config.link,
            fabric: self.config.fabric,
            tx_epoch: self.handshake.epoch,
            rx_epoch: self.handshake.peer_epoch,
            lanes,
            phits: 0,
        };
        let length = frame::emit_data(&header, &word, &self.tx.slices(count), buf)
            .expect("no more phits than the buffer holds");
        self.send_through_cable(&mut buf[..length], lanes);
        length
    }

    fn control_word(&mut self) -> ControlWord {
        let status = if self.rx.wants_retry {
            self.rx.wants_retry = false;
            LinkStatus::RetryRequest
        } else if self.tx.wants_probe {
            self.tx.wants_probe = false;
            self.counters.tx_probes += 1;
            LinkStatus::Probe
        } else {
            LinkStatus::Normal
        };
        let (seq, offset) = self.tx.position();
        let expected = self.rx.expected();
        ControlWord {
            seq,
            offset,
            status,
            ack: expected as u16,
            vc_ack: self.rx.acks.tell(expected),
        }
    }

    fn send_through_cable(&self, frame: &mut [u8], lanes: u8) {
        if !self.config.cable.is_identity()
            && let Some(area) = frame::phit_area(frame)
        {
            swizzle_area(&mut frame[area], lanes, &self.config.cable);
        }
    }

    // The core's side.

    /// Whether a packet on `vc` may begin: the link is active, no packet is open, and credits, window
    /// and retry buffer have room for the longest packet (virtual cut-through, paper, section 4.2).
    #[inline]
    pub fn can_begin(&self, vc: Vc) -> bool {
        self.state == LinkState::Active && self.tx.can_begin(vc)
    }

    /// Takes the next phit of a packet; a head opens it, an EOP closes it. Once begun, a packet is
    /// taken without further questions. While the link is not active, packets are swallowed and counted.
    ///
    /// # Panics
    /// If a head comes inside a packet or, on an active link, without [`Self::can_begin`], or another phit
    /// outside a packet.
    #[inline]
    pub fn push(&mut self, phit: Phit) {
        let active = self.state == LinkState::Active;
        if let Some(vc) = self.tx.push(phit, active, &mut self.counters) {
            self.report(LinkEvent::SoftError { vc });
        }
    }

    /// `phits` of `vc` have left the input queue: what [`InputQueue::take_acks`] gave.
    ///
    /// # Panics
    /// If more than was received.
    #[inline]
    pub fn vc_freed(&mut self, vc: Vc, phits: u32) {
        if phits > 0 {
            self.rx.acks.free(vc, phits, self.now);
        }
    }

    // Getters.

    /// The paper's `link_active` (section 7.7).
    #[inline]
    pub fn is_active(&self) -> bool {
        self.state == LinkState::Active
    }

    /// Where this end stands.
    pub fn state(&self) -> LinkState {
        self.state
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }

    /// What happened so far.
    pub fn counters(&self) -> &LinkCounters {
        &self.counters
    }

    /// The configuration.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Smoothed round trip of the link, once one was measured.
    pub fn round_trip(&self) -> Option<Duration> {
        self.tx.round_trip().smoothed()
    }

    /// The retry time-out as it stands.
    pub fn retry_timeout(&self) -> Duration {
        self.tx.round_trip().timeout()
    }

    /// How long a missing frame may now be late before it counts as lost.
    pub fn reorder_hold(&self) -> Duration {
        self.rx.reorder_hold()
    }

    /// Lanes transmitted on, one bit per lane; 0 until the link was active.
    pub fn tx_lanes(&self) -> u8 {
        self.tx.lanes()
    }

    /// Lanes received on, one bit per lane by the sender's numbers; 0 until the link was active.
    pub fn rx_lanes(&self) -> u8 {
        self.rx.lanes.active()
    }

    pub(super) fn wanted_lanes(&self) -> u8 {
        match self.state {
            LinkState::Active | LinkState::Dead => self.rx.lanes.active(),
            _ => self.handshake.lanes,
        }
    }

    /// Credits left towards the peer, in phits.
    pub fn credits(&self, vc: Vc) -> u32 {
        self.tx.credits(vc)
    }

    /// Complete packets in the retry buffer.
    pub fn unacknowledged_packets(&self) -> u64 {
        self.tx.unacknowledged()
    }

    /// The longest packet that both ends take, in phits, EOP included.
    pub fn max_packet_phits(&self) -> u32 {
        self.tx.max_packet()
    }

    /// Epochs of this end and of the peer, 0 while unknown.
    pub fn epochs(&self) -> (u32, u32) {
        (self.handshake.epoch, self.handshake.peer_epoch)
    }

    // Commands.

    /// Sends everything unacknowledged again.
    pub fn force_retry(&mut self, now: Time) {
        self.see(now);
        self.tx.force_retry(now, &mut self.counters);
    }

    /// Flips a content bit of the next packet in the send buffer, before its check: a soft error
    /// (paper, section 4.3).
    pub fn soft_error_next(&mut self) {
        self.tx.damage_next();
    }

    /// Takes the link down until [`Self::link_up`]; the peer is told.
    pub fn link_down(&mut self, now: Time, input: &mut InputQueue) {
        self.see(now);
        match self.state {
            LinkState::Disabled => return,
            LinkState::Active => {
                self.handshake.answer(false);
                self.leave_active(LinkState::Disabled, DownReason::Command, now, input);
            }
            _ => self.state.go(LinkState::Disabled),
        }
        self.handshake.rest();
    }

    /// Brings a link up again that was taken down by command or lost its last lane: channel
    /// initialisation with all lanes, under a new epoch.
    pub fn link_up(&mut self, now: Time) {
        self.see(now);
        if matches!(self.state, LinkState::Disabled | LinkState::Dead) {
            self.state.go(LinkState::Training);
            self.handshake.restart(now);
        }
    }
}

/// What a receiver without a session goes by.
fn idle_terms(config: &LinkConfig) -> ReceiveTerms {
    ReceiveTerms {
        max_packet: config.max_packet_phits.into(),
        window: config.profile.window_packets,
        offered: config.profile.input_phits_per_vc,
        debt: [0, 0],
        lanes: 0,
        lane_threshold: config.lane_retry_threshold,
    }
}

impl Lcb {
    /// Starts a session on the terms that both ends offered.
    pub(super) fn become_active(&mut self, now: Time, input: &mut InputQueue) {
        let Some(offer) = self.handshake.offer.clone() else {
            return;
        };
        if self.state == LinkState::Refused {
            self.state.go(LinkState::Training);
        }
        self.state.go(LinkState::Active);
        let max_packet = u32::from(offer.max_packet.min(self.config.max_packet_phits));
        let window = offer.window.min(self.profile.window_packets);
        let credits = offer.credits;
        self.tx.start(
            TransmitTerms {
                max_packet,
                window,
                credits,
                lanes: offer.lanes,
            },
            now,
        );
        let terms = ReceiveTerms {
            max_packet,
            window,
            debt: input.restart(),
            lanes: self.handshake.lanes,
            ..idle_terms(&self.config)
        };
        self.rx = Receiver::new(terms, &self.profile, now);
        self.asks_for_lanes = false;
        self.bad_words = 0;
        self.handshake.rest();
        self.report(LinkEvent::Up {
            peer: self.config.peer.clone(),
            tx_lanes: offer.lanes,
            rx_lanes: self.handshake.lanes,
        });
    }

    /// Deasserts `link_active`: what is open is closed, what is not acknowledged is discarded.
    pub(super) fn leave_active(
        &mut self,
        to: LinkState,
        why: DownReason,
        now: Time,
        input: &mut InputQueue,
    ) {
        let discarded_packets = self.tx.stop(&mut self.counters);
        self.rx.abort(input);
        self.state.go(to);
        if to == LinkState::Training {
            self.handshake.restart(now);
        }
        if why == DownReason::PeerRestarted {
            self.report(LinkEvent::PeerRestarted { discarded_packets });
        }
        self.report(LinkEvent::Down {
            why,
            discarded_packets,
        });
    }
}
