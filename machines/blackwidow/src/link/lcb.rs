//! The link control block: one end of a link.

use phitwire_framing::carrier::frame::{Frame, FrameError};
use phitwire_framing::carrier::lane_layout::LaneLayout;
use phitwire_framing::carrier::number::PacketNumber;
use phitwire_framing::carrier::training::Training;
use phitwire_framing::yarc::control::{ControlWord, LinkStatus};
use phitwire_framing::yarc::frame::{
    DataFrame, MIN_FRAME_PHITS, data_area, emit_data, frame_len, max_phits, padded_phits,
};
use phitwire_framing::yarc::packet::Vc;
use phitwire_framing::yarc::phit::Phit;

use super::VC_NAMES;
use super::config::PhitLinkConfig;
use super::data::{PendingPhits, on_data};
use super::input_queue::InputQueue;
use super::receive::{ReceiveTerms, Receiver};
use super::transmit::{TransmitTerms, Transmitter};
use phitwire::link::common::Common;
use phitwire::link::training::{Offer, Terms};
use phitwire::link::{EndAccount, LinkEnd, LinkEvent, LinkFault, Units, Wire};
use phitwire::time::{Duration, Time};

/// Minimum size of a frame buffer in bytes.
pub const MIN_FRAME_BYTES: usize = frame_len(MIN_FRAME_PHITS);

/// One end of a link (BlackWidow sec. 4.3 and 7.7).
///
/// # Peer restarts
/// If the peer turns out to be another incarnation, every packet in the retry buffer is discarded
/// and counted: the old incarnation may have received it, so resending could deliver it twice. The
/// NICs notice by timeout. If the peer is only silent (a cut cable), nothing is discarded: this end
/// reports the silence after the profile's `silence` and retries at growing intervals, forever
/// unless `give_up` is set.
///
/// # Unusable frames
/// Two ends whose sessions do not match cannot continue, whatever the cause. If only unusable
/// frames arrive for the profile's `heal`, and a probe brings no usable one, this end begins a new
/// session, as after a restart.
pub type Lcb = LinkEnd<PhitWire>;

/// The protocol of a link of phits (BlackWidow sec. 4.3).
#[derive(Debug)]
pub struct PhitWire {
    pub(super) config: PhitLinkConfig,
    pub(super) tx: Transmitter,
    pub(super) rx: Receiver,
    /// The phits of the last frame.
    pub(super) scratch: Vec<Phit>,
    /// The rest of that frame, still to be handed up.
    pub(super) pending_phits: Option<PendingPhits>,
}

impl PhitWire {
    /// Whether a packet on `vc` may begin: the link is active, no packet is open, and credits,
    /// window and retry buffer have room for the longest packet (virtual cut-through, BlackWidow
    /// sec. 4.2).
    #[inline]
    pub fn can_begin(&self, vc: Vc) -> bool {
        self.tx.can_begin(vc)
    }

    /// Credits left towards the peer, in phits.
    pub fn credits(&self, vc: Vc) -> u32 {
        self.tx.credits(vc)
    }

    /// The longest packet that both ends take, in phits, EOP included.
    pub fn max_packet_phits(&self) -> u32 {
        self.tx.max_packet()
    }

    #[inline]
    fn wants_idle_frame(&self, link: &Common, now: Time) -> bool {
        self.rx.wants_retry || link.out.wants_probe || self.rx.acks.is_due(now)
    }

    fn emit_data(&mut self, link: &mut Common, count: usize, buf: &mut [u8]) -> usize {
        let word = self.control_word(link);
        let lanes = link.out.lanes;
        let header = link.header(DataFrame::KIND, lanes);
        let length = emit_data(&header, &word, &self.tx.slices(count), buf)
            .expect("the buffer holds this many phits");
        let area = data_area(padded_phits(count));
        debug_assert_eq!(area.end, length);
        link.send_through_cable(&mut buf[area], lanes);
        length
    }

    fn control_word(&mut self, link: &mut Common) -> ControlWord {
        let status = if self.rx.wants_retry {
            self.rx.wants_retry = false;
            LinkStatus::RetryRequest
        } else if core::mem::take(&mut link.out.wants_probe) {
            link.counters.tx_probes += 1;
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
            vc_ack: self.rx.acks.take_vc_acks(expected, link.now),
            pass: self.tx.pass(),
        }
    }
}

/// The terms of a receiver without a session.
fn idle_terms(config: &PhitLinkConfig) -> ReceiveTerms {
    ReceiveTerms {
        first: config.link.first_packet,
        max_packet: config.max_packet_phits.into(),
        window: config.phits.window_packets,
        offered: config.phits.input_phits_per_vc,
        reorder_phits: config.phits.reorder_phits,
        debt: [0, 0],
    }
}

impl Wire for PhitWire {
    type Config = PhitLinkConfig;
    type Input = InputQueue;
    type Unit = Phit;

