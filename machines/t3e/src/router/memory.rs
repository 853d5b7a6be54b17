//! Packets that a router has taken from the network because their path has failed.
//!
//! Packets carry absolute addresses (T3E sec. 2), and no router on the path changes them here. So a
//! packet for a failed link would block there forever, with all packets behind it. Instead the
//! router moves it to the memory of its node, as if the packet were for its processor, and resends
//! it by its own look-up table once that has a path: see `docs/guide/src/deviations.md`.

use std::collections::{BTreeMap, VecDeque};

use phitwire_framing::t3e::flit::vc;
use phitwire_framing::t3e::packet::MAX_PACKET_FLITS;

use super::ports::PORTS;

/// Maximum number of flits kept. Beyond it packets wait in the network as if there were no memory.
/// 128 processors that read and write eight words have this many outstanding.
pub const MEMORY_FLITS: u32 = 1 << 16;

/// Requests and responses wait separately, because responses must not wait for requests.
const CLASSES: usize = 2;
/// Packets wait by their first output; those without a path wait in one more queue.
const QUEUES: usize = PORTS + 1;
/// The queue of packets for which the look-up table has no path.
pub(super) const NO_WAY: usize = PORTS;

/// A packet as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// The number of the destination processor.
    pub number: u16,
    is_response: bool,
    flits: [u64; MAX_PACKET_FLITS],
    count: u8,
    /// Number of flits received, or sent.
    at: u8,
    /// The queue in which the packet waits or waited last.
    queue: u8,
    /// Number of packets that arrived before this one.
    turn: u64,
}

impl Kept {
    pub const fn header(&self) -> u64 {
        self.flits[0]
    }

    pub const fn count(&self) -> u8 {
        self.count
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// Waiting packets; each queue is in order of arrival. Packets to one processor share a queue.
    waiting: [[VecDeque<Kept>; QUEUES]; CLASSES],
    /// The packets that the crossbar is sending, or will send next.
    going: [Option<Kept>; CLASSES],
    /// Incomplete packets, by channel of the input.
    coming: Vec<(u8, Kept)>,
    /// Number of requests, complete or not, by processor number.
    requests: BTreeMap<u16, u32>,
    /// Number of flits of all packets, complete or not.
    flits: u32,
    came: u64,
}

const fn class(vc: usize) -> usize {
    vc / vc::RESPONSE
}

impl Memory {
    /// Channels on which packets leave, which are those of a processor.
    pub const CHANNELS: [usize; CLASSES] = [vc::REQUEST, vc::RESPONSE];

    /// Number of flits that are stored or have reserved space.
    pub const fn flits(&self) -> u32 {
        self.flits
    }

    /// Whether a packet is moving in or out.
    pub fn is_busy(&self) -> bool {
        let sends = |going: &Option<Kept>| going.is_some_and(|packet| packet.at > 0);
        !self.coming.is_empty() || self.going.iter().any(sends)
    }

    /// Whether a request to processor `number` is stored or coming in.
    pub fn has_request(&self, number: u16) -> bool {
        self.requests.contains_key(&number)
    }

    /// Reserves room for a packet of the input's channel `who`. Returns false unless the longest
    /// packet would fit below `most` flits, so that short packets do not take all the space.
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

    /// Accepts the next flit of the packet of the input's channel `who`. `queue_of` returns the
    /// queue for packets to a processor: the output, or [`NO_WAY`].
    pub fn take_in(&mut self, who: u8, word: u64, queue_of: impl FnOnce(u16) -> usize) {
        let found = self.coming.iter().position(|(own, _)| *own == who);
        let index = found.expect("the packet reserved a slot at its head");
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

    /// Sorts packets into queues again after their first outputs have changed.
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

    /// Discards packets without a path, and returns the numbers of packets and of flits.
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

    /// Removes a packet from the request counts.
    fn forget(&mut self, packet: &Kept) {
        if packet.is_response {
            return;
        }
        let requests = self.requests.get_mut(&packet.number);
        let requests = requests.expect("the request was counted on arrival");
        *requests -= 1;
        if *requests == 0 {
            self.requests.remove(&packet.number);
        }
    }

    /// Selects for the crossbar the packet that arrived first among those whose first output is not
    /// in `dead`, one bit each. Packets to one processor keep their order, since either all of them
    /// can leave or none.
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

    /// Returns the selected packet to its queue.
    pub fn put_back(&mut self, vc: usize) {
        if let Some(packet) = self.going[class(vc)].take() {
            debug_assert_eq!(packet.at, 0, "the packet has not begun to leave");
            self.waiting[class(vc)][usize::from(packet.queue)].push_front(packet);
        }
    }

    /// The packet that is selected or being sent.
    pub fn going(&self, vc: usize) -> Option<&Kept> {
        self.going[class(vc)].as_ref()
    }

    /// Sends the next flit of the selected packet.
    pub fn take_out(&mut self, vc: usize) -> u64 {
        let going = &mut self.going[class(vc)];
        let packet = going.as_mut().expect("a packet is leaving");
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
    fn packets_wait_for_a_free_output_in_order() {
        let mut memory = Memory::default();
        for (who, number) in [(3, 7), (4, 8), (5, 7)] {
            assert!(memory.begin(who, (number, false), 2, MEMORY_FLITS));
        }
        // Packets arrive at several inputs at once. Processor 7 is behind output 0.
        let queue_of = |number| usize::from(number) - 7;
        for word in [1, 2] {
            for who in [3, 4, 5] {
                memory.take_in(who, u64::from(who) * 10 + word, queue_of);
            }
        }
        assert!(memory.has_request(8) && !memory.has_request(9));
        let headers = |packet: Option<Kept>| packet.map(|packet| packet.header());
        assert_eq!(headers(memory.choose(vc::REQUEST, 0b01)), Some(41));
        assert_eq!(
            memory.choose(vc::REQUEST, 0),
            None,
            "one packet leaves at a time"
        );
        memory.put_back(vc::REQUEST);
        assert_eq!(memory.choose(vc::REQUEST, 0b11), None);
        assert_eq!(
            headers(memory.choose(vc::REQUEST, 0)),
            Some(31),
            "the first"
        );
        memory.put_back(vc::REQUEST);
        // Processor 8 is now unknown, and 7 is behind another output.
        memory.sort(|number| if number == 7 { 5 } else { NO_WAY });
        assert_eq!(memory.throw_away(vc::REQUEST), (1, 2));
        assert!(!memory.has_request(8));
        assert_eq!(memory.choose(vc::REQUEST, 1 << 5), None);
        for who in [3, 5] {
            assert!(memory.choose(vc::REQUEST, 0).is_some());
            assert!(memory.has_request(7));
            let words = [(); 2].map(|()| memory.take_out(vc::REQUEST));
            assert_eq!(
                words,
                [1, 2].map(|word| who * 10 + word),
                "flits leave in order of arrival"
            );
        }
        assert!(!memory.has_request(7));
        assert_eq!((memory.flits(), memory.is_busy()), (0, false));
        assert!(memory.begin(1, (1, true), 2, 11) && !memory.has_request(1));
        assert!(!memory.begin(2, (1, true), 2, 11), "the memory is full");
    }

    /// Packets leave in the same order as from a single queue.
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
