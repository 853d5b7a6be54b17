//! An ideal link: phits and credits arrive unchanged after the link's delay.

use core::array;

use phitwire_framing::yarc::packet::{MAX_PACKET_PHITS, Vc, head_vc};
use phitwire_framing::yarc::phit::Phit;

use super::output_credits::OutputCredits;
use super::phit_ring::PhitRing;
use phitwire::kit::below;

/// Slots of an input queue per virtual channel: 256 phits (BlackWidow sec. 4.2), for both together
/// in our reading.
pub const INPUT_PHITS: u32 = 128;
const PACKET_PHITS: u32 = MAX_PACKET_PHITS as u32;

type IdealRing = PhitRing<[Phit; INPUT_PHITS as usize]>;

/// Credits for all slots of the input queue at the far end of an ideal link, for packets of up to
/// `max_packet_phits`: the sending half of one of the [`IdealEnds`].
pub fn ideal_credits(max_packet_phits: u8) -> OutputCredits {
    let mut credits = OutputCredits::new([INPUT_PHITS; 2], max_packet_phits.into());
    for vc in Vc::ALL {
        credits.give(vc, INPUT_PHITS);
    }
    credits
}

/// The ends of a chip's links in virtual time without bytes: the buffers of an
/// [`InputQueue`](super::InputQueue) and the credits of an [`Lcb`](super::Lcb) for each port,
/// without frames, CRC, retry, sessions and lanes.
///
/// Nothing is ever rejected. So no phit is taken back and no credit withheld, taking a phit frees
/// its slot at once, and credits cover every slot, including the longest packet that an
/// [`InputQueue`](super::InputQueue) reserves for the rest of a rejected one. The owner decides
/// what travels on a link and when it arrives.
///
/// They are stored together rather than per port, since one thread runs all ports of a chip and
/// mostly needs the buffers of one virtual channel.
#[derive(Clone, Debug)]
pub struct IdealEnds<const PORTS: usize> {
    /// Rings by virtual channel and port.
    rings: [Box<[IdealRing; PORTS]>; 2],
    credits: Box<[OutputCredits; PORTS]>,
    /// Virtual channel of the packet arriving, or last arrived, at each port.
    coming: u64,
    refused: u64,
}

impl<const PORTS: usize> Default for IdealEnds<PORTS> {
    fn default() -> Self {
        let rings = || {
            let rings = vec![IdealRing::fixed(); PORTS].into_boxed_slice();
            rings.try_into().expect("a ring for every port")
        };
        Self {
            rings: [rings(), rings()],
            credits: Box::new(array::from_fn(|_| ideal_credits(PACKET_PHITS as u8))),
            coming: 0,
            refused: 0,
        }
    }
}

impl<const PORTS: usize> IdealEnds<PORTS> {
    /// Ends of idle links for packets of up to `max_packet_phits` phits.
    pub fn for_packets(max_packet_phits: u8) -> Self {
        let credits = array::from_fn(|_| ideal_credits(max_packet_phits));
        Self {
            credits: Box::new(credits),
            ..Self::default()
        }
    }

    #[inline]
    fn ring(&self, port: usize, vc: Vc) -> &IdealRing {
        &self.rings[vc.index()][below::<PORTS>(port)]
    }

    #[inline]
    fn ring_mut(&mut self, port: usize, vc: Vc) -> &mut IdealRing {
        &mut self.rings[vc.index()][below::<PORTS>(port)]
    }

    // Receiving.

    /// Accepts the phits that arrive in `cycles` (a bit mask); `phits` is indexed by cycle. Returns
    /// the cycles of those that had room, per virtual channel; the others are
    /// [counted](Self::refused).
    #[inline]
    pub fn receive(&mut self, port: usize, cycles: u64, phits: &[u32]) -> [u64; 2] {
        let mut taken = [0; 2];
        let mut vc = self.coming(port);
        let mut left = cycles;
        while left != 0 {
            let first = Phit::from_bits(phits[left.trailing_zeros() as usize]);
            if first.is_head() {
                vc = head_vc(first.content());
            }
            let ring = &mut self.rings[vc.index()][below::<PORTS>(port)];
            ring.rewind();
            let mut phit = first;
            // Up to the next head.
            loop {
                if ring.len() < INPUT_PHITS {
                    ring.push(phit);
                    taken[vc.index()] |= left & left.wrapping_neg();
                } else {
                    self.refused += 1;
                }
                left &= left - 1;
                if left == 0 {
                    break;
                }
                phit = Phit::from_bits(phits[left.trailing_zeros() as usize]);
                if phit.is_head() {
                    break;
                }
            }
        }
        self.coming = self.coming & !(1 << port) | (vc.index() as u64) << port;
        taken
    }

