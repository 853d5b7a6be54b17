//! A link end that carries whole packets: numbered, checked one by one, acknowledged by number, and
//! all resent from the first missing one on. A packet leaves once the peer has a buffer for it on
//! its virtual channel.

mod frame;
mod input;
mod receiver;
mod sender;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
pub(crate) mod tests;

pub use input::PacketInput;

use std::collections::VecDeque;

use phitwire_framing::carrier::frame::{Frame, FrameError, FrameHeader, PLAIN_AT};
use phitwire_framing::carrier::lane_layout::LaneLayout;
use phitwire_framing::carrier::lanes::swizzle_area_back;
use phitwire_framing::carrier::training::TRAINING_BYTES;

use super::packet::{MAX_FRAME_BYTES, MAX_VCS, Packet};
use crate::device::{EndAccount, LinkEnd, LinkFault, LinkView, Units};
use crate::link::common::{BAD_WORDS_UNTIL_DOUBT, Common};
use crate::link::lanes::LaneWatch;
use crate::link::outgoing::Outgoing;
use crate::link::session::Session;
use crate::link::training::{Offer, Terms};
use crate::link::{EndStatus, Glance, LinkConfig, LinkControlBlock, LinkProfile};
use crate::time::{Duration, Time};
use receiver::Receiver;
use sender::Sender;

/// Buffers per virtual channel: the packets that fit into the profile's phits.
pub(crate) fn buffers<P: Packet>(profile: &LinkProfile) -> u32 {
    profile.input_phits_per_vc / P::BYTES.div_ceil(4) as u32
}

/// The packets that a frame carries, as seen by an observer.
pub fn glance<P: Packet>(frame: &Frame<'_>) -> Option<Glance> {
    let count = frame.units(P::KIND).ok()?;
    if frame.bytes().len() != frame::frame_len::<P>(count) {
        return None;
    }
    let control = frame::control::<P>(frame.bytes()).ok()?;
    Some(Glance {
        carries: count > 0,
        units: std::iter::once(control.seq..control.seq.saturating_add(count as u64)).collect(),
        pass: None,
    })
}

/// One end of a link that carries whole packets.
///
/// Call order: as for every [`LinkControlBlock`], plus any number of [`push`](Self::push). Pass the
/// same [`PacketInput`] every time.
#[derive(Debug)]
pub struct PacketEnd<P> {
    pub common: Common,
    tx: Sender<P>,
    pub(crate) rx: Receiver,
    /// Packets unacknowledged at the end of the last session.
    given_up: VecDeque<P>,
    /// A frame with the cable's permutation undone.
    scratch: Vec<u8>,
}

impl<P: Packet> PacketEnd<P> {
    /// The layout of its frames.
    pub const LAYOUT: LaneLayout = LaneLayout::plain(P::KIND);

    /// Packets of `vc` that may be pushed now.
    #[inline]
    pub fn room(&self, vc: usize) -> u64 {
        if self.is_active() {
            self.tx.room(vc)
        } else {
            0
        }
    }

    /// Accepts a packet for sending.
    ///
    /// # Panics
    /// Without [`room`](Self::room).
    pub fn push(&mut self, packet: P) {
        assert!(self.room(packet.vc()) > 0, "the caller checked for room");
        self.common.counters.tx_packets += 1;
        self.tx.push(packet);
    }

    /// Takes the packets that were unacknowledged when the last session ended; they may or may not
    /// have arrived.
    pub fn take_given_up(&mut self) -> VecDeque<P> {
        core::mem::take(&mut self.given_up)
    }

    /// Resends everything unacknowledged.
    pub fn force_retry(&mut self, now: Time) {
        self.common.see(now);
        self.common.counters.tx_rewinds_forced += 1;
        self.tx.rewind(now);
    }

    /// Receives a frame of packets, if it belongs to this session.
    fn on_packets(
        &mut self,
        now: Time,
        frame: &Frame<'_>,
        input: &mut PacketInput<P>,
    ) -> Result<(), FrameError> {
        if frame.bytes().len() != frame::frame_len::<P>(frame.units(P::KIND)?) {
            return Err(FrameError::BadLength);
        }
        let mut bytes = core::mem::take(&mut self.scratch);
        bytes.clear();
        bytes.extend_from_slice(frame.bytes());
        let cable = &self.common.handshake.cable;
        swizzle_area_back(&mut bytes[PLAIN_AT..], frame.header().lanes, cable);
        self.read(now, frame.header(), &bytes, input);
        self.scratch = bytes;
        Ok(())
    }

