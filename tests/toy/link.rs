//! The link end: whole packets, numbered; from the first that is missing on, all are sent again.
//!
//! A frame is the header, four words, packets and a check over everything. The words: number of the
//! first packet, number of the packet expected next, number of the first packet for which no buffer
//! is left, and flags.

use std::collections::VecDeque;

use phitwire_framing::carrier::frame::{
    self, CHECK_BYTES, Frame, FrameError, FrameHeader, FrameKind, HEADER_BYTES, PLAIN_AT,
};
use phitwire_framing::carrier::lanes::swizzle_area_back;
use phitwire_framing::carrier::training::{TRAINING_BYTES, Training};

use super::Packet;
use crate::device::{
    DeviceError, EndAccount, LinkFault, LinkView, Units, link_view_by_own_methods,
};
use crate::link::common::{Common, calls_of_every_end};
use crate::link::lanes::LaneWatch;
use crate::link::round_trip::{RoundTrip, Seen};
use crate::link::session::Session;
use crate::link::training::{Offer, Terms};
use crate::link::{
    LaneRate, LinkConfig, LinkControlBlock, LinkCounters, LinkEvent, LinkProfile, LinkStandard,
    LinkState, ReceiveBuffer, link_control_calls,
};
use crate::node::PortId;
use crate::time::{Duration, Time};

/// Its lanes.
pub const RATE: LaneRate = LaneRate::new(8, 6_250_000_000);
/// What all links have in common.
pub const STANDARD: LinkStandard = LinkStandard {
    rates: &[RATE, LaneRate::new(9, 3_125_000_000)],
    max_packet_phits: 22,
};
/// The kind of its frames.
pub const KIND: FrameKind = FrameKind::new(3);
/// Flag: packets before those of the frame are missing.
const MISSING: u64 = 1;
/// Flag: an answer is wanted.
const QUESTION: u64 = 2;

/// Length of a frame with so many packets.
pub const fn frame_len(packets: usize) -> usize {
    HEADER_BYTES + 8 * (4 + 8 * packets) + CHECK_BYTES
}

/// Packets that the input buffer of a link with this profile holds.
fn buffers(profile: &LinkProfile) -> u64 {
    (profile.input_phits_per_vc / 16).into()
}

/// The input buffer.
#[derive(Debug, Default)]
pub struct Input {
    packets: VecDeque<Packet>,
    freed: u32,
}

impl Input {
    /// The oldest packet.
    pub fn front(&self) -> Option<&Packet> {
        self.packets.front()
    }

    /// Takes the oldest packet.
    pub fn pop(&mut self) -> Option<Packet> {
        self.freed += u32::from(!self.packets.is_empty());
        self.packets.pop_front()
    }
}

impl ReceiveBuffer for Input {
    fn take_freed(&mut self, mut tell: impl FnMut(usize, u32)) {
        tell(0, core::mem::take(&mut self.freed));
    }

    fn queued(&self) -> u64 {
        self.packets.len() as u64
    }
}

/// What is sent.
#[derive(Debug)]
pub(super) struct Sender {
    /// Those that the peer has not acknowledged; the first of them is number `acked`.
    packets: VecDeque<Packet>,
    acked: u64,
    /// The next to be sent.
    cursor: u64,
    /// The first for which the peer has no buffer left, of as many as it `offered`.
    limit: u64,
    offered: u64,
    lanes: u8,
    round_trip: RoundTrip,
    /// The packet whose acknowledgement will be a measurement, and when it was sent.
    timed: Option<(u64, Time)>,
    timer_from: Time,
    rewound: Time,
    asks: bool,
    owed_since: Time,
}

impl Sender {
    fn new((offered, lanes): (u64, u8), profile: &LinkProfile, now: Time) -> Self {
        Self {
            packets: VecDeque::new(),
            acked: 0,
            cursor: 0,
            limit: 0,
            offered,
            lanes,
            round_trip: RoundTrip::new(profile.min_retry_timeout, profile.max_retry_timeout),
            timed: None,
            timer_from: now,
            rewound: now,
            asks: false,
            owed_since: Time::NEVER,
        }
    }

    fn next(&self) -> u64 {
        self.acked + self.packets.len() as u64
    }

    pub(super) fn rewind(&mut self, now: Time) {
        (self.cursor, self.timed) = (self.acked, None);
        (self.timer_from, self.rewound) = (now, now);
    }

