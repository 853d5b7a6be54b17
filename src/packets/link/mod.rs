//! A link end that carries whole packets. Packets are numbered, checked one by one and acknowledged
//! by number; after a loss, all are resent from the first missing one on. A packet leaves once the
//! peer has a buffer for it on its virtual channel.

mod config;
mod frame;
mod input;
mod receiver;
mod sender;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
pub(crate) mod tests;

pub use config::{PacketDepths, PacketLinkConfig};
pub use input::PacketInput;

use std::collections::VecDeque;

use phitwire_framing::carrier::frame::{Frame, FrameError, FrameHeader, PLAIN_AT};
use phitwire_framing::carrier::lane_layout::LaneLayout;
use phitwire_framing::carrier::training::TRAINING_BYTES;

use super::packet::{MAX_FRAME_BYTES, Packet};
use crate::link::common::{BAD_WORDS_UNTIL_DOUBT, Common};
use crate::link::outgoing::Outgoing;
use crate::link::training::{Offer, Terms};
use crate::link::{EndAccount, FrameContents, LinkEnd, LinkView as _, MAX_VCS, Units, Wire};
use crate::time::{Duration, Time};
use receiver::Receiver;
use sender::Sender;

/// The packets that a frame carries, as seen by an observer.
pub fn frame_contents<P: Packet>(frame: &Frame<'_>) -> Option<FrameContents> {
    let count = frame.units(P::KIND).ok()?;
    if frame.bytes().len() != frame::frame_len::<P>(count) {
        return None;
    }
    let control = frame::control::<P>(frame.bytes()).ok()?;
    Some(FrameContents {
        carries: count > 0,
        units: std::iter::once(control.seq..control.seq.saturating_add(count as u64)).collect(),
        pass: None,
    })
}

/// One end of a link that carries whole packets.
pub type PacketEnd<P> = LinkEnd<PacketWire<P>>;

/// The protocol of whole packets.
#[derive(Debug)]
pub struct PacketWire<P> {
    depths: PacketDepths,
    tx: Sender<P>,
    rx: Receiver,
    /// Packets unacknowledged at the end of the last session.
    given_up: VecDeque<P>,
    /// A frame with the cable's permutation undone.
    scratch: Vec<u8>,
}

impl<P: Packet> PacketEnd<P> {
    /// Layout of the link's frames.
    pub const LAYOUT: LaneLayout = LaneLayout::plain(P::KIND, P::LANES);

    /// Packets of `vc` that may be pushed now.
    #[inline]
    pub fn room(&self, vc: usize) -> u64 {
        self.wire().room(self.common(), vc)
    }

    /// Takes the packets that were unacknowledged when the last session ended; they may or may not
    /// have arrived.
    pub fn take_given_up(&mut self) -> VecDeque<P> {
        core::mem::take(&mut self.parts_mut().0.given_up)
    }

    /// Handles a frame whose cable permutation has been undone.
    fn read(&mut self, now: Time, header: &FrameHeader, bytes: &[u8]) {
        let link = self.parts_mut().1;
        let control = match frame::control::<P>(bytes) {
            Ok(control) => control,
            Err(error) => {
                link.counters.dropped(error);
                if link.is_ours(header) {
                    // Blame the lanes only for a failed check: they cannot cause any other error.
                    if error == FrameError::BadHeaderCheck {
                        unreadable(link);
                    }
                    link.unusable(now);
                }
                return;
            }
        };
        // Check the session only after the header's checksum: a flipped bit would name another
        // incarnation.
        if !self.belongs(now, header) {
            return;
        }
        let (wire, link, input) = self.parts_mut();
        if !wire.rx.is_possible(control.seq) || !wire.tx.is_possible(&control) {
            link.counters.drop_impossible_ack += 1;
            link.unusable(now);
            return;
        }
        link.settle_lanes(header.lanes);
        link.counters.rx_data_frames += 1;
        let packets = frame::packets::<P>(bytes);
        match wire.rx.take(now, control.seq, packets, input, link) {
            true => link.bad_words = 0,
            false => unreadable(link),
        }
        if control.question {
            wire.rx.asked = true;
            wire.rx.changed(now);
        }
        let news = wire.tx.handle_control(&mut link.out, now, &control);
        link.counters.tx_acked_packets += news.acked;
        link.counters.tx_rewinds_requested += u64::from(news.rewinds);
        if news.acked > 0 {
            link.moves();
        }
        link.accepted(wire.rx.missing(), now);
    }
}