    /// Reads such a frame, the cable's permutation undone.
    fn read(&mut self, now: Time, header: &FrameHeader, bytes: &[u8], input: &mut PacketInput<P>) {
        let control = match frame::control::<P>(bytes) {
            Ok(control) => control,
            Err(error) => {
                self.common.counters.dropped(error);
                if self.common.is_ours(header) {
                    // Count for the lanes only a failed check: no other error can be a lane's
                    // fault.
                    if error == FrameError::BadHeaderCheck {
                        self.unreadable();
                    }
                    self.unusable(now);
                }
                return;
            }
        };
        // Check the session only after the header's check: a flipped bit would name another
        // incarnation.
        if !self.belongs(now, header, input) {
            return;
        }
        if !self.rx.is_possible(control.seq) || !self.tx.is_possible(&control) {
            self.common.counters.drop_impossible_ack += 1;
            self.unusable(now);
            return;
        }
        self.believes(header.lanes);
        self.common.counters.rx_data_frames += 1;
        let packets = frame::packets::<P>(bytes);
        let counters = &mut self.common.counters;
        match self.rx.take(now, control.seq, packets, input, counters) {
            true => self.common.bad_words = 0,
            false => self.unreadable(),
        }
        if control.question {
            self.rx.asked = true;
            self.rx.changed(now);
        }
        let news = self.tx.hear(now, &control);
        self.common.counters.tx_acked_packets += news.acked;
        self.common.counters.tx_rewinds_requested += u64::from(news.rewinds);
        if news.acked > 0 {
            self.moves();
        }
        self.accepted(self.rx.missing(), now);
    }

    /// A frame on this session's lanes was unreadable.
    fn unreadable(&mut self) {
        self.common.bad_words += 1;
        if self.common.bad_words >= BAD_WORDS_UNTIL_DOUBT && self.is_active() {
            self.common.doubt_lanes();
        }
    }
}

impl<P: Packet> EndStatus for PacketEnd<P> {
    #[inline]
    fn parts(&self) -> (&Common, &Outgoing, &LaneWatch) {
        (&self.common, &self.tx.out, &self.rx.lanes)
    }

    fn unacknowledged_packets(&self) -> u64 {
        self.tx.unacknowledged()
    }
}

impl<P: Packet> Session for PacketEnd<P> {
    type Config = LinkConfig;
    type Input = PacketInput<P>;

    /// Fits a training frame and one packet.
    const MIN_FRAME_BYTES: usize = match frame::frame_len::<P>(1) {
        length if length > TRAINING_BYTES => length,
        _ => TRAINING_BYTES,
    };

    fn made(config: LinkConfig, now: Time) -> (Self, PacketInput<P>) {
        const {
            assert!(0 < P::VCS && P::VCS <= MAX_VCS);
            assert!(0 < P::BYTES && frame::frame_len::<P>(1) <= MAX_FRAME_BYTES);
        }
        let profile = config.profile();
        let terms = Terms {
            window: profile.window_packets,
            credits: [buffers::<P>(profile); 2],
            max_packet: 1,
            least_packet: 1,
        };
        let common = Common::new(config, terms, now);
        let tx = Sender::new((0, 0), &common.profile, now);
        let rx = Receiver::new(
            (0, Default::default()),
            LaneWatch::new(0, 0),
            Duration::ZERO,
            Time::NEVER,
        );
        let end = Self {
            common,
            tx,
            rx,
            given_up: VecDeque::new(),
            scratch: Vec::new(),
        };
        (end, PacketInput::default())
    }

    #[inline]
    fn parts_mut(&mut self) -> (&mut Common, &mut Outgoing, &mut LaneWatch) {
        (&mut self.common, &mut self.tx.out, &mut self.rx.lanes)
    }

    fn on_frame(
        &mut self,
        now: Time,
        frame: &Frame<'_>,
        input: &mut PacketInput<P>,
    ) -> Result<(), FrameError> {
        self.on_packets(now, frame, input)
    }

    fn transmit_timers(&mut self, now: Time) {
        if self.tx.deadline() <= now {
            self.common.counters.tx_rewinds_timeout += u64::from(self.tx.time_out(now));
        }
    }

    fn has_to_send(&self, now: Time) -> bool {
        self.tx.out.wants_probe || self.rx.asked || self.rx.tell <= now || self.tx.has_data()
    }

