//! Packets that a router has taken out of the network because their way is dead.
//!
//! Packets carry absolute addresses (T3E sec. 2), and no router on the way changes them here, so a
//! packet on its way to a dead link would stand there for ever, and all behind it. A router takes
//! such a packet into the memory of its node instead, as if it had come to its processor, and sends
//! it again by its own look-up table as soon as that has a way: see `docs/guide/src/deviations.md`.

use std::collections::{BTreeMap, VecDeque};

use super::ports::PORTS;
use crate::format::{MAX_PACKET_FLITS, vc};

/// Flits that are kept at most; then packets wait in the network as if there were no memory. They
/// are as many as 128 processors have outstanding that read and write eight words.
pub const MEMORY_FLITS: u32 = 1 << 16;

/// Packets of a channel wait apart from those of the other: responses must not wait for requests.
const CLASSES: usize = 2;
/// Packets wait by the output at which their way begins, and in one queue more if they have none.
const QUEUES: usize = PORTS + 1;
/// The queue of packets that the look-up table has no way for.
pub(super) const NO_WAY: usize = PORTS;

/// A packet as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// The number of the processor that it goes to.
    pub number: u16,
    is_response: bool,
    flits: [u64; MAX_PACKET_FLITS],
    count: u8,
    /// Flits that have come in, or gone out.
    at: u8,
    /// The queue that it waits in, or waited in last.
    queue: u8,
    /// Packets that had come before it.
    turn: u64,
}

impl Kept {
    /// Its header flit.
    pub const fn header(&self) -> u64 {
        self.flits[0]
    }

    /// Its flits.
    pub const fn count(&self) -> u8 {
        self.count
    }
}

/// Packets that wait for a way.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// In each queue in the order in which they came. Packets to one processor are in one queue.
    waiting: [[VecDeque<Kept>; QUEUES]; CLASSES],
    /// What the crossbar sends, or will send next.
    going: [Option<Kept>; CLASSES],
    /// What comes in, by the input's channel.
    coming: Vec<(u8, Kept)>,
    /// Requests that are here or on their way in, by the number of their processor.
    requests: BTreeMap<u16, u32>,
    /// Flits of all of them.
    flits: u32,
    /// Packets that have come.
    came: u64,
}

const fn class(vc: usize) -> usize {
    vc / vc::RESPONSE
}

impl Memory {
    /// Channels on which its packets leave, as those of a processor do.
    pub const CHANNELS: [usize; CLASSES] = [vc::REQUEST, vc::RESPONSE];

    /// Flits that are there or have a place.
    pub const fn flits(&self) -> u32 {
        self.flits
    }

    /// Whether a packet goes in or out.
    pub fn is_busy(&self) -> bool {
        let sends = |going: &Option<Kept>| going.is_some_and(|packet| packet.at > 0);
        !self.coming.is_empty() || self.going.iter().any(sends)
    }

    /// Whether a request to processor `number` is here, or on its way in.
    pub fn has_request(&self, number: u16) -> bool {
        self.requests.contains_key(&number)
    }

    /// Makes room for a packet of the input's channel `who`. False where there is none below `most`
    /// flits for the longest packet, so that short ones do not take it all.
    pub fn begin(
        &mut self,
        who: u8,
        (number, is_response): (u16, bool),
        count: u8,
        most: u32,
    ) -> bool {
        if self.flits + MAX_PACKET_FLITS as u32 > most {
            return false;
        }
        self.flits += u32::from(count);
        if !is_response {
            *self.requests.entry(number).or_default() += 1;
        }
        let packet = Kept {
            number,
            is_response,
            flits: [0; MAX_PACKET_FLITS],
            count,
            at: 0,
            queue: NO_WAY as u8,
            turn: 0,
        };
        self.coming.push((who, packet));
        true
    }

    /// The next flit of the packet of the input's channel `who` comes in. `queue_of` says which
    /// queue a packet to a processor waits in: its output, or [`NO_WAY`].
    pub fn take_in(&mut self, who: u8, word: u64, queue_of: impl FnOnce(u16) -> usize) {
        let found = self.coming.iter().position(|(own, _)| *own == who);
        let index = found.expect("there is room for a packet that comes in");
        let packet = &mut self.coming[index].1;
        packet.flits[usize::from(packet.at)] = word;
        packet.at += 1;
        if packet.at < packet.count {
            return;
        }
        let (_, mut packet) = self.coming.swap_remove(index);
        packet.at = 0;
        packet.turn = self.came;
        self.came += 1;
        self.enqueue(packet, queue_of);
    }

    fn enqueue(&mut self, mut packet: Kept, queue_of: impl FnOnce(u16) -> usize) {
        let queue = queue_of(packet.number);
        packet.queue = queue as u8;
        self.waiting[usize::from(packet.is_response)][queue].push_back(packet);
    }

    /// Ways begin at other outputs than before.
    pub fn sort(&mut self, queue_of: impl Fn(u16) -> usize) {
        for class in 0..CLASSES {
            let queues = self.waiting[class].iter_mut();
            let mut all: Vec<Kept> = queues.flat_map(core::mem::take).collect();
            all.sort_by_key(|packet| packet.turn);
            for packet in all {
                self.enqueue(packet, &queue_of);
            }
        }
    }

    /// Throws away what has no way; the packets and their flits.
    pub fn throw_away(&mut self, vc: usize) -> (u64, u32) {
        let (mut packets, mut flits) = (0, 0);
        while let Some(packet) = self.waiting[class(vc)][NO_WAY].pop_front() {
            packets += 1;
            flits += u32::from(packet.count);
            self.forget(&packet);
        }
        self.flits -= flits;
        (packets, flits)
    }

