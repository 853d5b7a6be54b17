//! The send buffer of a link: phits kept until their packet is acknowledged.

use phitwire_framing::phit24::Phit;

use super::credits::Impossible;
use super::ring::Ring;
use crate::time::{Duration, Time};

/// What is known of a packet in the buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// Position of its head.
    start: u64,
    /// When its end was last sent.
    at: Time,
}

/// What an acknowledgement did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acknowledged {
    /// Packets acknowledged for the first time.
    pub packets: u64,
    /// Time from sending the newest of them to its acknowledgement, when it was sent only once (Karn's rule:
    /// otherwise nobody knows which copy is acknowledged).
    pub round_trip: Option<Duration>,
}

/// A ring of phits with three cursors, and the packets in it (paper, section 4.3: sliding-window
/// go-back-N, send buffer and retry at packet granularity).
///
/// Positions and packet numbers count up for ever; the wire sees the low 16 bits of a packet number.
/// `head <= cursor <= tail`: acknowledged up to `head`, sent up to `cursor`, filled up to `tail`.
/// Going back moves `cursor` to `head`. A packet may be sent before its end is there (cut-through).
#[derive(Debug)]
pub(super) struct RetryBuffer {
    phits: Ring<Phit>,
    capacity: u64,
    /// From the packet at `head` up to the one that will be opened next.
    packets: Ring<Sent>,
    head: u64,
    cursor: u64,
    tail: u64,
    /// Number of the packet at `head`.
    acked: u64,
    /// Number of the packet at `cursor`.
    sending: u64,
    /// Number of the packet that is open or will be opened next.
    next: u64,
    /// Packets below this number were sent whole at least once.
    sent_once: u64,
    /// Packets below this number may have been sent more than once.
    sent_twice: u64,
    open: bool,
}

impl RetryBuffer {
    /// An empty buffer for `phits` phits and `packets` packets.
    pub fn new(phits: u32, packets: u16) -> Self {
        Self {
            phits: Ring::new(phits),
            capacity: phits.into(),
            packets: Ring::new(u32::from(packets) + 1),
            head: 0,
            cursor: 0,
            tail: 0,
            acked: 0,
            sending: 0,
            next: 0,
            sent_once: 0,
            sent_twice: 0,
            open: false,
        }
    }

    #[inline]
    fn sent(&mut self, packet: u64) -> &mut Sent {
        self.packets.get_mut(packet)
    }

    #[inline]
    fn start(&self, packet: u64) -> u64 {
        self.packets.get(packet).start
    }

    /// Whether a packet of up to `max_packet` phits fits, with at most `window` packets unacknowledged.
    #[inline]
    pub fn has_room(&self, max_packet: u32, window: u16) -> bool {
        self.tail - self.head + u64::from(max_packet) <= self.capacity
            && self.next - self.acked < u64::from(window)
    }

    /// Whether a packet lacks its end.
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

