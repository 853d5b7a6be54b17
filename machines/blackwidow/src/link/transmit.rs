//! The transmitting half of the link control block.

use phitwire_framing::yarc::control::{ControlWord, LinkStatus};
use phitwire_framing::yarc::crc16::PacketCrc;
use phitwire_framing::yarc::packet::{EopStatus, Vc, head_vc};
use phitwire_framing::yarc::phit::{Phit, PhitKind};

use super::config::PhitLinkConfig;
use super::output_credits::OutputCredits;
use super::retry_buffer::RetryBuffer;
use phitwire::link::LinkCounters;
use phitwire::link::common::Common;
use phitwire::link::outgoing::Outgoing;
use phitwire::link::pacing::LineClock;
use phitwire::time::{Duration, Time};

/// Phits sent after a timeout until something is acknowledged: at least three whole packets.
const PROBATION_PHITS: u64 = 64;

/// The session terms that the transmitter needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransmitTerms {
    pub max_packet: u32,
    pub window: u16,
    pub credits: [u32; 2],
    pub lanes: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadWord {
    Ack,
    VcAck,
}

/// Sends packets from the core and keeps them until acknowledged (BlackWidow sec. 4.3).
#[derive(Debug)]
pub(super) struct Transmitter {
    buffer: RetryBuffer,
    credits: OutputCredits,
    window: u16,
    crc: PacketCrc,
    /// Whether to drop the rest of the open packet.
    swallowing: bool,
    /// Command: damage the next packet. `Some(true)`: the open one.
    damage: Option<bool>,
    line: LineClock,
    burst: u64,
}

impl Transmitter {
    /// Creates a transmitter without a session, which accepts nothing.
    pub fn new(config: &PhitLinkConfig) -> Self {
        let PhitLinkConfig { link, phits, .. } = config;
        Self {
            buffer: RetryBuffer::new(phits.retry_phits, phits.window_packets, link.first_packet),
            credits: OutputCredits::new([0; 2], config.max_packet_phits.into()),
            window: 0,
            crc: PacketCrc::new(),
            swallowing: false,
            damage: None,
            line: LineClock::new(
                phitwire_framing::yarc::phit::PHIT_BITS.into(),
                link.rate,
                link.clock,
                7,
            ),
            burst: phits.burst_phits.into(),
        }
    }

    /// Starts a session: empty, at the first number, without credits until the peer announces them.
    pub fn start(&mut self, terms: TransmitTerms) {
        debug_assert_eq!(
            self.buffer.unacknowledged(),
            0,
            "the last session was ended"
        );
        self.credits = OutputCredits::new(terms.credits, terms.max_packet);
        self.window = terms.window;
        self.line.set_lanes(terms.lanes);
    }

    /// Ends a session and discards the unacknowledged packets: the peer may have received them, so
    /// resending could deliver them twice. Returns the number of packets.
    pub fn stop(&mut self, counters: &mut LinkCounters) -> u64 {
        self.swallowing |= self.buffer.is_open();
        let discarded = self.buffer.discard();
        counters.tx_discarded_packets += discarded;
        self.window = 0;
        debug_assert_eq!(self.buffer.unacknowledged(), 0, "the buffer is empty");
        discarded
    }

    /// Whether a packet on `vc` may begin: none is open, and credits, window and retry buffer have
    /// room for the longest packet.
    #[inline]
    pub fn can_begin(&self, vc: Vc) -> bool {
        !self.buffer.is_open()
            && !self.swallowing
            && self.credits.has_room(vc)
            && self.buffer.has_room(self.max_packet(), self.window)
    }