/// A frame on this session's lanes was unreadable.
fn unreadable(link: &mut Common) {
    link.bad_words += 1;
    if link.bad_words >= BAD_WORDS_UNTIL_DOUBT && link.is_active() {
        link.doubt_lanes();
    }
}

impl<P: Packet> PacketWire<P> {
    #[inline]
    fn room(&self, link: &Common, vc: usize) -> u64 {
        if link.is_active() {
            self.tx.room(vc)
        } else {
            0
        }
    }
}

/// Default names of virtual channels.
const NUMBERS: [&str; MAX_VCS] = ["0", "1", "2", "3", "4", "5", "6", "7"];

impl<P: Packet> Wire for PacketWire<P> {
    type Config = PacketLinkConfig;
    type Input = PacketInput<P>;
    type Unit = P;

    const LINK: &'static str = P::LINK;
    const VC_NAMES: &'static [&'static str] = NUMBERS.split_at(P::VCS).0;
    const LAYOUT: LaneLayout = PacketEnd::<P>::LAYOUT;
    /// Fits a training frame and one packet.
    const MIN_FRAME_BYTES: usize = match frame::frame_len::<P>(1) {
        length if length > TRAINING_BYTES => length,
        _ => TRAINING_BYTES,
    };

    fn made(config: PacketLinkConfig, now: Time) -> (Common, Self, PacketInput<P>) {
        const {
            assert!(0 < P::VCS && P::VCS <= MAX_VCS);
            assert!(0 < P::BYTES && frame::frame_len::<P>(1) <= MAX_FRAME_BYTES);
        }
        let PacketLinkConfig { link, depths } = config;
        let terms = Terms {
            window: depths.window(),
            credits: [depths.buffers(); 2],
            max_packet: 1,
            least_packet: 1,
        };
        let common = Common::new(link, terms, now);
        let wire = Self {
            depths,
            tx: Sender::new(0, now),
            rx: Receiver::new((0, Default::default()), Duration::ZERO, Time::NEVER),
            given_up: VecDeque::new(),
            scratch: Vec::new(),
        };
        (common, wire, PacketInput::default())
    }

    fn begin(&mut self, link: &mut Common, offer: &Offer, now: Time, input: &mut PacketInput<P>) {
        // Discard the measured round trip.
        link.out = Outgoing::new(offer.lanes, &link.profile, now);
        self.tx = Sender::new(offer.credits[0].into(), now);
        input.restart();
        let buffers = self.depths.buffers();
        let limit = |vc| match vc < P::VCS {
            true => u64::from(buffers.saturating_sub(input.len(vc))),
            false => 0,
        };
        let buffers = (buffers.into(), core::array::from_fn(limit));
        self.rx = Receiver::new(buffers, link.profile.ack_delay, now);
    }

    fn end(&mut self, link: &mut Common, _: &mut PacketInput<P>) -> u64 {
        self.given_up = self.tx.stop();
        debug_assert!(
            self.given_up.len() as u64 <= link.counters.tx_packets - link.counters.tx_acked_packets,
            "packets given up were accepted and not acknowledged"
        );
        let discarded = self.given_up.len() as u64;
        link.counters.tx_discarded_packets += discarded;
        discarded
    }

    fn send_on(&mut self, link: &mut Common, lanes: u8, now: Time) {
        link.out.lanes = lanes;
        self.tx.rewind(&mut link.out, now);
        // Send at once: the peer waits for a frame on the new lanes.
        self.rx.announce_at = now;
    }

    // Packets arrive whole or not at all, so there is no partial state to discard.
    fn lanes_changed(&mut self, _: &mut Common, _: &mut PacketInput<P>) {}

    fn on_frame(end: &mut LinkEnd<Self>, now: Time, frame: &Frame<'_>) -> Result<(), FrameError> {
        if frame.bytes().len() != frame::frame_len::<P>(frame.units(P::KIND)?) {
            return Err(FrameError::BadLength);
        }
        let (wire, link, _) = end.parts_mut();
        let mut bytes = core::mem::take(&mut wire.scratch);
        bytes.clear();
        bytes.extend_from_slice(frame.bytes());
        let cable = &link.handshake.cable;
        P::LANES.swizzle_area_back(&mut bytes[PLAIN_AT..], frame.header().lanes, cable);
        end.read(now, frame.header(), &bytes);
        end.parts_mut().0.scratch = bytes;
        Ok(())
    }

    fn freed(&mut self, link: &mut Common, vc: usize, freed: u32) {
        // Ignore buffers freed between sessions: they are counted when the next one begins.
        if link.is_active() {
            self.rx.freed(vc, freed, link.now);
        }
    }

    /// Accepts a packet for sending.
    ///
    /// # Panics
    /// If there is no [`room`](PacketEnd::room).
    #[inline]
    fn push(&mut self, link: &mut Common, packet: P) {
        assert!(
            self.room(link, packet.vc()) > 0,
            "the caller checked for room"
        );
        link.counters.tx_packets += 1;
        self.tx.push(packet);
    }

    fn transmit_timers(&mut self, link: &mut Common, now: Time) {
        if self.tx.deadline(&link.out) <= now {
            let lost = self.tx.time_out(&mut link.out, now);
            link.counters.tx_rewinds_timeout += u64::from(lost);
        }
    }

    #[inline]
    fn has_to_send(&self, link: &Common, now: Time) -> bool {
        link.out.wants_probe || self.rx.asked || self.rx.announce_at <= now || self.tx.has_data()
    }

    fn emit(&mut self, link: &mut Common, now: Time, buf: &mut [u8]) -> Option<(usize, bool)> {
        if !self.has_to_send(link, now) {
            return None;
        }
        let most = match self.rx.asked {
            true => 0,
            false => frame::max_packets::<P>(buf.len()),
        };
        let due = self.tx.due(most);
        let (count, lanes) = (due.len(), link.out.lanes);
        debug_assert!(lanes & !P::LANES.all() == 0, "the link has these lanes");
        // A path that drops long frames must not drop the probe.
        let question = link.out.wants_probe && count == 0;
        let control = frame::Control {
            seq: self.tx.first_of(count),
            question,
            ..self.rx.take_control()
        };
        let header = FrameHeader {
            units: count as u16,
            ..link.header(P::KIND, lanes)
        };
        let buf = &mut buf[..frame::frame_len::<P>(count)];
        frame::emit(&header, &control, due, buf);
        link.send_through_cable(&mut buf[PLAIN_AT..], lanes);
        let again = self.tx.sent(count as u64, &mut link.out, now);
        let counters = &mut link.counters;
        counters.tx_phits += count as u64;
        counters.tx_retransmitted_packets += again;
        counters.rx_retry_requests += u64::from(control.missing);
        counters.tx_probes += u64::from(question);
        Some((buf.len(), count > 0))
    }

    #[inline]
    fn deadline(&self, link: &Common) -> Time {
        self.rx.announce_at.min(self.tx.deadline(&link.out))
    }

    fn resend(&mut self, link: &mut Common, now: Time) {
        link.counters.tx_rewinds_forced += 1;
        self.tx.rewind(&mut link.out, now);
    }

    fn unacknowledged_packets(&self) -> u64 {
        self.tx.unacknowledged()
    }

    fn account(&self, link: &Common) -> EndAccount {
        let counters = &link.counters;
        EndAccount {
            units: Units::PACKETS,
            active: link.is_active(),
            credits: (0..P::VCS).map(|vc| self.tx.room(vc) as u32).collect(),
            offers: vec![self.depths.buffers(); P::VCS],
            unacknowledged: self.tx.unacknowledged(),
            unsent: 0,
            taken: counters.tx_packets,
            given_up: Some(counters.tx_discarded_packets),
            accepted: counters.rx_packets,
        }
    }
}
