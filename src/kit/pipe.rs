//! A buffer at the far end of a wire, whose credits return over a second wire.

/// Slots of the ring that a pipe's owner keeps for it.
pub const RING_SLOTS: usize = 16;

/// When the reader can read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Readable in the next cycle.
    Ready,
    /// Readable in this many cycles: something is on the wire.
    Ahead(u32),
    /// Not readable before the next write, which reports it.
    Empty,
}

/// When the writer can write again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Writable in the requested cycle.
    Open,
    /// Writable in this many cycles: a credit is returning.
    Ahead(u32),
    /// Not writable before the next read, which returns that the writer must be woken.
    Starved,
}

/// State of a buffer of `DEPTH` slots. An item arrives `FORWARD` cycles after its write; the writer
/// sees a freed slot `BACK` cycles after the read.
///
/// Neither wire needs an event per item: each side acts at most once per cycle, so one bit per
/// recent cycle shows what is still on the wires. A stream that uses every cycle thus costs nothing
/// but its reads and writes. The pipe's owner needs to wake a side only after that side found
/// nothing to do: the reader after [`Next`], the writer after [`Room`].
///
/// The `at_once` calls are for owners whose wires take no time: there the writer acts before the
/// reader, and no cycles are kept. An owner uses either these or the others.
///
/// In a cycle the reader acts before the writer. The owner keeps the items, in a ring of
/// [`RING_SLOTS`]. Cycles are modulo 2^32; a pipe idle for a multiple of that would see old
/// traffic on its wires and at worst wait for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pipe<const DEPTH: u8, const FORWARD: u32, const BACK: u32> {
    head: u8,
    tail: u8,
    /// Bit i: an item was written i cycles before `stamp`.
    writes: u8,
    /// Bit i: an item was read i cycles before `stamp`.
    reads: u8,
    starved: bool,
    /// Free for use by the owner.
    pub tag: u8,
    /// Slots occupied by multi-slot items.
    slots: u8,
    stamp: u32,
}

/// The low `bits` bits.
const fn low(bits: u32) -> u8 {
    ((1u32 << bits) - 1) as u8
}

/// Number of set bits of a 7-bit mask: a table, because baseline x86-64 has no instruction for it.
#[inline]
const fn count(mask: u8) -> u8 {
    const COUNTS: [u8; 128] = {
        let mut counts = [0; 128];
        let mut mask = 0;
        while mask < 128 {
            counts[mask] = (mask as u32).count_ones() as u8;
            mask += 1;
        }
        counts
    };
    COUNTS[mask as usize % 128]
}

/// Position of the highest set bit of a nonempty mask.
const fn highest(mask: u8) -> u32 {
    7 - (mask.leading_zeros() & 7)
}

impl<const DEPTH: u8, const FORWARD: u32, const BACK: u32> Pipe<DEPTH, FORWARD, BACK> {
    const VALID: () = assert!(
        DEPTH as usize <= RING_SLOTS && FORWARD >= 2 && FORWARD <= 7 && BACK >= 2 && BACK <= 7
    );

    /// An empty pipe with `tag` for its owner.
    pub const fn new(tag: u8) -> Self {
        let () = Self::VALID;
        Self {
            head: 0,
            tail: 0,
            writes: 0,
            reads: 0,
            starved: false,
            tag,
            slots: 0,
            stamp: 0,
        }
    }

    /// Ages the history to cycle `now`.
    #[inline]
    fn age(&mut self, now: u32) {
        let passed = now.wrapping_sub(self.stamp).min(8);
        self.writes = (u32::from(self.writes) << passed) as u8;
        self.reads = (u32::from(self.reads) << passed) as u8;
        self.stamp = now;
    }

    /// Items written and not read, those on the wire included.
    #[inline]
    pub const fn len(&self) -> u8 {
        self.tail.wrapping_sub(self.head)
    }

    /// Whether nothing is in the buffer or on the wire to it.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Slots that the writer sees as free in cycle `now`.
    #[inline]
    pub fn credits(&self, now: u32) -> u8 {
        let mut aged = *self;
        aged.age(now);
        DEPTH.saturating_sub(aged.len() + count(aged.reads & low(BACK)))
    }