    const LINK: &'static str = "YARC";
    const VC_NAMES: &'static [&'static str] = &VC_NAMES;
    const LAYOUT: LaneLayout = DataFrame::LAYOUT;
    const MIN_FRAME_BYTES: usize = MIN_FRAME_BYTES;

    fn made(config: PhitLinkConfig, now: Time) -> (Common, Self, InputQueue) {
        let input = InputQueue::new(&config);
        let terms = Terms {
            window: config.phits.window_packets,
            credits: [config.phits.input_phits_per_vc; 2],
            max_packet: config.max_packet_phits,
            least_packet: 4,
        };
        let common = Common::new(config.link.clone(), terms, now);
        let wire = Self {
            tx: Transmitter::new(&config),
            rx: Receiver::new(idle_terms(&config), &common.profile, now),
            scratch: Vec::new(),
            pending_phits: None,
            config,
        };
        (common, wire, input)
    }

    fn begin(&mut self, link: &mut Common, offer: &Offer, now: Time, input: &mut InputQueue) {
        let config = &self.config;
        let max_packet = u32::from(offer.max_packet.min(config.max_packet_phits));
        let window = offer.window.min(config.phits.window_packets);
        self.tx.start(TransmitTerms {
            max_packet,
            window,
            credits: offer.credits,
            lanes: offer.lanes,
        });
        let terms = ReceiveTerms {
            max_packet,
            window,
            debt: input.restart(),
            ..idle_terms(config)
        };
        self.rx = Receiver::new(terms, &link.profile, now);
    }

    fn end(&mut self, link: &mut Common, input: &mut InputQueue) -> u64 {
        let discarded = self.tx.stop(&mut link.counters);
        debug_assert!(
            Vc::ALL.iter().all(|vc| !self.tx.can_begin(*vc)),
            "no packet begins without a session"
        );
        self.pending_phits = None;
        self.rx.abort(input);
        discarded
    }

    fn send_on(&mut self, link: &mut Common, lanes: u8, now: Time) {
        self.tx.set_lanes(lanes, &mut link.out, now);
        // An idle frame shows the peer the new lanes even if there is nothing to send.
        self.rx.acks.urge();
    }

    fn lanes_changed(&mut self, link: &mut Common, input: &mut InputQueue) {
        self.pending_phits = None;
        self.rx.lanes_changed(input, link);
    }

    fn was_trained(&mut self, _: &mut Common, _: &Training) {
        self.rx.rejects_in_row = 0;
    }

    fn on_frame(end: &mut Lcb, now: Time, frame: &Frame<'_>) -> Result<(), FrameError> {
        if frame.kind() != DataFrame::KIND {
            return Err(FrameError::BadKind);
        }
        on_data(end, now, DataFrame::of(frame)?);
        Ok(())
    }

    /// Under a paced clock each piece waits until it is due.
    #[inline]
    fn has_more(&self) -> bool {
        self.pending_phits.is_some() && self.tx.burst_time().is_none()
    }

    fn take_more(&mut self, link: &mut Common, now: Time, input: &mut InputQueue) {
        self.hand_up_next(link, now, input);
    }

    fn receive_timers(&mut self, link: &mut Common, now: Time, input: &mut InputQueue) {
        while self
            .pending_phits
            .as_ref()
            .is_some_and(|pending_phits| pending_phits.due <= now)
        {
            self.hand_up_next(link, now, input);
        }
        self.rx.handle_timers(now, input, link);
    }

    #[inline]
    fn freed(&mut self, link: &mut Common, vc: usize, phits: u32) {
        self.rx.acks.free(Vc::from_index(vc), phits, link.now);
    }

    /// Accepts the next phit of a packet; a head opens it, an EOP closes it. Once begun, a packet
    /// is accepted to its end.
    ///
    /// # Panics
    /// If a head comes inside a packet or, on an active link, without [`Self::can_begin`], or if
    /// another phit comes outside a packet.
    #[inline]
    fn push(&mut self, link: &mut Common, phit: Phit) {
        if let Some(vc) = self.tx.push(phit, link.is_active(), &mut link.counters) {
            link.report(LinkEvent::SoftError { vc: vc as u8 });
        }
    }

    fn transmit_timers(&mut self, link: &mut Common, now: Time) {
        self.tx.handle_timers(now, link);
    }

    #[inline]
    fn has_to_send(&self, link: &Common, now: Time) -> bool {
        self.tx.has_data(&link.out, now) || self.wants_idle_frame(link, now)
    }

    fn emit(&mut self, link: &mut Common, now: Time, buf: &mut [u8]) -> Option<(usize, bool)> {
        let count = self.tx.frame_phits(&link.out, now, max_phits(buf.len()));
        if count == 0 && !self.wants_idle_frame(link, now) {
            return None;
        }
        let length = self.emit_data(link, count, buf);
        if count > 0 {
            self.tx.sent(count, now, link);
        }
        Some((length, count > 0))
    }

    #[inline]
    fn deadline(&self, link: &Common) -> Time {
        let received = self.rx.deadline().min(self.rx.acks.due());
        let pending_phits = self.pending_phits.as_ref().map_or(Time::NEVER, |of| of.due);
        received.min(pending_phits).min(self.tx.deadline(&link.out))
    }

    fn resend(&mut self, link: &mut Common, now: Time) {
        self.tx.force_retry(now, link);
    }

    /// A soft error flips a content bit of the next packet in the send buffer, before its CRC check
    /// (BlackWidow sec. 4.3).
    fn apply_fault(&mut self, _: &mut Common, _: Time, fault: LinkFault) -> bool {
        match fault {
            LinkFault::SoftError => self.tx.damage_next(),
            _ => return false,
        }
        true
    }

    /// Complete packets in the retry buffer.
    fn unacknowledged_packets(&self) -> u64 {
        self.tx.unacknowledged()
    }

    fn account(&self, link: &Common) -> EndAccount {
        let counters = &link.counters;
        EndAccount {
            units: Units {
                credits: "phits",
                unacknowledged: "packets",
                conserved: "packets",
            },
            active: link.is_active(),
            credits: Vc::ALL.map(|vc| self.credits(vc)).to_vec(),
            offers: vec![self.config.phits.input_phits_per_vc; 2],
            unacknowledged: self.tx.unacknowledged(),
            unsent: 0,
            taken: counters.tx_packets,
            given_up: Some(counters.tx_discarded_packets),
            accepted: counters.rx_packets,
        }
    }

    fn reorder_hold(&self) -> Duration {
        self.rx.reorder_hold()
    }
}