    /// Adds a phit; the first after an end opens a packet.
    ///
    /// # Panics
    /// If the buffer is full: [`Self::has_room`] is asked before a packet begins.
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
    }

    /// Phits not sent, or to be sent again.
    #[inline]
    pub fn pending(&self) -> u64 {
        self.tail - self.cursor
    }

    /// Phits from the oldest unacknowledged one to the cursor.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.cursor - self.head
    }

    /// Phits up to the next end of packet among those pending, that phit included; all of them when
    /// there is none.
    pub fn to_next_end(&self) -> u64 {
        let end = if self.sending < self.next {
            self.start(self.sending + 1)
        } else {
            self.tail
        };
        end - self.cursor
    }

    /// Whether a whole packet was sent, since the last going back, that is not acknowledged.
    #[inline]
    pub fn outstanding(&self) -> bool {
        self.sending > self.acked
    }

    /// Complete packets in the buffer.
    #[inline]
    pub fn unacknowledged(&self) -> u64 {
        self.next - self.acked
    }

    /// Sequence number of the packet at the cursor, and how many of its phits were sent.
    #[inline]
    pub fn position(&self) -> (u16, u8) {
        let sent = if self.sending == self.next && !self.open {
            0
        } else {
            self.cursor - self.start(self.sending)
        };
        (self.sending as u16, sent as u8)
    }

    /// Sequence number of the oldest unacknowledged packet.
    #[inline]
    pub fn acked(&self) -> u16 {
        self.acked as u16
    }

    /// The next `count` phits from the cursor, in at most two pieces.
    ///
    /// # Panics
    /// If fewer are pending.
    #[inline]
    pub fn slices(&self, count: usize) -> [&[Phit]; 2] {
        assert!(count as u64 <= self.pending(), "more phits than there are");
        self.phits.slices(self.cursor, count)
    }

    /// Moves the cursor over `count` phits that leave at `now`; returns the packets whose end was
    /// among them, and how many of those had been sent before.
    pub fn advance(&mut self, count: usize, now: Time) -> (u64, u64) {
        assert!(count as u64 <= self.pending(), "more phits than there are");
        self.cursor += count as u64;
        let first = self.sending;
        while self.sending < self.next && self.start(self.sending + 1) <= self.cursor {
            let packet = self.sending;
            self.sent(packet).at = now;
            self.sending += 1;
        }
        let again = self.sent_once.min(self.sending).saturating_sub(first);
        self.sent_once = self.sent_once.max(self.sending);
        (self.sending - first, again)
    }

    /// How many packets an acknowledgement of all before `wire` newly acknowledges.
    #[inline]
    pub fn check(&self, wire: u16) -> Result<u64, Impossible> {
        let step = wire.wrapping_sub(self.acked as u16) as i16;
        if step <= 0 {
            return Ok(0); // Overtaken by a newer one.
        }
        let step = step as u64;
        if self.acked + step > self.sent_once {
            Err(Impossible)
        } else {
            Ok(step)
        }
    }

    /// Takes in the peer's next expected packet. The cursor moves on when it had gone back behind.
    #[inline]
    pub fn acknowledge(&mut self, wire: u16, now: Time) -> Result<Acknowledged, Impossible> {
        let packets = self.check(wire)?;
        if packets == 0 {
            return Ok(Acknowledged {
                packets,
                round_trip: None,
            });
        }
        let newest = self.acked + packets - 1;
        let round_trip =
            (newest >= self.sent_twice).then(|| now.since(self.packets.get(newest).at));
        self.acked += packets;
        // The slot behind the last complete packet always holds the tail.
        self.head = self.start(self.acked);
        if self.sending < self.acked {
            self.sending = self.acked;
            self.cursor = self.head;
        }
        debug_assert!(self.head <= self.cursor && self.cursor <= self.tail);
        Ok(Acknowledged {
            packets,
            round_trip,
        })
    }

    /// Goes back to the oldest unacknowledged packet. False when nothing of it was sent.
    pub fn rewind(&mut self) -> bool {
        if self.cursor == self.head {
            return false;
        }
        self.cursor = self.head;
        self.sending = self.acked;
        self.sent_twice = self.sent_once;
        true
    }

    /// Forgets everything and starts at sequence number 0; returns the number of packets discarded,
    /// an open one included.
    pub fn discard(&mut self) -> u64 {
        let discarded = self.next - self.acked + u64::from(self.open);
        (self.head, self.cursor, self.tail) = (0, 0, 0);
        (self.acked, self.sending, self.next) = (0, 0, 0);
        (self.sent_once, self.sent_twice) = (0, 0);
        self.open = false;
        self.sent(0).start = 0;
        discarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire_framing::phit24::PhitKind;

    fn packet(buffer: &mut RetryBuffer, phits: u32, tag: u32) {
        buffer.push(Phit::new(PhitKind::Head, tag));
        for i in 1..phits - 1 {
            buffer.push(Phit::new(PhitKind::Body, i));
        }
        buffer.push(Phit::new(PhitKind::Eop, tag));
    }

    fn send(buffer: &mut RetryBuffer, count: usize, ns: u64) -> (u64, u64) {
        buffer.advance(count, Time::from_ns(ns))
    }

    #[test]
    fn cursors_go_forward_and_back() {
        let mut buffer = RetryBuffer::new(64, 8);
        packet(&mut buffer, 5, 1);
        packet(&mut buffer, 4, 2);
        assert_eq!(buffer.position(), (0, 0));
        assert_eq!(send(&mut buffer, 7, 10), (1, 0));
        assert_eq!(buffer.position(), (1, 2));
        assert!(buffer.rewind());
        assert_eq!(buffer.position(), (0, 0));
        assert!(!buffer.rewind(), "already there");
        assert_eq!(
            send(&mut buffer, 9, 20),
            (2, 1),
            "one of the two for the second time"
        );
        assert_eq!(buffer.position(), (2, 0));
        let done = buffer.acknowledge(2, Time::from_ns(50)).unwrap();
        assert_eq!(done.packets, 2);
        assert_eq!(
            done.round_trip,
            Some(Duration::from_ns(30)),
            "the second was sent whole once"
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
        let mut buffer = RetryBuffer::new(64, 8);
        packet(&mut buffer, 4, 1);
        send(&mut buffer, 4, 0);
        buffer.rewind();
        send(&mut buffer, 4, 100);
        assert_eq!(
            buffer
                .acknowledge(1, Time::from_ns(101))
                .unwrap()
                .round_trip,
            None
        );
    }

    #[test]
    fn acknowledgement_overtakes_a_cursor_that_went_back() {
        let mut buffer = RetryBuffer::new(64, 8);
        for tag in 0..4 {
            packet(&mut buffer, 4, tag);
        }
        send(&mut buffer, 16, 0);
        buffer.rewind();
        send(&mut buffer, 2, 1);
        buffer.acknowledge(3, Time::from_ns(2)).unwrap();
        assert_eq!(buffer.position(), (3, 0));
        assert_eq!(buffer.pending(), 4);
    }

    #[test]
    fn acknowledging_the_unsent_is_impossible_and_the_old_is_nothing() {
        let mut buffer = RetryBuffer::new(64, 8);
        packet(&mut buffer, 4, 1);
        packet(&mut buffer, 4, 2);
        send(&mut buffer, 7, 0);
        assert_eq!(buffer.acknowledge(2, Time::ZERO), Err(Impossible));
        assert_eq!(buffer.acknowledge(1, Time::ZERO).unwrap().packets, 1);
        assert_eq!(buffer.acknowledge(0, Time::ZERO).unwrap().packets, 0);
        assert_eq!(buffer.acknowledge(0x8001, Time::ZERO).unwrap().packets, 0);
        assert_eq!(buffer.acknowledge(0x7fff, Time::ZERO), Err(Impossible));
    }

    #[test]
    fn room_is_bounded_in_phits_and_in_packets() {
        let mut buffer = RetryBuffer::new(24, 3);
        assert!(buffer.has_room(19, 3));
        packet(&mut buffer, 4, 0);
        assert!(buffer.has_room(19, 3));
        packet(&mut buffer, 4, 0);
        assert!(!buffer.has_room(19, 3), "24 - 8 < 19");
        assert!(buffer.has_room(4, 3));
        packet(&mut buffer, 4, 0);
        assert!(!buffer.has_room(4, 3), "three packets are the window");
    }

    #[test]
    fn ring_goes_round_many_times() {
        let mut buffer = RetryBuffer::new(40, 5);
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
            buffer
                .acknowledge(tag as u16 + 1, Time::from_ns(tag.into()))
                .unwrap();
        }
        assert_eq!(got, (0..1_000).collect::<Vec<_>>());
    }

    #[test]
    fn discarding_counts_the_open_packet() {
        let mut buffer = RetryBuffer::new(40, 5);
        packet(&mut buffer, 4, 1);
        buffer.push(Phit::new(PhitKind::Head, 2));
        send(&mut buffer, 5, 0);
        assert_eq!(buffer.discard(), 2);
        assert_eq!(buffer.position(), (0, 0));
        packet(&mut buffer, 4, 3);
        assert_eq!((buffer.pending(), buffer.unacknowledged()), (4, 1));
    }
}
