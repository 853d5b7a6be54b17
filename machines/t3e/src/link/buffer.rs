//! Input buffers: a queue of flits per virtual channel, in whole packets.

use phitwire_framing::t3e::check::{DataCheck, Repair};
use phitwire_framing::t3e::flit::{Flit, VCS};
use phitwire_framing::t3e::header::Header;
use phitwire_framing::t3e::packet::MAX_PACKET_FLITS;

use super::config::Depths;
use super::counters::FlitCounters;
use super::queues::{Queues, Rings};
use phitwire::kit::ring::Ring;

const _: () = assert!((Depths::LIVE.adaptive as u32 + 1) * MAX_PACKET_FLITS as u32 <= 1 << 15);

/// The packet being received on a virtual channel.
#[derive(Clone, Copy, Debug, Default)]
struct PartialPacket {
    /// Missing flits.
    flits: u8,
    /// Check of the words so far.
    check: DataCheck,
    /// Check in the header.
    carried: u16,
}

/// The buffers of an input. A packet arrives flit by flit but is never left incomplete: flits cut
/// off by the end of a session are replaced by made-up words that fail every check.
#[derive(Clone, Debug)]
pub struct FlitBuffer {
    queues: Queues,
    rings: Rings,
    /// Flits of each channel outside the slots known to the peer.
    excess: [u16; VCS],
    coming: [PartialPacket; VCS],
    /// Whether packets end here and are corrected.
    corrects: bool,
    /// Channels whose last header had a wrong bit, one bit each.
    doubtful: u8,
    pub(super) counters: FlitCounters,
}

impl FlitBuffer {
    pub fn new(depths: Depths) -> Self {
        // Made-up packets may take more slots than were granted: at worst each slot holds a header,
        // and the rest of its packet is made up.
        let most = |vc| (depths.of(vc) + 1) * MAX_PACKET_FLITS as u32;
        Self {
            queues: Queues::new(depths),
            rings: core::array::from_fn(|vc| Ring::new(most(vc))),
            excess: [0; VCS],
            coming: Default::default(),
            corrects: false,
            doubtful: 0,
            counters: FlitCounters::default(),
        }
    }

    /// Buffers at the destination of packets, which correct bit errors (T3E sec. 9).
    pub fn correcting(depths: Depths) -> Self {
        Self {
            corrects: true,
            ..Self::new(depths)
        }
    }

    pub const fn counters(&self) -> &FlitCounters {
        &self.counters
    }

    /// Takes in a flit of channel `vc`. Returns the number of flits added, including those made up
    /// for an earlier packet, and whether this flit's slot is free.
    #[inline]
    pub fn receive(&mut self, vc: usize, flit: Flit) -> (u32, bool) {
        self.counters.rx_flits += 1;
        let mut made_up = 0;
        if flit.control.is_head() && self.coming[vc].flits > 0 {
            made_up = self.give_up(vc);
        }
        if !self.queues.has_slot(vc, self.excess[vc]) {
            // Return no credit: the flit had no slot to free.
            self.counters.rx_overflows += 1;
            return (made_up, false);
        }
        match self.put(vc, flit) {
            true => (made_up + 1, false),
            false => (made_up, true),
        }
    }

    /// Stores a flit that has a slot. Returns whether it was stored.
    #[inline]
    fn put(&mut self, vc: usize, flit: Flit) -> bool {
        let is_head = flit.control.is_head();
        if is_head && !self.begin(vc, flit.word) {
            return false;
        }
        if !is_head {
            let coming = &mut self.coming[vc];
            if coming.flits == 0 {
                self.counters.rx_headless_flits += 1;
                return false;
            }
            coming.check.add(flit.word);
            coming.flits -= 1;
            self.queues.push(&mut self.rings, vc, flit.word);
            if coming.flits == 0 && coming.check.bits() != coming.carried {
                self.found_wrong(vc);
            }
            return true;
        }
        self.queues.push(&mut self.rings, vc, flit.word);
        true
    }

    /// Handles the last packet on `vc`, whose words do not match its check.
    #[cold]
    fn found_wrong(&mut self, vc: usize) {
        self.counters.rx_data_errors += 1;
        if !self.corrects {
            return;
        }
        let ring = &mut self.rings[vc];
        let coming = &self.coming[vc];
        // Add 2^16 to prevent underflow: positions wrap at sixteen bits, and so do slots in a ring.
        let end = u64::from(self.queues.end(vc)) + (1 << 16);
        let count = coming.check.words().into();
        let mut words = [0; MAX_PACKET_FLITS];
        let positions = end - count as u64..end;
        for (position, word) in positions.clone().zip(&mut words) {
            *word = ring.get(position);
        }
        match DataCheck::repair(&mut words[..count], coming.carried) {
            Repair::Hopeless => self.counters.rx_hopeless_packets += 1,
            _ => self.counters.rx_corrected_packets += 1,
        }
        for (position, word) in positions.zip(words) {
            *ring.get_mut(position) = word;
        }
    }