    fn deadline(&self) -> Time {
        // While buffers of the peer are in use, the news that they are free may be lost.
        let waits = self.acked < self.cursor || self.limit != self.next() + self.offered;
        let timeout = self.timer_from + self.round_trip.timeout();
        if waits { timeout } else { Time::NEVER }
    }

    fn round_trip(&self) -> &RoundTrip {
        &self.round_trip
    }

    fn lanes(&self) -> u8 {
        self.lanes
    }
}

/// What is received.
#[derive(Debug)]
pub(super) struct Receiver {
    lanes: LaneWatch,
    acks: Due,
    pub(super) expected: u64,
    /// The first for which there is no buffer left, and as the peer was told last.
    pub(super) limit: u64,
    told: u64,
    missing: bool,
}

/// When the peer has to be told something.
#[derive(Debug)]
struct Due(Time);

impl Due {
    fn due(&self) -> Time {
        self.0
    }
}

impl Receiver {
    fn new((limit, lanes): (u64, u8), now: Time) -> Self {
        Self {
            lanes: LaneWatch::new(lanes, 0),
            acks: Due(now),
            expected: 0,
            limit,
            told: 0,
            missing: false,
        }
    }

    /// The peer has to be told of a change: at once if it may be waiting for that.
    fn changed(&mut self, now: Time, delay: Duration) {
        let waits = self.missing || self.told <= self.expected + 1;
        let at = if waits { now } else { now + delay };
        self.acks.0 = at.min(self.acks.0);
    }

    fn deadline(&self) -> Time {
        Time::NEVER
    }

    fn reorder_hold(&self) -> Duration {
        Duration::ZERO
    }
}

/// One end of a link of the ring.
#[derive(Debug)]
pub struct RingEnd {
    pub(super) common: Common,
    pub(super) tx: Sender,
    pub(super) rx: Receiver,
}

impl RingEnd {
    calls_of_every_end!(Input);

    /// Packets that may be pushed now.
    pub fn room(&self) -> u64 {
        let room = self.tx.limit.saturating_sub(self.tx.next());
        if self.is_active() { room } else { 0 }
    }

    /// Takes a packet.
    ///
    /// # Panics
    /// Without [`room`](Self::room).
    pub fn push(&mut self, packet: Packet) {
        assert!(self.room() > 0, "room was asked for");
        self.common.counters.tx_packets += 1;
        self.tx.packets.push_back(packet);
    }

    /// Packets that the peer has not acknowledged.
    pub fn unacknowledged_packets(&self) -> u64 {
        self.tx.packets.len() as u64
    }

    /// Does `fault` to the link of `port`.
    ///
    /// # Errors
    /// [`DeviceError::NoSuchFault`].
    pub fn suffer(
        &mut self,
        (now, port, fault): (Time, PortId, LinkFault),
        input: &mut Input,
    ) -> Result<(), DeviceError> {
        match fault {
            LinkFault::Down => self.link_down(now, input),
            LinkFault::Up => self.link_up(now),
            LinkFault::ForceRetry => self.tx.rewind(now),
            _ => {
                let link = "toy";
                return Err(DeviceError::NoSuchFault { port, link });
            }
        }
        Ok(())
    }

    /// Takes in a frame of packets, if it is one of this session.
    fn on_packets(
        &mut self,
        now: Time,
        frame: &Frame<'_>,
        input: &mut Input,
    ) -> Result<(), FrameError> {
        let header = frame.header();
        let length = frame_len(frame.units(KIND)?);
        if frame.bytes().len() != length {
            return Err(FrameError::BadLength);
        }
        let mut bytes = frame.bytes().to_vec();
        let cable = &self.common.handshake.cable;
        swizzle_area_back(&mut bytes[PLAIN_AT..], header.lanes, cable);
        let checked = frame::parse(&bytes)?.split(length - CHECK_BYTES, length);
        let words = checked.map_or(&[][..], |(checked, _)| &checked[HEADER_BYTES..]);
        let words: Vec<u64> = words
            .as_chunks()
            .0
            .iter()
            .map(|word| u64::from_be_bytes(*word))
            .collect();
        let &[seq, ack, limit, flags, ref packets @ ..] = &words[..] else {
            self.common.counters.drop_bad_sideband += 1;
            if self.common.is_ours(header) {
                self.unusable(now);
            }
            return Ok(());
        };
        // A header of which a bit is wrong names another incarnation.
        if !self.belongs(now, header, input) {
            return Ok(());
        }
        if seq > self.rx.limit || ack > self.tx.next() || limit > ack + self.tx.offered {
            self.common.counters.drop_impossible_ack += 1;
            self.unusable(now);
            return Ok(());
        }
        self.believes(header.lanes);
        self.take(now, seq, packets.as_chunks().0, input);
        self.hear(now, (ack, limit, flags));
        self.accepted(self.rx.missing.then_some(self.rx.expected), now);
        Ok(())
    }