    /// Accepts the next phit of a packet. Returns the virtual channel if the packet turned out to
    /// be damaged.
    ///
    /// # Panics
    /// If a head comes inside a packet or without [`Self::can_begin`], or if another phit comes
    /// outside a packet.
    pub fn push(&mut self, phit: Phit, active: bool, counters: &mut LinkCounters) -> Option<Vc> {
        if self.swallowing {
            assert!(!phit.is_head(), "head inside a packet");
            self.swallowing = !phit.is_eop();
            return None;
        }
        if !self.buffer.is_open() {
            assert!(phit.is_head(), "phit outside a packet");
            if !active {
                counters.tx_discarded_packets += 1;
                self.swallowing = true;
                return None;
            }
            let vc = head_vc(phit.content());
            assert!(
                self.can_begin(vc),
                "packet pushed without checking for room"
            );
            self.credits.begin(vc);
            self.crc = PacketCrc::new();
            if self.damage.is_some() {
                self.damage = Some(true);
            }
            self.store(phit);
            return None;
        }
        assert!(!phit.is_head(), "head inside a packet");
        if phit.is_eop() {
            return self.close(Some(phit), counters);
        }
        if self.buffer.open_phits() + 1 >= self.max_packet() {
            counters.tx_oversize_packets += 1;
            self.swallowing = true;
            return self.close(None, counters);
        }
        let phit = match self.damage {
            Some(true) => {
                self.damage = None;
                Phit::new(phit.kind(), phit.content() ^ 1 << 20)
            }
            _ => phit,
        };
        self.store(phit);
        debug_assert!(
            self.buffer.open_phits() < self.max_packet(),
            "room is left for its end"
        );
        None
    }

    #[inline]
    fn store(&mut self, phit: Phit) {
        self.crc.update(phit.content());
        self.credits.take(1);
        self.buffer.push(phit);
    }

    /// BlackWidow sec. 4.3: before a tail phit is transmitted, the CRC is checked against the
    /// contents; a damaged packet is marked `soft_error` with a good CRC, so that the receiver does
    /// not mistake it for a transmission error, and flows on.
    ///
    /// `eop` is `None` for a truncated packet.
    fn close(&mut self, eop: Option<Phit>, counters: &mut LinkCounters) -> Option<Vc> {
        let good = eop.filter(|eop| self.crc.verify(eop.content()).is_ok());
        let eop = good.unwrap_or_else(|| {
            counters.tx_soft_errors += 1;
            Phit::new(PhitKind::Eop, self.crc.eop(EopStatus::SoftError))
        });
        let vc = self.credits.take(1);
        self.buffer.push(eop);
        counters.tx_packets += 1;
        good.is_none().then_some(vc)
    }

    /// Command: damage a bit of the next packet in the send buffer, before its CRC check.
    pub fn damage_next(&mut self) {
        self.damage = self.damage.or(Some(false));
    }

    /// Whether `word` can come from a correct peer.
    #[inline]
    pub fn check(&self, word: &ControlWord) -> Result<(), BadWord> {
        let step = self.buffer.check(word.ack).map_err(|_| BadWord::Ack)?;
        if step >= 0 {
            self.credits
                .check(word.vc_ack, step > 0)
                .map_err(|_| BadWord::VcAck)?;
        }
        Ok(())
    }

    /// Applies the peer's acknowledgements and requests, already checked. Ignores a word that
    /// acknowledges less than an earlier one, since it was sent before that one and is out of date.
    ///
    /// # Errors
    /// See [`Self::check`].
    pub fn word(
        &mut self,
        word: &ControlWord,
        now: Time,
        link: &mut Common,
    ) -> Result<(), BadWord> {
        let step = self.buffer.check(word.ack).map_err(|_| BadWord::Ack)?;
        let Ok(packets) = u64::try_from(step) else {
            return Ok(());
        };
        let done = self.buffer.acknowledge(packets, now);
        let freed = self
            .credits
            .release(word.vc_ack, packets > 0)
            .map_err(|_| BadWord::VcAck)?;
        if done.packets > 0 {
            link.counters.tx_acked_packets += done.packets;
            link.out.probation = false;
            if let Some(round_trip) = done.round_trip {
                link.out.measured(round_trip, now);
            }
        }
        if done.packets > 0 || freed > 0 {
            link.out.acknowledged(self.buffer.awaits(), now);
        }
        if word.status == LinkStatus::RetryRequest {
            self.retry_requested(now, link);
        }
        Ok(())
    }

    /// Handles the peer's request to resend from the oldest unacknowledged packet on.
    fn retry_requested(&mut self, now: Time, link: &mut Common) {
        let oldest = self.buffer.acked();
        if link.out.is_answered(oldest, now) {
            link.counters.tx_retry_requests_ignored += 1;
        } else if self.buffer.rewind() {
            link.counters.tx_rewinds_requested += 1;
            link.out.answer(oldest, now);
        }
    }

    /// Changes the lanes and rewinds, since the peer will drop everything in flight.
    pub fn set_lanes(&mut self, lanes: u8, out: &mut Outgoing, now: Time) {
        out.lanes = lanes;
        self.line.set_lanes(lanes);
        self.buffer.rewind();
        out.again(now);
    }

