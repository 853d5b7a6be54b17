//! The link control block: one end of a link.

use phitwire_framing::carrier::frame::{Frame, FrameError};
use phitwire_framing::carrier::number::PacketNumber;
use phitwire_framing::carrier::training::Training;
use phitwire_framing::yarc::control::{ControlWord, LinkStatus};
use phitwire_framing::yarc::frame::{
    DataFrame, MIN_FRAME_PHITS, data_area, emit_data, frame_len, max_phits, padded_phits,
};
use phitwire_framing::yarc::packet::Vc;
use phitwire_framing::yarc::phit::Phit;

use super::data::Coming;
use super::input_queue::InputQueue;
use super::receive::{ReceiveTerms, Receiver};
use super::transmit::{TransmitTerms, Transmitter};
use phitwire::link::common::Common;
use phitwire::link::lanes::LaneWatch;
use phitwire::link::outgoing::Outgoing;
use phitwire::link::session::Session;
use phitwire::link::training::{Offer, Terms};
use phitwire::link::{EndStatus, LinkConfig, LinkEvent, LinkState};
use phitwire::time::{Duration, Time};

/// Minimum size of a frame buffer in bytes.
pub const MIN_FRAME_BYTES: usize = frame_len(MIN_FRAME_PHITS);

/// One end of a link (BlackWidow sec. 4.3 and 7.7).
///
/// Call order: that of every [`LinkControlBlock`](phitwire::link::LinkControlBlock), and any number
/// of [`push`](Self::push). Pass the same [`InputQueue`] every time.
///
/// # Peer restarts
/// When the peer turns out to be another incarnation, every packet in the retry buffer is discarded
/// and counted: the old incarnation may have received it, so resending could deliver it twice. The
/// NICs notice by timeout. When the peer is merely silent (a cut cable), nothing is discarded: this
/// end reports it after the profile's `silence` and keeps retrying at growing intervals for ever,
/// unless `give_up` is set.
///
/// # Unusable frames
/// Two ends whose sessions do not match cannot go on, whatever the cause. If for the profile's
/// `heal` frames arrive but none is usable, and a probe brings no usable one, this end begins a new
/// session, as after a restart.
#[derive(Debug)]
pub struct Lcb {
    pub(super) common: Common,
    pub(super) tx: Transmitter,
    pub(super) rx: Receiver,
    /// The phits of the last frame.
    pub(super) scratch: Vec<Phit>,
    /// The rest of that frame, still to be handed up.
    pub(super) coming: Option<Coming>,
}

impl Lcb {
    /// A link end with `config`, in training.
    pub fn new(config: LinkConfig, now: Time) -> Self {
        let terms = Terms {
            window: config.profile.window_packets,
            credits: [config.profile.input_phits_per_vc; 2],
            max_packet: config.max_packet_phits,
            least_packet: 4,
        };
        let common = Common::new(config, terms, now);
        Self {
            tx: Transmitter::new(&common.config, &common.profile, now),
            rx: Receiver::new(idle_terms(&common.config), &common.profile, now),
            scratch: Vec::new(),
            coming: None,
            common,
        }
    }

    // Sending.

    #[inline]
    fn wants_idle_frame(&self, now: Time) -> bool {
        self.rx.wants_retry || self.tx.out.wants_probe || self.rx.acks.is_due(now)
    }

    fn emit_data(&mut self, count: usize, buf: &mut [u8]) -> usize {
        let word = self.control_word();
        let lanes = self.tx.out.lanes;
        let header = self.common.header(DataFrame::KIND, lanes);
        let length = emit_data(&header, &word, &self.tx.slices(count), buf)
            .expect("the buffer holds this many phits");
        let area = data_area(padded_phits(count));
        debug_assert_eq!(area.end, length);
        self.common.send_through_cable(&mut buf[area], lanes);
        length
    }

    fn control_word(&mut self) -> ControlWord {
        let status = if self.rx.wants_retry {
            self.rx.wants_retry = false;
            LinkStatus::RetryRequest
        } else if core::mem::take(&mut self.tx.out.wants_probe) {
            self.common.counters.tx_probes += 1;
            LinkStatus::Probe
        } else {
            LinkStatus::Normal
        };
        let (packet, offset) = self.tx.position();
        let expected = self.rx.expected();
        ControlWord {
            seq: PacketNumber::new(packet),
            offset,
            status,
            ack: PacketNumber::new(expected),
            vc_ack: self.rx.acks.tell(expected, self.common.now),
            pass: self.tx.pass(),
        }
    }

    // Core side.

    /// Whether a packet on `vc` may begin: the link is active, no packet is open, and credits,
    /// window and retry buffer have room for the longest packet (virtual cut-through, BlackWidow
    /// sec. 4.2).
    #[inline]
    pub fn can_begin(&self, vc: Vc) -> bool {
        self.common.state == LinkState::Active && self.tx.can_begin(vc)
    }

    /// Accepts the next phit of a packet; a head opens it, an EOP closes it. Once begun, a packet
    /// is accepted to its end. While the link is not active, packets are dropped and counted.
    ///
    /// # Panics
    /// On a head inside a packet or, on an active link, without [`Self::can_begin`], or another
    /// phit outside a packet.
    #[inline]
    pub fn push(&mut self, phit: Phit) {
        let active = self.common.state == LinkState::Active;
        if let Some(vc) = self.tx.push(phit, active, &mut self.common.counters) {
            self.common.report(LinkEvent::SoftError { vc: vc as u8 });
        }
    }

    // Getters.

    /// Credits left towards the peer, in phits.
    pub fn credits(&self, vc: Vc) -> u32 {
        self.tx.credits(vc)
    }