    /// Takes packets, of which the first has number `seq`.
    fn take(&mut self, now: Time, seq: u64, packets: &[Packet], input: &mut Input) {
        let (rx, counters) = (&mut self.rx, &mut self.common.counters);
        rx.missing = seq > rx.expected;
        counters.rx_data_frames += 1;
        for (number, packet) in (seq..).zip(packets) {
            if number == rx.expected && number < rx.limit {
                input.packets.push_back(*packet);
                rx.expected += 1;
                counters.rx_packets += 1;
            }
        }
        if rx.missing || !packets.is_empty() {
            rx.changed(now, self.common.profile.ack_delay);
        }
    }

    /// Hears that the peer expects packet `ack` and has buffers up to `limit`.
    fn hear(&mut self, now: Time, (ack, limit, flags): (u64, u64, u64)) {
        if flags & QUESTION != 0 {
            self.rx.changed(now, self.common.profile.ack_delay);
        }
        let tx = &mut self.tx;
        if tx.packets.is_empty() {
            tx.owed_since = Time::NEVER;
        }
        if ack < tx.acked {
            return; // Overtaken by a newer frame.
        }
        let (moves, has_room) = (ack > tx.acked, limit > tx.limit);
        self.common.counters.tx_acked_packets += ack - tx.acked;
        tx.packets.drain(..(ack - tx.acked) as usize);
        (tx.acked, tx.cursor, tx.limit) = (ack, tx.cursor.max(ack), tx.limit.max(limit));
        if let Some((_, at)) = tx.timed.take_if(|(number, _)| *number < ack) {
            tx.round_trip.sample(now.since(at));
        }
        if flags & MISSING != 0 && now.since(tx.rewound) >= tx.round_trip.shortest() {
            tx.rewind(now);
        }
        if moves || has_room {
            tx.timer_from = now;
        }
        if moves {
            tx.owed_since = if ack < tx.cursor { now } else { Time::NEVER };
            self.moves();
        }
    }

    pub(super) fn handle_frame(&mut self, now: Time, bytes: &[u8], input: &mut Input) {
        self.common.see(now);
        self.common.counters.rx_frames += 1;
        let taken = frame::parse(bytes).and_then(|frame| match frame.kind() {
            Training::KIND => {
                self.on_training(now, &Training::of(&frame)?, input);
                Ok(())
            }
            _ => self.on_packets(now, &frame, input),
        });
        if let Err(error) = taken {
            self.common.counters.dropped(error);
        }
    }

    pub(super) fn handle_timers(&mut self, now: Time, input: &mut Input) {
        let active = self.expire(self.tx.owed_since, now, input);
        if active && self.tx.deadline() <= now {
            self.tx.round_trip.back_off();
            self.tx.rewind(now);
            self.tx.asks = true;
        }
    }

    pub(super) fn wants_to_send(&self, now: Time) -> bool {
        let tells = self.tx.asks || self.rx.acks.due() <= now || self.tx.cursor < self.tx.next();
        self.common.handshake.is_due(now) || self.is_active() && tells
    }

