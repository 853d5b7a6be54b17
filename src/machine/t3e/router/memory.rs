//! Packets that a router has taken out of the network because their way is dead.
//!
//! No router changes what a packet says of its route (paper, section 2), so that one on its way to a
//! dead link would stand there for ever, and all behind it. A router takes such a packet into the
//! memory of its node instead, as if it had come to its processor, and sends it again by its own
//! look-up table as soon as that has a way: see `docs/deviations.md`.

use std::collections::VecDeque;

use crate::machine::t3e::format::{MAX_PACKET_FLITS, vc};

/// Flits that are kept at most; then packets wait in the network as if there were no memory. They
/// are as many as 128 processors have outstanding that read and write eight words.
pub const MEMORY_FLITS: u32 = 1 << 16;

/// Packets of a channel wait apart from those of the other: responses must not wait for requests.
const CLASSES: usize = 2;

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
    waiting: [VecDeque<Kept>; CLASSES],
    /// What the crossbar sends, or will send next.
    going: [Option<Kept>; CLASSES],
    /// What comes in, by the input's channel.
    coming: Vec<(u8, Kept)>,
    /// Flits of all of them.
    flits: u32,
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
        let own = |packet: &Kept| packet.number == number;
        self.waiting[0].iter().any(own)
            || self.going[0].as_ref().is_some_and(own)
            || self
                .coming
                .iter()
                .any(|(_, packet)| !packet.is_response && own(packet))
    }

    /// Makes room for a packet of the input's channel `who`; false if there is none below `most`
    /// flits.
    pub fn begin(
        &mut self,
        who: u8,
        (number, is_response): (u16, bool),
        count: u8,
        most: u32,
    ) -> bool {
        if self.flits + u32::from(count) > most {
            return false;
        }
        self.flits += u32::from(count);
        let packet = Kept {
            number,
            is_response,
            flits: [0; MAX_PACKET_FLITS],
            count,
            at: 0,
        };
        self.coming.push((who, packet));
        true
    }

    /// The next flit of the packet of the input's channel `who` comes in. Whether it was the last.
    pub fn take_in(&mut self, who: u8, word: u64) -> bool {
        let found = self.coming.iter().position(|(own, _)| *own == who);
        let index = found.expect("there is room for a packet that comes in");
        let packet = &mut self.coming[index].1;
        packet.flits[usize::from(packet.at)] = word;
        packet.at += 1;
        if packet.at < packet.count {
            return false;
        }
        let (_, mut packet) = self.coming.swap_remove(index);
        packet.at = 0;
        self.waiting[usize::from(packet.is_response)].push_back(packet);
        true
    }

    /// Puts the first packet for which `goes` says yes where the crossbar takes it from, and throws
    /// away those before it of which it knows nothing. Packets to one processor stay in their order,
    /// since all of them go or none does. Returns what goes, and the flits thrown away.
    pub fn choose(
        &mut self,
        vc: usize,
        mut goes: impl FnMut(&Kept) -> Option<bool>,
    ) -> (Option<Kept>, u32) {
        let class = class(vc);
        if self.going[class].is_some() {
            return (None, 0);
        }
        let (mut at, mut thrown) = (0, 0);
        while let Some(packet) = self.waiting[class].get(at) {
            match goes(packet) {
                Some(true) => {
                    self.going[class] = self.waiting[class].remove(at);
                    break;
                }
                Some(false) => at += 1,
                None => {
                    thrown += u32::from(packet.count);
                    self.waiting[class].remove(at);
                }
            }
        }
        self.flits -= thrown;
        (self.going[class], thrown)
    }

    /// The packet that was to go next waits again, the first of all.
    pub fn put_back(&mut self, vc: usize) {
        if let Some(packet) = self.going[class(vc)].take() {
            debug_assert_eq!(packet.at, 0, "it has not begun to go");
            self.waiting[class(vc)].push_front(packet);
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
            *going = None;
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
        // Packets of several inputs come in at the same time.
        for word in [1, 2] {
            for who in [3, 4, 5] {
                let last = memory.take_in(who, u64::from(who) * 10 + word);
                assert_eq!(last, word == 2);
            }
        }
        assert!(memory.has_request(8) && !memory.has_request(9));
        let to_8 = |packet: &Kept| Some(packet.number == 8);
        let (going, _) = memory.choose(vc::REQUEST, to_8);
        assert_eq!(going.map(|packet| packet.header()), Some(41));
        memory.put_back(vc::REQUEST);
        assert!(memory.choose(vc::REQUEST, |_| Some(false)).0.is_none());
        let (going, thrown) = memory.choose(vc::REQUEST, |packet| match packet.number {
            8 => None,
            _ => Some(true),
        });
        assert_eq!((going.map(|packet| packet.header()), thrown), (Some(31), 2));
        assert_eq!(
            [(); 2].map(|()| memory.take_out(vc::REQUEST)),
            [31, 32],
            "as it came"
        );
        assert_eq!((memory.flits(), memory.is_busy()), (2, false));
        assert!(!memory.begin(1, (1, true), 10, 11), "there is an end to it");
    }
}
