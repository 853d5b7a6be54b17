//! The replay buffer: flits kept until their set is acknowledged.

use phitwire_framing::aries::flit::{Flit, MAX_PACKET_FLITS};
use phitwire_framing::aries::set::DATA_FLITS;

use phitwire::kit::ring::Ring;
use phitwire::time::{Duration, Time};

/// State of a set in the buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// When the set was last sent.
    at: Time,
    /// Position of the set's first flit, low 32 bits.
    start: u32,
    /// Flits in the set; the rest of the nine are idle.
    flits: u8,
    /// Packets that end in the set.
    ends: u8,
    /// The set was sent more than once.
    again: bool,
}

/// The effect of an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Acknowledged {
    /// Sets acknowledged for the first time.
    pub sets: u64,
    /// Packets wholly acknowledged by this.
    pub packets: u64,
    /// Time from sending the newest of them to its acknowledgement, if it was sent only once
    /// (Karn's rule: otherwise it is unknown which copy is acknowledged).
    pub round_trip: Option<Duration>,
}

/// A ring of flits, cut into sets of up to nine when first sent.
///
/// XC white paper, "Aries Router": the LCB's send buffer covers the round trip of a long optical
/// cable, and the sending link retransmits on an error. Set numbers count up forever; `acked <=
/// cursor <= next`: sets below `acked` are acknowledged, `cursor` is sent next, sets below `next`
/// were sent at least once. Going back moves `cursor` to `acked`. A set keeps its flits once cut,
/// so every copy is the same.
#[derive(Debug)]
pub(super) struct ReplayBuffer {
    flits: Ring<Flit>,
    /// Maximum number of flits held.
    capacity: u64,
    records: Ring<Record>,
    /// Flits before this position are acknowledged.
    head: u64,
    /// Flits before this position are in sets.
    cut: u64,
    /// Flits before this position were accepted from the core.
    tail: u64,
    /// Position of the open packet's head; `tail` when none is open.
    open_at: u64,
    /// Flits still missing from the open packet.
    open_left: u8,
    /// Flits after `cut` that belong to a packet begun before it.
    cut_left: u8,
    acked: u64,
    cursor: u64,
    next: u64,
    /// Packets accepted completely but not acknowledged completely.
    packets: u64,
}

impl ReplayBuffer {
    /// An empty buffer for `sets` sets, plus `backlog` flits not yet in a set.
    pub fn new(sets: u16, backlog: u32) -> Self {
        assert!(sets > 0, "a sender without a window sends nothing");
        let flits = u32::from(sets) * DATA_FLITS as u32 + backlog + MAX_PACKET_FLITS as u32;
        Self {
            flits: Ring::new(flits),
            capacity: flits.into(),
            records: Ring::new(sets.into()),
            head: 0,
            cut: 0,
            tail: 0,
            open_at: 0,
            open_left: 0,
            cut_left: 0,
            acked: 0,
            cursor: 0,
            next: 0,
            packets: 0,
        }
    }

    /// Checks the order of the positions, and of the set numbers.
    #[inline]
    fn check_order(&self) {
        debug_assert!(self.head <= self.cut && self.cut <= self.tail);
        debug_assert!(self.acked <= self.cursor && self.cursor <= self.next);
        debug_assert!(self.tail - self.head <= self.capacity, "it was full");
    }

    #[inline]
    fn record(&self, set: u64) -> Record {
        self.records.get(set)
    }

    /// Whether the newest packet still lacks flits.
    #[inline]
    fn is_open(&self) -> bool {
        self.open_left != 0
    }

    /// Flits still missing from the open packet; 0 if none is open.
    #[inline]
    pub fn open_left(&self) -> u8 {
        self.open_left
    }

    /// Flits accepted but not yet in a set.
    #[inline]
    pub fn backlog(&self) -> u32 {
        (self.tail - self.cut) as u32
    }

    /// Flits accepted but not acknowledged, plus those missing from the open packet.
    #[inline]
    pub fn unacknowledged(&self) -> u32 {
        (self.tail - self.head) as u32 + u32::from(self.open_left)
    }

    /// Whether a packet of `flits` flits fits.
    #[inline]
    pub fn has_room(&self, flits: u32) -> bool {
        self.tail - self.head + u64::from(flits) <= self.capacity
    }

