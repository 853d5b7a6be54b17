//! The send buffer of a link: phits kept until their packet is acknowledged.

use phitwire_framing::carrier::number::PacketNumber;
use phitwire_framing::yarc::phit::Phit;

use phitwire::kit::ring::Ring;
use phitwire::link::credits::Impossible;
use phitwire::time::{Duration, Time};

#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// Position of the packet's head.
    start: u64,
    /// When the packet's end was last sent.
    at: Time,
}

/// The effect of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acknowledged {
    /// Packets acknowledged for the first time.
    pub packets: u64,
    /// Time from sending the newest of them to its acknowledgement, if it was sent only once
    /// (Karn's rule: otherwise it is unknown which copy is acknowledged).
    pub round_trip: Option<Duration>,
}

/// A ring of phits with three cursors, and the packets in it (BlackWidow sec. 4.3: sliding-window
/// go-back-N, send buffer and retry at packet granularity).
///
/// Positions and packet numbers never wrap here; the wire carries a [`PacketNumber`]. `head <=
/// cursor <= tail`: acknowledged up to `head`, sent up to `cursor`, filled up to `tail`. A rewind
/// moves `cursor` to `head`. A packet may be sent before its end is written (cut-through).
#[derive(Debug)]
pub(super) struct RetryBuffer {
    phits: Ring<Phit>,
    capacity: u64,
    /// Unacknowledged packets, from the one at `head` to the one opened next.
    packets: Ring<Sent>,
    head: u64,
    cursor: u64,
    tail: u64,
    /// Number of the packet at `head`.
    acked: u64,
    /// Number of the packet at `cursor`.
    sending: u64,
    /// Number of the open packet, or of the next one.
    next: u64,
    /// Packets below this number were sent completely at least once.
    sent_once: u64,
    /// Packets below this number may have been sent more than once.
    sent_twice: u64,
    /// Number of a session's first packet.
    first: u64,
    /// Number of rewinds so far.
    pass: u16,
    open: bool,
}

impl RetryBuffer {
    /// An empty buffer for `phits` phits and `packets` packets, numbered from `first`.
    pub fn new(phits: u32, packets: u16, first: u64) -> Self {
        Self {
            phits: Ring::new(phits),
            capacity: phits.into(),
            packets: Ring::new(u32::from(packets) + 1),
            head: 0,
            cursor: 0,
            tail: 0,
            acked: first,
            sending: first,
            next: first,
            sent_once: first,
            sent_twice: first,
            first,
            pass: 0,
            open: false,
        }
    }

    /// Checks the order of the cursors, and of the packet numbers that belong to them.
    #[inline]
    fn check_order(&self) {
        debug_assert!(self.head <= self.cursor && self.cursor <= self.tail);
        debug_assert!(self.acked <= self.sending && self.sending <= self.next);
        debug_assert!(self.sent_twice <= self.sent_once && self.sent_once <= self.next);
        debug_assert!(self.tail - self.head <= self.capacity, "it was full");
    }

    #[inline]
    fn sent(&mut self, packet: u64) -> &mut Sent {
        self.packets.get_mut(packet)
    }

    #[inline]
    fn start(&self, packet: u64) -> u64 {
        self.packets.get(packet).start
    }

    /// Whether a packet of up to `max_packet` phits fits, with at most `window` packets
    /// unacknowledged.
    #[inline]
    pub fn has_room(&self, max_packet: u32, window: u16) -> bool {
        self.tail - self.head + u64::from(max_packet) <= self.capacity
            && self.next - self.acked < u64::from(window)
    }

    #[inline]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Phits of the open packet so far.
    #[inline]
    pub fn open_phits(&self) -> u32 {
        if self.open {
            (self.tail - self.start(self.next)) as u32
        } else {
            0
        }
    }