    fn emit(&mut self, now: Time, buf: &mut [u8]) -> Option<(usize, bool)> {
        if !self.has_to_send(now) {
            return None;
        }
        let most = match self.rx.asked {
            true => 0,
            false => frame::max_packets::<P>(buf.len()),
        };
        let due = self.tx.due(most);
        let (count, lanes) = (due.len(), self.tx.out.lanes);
        // A path that drops long frames must not drop the probe.
        let question = self.tx.out.wants_probe && count == 0;
        let control = frame::Control {
            seq: self.tx.first_of(count),
            question,
            ..self.rx.say()
        };
        let header = FrameHeader {
            units: count as u16,
            ..self.common.header(P::KIND, lanes)
        };
        let buf = &mut buf[..frame::frame_len::<P>(count)];
        frame::emit(&header, &control, due, buf);
        self.common.send_through_cable(&mut buf[PLAIN_AT..], lanes);
        let again = self.tx.sent(count as u64, now);
        let counters = &mut self.common.counters;
        counters.tx_phits += count as u64;
        counters.tx_retransmitted_packets += again;
        counters.rx_retry_requests += u64::from(control.missing);
        counters.tx_probes += u64::from(question);
        Some((buf.len(), count > 0))
    }

    fn freed(&mut self, vc: usize, freed: u32) {
        // Ignore buffers freed between sessions: they are counted when the next one begins.
        if self.is_active() {
            self.rx.freed(vc, freed, self.common.now);
        }
    }

    fn send_on(&mut self, lanes: u8, now: Time) {
        self.tx.out.lanes = lanes;
        self.tx.rewind(now);
        // Send at once: the peer waits for a frame on the new lanes.
        self.rx.tell = now;
    }

    // Each packet arrived whole or not, so there is no partial state to discard.
    fn lanes_changed(&mut self, _: &mut PacketInput<P>) {}

    fn begin(&mut self, offer: &Offer, now: Time, input: &mut PacketInput<P>) {
        let Common {
            profile,
            config,
            handshake,
            ..
        } = &self.common;
        self.tx = Sender::new((offer.credits[0].into(), offer.lanes), profile, now);
        input.restart();
        let buffers = buffers::<P>(profile);
        let limit = |vc| match vc < P::VCS {
            true => u64::from(buffers.saturating_sub(input.len(vc))),
            false => 0,
        };
        let buffers = (buffers.into(), core::array::from_fn(limit));
        let lanes = LaneWatch::new(handshake.lanes, config.lane_retry_threshold);
        self.rx = Receiver::new(buffers, lanes, profile.ack_delay, now);
        self.rx.lanes.told(handshake.told);
    }

    #[inline]
    fn own_deadline(&self) -> Time {
        self.rx.tell.min(self.tx.deadline())
    }

    fn end(&mut self, _: &mut PacketInput<P>) -> u64 {
        self.given_up = self.tx.stop();
        let discarded = self.given_up.len() as u64;
        self.common.counters.tx_discarded_packets += discarded;
        discarded
    }
}

impl<P: Packet> LinkView for PacketEnd<P> {
    fn lane_layout(&self) -> LaneLayout {
        Self::LAYOUT
    }

    fn account(&self) -> EndAccount {
        let counters = self.counters();
        EndAccount {
            units: Units::PACKETS,
            active: self.is_active(),
            credits: (0..P::VCS).map(|vc| self.tx.room(vc) as u32).collect(),
            offers: vec![buffers::<P>(&self.common.profile); P::VCS],
            unacknowledged: self.unacknowledged_packets(),
            unsent: 0,
            taken: counters.tx_packets,
            given_up: Some(counters.tx_discarded_packets),
            accepted: counters.rx_packets,
        }
    }
}

/// Default names of virtual channels.
const NUMBERS: [&str; MAX_VCS] = ["0", "1", "2", "3", "4", "5", "6", "7"];

impl<P: Packet> LinkEnd for PacketEnd<P> {
    const LINK: &'static str = P::LINK;
    const VC_NAMES: &'static [&'static str] = NUMBERS.split_at(P::VCS).0;

    fn suffer(&mut self, now: Time, fault: LinkFault, input: &mut PacketInput<P>) -> bool {
        match fault {
            LinkFault::Down => self.link_down(now, input),
            LinkFault::Up => self.link_up(now),
            LinkFault::ForceRetry => self.force_retry(now),
            _ => return false,
        }
        true
    }
}