    /// Adds a whole packet that fits ([`Self::has_room`]).
    #[inline]
    pub fn push_packet(&mut self, packet: &[Flit]) {
        debug_assert!(!self.is_open() && !packet.is_empty());
        while self.tail - self.head + packet.len() as u64 > self.flits.slots() {
            self.flits.grow(self.head);
        }
        // The head is copied alone: a router has just rewritten it, and a wider load over that
        // store would stall.
        if let [head, rest @ ..] = packet {
            *self.flits.get_mut(self.tail) = *head;
            self.flits.put(self.tail + 1, rest);
        }
        self.tail += packet.len() as u64;
        self.open_at = self.tail;
        self.packets += 1;
        self.check_order();
    }

    /// Adds the head of a packet of `flits` flits that fits ([`Self::has_room`]).
    #[inline]
    pub fn begin(&mut self, head: Flit, flits: u8) {
        debug_assert!(!self.is_open() && flits > 0);
        self.open_at = self.tail;
        self.store(head);
        self.open_left = flits - 1;
        self.close_if_whole();
    }

    /// Adds the next flit of the open packet.
    #[inline]
    pub fn push(&mut self, flit: Flit) {
        debug_assert!(self.is_open());
        self.store(flit);
        self.open_left -= 1;
        self.close_if_whole();
    }

    #[inline]
    fn store(&mut self, flit: Flit) {
        if self.tail - self.head == self.flits.slots() {
            self.flits.grow(self.head);
        }
        *self.flits.get_mut(self.tail) = flit;
        self.tail += 1;
    }

    #[inline]
    fn close_if_whole(&mut self) {
        if self.open_left == 0 {
            self.open_at = self.tail;
            self.packets += 1;
        }
    }

    /// Flits of the set that could be cut now: nine, or fewer that end with a packet; 0 if the
    /// current packet is incomplete, since idle flits are allowed only between packets.
    #[inline]
    fn next_cut(&self) -> u32 {
        let backlog = self.tail - self.cut;
        if backlog >= DATA_FLITS as u64 {
            return DATA_FLITS as u32;
        }
        // The open packet may have begun before `cut`.
        self.open_at.saturating_sub(self.cut) as u32
    }

    /// Number of sets that [`Self::cut_next`] can cut from the backlog now.
    #[inline]
    pub fn new_sets(&self, window: u64) -> u64 {
        let room = window.saturating_sub(self.next - self.acked);
        let left = self.tail - self.cut;
        let (whole, rest) = (left / DATA_FLITS as u64, left % DATA_FLITS as u64);
        let last = rest != 0 && self.tail - self.open_at < rest;
        (whole + u64::from(last)).min(room)
    }

    /// Cuts the next set off the backlog. Returns false if there is none.
    pub fn cut_next(&mut self, window: u64) -> bool {
        if self.next - self.acked >= window {
            return false;
        }
        let flits = self.next_cut();
        if flits == 0 {
            return false;
        }
        let ends = self.count_ends(flits);
        if self.next - self.acked == self.records.slots() {
            self.records.grow(self.acked);
        }
        *self.records.get_mut(self.next) = Record {
            at: Time::ZERO,
            start: self.cut as u32,
            flits: flits as u8,
            ends,
            again: false,
        };
        self.next += 1;
        self.cut += u64::from(flits);
        self.check_order();
        true
    }

    /// Packets that end within the `flits` flits after `cut`.
    #[inline]
    fn count_ends(&mut self, flits: u32) -> u8 {
        let (mut end, mut ends) = (u32::from(self.cut_left), u8::from(self.cut_left != 0));
        while end < flits {
            end += u32::from(length_of(self.flits.get(self.cut + u64::from(end))));
            ends += 1;
        }
        debug_assert!(
            (end - flits) as usize <= MAX_PACKET_FLITS,
            "at most one packet reaches beyond a set"
        );
        self.cut_left = (end - flits) as u8;
        // A last packet that is incomplete does not end here.
        ends - u8::from(end > flits)
    }