    /// The next phit of `vc`, without taking it.
    #[inline]
    pub fn front(&self, port: usize, vc: Vc) -> Option<Phit> {
        self.ring(port, vc).nth(0)
    }

    /// The phit of `vc` after the next one, without taking it.
    #[inline]
    pub fn second(&self, port: usize, vc: Vc) -> Option<Phit> {
        self.ring(port, vc).nth(1)
    }

    /// The phit `behind` positions after the next one of `vc`, without taking it.
    pub fn nth(&self, port: usize, vc: Vc, behind: usize) -> Option<Phit> {
        self.ring(port, vc).nth(u32::try_from(behind).ok()?)
    }

    /// Takes the next phit of `vc`; the owner must return a credit for it.
    #[inline]
    pub fn pop(&mut self, port: usize, vc: Vc) -> Option<Phit> {
        self.ring_mut(port, vc).pop()
    }

    /// Phits of `vc` in an input queue.
    #[inline]
    pub fn len(&self, port: usize, vc: Vc) -> u32 {
        self.ring(port, vc).len()
    }

    /// Phits in all input queues.
    pub fn queued(&self) -> u64 {
        let rings = self.rings.iter().flat_map(|rings| rings.iter());
        rings.map(|ring| u64::from(ring.len())).sum()
    }

    /// Virtual channel of the packet arriving, or last arrived.
    #[inline]
    pub fn coming(&self, port: usize) -> Vc {
        Vc::from_index((self.coming >> port) as usize)
    }

    /// Number of phits that had no room.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    // Sending.

    #[inline]
    pub fn credits(&self, port: usize) -> &OutputCredits {
        &self.credits[below::<PORTS>(port)]
    }

    #[inline]
    pub fn credits_mut(&mut self, port: usize) -> &mut OutputCredits {
        &mut self.credits[below::<PORTS>(port)]
    }

    /// Adds a single credit of `vc`. Returns whether there is now room for a packet where there was
    /// none before.
    #[inline]
    pub fn give(&mut self, port: usize, vc: Vc) -> bool {
        let credits = &mut self.credits[below::<PORTS>(port)];
        let lacked = credits.lacking(vc);
        credits.give(vc, 1);
        lacked == 1
    }

    /// Sends the next phit of a packet now; returns its virtual channel. A packet may begin only if
    /// there is [room](OutputCredits::has_room) for it.
    ///
    /// # Panics
    /// If there is no credit.
    #[inline]
    pub fn push(&mut self, port: usize, phit: Phit) -> Vc {
        let credits = &mut self.credits[below::<PORTS>(port)];
        if phit.is_head() {
            credits.begin(head_vc(phit.content()));
        }
        credits.take(1)
    }
}

