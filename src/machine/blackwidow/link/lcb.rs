//! The link control block: one end of a link.

use phitwire_framing::carrier::frame::{self, FrameError};
use phitwire_framing::carrier::number::PacketNumber;
use phitwire_framing::carrier::training::Training;
use phitwire_framing::yarc::control::{ControlWord, LinkStatus};
use phitwire_framing::yarc::frame::{
    DataFrame, MIN_FRAME_PHITS, data_area, emit_data, frame_len, max_phits, padded_phits,
};
use phitwire_framing::yarc::packet::Vc;
use phitwire_framing::yarc::phit::Phit;

use super::input_queue::InputQueue;
use super::receive::{ReceiveTerms, Receiver};
use super::transmit::{TransmitTerms, Transmitter};
use crate::link::LinkCounters;
use crate::link::common::{Common, calls_of_every_end};
use crate::link::config::LinkConfig;
use crate::link::lanes::LaneWatch;
use crate::link::round_trip::RoundTrip;
use crate::link::session::Session;
use crate::link::training::{Offer, Terms};
use crate::link::{LinkControlBlock, LinkEvent, LinkState, link_control_calls};
use crate::time::{Duration, Time};

/// Fewest bytes that the buffer of [`Lcb::poll_frame`] may have.
pub const MIN_FRAME_BYTES: usize = frame_len(MIN_FRAME_PHITS);

/// One end of a link (paper, sections 4.3 and 7.7).
///
/// Call order: any number of [`handle_frame`](Self::handle_frame), [`push`](Self::push) and
/// [`vc_freed`](Self::vc_freed), and [`handle_timers`](Self::handle_timers) when
/// [`next_wakeup`](Self::next_wakeup) has come; then [`poll_frame`](Self::poll_frame) until it
/// answers `None`, and [`poll_event`](Self::poll_event) until `None`. The same [`InputQueue`] is
/// handed in every time.
///
/// # Peer restarts
/// When the peer turns out to be another incarnation, every packet in the retry buffer is discarded
/// and counted: it may have been delivered inside the old one, so that sending it again could
/// deliver it twice. End points learn of it by their time-outs. When the peer is merely silent (a
/// cut cable), nothing is discarded: this end says so after the profile's `silence` and tries again
/// at growing intervals for ever, unless `give_up` says otherwise.
///
/// # Frames that cannot be used
/// Two ends whose sessions do not fit cannot go on, whatever made it so. When frames come for the
/// profile's `heal`, none can be used, and a question brings none that can, this end begins a new
/// session, as if it had been restarted.
#[derive(Debug)]
pub struct Lcb {
    pub(super) common: Common,
    pub(super) tx: Transmitter,
    pub(super) rx: Receiver,
    pub(super) scratch: Vec<Phit>,
}