    /// The nine flits of `set`, which has been cut: in the ring, or copied to `buffer`, which must
    /// contain idle flits.
    #[inline]
    pub fn flits_of<'a>(
        &'a self,
        set: u64,
        buffer: &'a mut [Flit; DATA_FLITS],
    ) -> &'a [Flit; DATA_FLITS] {
        debug_assert!(buffer.iter().all(|flit| *flit == Flit::IDLE));
        let record = self.record(set);
        let [first, second] = self.flits.slices(record.start.into(), record.flits.into());
        if let Ok(flits) = first.try_into() {
            return flits;
        }
        buffer[..first.len()].copy_from_slice(first);
        buffer[first.len()..][..second.len()].copy_from_slice(second);
        buffer
    }

    /// The oldest unacknowledged set.
    #[inline]
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// The set to send next.
    #[inline]
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The next set to cut.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    #[inline]
    pub fn sent_at(&self, set: u64) -> Time {
        self.record(set).at
    }

    #[inline]
    pub fn was_repeated(&self, set: u64) -> bool {
        self.record(set).again
    }

    /// Records that `set` leaves at `now`. Returns whether it was sent before.
    #[inline]
    pub fn sent(&mut self, set: u64, now: Time) -> bool {
        debug_assert!(
            self.acked <= set && set < self.next,
            "set {set} was cut and is not acknowledged"
        );
        let record = self.records.get_mut(set);
        let again = record.at != Time::ZERO;
        record.again |= again;
        // Time zero means never; a picosecond is negligible.
        record.at = now.max(Time::from_ps(1));
        self.cursor = self.cursor.max(set + 1);
        self.check_order();
        again
    }

    /// Sets from the oldest unacknowledged one to the cursor.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.cursor - self.acked
    }

    /// Whether any sent set is unacknowledged, even one beyond a rewound cursor.
    #[inline]
    pub fn awaits(&self) -> bool {
        self.next > self.acked
    }

    /// Packets accepted completely but not acknowledged completely.
    #[inline]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Whether the peer may have everything below `set`, that is, all of it was sent.
    #[inline]
    pub fn could_acknowledge(&self, set: u64) -> bool {
        set <= self.acked || set <= self.next && self.record(set - 1).at != Time::ZERO
    }

    /// Records that everything below `set`, which [could be acknowledged](Self::could_acknowledge),
    /// has arrived. Advances a cursor that is behind.
    #[inline]
    pub fn acknowledge(&mut self, set: u64, now: Time) -> Acknowledged {
        debug_assert!(self.could_acknowledge(set));
        let mut done = Acknowledged::default();
        if set <= self.acked {
            return done; // Overtaken by a newer one.
        }
        let newest = self.record(set - 1);
        if !newest.again {
            done.round_trip = Some(now.since(newest.at.min(now)));
        }
        // Never more than 2^32 flits ahead, so the low bits suffice.
        let end = newest.start.wrapping_add(newest.flits.into());
        self.head += u64::from(end.wrapping_sub(self.head as u32));
        done.sets = set - self.acked;
        while self.acked < set {
            done.packets += u64::from(self.record(self.acked).ends);
            self.acked += 1;
        }
        self.packets -= done.packets;
        self.cursor = self.cursor.max(set);
        self.check_order();
        if self.head == self.tail && !self.is_open() {
            self.start_over();
        }
        done
    }

    /// When empty, restarts at the beginning of the ring, the memory most likely to be in the
    /// cache.
    #[inline]
    fn start_over(&mut self) {
        let start = self.tail.next_multiple_of(self.flits.slots());
        (self.head, self.cut, self.tail, self.open_at) = (start, start, start, start);
    }

    /// Goes back to the oldest unacknowledged set. Returns false if nothing was sent since the last
    /// rewind.
    pub fn rewind(&mut self) -> bool {
        let back = self.cursor != self.acked;
        self.cursor = self.acked;
        back
    }

    /// Discards everything and restarts at set 0. Returns the number of packets discarded, an open
    /// one included.
    pub fn discard(&mut self) -> u64 {
        let discarded = self.packets + u64::from(self.is_open());
        self.open_left = 0;
        self.cut_left = 0;
        self.packets = 0;
        (self.head, self.cut, self.tail, self.open_at) = (0, 0, 0, 0);
        (self.acked, self.cursor, self.next) = (0, 0, 0);
        discarded
    }
}