#[cfg(test)]
impl<const PORTS: usize> IdealEnds<PORTS> {
    /// Drops the last phit of some input queue. Returns whether there was one.
    pub(crate) fn lose_last(&mut self) -> bool {
        let mut rings = self.rings.iter_mut().flat_map(|rings| rings.iter_mut());
        let ring = rings.find(|ring| ring.len() > 0);
        ring.is_some_and(|ring| {
            ring.cut(ring.tail().wrapping_sub(1));
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::PhitProfile;
    use phitwire_framing::yarc::phit::PhitKind;

    const PORT: usize = 5;

    fn packet(vc: Vc, phits: u32) -> impl Iterator<Item = Phit> {
        (0..phits).map(move |i| match i {
            0 => Phit::new(PhitKind::Head, (vc.index() as u32) << 15),
            _ if i + 1 < phits => Phit::new(PhitKind::Body, i),
            _ => Phit::new(PhitKind::Eop, 0),
        })
    }

    #[test]
    fn the_queue_is_as_deep_as_that_of_the_chips_own_links() {
        let offered = PhitProfile::paper().input_phits_per_vc;
        assert_eq!(offered + PACKET_PHITS, INPUT_PHITS);
        let credits = ideal_credits(PACKET_PHITS as u8);
        assert_eq!(
            Vc::ALL.map(|vc| credits.available(vc)),
            [INPUT_PHITS; 2],
            "credits cover every slot"
        );
    }

    #[test]
    fn taking_a_phit_frees_its_slot_at_once() {
        let (mut near, mut far) = (IdealEnds::<8>::default(), IdealEnds::<8>::default());
        for phit in packet(Vc::Response, 13).take(7) {
            assert_eq!(near.push(PORT, phit), Vc::Response);
            assert_eq!(
                far.receive(PORT, 0b100, &[0, 0, phit.to_bits()]),
                [0, 0b100]
            );
            assert_eq!(far.coming(PORT), Vc::Response);
        }
        assert_eq!(near.credits(PORT).available(Vc::Response), INPUT_PHITS - 7);
        assert_eq!((far.len(PORT, Vc::Response), far.queued()), (7, 7));
        assert!(far.front(PORT, Vc::Response).is_some_and(Phit::is_head));
        assert_eq!(
            far.second(PORT, Vc::Response),
            packet(Vc::Response, 13).nth(1),
            "hash bits"
        );
        for back in 1..=7 {
            // Credits return although the packet's end has not arrived.
            assert!(far.pop(PORT, Vc::Response).is_some());
            near.give(PORT, Vc::Response);
            let left = INPUT_PHITS - 7 + back;
            assert_eq!(near.credits(PORT).available(Vc::Response), left);
        }
        assert_eq!(far.pop(PORT, Vc::Response), None);
        assert_eq!(near.credits(PORT).available(Vc::Request), INPUT_PHITS);
    }

    #[test]
    fn room_for_a_packet_is_reported_once() {
        let mut end = IdealEnds::<8>::default();
        let vc = Vc::Request;
        for phit in (0..6).flat_map(|_| packet(vc, PACKET_PHITS)) {
            end.push(PORT, phit);
        }
        assert_eq!(end.credits(PORT).available(vc), 14);
        assert!(!end.credits(PORT).has_room(vc) && end.credits(PORT).has_room(Vc::Response));
        let reports: Vec<bool> = (0..8).map(|_| end.give(PORT, vc)).collect();
        assert_eq!(
            reports,
            [false, false, false, false, true, false, false, false]
        );
        assert!(end.credits(PORT).is_ample(vc, 3) && !end.credits(PORT).is_ample(vc, 4));
    }

    #[test]
    fn arrivals_of_a_window_are_split_by_channel_and_cycle() {
        let mut end = IdealEnds::<8>::default();
        let mut window = [0; 64];
        let packets = packet(Vc::Request, 5).chain(packet(Vc::Response, 4));
        let mut arrive = |cycle: usize, phit: Phit| window[cycle] = phit.to_bits();
        // The second packet begins where the first ends, and has a gap.
        for (cycle, phit) in [3, 4, 5, 6, 7, 8, 20, 21, 63].into_iter().zip(packets) {
            arrive(cycle, phit);
        }
        let cycles = [0b1_1111 << 3, 1 << 8 | 0b11 << 20 | 1 << 63];
        assert_eq!(end.receive(PORT, cycles[0] | cycles[1], &window), cycles);
        for vc in Vc::ALL {
            let come: Vec<Phit> = core::iter::from_fn(|| end.pop(PORT, vc)).collect();
            let sent = packet(vc, 5 - vc.index() as u32);
            assert_eq!(come, sent.collect::<Vec<_>>());
        }
        assert_eq!(end.receive(PORT, 0, &window), [0; 2]);
    }

    #[test]
    fn refused_flits_are_counted() {
        let mut end = IdealEnds::<8>::default();
        let phits = (0..20).flat_map(|_| packet(Vc::Request, 13));
        let accepted = phits.filter(|phit| end.receive(PORT, 1, &[phit.to_bits()]) == [1, 0]);
        assert_eq!(accepted.count(), INPUT_PHITS as usize);
        assert_eq!(end.refused(), u64::from(260 - INPUT_PHITS));
    }

    #[test]
    #[should_panic(expected = "phit sent without a credit")]
    fn nothing_is_sent_without_credits() {
        let mut end = IdealEnds::<8>::default();
        for phit in packet(Vc::Request, INPUT_PHITS + 1) {
            end.push(PORT, phit);
        }
    }

    #[test]
    #[should_panic(expected = "more credits returned than taken")]
    fn no_more_credits_come_back_than_were_taken() {
        IdealEnds::<8>::default().give(PORT, Vc::Request);
    }
}