    /// Adds a phit; the first one after an end opens a packet.
    ///
    /// # Panics
    /// If the buffer is full: check [`Self::has_room`] before each packet.
    #[inline]
    pub fn push(&mut self, phit: Phit) {
        let held = self.tail - self.head;
        assert!(held < self.capacity, "the retry buffer is full");
        if held == self.phits.slots() {
            self.phits.grow(self.head);
        }
        if !self.open {
            self.open = true;
            let (next, tail) = (self.next, self.tail);
            self.sent(next).start = tail;
        }
        *self.phits.get_mut(self.tail) = phit;
        self.tail += 1;
        if phit.is_eop() {
            self.open = false;
            self.next += 1;
            if self.next - self.acked == self.packets.slots() {
                self.packets.grow(self.acked);
            }
            let (next, tail) = (self.next, self.tail);
            self.sent(next).start = tail;
        }
        self.check_order();
    }

    /// Phits not yet sent, or to be resent.
    #[inline]
    pub fn pending(&self) -> u64 {
        self.tail - self.cursor
    }

    /// Phits from the oldest unacknowledged one to the cursor.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.cursor - self.head
    }

    /// Pending phits up to and including the next end of packet; all if there is none.
    pub fn to_next_end(&self) -> u64 {
        let end = if self.sending < self.next {
            self.start(self.sending + 1)
        } else {
            self.tail
        };
        end - self.cursor
    }

    /// Whether anything sent, even before the last rewind, is unacknowledged. Of an open packet,
    /// only phits sent since the last rewind count.
    #[inline]
    pub fn awaits(&self) -> bool {
        self.sent_once > self.acked || self.cursor > self.head
    }

    /// Whether a complete packet sent since the last rewind is unacknowledged.
    #[inline]
    pub fn outstanding(&self) -> bool {
        self.sending > self.acked
    }

    /// Complete packets in the buffer.
    #[inline]
    pub fn unacknowledged(&self) -> u64 {
        self.next - self.acked
    }

    /// Number of the packet at the cursor, and its phits sent so far.
    #[inline]
    pub fn position(&self) -> (u64, u8) {
        let sent = if self.sending == self.next && !self.open {
            0
        } else {
            self.cursor - self.start(self.sending)
        };
        (self.sending, sent as u8)
    }

    /// Number of rewinds, modulo 2^16.
    #[inline]
    pub fn pass(&self) -> u16 {
        self.pass
    }

    /// Number of the oldest unacknowledged packet.
    #[inline]
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// The next `count` phits from the cursor, in at most two pieces.
    ///
    /// # Panics
    /// If fewer are pending.
    #[inline]
    pub fn slices(&self, count: usize) -> [&[Phit]; 2] {
        assert!(count as u64 <= self.pending(), "more phits than pending");
        self.phits.slices(self.cursor, count)
    }

    /// Moves the cursor over `count` phits that leave at `now`; returns the number of packets they
    /// ended, and the number of those sent before.
    pub fn advance(&mut self, count: usize, now: Time) -> (u64, u64) {
        assert!(count as u64 <= self.pending(), "more phits than pending");
        self.cursor += count as u64;
        let first = self.sending;
        while self.sending < self.next && self.start(self.sending + 1) <= self.cursor {
            let packet = self.sending;
            self.sent(packet).at = now;
            self.sending += 1;
        }
        let again = self.sent_once.min(self.sending).saturating_sub(first);
        self.sent_once = self.sent_once.max(self.sending);
        self.check_order();
        (self.sending - first, again)
    }

    /// Number of packets that an acknowledgement of all before `wire` newly acknowledges; negative
    /// if a later one overtook it.
    #[inline]
    pub fn check(&self, wire: PacketNumber) -> Result<i64, Impossible> {
        match wire.near(self.acked) {
            Some(packet) if packet <= self.sent_once => Ok(packet.wrapping_sub(self.acked) as i64),
            _ => Err(Impossible),
        }
    }

    /// Acknowledges `packets` more packets, as computed by [`Self::check`]. The cursor moves up if
    /// a rewind had set it further back.
    #[inline]
    pub fn acknowledge(&mut self, packets: u64, now: Time) -> Acknowledged {
        if packets == 0 {
            return Acknowledged {
                packets,
                round_trip: None,
            };
        }
        let newest = self.acked + packets - 1;
        let round_trip =
            (newest >= self.sent_twice).then(|| now.since(self.packets.get(newest).at));
        self.acked += packets;
        // The slot after the last complete packet always holds the tail.
        self.head = self.start(self.acked);
        if self.sending < self.acked {
            self.sending = self.acked;
            self.cursor = self.head;
        }
        debug_assert!(
            self.acked <= self.sent_once,
            "only packets that were sent are acknowledged"
        );
        self.check_order();
        Acknowledged {
            packets,
            round_trip,
        }
    }

    /// Goes back to the oldest unacknowledged packet. Returns false if no part of it was sent.
    pub fn rewind(&mut self) -> bool {
        if self.cursor == self.head {
            return false;
        }
        self.cursor = self.head;
        self.sending = self.acked;
        self.sent_twice = self.sent_once;
        self.pass = self.pass.wrapping_add(1);
        self.check_order();
        true
    }

    /// Clears the buffer and restarts at the first number; returns the number of packets discarded,
    /// an open one included.
    pub fn discard(&mut self) -> u64 {
        let discarded = self.next - self.acked + u64::from(self.open);
        (self.head, self.cursor, self.tail) = (0, 0, 0);
        let first = self.first;
        (self.acked, self.sending, self.next) = (first, first, first);
        (self.sent_once, self.sent_twice) = (first, first);
        self.pass = 0;
        self.open = false;
        self.sent(first).start = 0;
        discarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire_framing::yarc::phit::PhitKind;

    fn packet(buffer: &mut RetryBuffer, phits: u32, tag: u32) {
        buffer.push(Phit::new(PhitKind::Head, tag));
        for i in 1..phits - 1 {
            buffer.push(Phit::new(PhitKind::Body, i));
        }
        buffer.push(Phit::new(PhitKind::Eop, tag));
    }

    /// Applies an acknowledgement as it arrives on the wire.
    fn acknowledge(
        buffer: &mut RetryBuffer,
        wire: u64,
        ns: u64,
    ) -> Result<Acknowledged, Impossible> {
        let packets = buffer.check(PacketNumber::new(wire))?;
        Ok(buffer.acknowledge(packets.max(0) as u64, Time::from_ns(ns)))
    }

    fn send(buffer: &mut RetryBuffer, count: usize, ns: u64) -> (u64, u64) {
        buffer.advance(count, Time::from_ns(ns))
    }

    #[test]
    fn cursors_go_forward_and_back() {
        let mut buffer = RetryBuffer::new(64, 8, 0);
        packet(&mut buffer, 5, 1);
        packet(&mut buffer, 4, 2);
        assert_eq!(buffer.position(), (0, 0));
        assert_eq!(send(&mut buffer, 7, 10), (1, 0));
        assert_eq!(buffer.position(), (1, 2));
        assert!(buffer.rewind());
        assert_eq!(buffer.position(), (0, 0));
        assert!(!buffer.rewind(), "the buffer was already rewound");
        assert_eq!(buffer.pass(), 1);
        assert_eq!(
            send(&mut buffer, 9, 20),
            (2, 1),
            "one of the two packets is resent"
        );
        assert_eq!(buffer.position(), (2, 0));
        let done = acknowledge(&mut buffer, 2, 50).unwrap();
        assert_eq!(done.packets, 2);
        assert_eq!(
            done.round_trip,
            Some(Duration::from_ns(30)),
            "the second packet was sent completely once"
        );
        assert_eq!(
            (
                buffer.pending(),
                buffer.in_flight(),
                buffer.unacknowledged()
            ),
            (0, 0, 0)
        );
    }

    #[test]
    fn copies_of_a_packet_give_no_round_trip() {
        let mut buffer = RetryBuffer::new(64, 8, 0);
        packet(&mut buffer, 4, 1);
        send(&mut buffer, 4, 0);
        buffer.rewind();
        send(&mut buffer, 4, 100);
        assert_eq!(acknowledge(&mut buffer, 1, 101).unwrap().round_trip, None);
    }

    #[test]
    fn acknowledgement_overtakes_a_cursor_that_went_back() {
        let mut buffer = RetryBuffer::new(64, 8, 0);
        for tag in 0..4 {
            packet(&mut buffer, 4, tag);
        }
        send(&mut buffer, 16, 0);
        buffer.rewind();
        send(&mut buffer, 2, 1);
        acknowledge(&mut buffer, 3, 2).unwrap();
        assert_eq!(buffer.position(), (3, 0));
        assert_eq!(buffer.pending(), 4);
    }

    #[test]
    fn acknowledging_the_unsent_is_impossible_and_the_old_is_nothing() {
        let mut buffer = RetryBuffer::new(64, 8, 0);
        packet(&mut buffer, 4, 1);
        packet(&mut buffer, 4, 2);
        send(&mut buffer, 7, 0);
        assert_eq!(acknowledge(&mut buffer, 2, 0), Err(Impossible));
        assert_eq!(acknowledge(&mut buffer, 1, 0).unwrap().packets, 1);
        assert_eq!(acknowledge(&mut buffer, 0, 0).unwrap().packets, 0);
        for never in [
            1 << 15,
            1 << 16,
            (1 << 32) + 1,
            (1 << 47) + 1,
            (1 << 48) - 1,
        ] {
            assert_eq!(
                acknowledge(&mut buffer, never, 0),
                Err(Impossible),
                "{never}"
            );
        }
    }

    #[test]
    fn room_is_bounded_in_phits_and_in_packets() {
        let mut buffer = RetryBuffer::new(24, 3, 0);
        assert!(buffer.has_room(19, 3));
        packet(&mut buffer, 4, 0);
        assert!(buffer.has_room(19, 3));
        packet(&mut buffer, 4, 0);
        assert!(!buffer.has_room(19, 3), "24 - 8 < 19");
        assert!(buffer.has_room(4, 3));
        packet(&mut buffer, 4, 0);
        assert!(!buffer.has_room(4, 3), "three packets fill the window");
    }

    #[test]
    fn ring_goes_round_many_times() {
        let mut buffer = RetryBuffer::new(40, 5, 0);
        let mut got = Vec::new();
        for tag in 0..1_000 {
            packet(&mut buffer, 4 + tag % 7, tag);
            let count = buffer.pending() as usize;
            let [a, b] = buffer.slices(count);
            got.extend(
                a.iter()
                    .chain(b)
                    .filter(|p| p.is_head())
                    .map(|p| p.content()),
            );
            send(&mut buffer, count, tag.into());
            acknowledge(&mut buffer, u64::from(tag) + 1, tag.into()).unwrap();
        }
        assert_eq!(got, (0..1_000).collect::<Vec<_>>());
    }

    #[test]
    fn numbers_go_on_where_those_of_the_wire_come_round() {
        for first in [(1 << 16) - 3, (1 << 32) - 3, (1 << 48) - 3] {
            let mut buffer = RetryBuffer::new(40, 5, first);
            for tag in 0..6 {
                packet(&mut buffer, 4, tag);
                assert_eq!(buffer.position(), (first + u64::from(tag), 0));
                send(&mut buffer, 4, 0);
                let next = first + u64::from(tag) + 1;
                assert_eq!(acknowledge(&mut buffer, next + 1, 0), Err(Impossible));
                assert_eq!(acknowledge(&mut buffer, next, 0).unwrap().packets, 1);
                assert_eq!(
                    buffer.check(PacketNumber::new(first)),
                    Ok(-1 - i64::from(tag))
                );
            }
            buffer.discard();
            assert_eq!(buffer.position(), (first, 0));
        }
    }

    #[test]
    fn discarding_counts_the_open_packet() {
        let mut buffer = RetryBuffer::new(40, 5, 0);
        packet(&mut buffer, 4, 1);
        buffer.push(Phit::new(PhitKind::Head, 2));
        send(&mut buffer, 5, 0);
        assert_eq!(buffer.discard(), 2);
        assert_eq!(buffer.position(), (0, 0));
        packet(&mut buffer, 4, 3);
        assert_eq!((buffer.pending(), buffer.unacknowledged()), (4, 1));
    }
}