impl Lcb {
    /// One end as `config` says, in training.
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
            common,
        }
    }

    // Receiving.

    /// Takes in the bytes of one link frame, whatever they are. Phits go up into `input`
    /// speculatively; what cannot be used is dropped and counted by reason.
    ///
    /// # Panics
    /// If `now` is earlier than in an earlier call.
    pub fn handle_frame(&mut self, now: Time, bytes: &[u8], input: &mut InputQueue) {
        self.common.see(now);
        self.common.counters.rx_frames += 1;
        let taken = frame::parse(bytes).and_then(|frame| {
            match frame.kind() {
                DataFrame::KIND => self.on_data(now, DataFrame::of(&frame)?, input),
                Training::KIND => self.on_training(now, &Training::of(&frame)?, input),
                _ => return Err(FrameError::BadKind),
            }
            Ok(())
        });
        if let Err(error) = taken {
            self.common.counters.dropped(error);
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
        self.common.see(now);
        if self.common.state != LinkState::Active {
            return;
        }
        self.rx.handle_timers(now, input, &mut self.common.counters);
        if self.expire(now, input) {
            self.tx.handle_timers(now, &mut self.common.counters);
        }
    }

    // Sending.

    /// Whether [`Self::poll_frame`] has something to send.
    #[inline]
    pub fn wants_to_send(&self, now: Time) -> bool {
        self.common.handshake.is_due(now)
            || self.common.state == LinkState::Active
                && (self.tx.has_data(now) || self.wants_idle_frame(now))
    }

    #[inline]
    fn wants_idle_frame(&self, now: Time) -> bool {
        self.rx.wants_retry || self.tx.wants_probe || self.rx.acks.is_due(now)
    }

    /// Writes the next frame into `buf`, whose length is the limit of the link, and returns its
    /// length.
    ///
    /// A buffer of fewer than [`MIN_FRAME_BYTES`] gets nothing.
    ///
    /// # Panics
    /// If `now` is earlier than in an earlier call.
    pub fn poll_frame(&mut self, now: Time, buf: &mut [u8]) -> Option<usize> {
        self.common.see(now);
        if buf.len() < MIN_FRAME_BYTES {
            return None;
        }
        if self.common.handshake.is_due(now)
            && let Some(length) = self.common.emit_training(self.wanted_lanes(), now, buf)
        {
            return Some(length);
        }
        if self.common.state != LinkState::Active {
            return None;
        }
        let count = self.tx.frame_phits(now, max_phits(buf.len()));
        if count == 0 && !self.wants_idle_frame(now) {
            return None;
        }
        let length = self.emit_data(count, buf);
        if count > 0 {
            self.tx.sent(count, now, &mut self.common.counters);
            self.common.counters.tx_data_frames += 1;
        } else {
            self.common.counters.tx_idle_frames += 1;
        }
        self.common.counters.tx_frames += 1;
        Some(length)
    }

    fn emit_data(&mut self, count: usize, buf: &mut [u8]) -> usize {
        let word = self.control_word();
        let lanes = self.tx.lanes();
        let header = self.common.header(DataFrame::KIND, lanes);
        let length = emit_data(&header, &word, &self.tx.slices(count), buf)
            .expect("no more phits than the buffer holds");
        let area = data_area(padded_phits(count));
        debug_assert_eq!(area.end, length);
        self.common.send_through_cable(&mut buf[area], lanes);
        length
    }

    fn control_word(&mut self) -> ControlWord {
        let status = if self.rx.wants_retry {
            self.rx.wants_retry = false;
            LinkStatus::RetryRequest
        } else if self.tx.wants_probe {
            self.tx.wants_probe = false;
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

    // The core's side.

    /// Whether a packet on `vc` may begin: the link is active, no packet is open, and credits,
    /// window and retry buffer have room for the longest packet (virtual cut-through, paper,
    /// section 4.2).
    #[inline]
    pub fn can_begin(&self, vc: Vc) -> bool {
        self.common.state == LinkState::Active && self.tx.can_begin(vc)
    }

    /// Takes the next phit of a packet; a head opens it, an EOP closes it. Once begun, a packet is
    /// taken without further questions. While the link is not active, packets are swallowed and
    /// counted.
    ///
    /// # Panics
    /// If a head comes inside a packet or, on an active link, without [`Self::can_begin`], or
    /// another phit outside a packet.
    #[inline]
    pub fn push(&mut self, phit: Phit) {
        let active = self.common.state == LinkState::Active;
        if let Some(vc) = self.tx.push(phit, active, &mut self.common.counters) {
            self.common.report(LinkEvent::SoftError { vc: vc as u8 });
        }
    }

    /// `phits` of `vc` have left the input queue: what [`InputQueue::take_acks`] gave.
    ///
    /// # Panics
    /// If more than was received.
    #[inline]
    pub fn vc_freed(&mut self, vc: Vc, phits: u32) {
        if phits > 0 {
            self.rx.acks.free(vc, phits, self.common.now);
        }
    }

    // Getters and commands that every link control block has.

    calls_of_every_end!(InputQueue);

    // Getters.

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

    // Commands.

    /// Sends everything unacknowledged again.
    pub fn force_retry(&mut self, now: Time) {
        self.common.see(now);
        self.tx.force_retry(now, &mut self.common.counters);
    }

    /// Flips a content bit of the next packet in the send buffer, before its check: a soft error
    /// (paper, section 4.3).
    pub fn soft_error_next(&mut self) {
        self.tx.damage_next();
    }
}

/// What a receiver without a session goes by.
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

impl Session for Lcb {
    type Input = InputQueue;

    fn common(&mut self) -> &mut Common {
        &mut self.common
    }

    #[inline]
    fn link(&self) -> &Common {
        &self.common
    }

    fn tx_lanes(&self) -> u8 {
        self.tx.lanes()
    }

    fn send_on(&mut self, lanes: u8, now: Time) {
        self.tx.set_lanes(lanes, now);
        // An idle frame shows the peer the new lanes even when there is nothing to send.
        self.rx.acks.urge();
    }

    fn rx_lanes(&mut self) -> &mut LaneWatch {
        &mut self.rx.lanes
    }

    fn receives_on(&self) -> &LaneWatch {
        &self.rx.lanes
    }

    fn call(&mut self, now: Time) {
        self.tx.call(now);
    }

    fn way_and_back(&self) -> &RoundTrip {
        self.tx.round_trip()
    }

    #[inline]
    fn own_deadline(&self) -> Time {
        let received = self.rx.deadline().min(self.rx.acks.due());
        received.min(self.tx.deadline())
    }

    #[inline]
    fn owed_since(&self) -> Time {
        self.tx.owed_since
    }

    fn hold(&self) -> Duration {
        self.rx.reorder_hold()
    }

    fn unacknowledged(&self) -> u64 {
        self.unacknowledged_packets()
    }

    fn inspect_lanes(&mut self, training: &Training, frames: u32) {
        let cable = &self.common.handshake.cable;
        self.rx
            .inspect_lanes(&training.pattern, cable, frames, &mut self.common.counters);
    }

    fn lanes_changed(&mut self, input: &mut InputQueue) {
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
        self.rx.abort(input);
        discarded
    }
}

impl LinkControlBlock for Lcb {
    type Config = LinkConfig;
    type Input = InputQueue;

    link_control_calls!();

    fn new(config: LinkConfig, now: Time) -> (Self, InputQueue) {
        let input = InputQueue::new(&config);
        (Self::new(config, now), input)
    }
    #[inline]
    fn vc_freed(&mut self, vc: usize, freed: u32) {
        self.vc_freed(Vc::from_index(vc), freed);
    }
}