    /// Starts a packet. Returns whether its header is readable.
    #[inline]
    fn begin(&mut self, vc: usize, word: u64) -> bool {
        match Header::parse(word) {
            Ok((header, repair)) => {
                let wrong = u64::from(repair == Repair::Corrected);
                self.counters.rx_header_errors += wrong;
                self.doubtful = self.doubtful & !(1 << vc) | (wrong as u8) << vc;
                self.counters.rx_corrected_packets += wrong * u64::from(self.corrects);
                self.coming[vc] = PartialPacket {
                    flits: header.command.flits() as u8 - 1,
                    check: DataCheck::default(),
                    carried: header.data_check,
                };
                true
            }
            Err(_) => {
                self.counters.rx_unreadable_headers += 1;
                false
            }
        }
    }

    /// Makes up the missing flits of the packet being received on `vc`, with words that leave two
    /// bits wrong. Returns the flits made up.
    pub fn complete(&mut self, vc: usize) -> u32 {
        let coming = &mut self.coming[vc];
        let lacks = u32::from(core::mem::take(&mut coming.flits));
        for left in (0..lacks).rev() {
            let hopeless = |word: &u64| {
                let mut check = coming.check;
                check.add(*word);
                let difference = check.bits() ^ coming.carried;
                difference != 0 && difference >> 10 == 0
            };
            // Of the words with zero, one or two bits set, one leaves the parity right and the
            // position code wrong.
            let last = [0, 1, 2, 3].into_iter().find(hopeless).unwrap_or(0);
            let word = if left == 0 { last } else { 0 };
            coming.check.add(word);
            self.queues.push(&mut self.rings, vc, word);
        }
        self.counters.rx_truncated_packets += u64::from(lacks > 0);
        lacks
    }

    /// Like [`complete`](Self::complete), but during a session, in which the peer has not used the
    /// slots of these flits.
    pub fn give_up(&mut self, vc: usize) -> u32 {
        let made_up = self.complete(vc);
        self.excess[vc] += made_up as u16;
        made_up
    }

    /// The end position, above zero, of the packet being received on a channel, if its header had a
    /// wrong bit: with three wrong bits its length may be invalid. The position changes with each
    /// flit.
    pub fn doubtful(&self, vc: usize) -> Option<u64> {
        let is_doubtful = self.coming[vc].flits > 0 && self.doubtful >> vc & 1 != 0;
        is_doubtful.then_some(u64::from(self.queues.end(vc)) + 1)
    }

    /// Whether the last header of any channel had a wrong bit.
    #[inline]
    pub fn may_doubt(&self) -> bool {
        self.doubtful != 0
    }

    /// The oldest flit of a non-empty channel.
    #[inline]
    pub fn front(&self, vc: usize) -> u64 {
        self.queues.get(&self.rings, vc, 0)
    }

    /// The flit at index `at` of a channel that has one.
    #[inline]
    pub fn get(&self, vc: usize, at: u32) -> u64 {
        self.queues.get(&self.rings, vc, at as u16)
    }

    /// Takes the oldest flit of a channel. Returns it, and whether this frees a slot.
    ///
    /// # Panics
    /// If the channel is empty.
    #[inline]
    pub fn pop(&mut self, vc: usize) -> (u64, bool) {
        let word = self.queues.pop(&self.rings, vc);
        let has_place = self.excess[vc] == 0;
        self.excess[vc] -= u16::from(!has_place);
        (word, has_place)
    }

    /// Takes the oldest flits of a channel to fill `words`. Returns the number of slots freed.
    ///
    /// # Panics
    /// If there are fewer flits.
    #[inline]
    pub fn pop_many(&mut self, vc: usize, words: &mut [u64]) -> u32 {
        let count = words.len() as u16;
        let first = self.queues.leave(vc, count);
        let [first, second] = self.rings[vc].slices(first.into(), words.len());
        let (front, back) = words.split_at_mut(first.len());
        front.copy_from_slice(first);
        back.copy_from_slice(second);
        let excess = self.excess[vc].min(count);
        self.excess[vc] -= excess;
        (count - excess).into()
    }

    #[inline]
    pub fn len(&self, vc: usize) -> u32 {
        self.queues.len(vc).into()
    }

    /// Number of flits still missing from the packet being received on a channel.
    #[inline]
    pub fn coming(&self, vc: usize) -> u8 {
        self.coming[vc].flits
    }

    /// Total number of flits.
    pub fn flits(&self) -> u64 {
        self.queues.flits()
    }