    /// Whether the writer may write in cycle `now` (`after` 0) or in the next (`after` 1). After
    /// [`Room::Starved`], the next read returns that the writer must be woken.
    #[inline]
    pub fn room(&mut self, now: u32, after: u32) -> Room {
        self.room_beside(self.len(), now, after)
    }

    /// Like [`Self::room`], for items of several slots: whether at least one slot is free. One is
    /// enough, because an item takes its remaining slots as its first ones are freed. Each read
    /// counts as one returning slot.
    #[inline]
    pub fn room_for_some(&mut self, now: u32, after: u32) -> Room {
        self.room_beside(self.slots, now, after)
    }

    /// Call before an item of `slots` slots is written.
    #[inline]
    pub fn take_slots(&mut self, slots: u8) {
        self.slots += slots;
    }

    /// Call before an item of `slots` slots is read.
    #[inline]
    pub fn free_slots(&mut self, slots: u8) {
        self.slots -= slots;
    }

    /// Slots taken by items of several slots.
    #[inline]
    pub const fn slots(&self) -> u8 {
        self.slots
    }

    /// Whether a slot is free for the next item where wires take no time. After `false`, the next
    /// read returns that the writer must be woken.
    #[inline]
    pub fn has_slot_at_once(&mut self) -> bool {
        self.starved = self.slots >= DEPTH;
        !self.starved
    }

    /// Writes an item of `slots` slots where wires take no time: it can be read in the same cycle.
    /// Returns whether to wake the reader.
    #[inline]
    pub fn write_at_once(&mut self, slots: u8) -> bool {
        debug_assert!(self.slots < DEPTH, "write without a credit");
        let wakes = self.is_empty();
        self.tail = self.tail.wrapping_add(1);
        self.slots += slots;
        wakes
    }

    /// Reads an item of `slots` slots where wires take no time. Returns when the next can be read,
    /// and whether to wake the writer.
    #[inline]
    pub fn read_at_once(&mut self, slots: u8) -> (Next, bool) {
        debug_assert!(!self.is_empty(), "read from an empty pipe");
        self.head = self.head.wrapping_add(1);
        self.slots -= slots;
        let next = if self.is_empty() {
            Next::Empty
        } else {
            Next::Ready
        };
        (next, core::mem::take(&mut self.starved))
    }

    #[inline]
    fn room_beside(&mut self, taken: u8, now: u32, after: u32) -> Room {
        debug_assert!(after <= 1);
        // Open even if the credit of every recent read were still in flight.
        if u32::from(taken) + (BACK - after) < u32::from(DEPTH) {
            return Room::Open;
        }
        self.age(now);
        let returning = self.reads & low(BACK - after);
        if taken + count(returning) < DEPTH {
            Room::Open
        } else if returning != 0 {
            Room::Ahead(BACK - highest(returning))
        } else {
            self.starved = true;
            Room::Starved
        }
    }

    /// Writes an item in cycle `now`. Returns its slot in the ring, and whether to wake the reader
    /// in `FORWARD` cycles.
    #[inline]
    pub fn write(&mut self, now: u32) -> (usize, bool) {
        self.age(now);
        debug_assert!(self.credits(now) > 0, "write without a credit");
        let wakes = self.is_empty();
        let slot = usize::from(self.tail) % RING_SLOTS;
        self.tail = self.tail.wrapping_add(1);
        self.writes |= 1;
        (slot, wakes)
    }

    /// Whether an item can be read in cycle `now`.
    #[inline]
    pub fn is_ready(&self, now: u32) -> bool {
        let mut aged = *self;
        aged.age(now);
        aged.len() > count(aged.writes & low(FORWARD))
    }

    /// Slot in the ring of the item to read next.
    #[inline]
    pub const fn front(&self) -> usize {
        self.head as usize % RING_SLOTS
    }