    /// The longest packet that both ends take, in phits, EOP included.
    pub fn max_packet_phits(&self) -> u32 {
        self.tx.max_packet()
    }

    // Commands.

    /// Resends everything unacknowledged.
    pub fn force_retry(&mut self, now: Time) {
        self.common.see(now);
        self.tx.force_retry(now, &mut self.common.counters);
    }

    /// Flips a content bit of the next packet in the send buffer, before its CRC check: a soft
    /// error (BlackWidow sec. 4.3).
    pub fn soft_error_next(&mut self) {
        self.tx.damage_next();
    }
}

/// The terms of a receiver without a session.
fn idle_terms(config: &LinkConfig) -> ReceiveTerms {
    ReceiveTerms {
        first: config.first_packet,
        max_packet: config.max_packet_phits.into(),
        window: config.profile.window_packets,
        offered: config.profile.input_phits_per_vc,
        debt: [0, 0],
        lanes: 0,
        lane_threshold: config.lane_retry_threshold,
    }
}

impl EndStatus for Lcb {
    #[inline]
    fn parts(&self) -> (&Common, &Outgoing, &LaneWatch) {
        (&self.common, &self.tx.out, &self.rx.lanes)
    }

    /// Complete packets in the retry buffer.
    fn unacknowledged_packets(&self) -> u64 {
        self.tx.unacknowledged()
    }

    fn reorder_hold(&self) -> Duration {
        self.rx.reorder_hold()
    }
}

impl Session for Lcb {
    type Config = LinkConfig;
    type Input = InputQueue;

    const MIN_FRAME_BYTES: usize = MIN_FRAME_BYTES;

    fn made(config: LinkConfig, now: Time) -> (Self, InputQueue) {
        let input = InputQueue::new(&config);
        (Self::new(config, now), input)
    }

    #[inline]
    fn parts_mut(&mut self) -> (&mut Common, &mut Outgoing, &mut LaneWatch) {
        (&mut self.common, &mut self.tx.out, &mut self.rx.lanes)
    }

    fn on_frame(
        &mut self,
        now: Time,
        frame: &Frame<'_>,
        input: &mut InputQueue,
    ) -> Result<(), FrameError> {
        if frame.kind() != DataFrame::KIND {
            return Err(FrameError::BadKind);
        }
        self.on_data(now, DataFrame::of(frame)?, input);
        Ok(())
    }

    /// Behind a paced clock each piece waits until it is due.
    #[inline]
    fn has_more_data(&self) -> bool {
        self.coming.is_some() && self.tx.burst_time().is_none()
    }

    fn take_more_data(&mut self, now: Time, input: &mut InputQueue) {
        self.hand_up_next(now, input);
    }

    fn receive_timers(&mut self, now: Time, input: &mut InputQueue) {
        while self.coming.as_ref().is_some_and(|coming| coming.due <= now) {
            self.hand_up_next(now, input);
        }
        self.rx.handle_timers(now, input, &mut self.common.counters);
    }

    fn transmit_timers(&mut self, now: Time) {
        self.tx.handle_timers(now, &mut self.common.counters);
    }

    #[inline]
    fn has_to_send(&self, now: Time) -> bool {
        self.tx.has_data(now) || self.wants_idle_frame(now)
    }

    fn emit(&mut self, now: Time, buf: &mut [u8]) -> Option<(usize, bool)> {
        let count = self.tx.frame_phits(now, max_phits(buf.len()));
        if count == 0 && !self.wants_idle_frame(now) {
            return None;
        }
        let length = self.emit_data(count, buf);
        if count > 0 {
            self.tx.sent(count, now, &mut self.common.counters);
        }
        Some((length, count > 0))
    }

    #[inline]
    fn freed(&mut self, vc: usize, phits: u32) {
        let now = self.common.now;
        self.rx.acks.free(Vc::from_index(vc), phits, now);
    }

    fn send_on(&mut self, lanes: u8, now: Time) {
        self.tx.set_lanes(lanes, now);
        // An idle frame shows the peer the new lanes even if there is nothing to send.
        self.rx.acks.urge();
    }

    #[inline]
    fn own_deadline(&self) -> Time {
        let received = self.rx.deadline().min(self.rx.acks.due());
        let coming = self.coming.as_ref().map_or(Time::NEVER, |of| of.due);
        received.min(coming).min(self.tx.deadline())
    }

    fn was_trained(&mut self, _: &Training) {
        self.rx.rejects_in_row = 0;
    }

    fn lanes_changed(&mut self, input: &mut InputQueue) {
        self.coming = None;
        self.rx.lanes_changed(input, &mut self.common.counters);
    }

    fn begin(&mut self, offer: &Offer, now: Time, input: &mut InputQueue) {
        let config = &self.common.config;
        let max_packet = u32::from(offer.max_packet.min(config.max_packet_phits));
        let window = offer.window.min(self.common.profile.window_packets);
        let terms = TransmitTerms {
            max_packet,
            window,
            credits: offer.credits,
            lanes: offer.lanes,
        };
        self.tx.start(terms, now);
        let terms = ReceiveTerms {
            max_packet,
            window,
            debt: input.restart(),
            lanes: self.common.handshake.lanes,
            ..idle_terms(config)
        };
        self.rx = Receiver::new(terms, &self.common.profile, now);
        self.rx.lanes.told(self.common.handshake.told);
    }

    fn end(&mut self, input: &mut InputQueue) -> u64 {
        let discarded = self.tx.stop(&mut self.common.counters);
        self.coming = None;
        self.rx.abort(input);
        discarded
    }
}