    /// Starts a session that grants the peer the free slots. Flits beyond the capacity return no
    /// credits.
    pub fn grant(&mut self) -> [u32; VCS] {
        self.excess = core::array::from_fn(|vc| self.queues.excess(vc));
        self.free()
    }

    pub fn free(&self) -> [u32; VCS] {
        core::array::from_fn(|vc| self.queues.free(vc).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire_framing::t3e::header::{Command, Name};
    use phitwire_framing::t3e::packet::PacketBuf;

    fn packet(command: Command) -> PacketBuf {
        let data: Vec<u64> = (1..=command.words() as u64).collect();
        PacketBuf::response(command, 9, Name::new(3), 64, &data)
    }

    fn give(buffer: &mut FlitBuffer, vc: usize, words: &[u64]) -> usize {
        let flits = words.iter().enumerate();
        let flits = flits.map(|(at, word)| Flit::data(*word, vc, at == 0));
        flits.filter(|flit| !buffer.receive(vc, *flit).1).count()
    }

    #[test]
    fn packets_come_out_as_they_came() {
        let mut buffer = FlitBuffer::new(Depths::PAPER);
        let long = packet(Command::Get8Data);
        assert_eq!(give(&mut buffer, 2, long.flits()), 10);
        assert_eq!((buffer.coming(2), buffer.free()[2]), (0, 2));
        for word in long.flits() {
            assert_eq!(buffer.front(2), *word);
            assert_eq!(buffer.pop(2), (*word, true));
        }
        assert_eq!(buffer.flits(), 0);
        assert_eq!(
            buffer.counters,
            FlitCounters {
                rx_flits: 10,
                ..Default::default()
            }
        );
    }

    #[test]
    fn cut_packets_are_completed_with_an_uncorrectable_check() {
        for command in [Command::Get8Data, Command::Done, Command::Get1Data] {
            let whole = packet(command);
            for cut in 1..whole.flits().len() {
                let mut buffer = FlitBuffer::new(Depths::PAPER);
                give(&mut buffer, 0, &whole.flits()[..cut]);
                let lacks = whole.flits().len() - cut;
                assert_eq!(buffer.complete(0), lacks as u32);
                let words: Vec<_> = (0..buffer.len(0)).map(|_| buffer.pop(0).0).collect();
                let mut made_up = PacketBuf::from_flits(&words).unwrap();
                assert_eq!(made_up.open().unwrap().1, [Repair::Good, Repair::Hopeless]);
                assert_eq!(buffer.counters.rx_truncated_packets, 1);
            }
        }
    }

    #[test]
    fn a_header_that_cannot_be_read_costs_its_packet_and_no_other() {
        let mut buffer = FlitBuffer::new(Depths::PAPER);
        let mut flits = packet(Command::Done).flits().to_vec();
        flits[0] ^= 3;
        assert_eq!(give(&mut buffer, 1, &flits), 0);
        assert_eq!(give(&mut buffer, 1, packet(Command::Done).flits()), 2);
        let counters = &buffer.counters;
        assert_eq!(
            (counters.rx_unreadable_headers, counters.rx_headless_flits),
            (1, 1)
        );
        // A single wrong bit is only counted.
        flits[0] ^= 2;
        flits[1] ^= 1 << 50;
        assert_eq!(give(&mut buffer, 1, &flits), 2);
        let counters = &buffer.counters;
        assert_eq!((counters.rx_header_errors, counters.rx_data_errors), (1, 1));
    }

    #[test]
    fn the_destination_corrects_what_can_be_corrected() {
        let mut buffer = FlitBuffer::correcting(Depths::PAPER);
        buffer.queues = Queues::new(Depths::PAPER).beginning_at(u16::MAX - 3);
        let whole = packet(Command::Get8Data);
        for (wrong, corrected, hopeless) in [(1, 1, 0), (3, 1, 1)] {
            let mut flits = whole.flits().to_vec();
            flits[7] ^= wrong << 20;
            give(&mut buffer, 0, &flits);
            let words: Vec<_> = (0..10).map(|_| buffer.pop(0).0).collect();
            assert_eq!(words == whole.flits(), hopeless == 0);
            let counters = &buffer.counters;
            let found = (counters.rx_corrected_packets, counters.rx_hopeless_packets);
            assert_eq!(found, (corrected, hopeless));
        }
    }

    #[test]
    fn flits_beyond_the_grant_find_no_slot() {
        let mut buffer = FlitBuffer::new(Depths::PAPER);
        for _ in 0..2 {
            give(&mut buffer, 3, packet(Command::Get8Data).flits());
        }
        assert_eq!((buffer.len(3), buffer.counters.rx_overflows), (12, 8));
    }
}