    /// Reads the item at [`front`](Self::front) in cycle `now`. Returns when the next can be read,
    /// and whether to wake the writer in `BACK` cycles.
    #[inline]
    pub fn read(&mut self, now: u32) -> (Next, bool) {
        debug_assert!(self.is_ready(now), "read before the item is ready");
        self.age(now);
        self.head = self.head.wrapping_add(1);
        self.reads |= 1;
        let wakes = core::mem::take(&mut self.starved);
        let hidden = self.writes & low(FORWARD - 1);
        let next = if self.len() > count(hidden) {
            Next::Ready
        } else if hidden != 0 {
            Next::Ahead(FORWARD - highest(hidden))
        } else {
            Next::Empty
        };
        (next, wakes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Reference model: the buffer as lists of arrival times and of returning credits.
    #[derive(Default)]
    struct Reference {
        arrivals: std::collections::VecDeque<u64>,
        freed: Vec<u64>,
        written: u64,
        read: u64,
    }

    /// Two sides that act at random and follow the wakeups can act in exactly the cycles that the
    /// reference allows.
    fn compare<const D: u8, const F: u32, const B: u32>(seed: u64, write: u64, read: u64) {
        let mut pipe = Pipe::<D, F, B>::new(0);
        let mut reference = Reference::default();
        let mut rng = Rng::new(seed, 0);
        // Cycle from which each side may act; `u64::MAX` = asleep until woken.
        let (mut reader_at, mut writer_at) = (u64::MAX, 0);
        for now in 0..20_000u64 {
            let cycle = now as u32;
            let can_read = reference.arrivals.front().is_some_and(|&at| at <= now);
            assert_eq!(pipe.is_ready(cycle), can_read);
            assert_eq!(reader_at <= now, can_read, "cycle {now}");
            let back = reference.freed.iter().filter(|&&at| at <= now).count() as u64;
            let credits = u64::from(D) - (reference.written - back);
            assert_eq!(u64::from(pipe.credits(cycle)), credits);
            assert_eq!(writer_at <= now, credits > 0, "cycle {now}");
            if can_read && rng.chance(read, 100) {
                assert_eq!(pipe.front(), (reference.read % 16) as usize);
                let (next, wakes) = pipe.read(cycle);
                reference.arrivals.pop_front();
                reference.freed.push(now + u64::from(B));
                reference.read += 1;
                reader_at = match next {
                    Next::Ready => now + 1,
                    Next::Ahead(n) => now + u64::from(n),
                    Next::Empty => u64::MAX,
                };
                if wakes {
                    assert_eq!(writer_at, u64::MAX);
                    writer_at = now + u64::from(B);
                }
            }
            if credits > 0 && rng.chance(write, 100) {
                assert_eq!(pipe.room(cycle, 0), Room::Open);
                let (slot, wakes) = pipe.write(cycle);
                assert_eq!(slot, (reference.written % 16) as usize);
                reference.arrivals.push_back(now + u64::from(F));
                reference.written += 1;
                if wakes {
                    assert_eq!(reader_at, u64::MAX);
                    reader_at = now + u64::from(F);
                }
                writer_at = match pipe.room(cycle, 1) {
                    Room::Open => now + 1,
                    Room::Ahead(n) => now + u64::from(n),
                    Room::Starved => u64::MAX,
                };
            }
            assert_eq!(u64::from(pipe.len()), reference.written - reference.read);
        }
        assert!(reference.read > 100);
    }

    #[test]
    fn a_pipe_is_a_buffer_with_two_wires() {
        for (seed, (write, read)) in (0..).zip([(100, 100), (100, 20), (20, 100), (60, 60), (3, 3)])
        {
            compare::<16, 6, 4>(seed, write, read);
            compare::<10, 7, 3>(seed, write, read);
            compare::<4, 7, 3>(seed, write, read);
            compare::<16, 7, 7>(seed, write, read);
            compare::<2, 2, 2>(seed, write, read);
        }
    }

    #[test]
    fn a_stream_that_fits_needs_no_wake_ups() {
        let mut pipe = Pipe::<10, 7, 3>::new(0);
        for now in 0..100 {
            if now >= 7 {
                assert_eq!(pipe.read(now), (Next::Ready, false));
            }
            let (_, wakes) = pipe.write(now);
            assert_eq!(wakes, now == 0);
            assert_eq!(pipe.room(now, 1), Room::Open);
        }
    }
}