    /// A packet is not here any more.
    fn forget(&mut self, packet: &Kept) {
        if packet.is_response {
            return;
        }
        let requests = self.requests.get_mut(&packet.number);
        let requests = requests.expect("it was counted when it came");
        *requests -= 1;
        if *requests == 0 {
            self.requests.remove(&packet.number);
        }
    }

    /// Puts the packet that came first, of those whose way begins at no `dead` output, one bit each,
    /// where the crossbar takes it from. Packets to one processor stay in their order, since all of
    /// them go or none does.
    pub fn choose(&mut self, vc: usize, dead: u8) -> Option<Kept> {
        let class = class(vc);
        if self.going[class].is_some() {
            return None;
        }
        let alive = (0..PORTS).filter(|output| dead >> output & 1 == 0);
        let first = alive.filter_map(|output| {
            let first = self.waiting[class][output].front()?;
            Some((first.turn, output))
        });
        let (_, output) = first.min()?;
        self.going[class] = self.waiting[class][output].pop_front();
        self.going[class]
    }

    /// The packet that was to go next waits again.
    pub fn put_back(&mut self, vc: usize) {
        if let Some(packet) = self.going[class(vc)].take() {
            debug_assert_eq!(packet.at, 0, "it has not begun to go");
            self.waiting[class(vc)][usize::from(packet.queue)].push_front(packet);
        }
    }

    /// The packet that goes.
    pub fn going(&self, vc: usize) -> Option<&Kept> {
        self.going[class(vc)].as_ref()
    }

    /// Its next flit goes.
    pub fn take_out(&mut self, vc: usize) -> u64 {
        let going = &mut self.going[class(vc)];
        let packet = going.as_mut().expect("a flit is taken that is there");
        let word = packet.flits[usize::from(packet.at)];
        packet.at += 1;
        self.flits -= 1;
        if packet.at == packet.count {
            let gone = *packet;
            *going = None;
            self.forget(&gone);
        }
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_wait_for_a_way_and_keep_their_order() {
        let mut memory = Memory::default();
        for (who, number) in [(3, 7), (4, 8), (5, 7)] {
            assert!(memory.begin(who, (number, false), 2, MEMORY_FLITS));
        }
        // Packets of several inputs come in at the same time. Processor 7 is behind output 0.
        let queue_of = |number| usize::from(number) - 7;
        for word in [1, 2] {
            for who in [3, 4, 5] {
                memory.take_in(who, u64::from(who) * 10 + word, queue_of);
            }
        }
        assert!(memory.has_request(8) && !memory.has_request(9));
        let headers = |packet: Option<Kept>| packet.map(|packet| packet.header());
        assert_eq!(headers(memory.choose(vc::REQUEST, 0b01)), Some(41));
        assert_eq!(memory.choose(vc::REQUEST, 0), None, "one goes at a time");
        memory.put_back(vc::REQUEST);
        assert_eq!(memory.choose(vc::REQUEST, 0b11), None);
        assert_eq!(
            headers(memory.choose(vc::REQUEST, 0)),
            Some(31),
            "the first"
        );
        memory.put_back(vc::REQUEST);
        // Nobody knows of 8 any more, and 7 is elsewhere.
        memory.sort(|number| if number == 7 { 5 } else { NO_WAY });
        assert_eq!(memory.throw_away(vc::REQUEST), (1, 2));
        assert!(!memory.has_request(8));
        assert_eq!(memory.choose(vc::REQUEST, 1 << 5), None);
        for who in [3, 5] {
            assert!(memory.choose(vc::REQUEST, 0).is_some());
            assert!(memory.has_request(7));
            let words = [(); 2].map(|()| memory.take_out(vc::REQUEST));
            assert_eq!(words, [1, 2].map(|word| who * 10 + word), "as it came");
        }
        assert!(!memory.has_request(7));
        assert_eq!((memory.flits(), memory.is_busy()), (0, false));
        assert!(memory.begin(1, (1, true), 2, 11) && !memory.has_request(1));
        assert!(!memory.begin(2, (1, true), 2, 11), "there is an end to it");
    }

    /// As they would be if there were one queue that is searched.
    #[test]
    fn packets_of_all_outputs_go_in_the_order_in_which_they_came() {
        let mut rng = phitwire::rng::Rng::new(3, 3);
        let mut memory = Memory::default();
        let mut model: VecDeque<(u16, u64)> = VecDeque::new();
        let mut outputs = [0_usize; 20];
        let mut word = 0;
        for _ in 0..20_000 {
            match rng.below(20) {
                0 => {
                    outputs = outputs.map(|_| rng.below(PORTS as u64) as usize);
                    memory.sort(|number| outputs[usize::from(number)]);
                }
                1..=10 => {
                    let number = rng.below(20) as u16;
                    if memory.begin(1, (number, false), 1, 3_000) {
                        memory.take_in(1, word, |number| outputs[usize::from(number)]);
                        model.push_back((number, word));
                        word += 1;
                    }
                }
                _ => {
                    let dead = rng.below(1 << PORTS) as u8;
                    let goes =
                        |(number, _): &(u16, u64)| dead >> outputs[usize::from(*number)] & 1 == 0;
                    let expected = model.iter().position(goes);
                    let expected = expected.and_then(|at| model.remove(at));
                    let going = memory.choose(vc::REQUEST, dead);
                    assert_eq!(
                        going.map(|packet| (packet.number, packet.header())),
                        expected
                    );
                    if going.is_some() {
                        memory.take_out(vc::REQUEST);
                    }
                }
            }
            let number = rng.below(20) as u16;
            let is_there = model.iter().any(|(other, _)| *other == number);
            assert_eq!(memory.has_request(number), is_there);
        }
        assert!(word > 5_000);
    }
}