    /// Command: rewind as if the peer had requested it.
    pub fn force_retry(&mut self, now: Time, link: &mut Common) {
        if self.buffer.rewind() {
            link.counters.tx_rewinds_forced += 1;
            link.out.timer_from = now;
        }
    }

    /// Phits that may be sent, regardless of the line clock.
    #[inline]
    fn sendable(&self, out: &Outgoing) -> u64 {
        let pending = self.buffer.pending();
        if out.probation {
            pending.min(PROBATION_PHITS.saturating_sub(self.buffer.in_flight()))
        } else {
            pending
        }
    }

    /// Duration of a burst at the line rate; `None` when free-running.
    #[inline]
    pub fn burst_time(&self) -> Option<Duration> {
        self.line.time_of(self.burst)
    }

    /// Number of phits after which a paced line releases a frame.
    fn quantum(&self, out: &Outgoing) -> u64 {
        self.sendable(out)
            .min(self.buffer.to_next_end())
            .min(self.burst)
    }

    /// Whether to call [`Self::frame_phits`].
    #[inline]
    pub fn has_data(&self, out: &Outgoing, now: Time) -> bool {
        if self.sendable(out) == 0 {
            return false;
        }
        !self.line.is_paced() || self.line.is_idle() || self.line.sent_at(self.quantum(out)) <= now
    }

    /// Phits for a frame that leaves now and holds at most `most`.
    pub fn frame_phits(&mut self, out: &Outgoing, now: Time, most: usize) -> usize {
        let sendable = self.sendable(out);
        let sent = self.line.sent(sendable, now);
        if self.line.is_paced() && sent < self.quantum(out) {
            return 0;
        }
        usize::try_from(sent).map_or(most, |sent| sent.min(most))
    }

    /// The next `count` phits, in two pieces.
    #[inline]
    pub fn slices(&self, count: usize) -> [&[Phit]; 2] {
        self.buffer.slices(count)
    }

    /// Packet and offset of the next phit to send.
    #[inline]
    pub fn position(&self) -> (u64, u8) {
        self.buffer.position()
    }

    /// Number of rewinds so far.
    #[inline]
    pub fn pass(&self) -> u16 {
        self.buffer.pass()
    }

    /// Records that `count` phits left in a frame at `now`.
    pub fn sent(&mut self, count: usize, now: Time, link: &mut Common) {
        let Common { out, counters, .. } = link;
        let sendable = self.sendable(out);
        debug_assert!(count as u64 <= sendable, "more phits sent than allowed");
        self.line.hand_out(count as u64, sendable);
        let waited = self.buffer.outstanding();
        let (_, again) = self.buffer.advance(count, now);
        counters.tx_phits += count as u64;
        counters.tx_retransmitted_packets += again;
        out.sent(waited, now);
    }

    /// Records that the peer is alive; it owes acknowledgements only for packets already sent.
    #[inline]
    pub fn heard(&self, out: &mut Outgoing) {
        out.heard(self.buffer.awaits());
    }

    /// When to probe again for the acknowledgements or credits that the peer owes.
    #[inline]
    fn retry_deadline(&self, out: &Outgoing) -> Time {
        let outstanding = self.buffer.outstanding();
        out.retry_deadline(outstanding, self.credits.is_used())
    }

    /// The earliest deadline: a retry timer, or phits that will have crossed a paced line.
    #[inline]
    pub fn deadline(&self, out: &Outgoing) -> Time {
        let retry = self.retry_deadline(out);
        if self.line.is_paced() && !self.line.is_idle() && self.sendable(out) > 0 {
            retry.min(self.line.sent_at(self.quantum(out)))
        } else {
            retry
        }
    }

    /// Expires the retry timer (BlackWidow sec. 4.3: the sender will time out and retransmit).
    pub fn handle_timers(&mut self, now: Time, link: &mut Common) {
        let Common { out, counters, .. } = link;
        if self.retry_deadline(out) > now {
            return;
        }
        if out.expire(self.buffer.outstanding(), now) {
            self.buffer.rewind();
            counters.tx_rewinds_timeout += 1;
        }
    }

    pub fn credits(&self, vc: Vc) -> u32 {
        self.credits.available(vc)
    }

    pub fn unacknowledged(&self) -> u64 {
        self.buffer.unacknowledged()
    }

    #[inline]
    pub fn max_packet(&self) -> u32 {
        self.credits.max_packet()
    }
}