    pub(super) fn poll_frame(&mut self, now: Time, buf: &mut [u8]) -> Option<usize> {
        self.common.see(now);
        if buf.len() < TRAINING_BYTES || !self.wants_to_send(now) {
            return None;
        }
        if self.common.handshake.is_due(now) {
            return self.common.emit_training(self.wanted_lanes(), now, buf);
        }
        let (tx, rx) = (&mut self.tx, &mut self.rx);
        let from = (tx.cursor - tx.acked) as usize;
        let most = (buf.len() - frame_len(0)) / size_of::<Packet>();
        let packets = tx.packets.range(from..).take(most);
        let count = packets.len();
        let (buf, lanes) = (&mut buf[..frame_len(count)], tx.lanes);
        let flags = u64::from(rx.missing) * MISSING + u64::from(tx.asks) * QUESTION;
        let words = [tx.cursor, rx.expected, rx.limit, flags];
        let words = words.iter().chain(packets.flatten());
        for (word, at) in words.zip(buf[HEADER_BYTES..].as_chunks_mut().0) {
            *at = word.to_be_bytes();
        }
        self.common.counters.tx_phits += count as u64;
        tx.cursor += count as u64;
        tx.asks = false;
        (rx.told, rx.acks.0) = (rx.limit, Time::NEVER);
        if count > 0 {
            tx.timed = tx.timed.or(Some((tx.cursor - 1, now)));
            tx.owed_since = tx.owed_since.min(now);
        }
        let units = count as u16;
        let header = FrameHeader {
            units,
            ..self.common.header(KIND, lanes)
        };
        header.emit(buf).expect("there is room for a header");
        frame::seal(buf, buf.len() - CHECK_BYTES);
        self.common.send_through_cable(&mut buf[PLAIN_AT..], lanes);
        self.common.counters.tx_frames += 1;
        Some(buf.len())
    }
}

impl Session for RingEnd {
    type Input = Input;

    fn common(&mut self) -> &mut Common {
        &mut self.common
    }

    fn tx_lanes(&self) -> u8 {
        self.tx.lanes
    }

    fn send_on(&mut self, lanes: u8, now: Time) {
        self.tx.lanes = lanes;
        self.tx.rewind(now);
        self.tx.asks = true;
    }

    fn rx_lanes(&mut self) -> &mut LaneWatch {
        &mut self.rx.lanes
    }

    // It gives up no lane.
    fn inspect_lanes(&mut self, _: &Training, _: u32) {}
    fn lanes_changed(&mut self, _: &mut Input) {}

    fn begin(&mut self, offer: &Offer, now: Time, input: &mut Input) {
        let profile = &self.common.profile;
        self.tx = Sender::new((offer.credits[0].into(), offer.lanes), profile, now);
        // What is left of an earlier session takes up room.
        input.freed = 0;
        let limit = buffers(profile) - input.queued();
        self.rx = Receiver::new((limit, self.common.handshake.lanes), now);
        self.rx.lanes.told(self.common.handshake.told);
    }

    fn call(&mut self, now: Time) {
        self.tx.asks = true;
        self.tx.owed_since = self.tx.owed_since.min(now);
    }

    fn round_trip_seen(&self) -> Seen {
        self.tx.round_trip.seen()
    }

    fn unacknowledged(&self) -> u64 {
        self.unacknowledged_packets()
    }

    fn end(&mut self, _: &mut Input) -> u64 {
        let discarded = self.tx.packets.drain(..).count() as u64;
        self.common.counters.tx_discarded_packets += discarded;
        discarded
    }
}

impl LinkControlBlock for RingEnd {
    type Config = LinkConfig;
    type Input = Input;

    link_control_calls!();

    fn new(config: LinkConfig, now: Time) -> (Self, Input) {
        let profile = config.profile();
        let terms = Terms {
            window: profile.window_packets,
            credits: [buffers(profile) as u32; 2],
            max_packet: 1,
            least_packet: 1,
        };
        let common = Common::new(config, terms, now);
        let tx = Sender::new((0, 0), &common.profile, now);
        let rx = Receiver::new((0, 0), Time::NEVER);
        (Self { common, tx, rx }, Input::default())
    }

    fn for_each_counter(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.counters().for_each(visit);
    }

    fn vc_freed(&mut self, _: usize, freed: u32) {
        if freed > 0 && self.is_active() {
            self.rx.limit += u64::from(freed);
            self.rx
                .changed(self.common.now, self.common.profile.ack_delay);
        }
    }
}

impl LinkView for RingEnd {
    link_view_by_own_methods!();

    fn account(&self) -> EndAccount {
        let counters = self.counters();
        EndAccount {
            units: Units::PACKETS,
            active: self.is_active(),
            credits: vec![self.tx.limit.saturating_sub(self.tx.next()) as u32],
            offers: buffers(&self.common.profile) as u32,
            unacknowledged: self.unacknowledged_packets(),
            unsent: 0,
            taken: counters.tx_packets,
            given_up: Some(counters.tx_discarded_packets),
            accepted: counters.rx_packets,
        }
    }
}