/// Flits of the packet that begins with `head`.
#[inline]
fn length_of(head: Flit) -> u8 {
    phitwire_framing::aries::flit::Head::parse(head).map_or(1, |head| head.length())
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire::rng::Rng;
    use phitwire_framing::aries::flit::{Head, NodeId, Routing};

    fn flits_of(buffer: &ReplayBuffer, set: u64) -> [Flit; DATA_FLITS] {
        *buffer.flits_of(set, &mut [Flit::IDLE; DATA_FLITS])
    }

    fn packet(buffer: &mut ReplayBuffer, flits: u8, tag: u16) {
        part(buffer, flits, flits, tag);
    }

    /// Pushes the first `some` flits of a packet of `flits`.
    fn part(buffer: &mut ReplayBuffer, flits: u8, some: u8, tag: u16) {
        let head = Head::new(false, flits, NodeId::default(), Routing::Ordered, tag, 0);
        buffer.begin(head.flit(), flits);
        for i in 1..some {
            buffer.push(Flit::new(u64::from(tag) << 8 | u64::from(i)));
        }
    }

    fn ns(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    fn send_all(buffer: &mut ReplayBuffer, window: u64, now: Time) -> u64 {
        while buffer.cut_next(window) {}
        let mut sets = 0;
        while buffer.cursor() < buffer.next() {
            buffer.sent(buffer.cursor(), now);
            sets += 1;
        }
        sets
    }

    #[test]
    fn sets_straddle_packets_and_end_with_them_only() {
        let mut buffer = ReplayBuffer::new(64, 100);
        packet(&mut buffer, 6, 1);
        part(&mut buffer, 14, 2, 2);
        assert!(buffer.cut_next(64));
        let flits = flits_of(&buffer, 0);
        assert_eq!(
            flits[6..],
            [Flit::IDLE; 3],
            "two flits of the open packet wait"
        );
        assert!(!buffer.cut_next(64));
        assert_eq!(buffer.new_sets(64), 0);
        for i in 2..9 {
            buffer.push(Flit::new(i));
        }
        assert_eq!((buffer.new_sets(64), buffer.backlog()), (1, 9));
        assert!(buffer.cut_next(64));
        assert_eq!(Head::parse(flits_of(&buffer, 1)[0]).unwrap().packet_id(), 2);
        for i in 9..13 {
            buffer.push(Flit::new(i));
            assert_eq!(buffer.new_sets(64), 0, "no set after {i} of 14 flits");
        }
        buffer.push(Flit::new(13));
        assert!(buffer.cut_next(64) && !buffer.is_open());
        assert_eq!(flits_of(&buffer, 2)[4], Flit::new(13));
        assert_eq!(buffer.packets(), 2);
    }

    #[test]
    fn acknowledgements_and_going_back() {
        let mut buffer = ReplayBuffer::new(64, 100);
        for tag in 0..6 {
            packet(&mut buffer, 6, tag);
        }
        assert_eq!(send_all(&mut buffer, 64, ns(10)), 4);
        assert!(buffer.could_acknowledge(4) && !buffer.could_acknowledge(5));
        let done = buffer.acknowledge(2, ns(40));
        assert_eq!((done.sets, done.packets), (2, 3));
        assert_eq!(done.round_trip, Some(Duration::from_ns(30)));
        assert!(buffer.rewind() && !buffer.rewind());
        assert!(buffer.sent(2, ns(50)), "again");
        assert_eq!(buffer.cursor(), 3);
        let done = buffer.acknowledge(3, ns(60));
        assert_eq!((done.sets, done.packets, done.round_trip), (1, 1, None));
        let done = buffer.acknowledge(4, ns(60));
        assert_eq!(done.round_trip, Some(Duration::from_ns(50)), "sent once");
        assert_eq!(
            (buffer.cursor(), buffer.packets(), buffer.backlog()),
            (4, 0, 0)
        );
        assert_eq!(buffer.acknowledge(1, ns(61)).sets, 0);
    }

    #[test]
    fn window_and_ring_bound_what_is_kept() {
        let mut buffer = ReplayBuffer::new(4, 14);
        let mut taken = 0;
        while buffer.has_room(14) {
            packet(&mut buffer, 14, taken);
            taken += 1;
        }
        assert_eq!(taken, 4, "4 x 9 + 28 flits");
        assert_eq!(send_all(&mut buffer, 4, ns(1)), 4);
        assert_eq!(buffer.new_sets(4), 0);
        buffer.acknowledge(1, ns(2));
        assert_eq!(buffer.new_sets(4), 1);
        assert_eq!(send_all(&mut buffer, 4, ns(3)), 1);
        assert!(buffer.has_room(17) && !buffer.has_room(18), "64 - 56 + 9");
    }

    #[test]
    fn ring_goes_round_many_times_and_starts_over_when_empty() {
        let mut buffer = ReplayBuffer::new(8, 30);
        let mut got = Vec::new();
        for tag in 0..3_000_u16 {
            packet(&mut buffer, 1 + (tag % 14) as u8, tag & 0xfff);
            let from = buffer.cursor();
            send_all(&mut buffer, 8, ns(tag.into()));
            let mut left = 0;
            for set in from..buffer.next() {
                for flit in flits_of(&buffer, set) {
                    if left == 0 && flit != Flit::IDLE {
                        let head = Head::parse(flit).unwrap();
                        got.push(head.packet_id());
                        left = head.length();
                    }
                    left = left.saturating_sub(1);
                }
            }
            // Every fifth time everything is acknowledged.
            let keep = u64::from(tag % 5);
            let ack = buffer.next().saturating_sub(keep.min(3));
            buffer.acknowledge(ack, ns(tag.into()));
        }
        assert_eq!(got, (0..3_000).map(|tag| tag & 0xfff).collect::<Vec<_>>());
    }

    #[test]
    fn a_whole_packet_lies_where_its_flits_one_by_one_would() {
        let mut rng = Rng::new(7, 0);
        // Enough for the ring to start below its final size and to wrap.
        let (mut whole, mut single) = (ReplayBuffer::new(64, 800), ReplayBuffer::new(64, 800));
        for now in 0..6_000 {
            let flits = 1 + rng.below(14) as u8;
            if whole.has_room(flits.into()) {
                let tag = (now & 0xfff) as u16;
                let head = Head::new(false, flits, NodeId::default(), Routing::Ordered, tag, 0);
                let rest = (1..flits).map(|i| Flit::new(now << 8 | u64::from(i)));
                let packet: Vec<_> = core::iter::once(head.flit()).chain(rest).collect();
                whole.push_packet(&packet);
                single.begin(packet[0], flits);
                packet[1..].iter().for_each(|flit| single.push(*flit));
            }
            if rng.chance(1, 3) {
                let first = whole.next();
                let sets = send_all(&mut whole, 64, ns(now));
                assert_eq!(sets, send_all(&mut single, 64, ns(now)));
                for set in first..whole.next() {
                    assert_eq!(flits_of(&whole, set), flits_of(&single, set));
                }
            }
            if rng.chance(1, 40) {
                let unknown = whole.next() - whole.acked();
                let set = whole.acked() + rng.below(unknown + 1);
                let done = whole.acknowledge(set, ns(now));
                assert_eq!(done, single.acknowledge(set, ns(now)));
            }
            let state = |buffer: &ReplayBuffer| {
                let (head, tail) = (buffer.head, buffer.tail);
                (head, tail, buffer.cut, buffer.open_at, buffer.packets())
            };
            assert_eq!(state(&whole), state(&single));
        }
        assert!(whole.flits.slots() > 512, "the ring has grown");
    }

    #[test]
    fn discarding_counts_the_open_packet() {
        let mut buffer = ReplayBuffer::new(8, 30);
        packet(&mut buffer, 4, 1);
        part(&mut buffer, 12, 10, 2);
        send_all(&mut buffer, 8, ns(5));
        assert_eq!(buffer.discard(), 2);
        packet(&mut buffer, 4, 3);
        assert_eq!(
            (buffer.backlog(), buffer.packets(), buffer.next()),
            (4, 1, 0)
        );
        assert_eq!(send_all(&mut buffer, 8, ns(6)), 1);
    }
}
