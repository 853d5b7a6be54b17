//! Retries counted per lane, and the decision to do without one.

use phitwire_framing::carrier::lanes::{ALL_LANES, LANES, Permutation, bits_of_lane};
use phitwire_framing::carrier::training::{PATTERN, TrainingPattern, read_lanes};

use super::counters::LinkCounters;

/// Training frames in a row in which nothing known came over a lane before it counts as lost.
const LOST_AFTER: u8 = 4;

/// Words of 24 bits that what is checked as a whole may have: a set has 18, a packet up to 19.
pub(crate) const MAX_UNIT_WORDS: usize = 19;

/// Words of a rejected copy that are kept: of a unit that is longer, as a packet of another machine
/// may be, its beginning tells of lanes.
const MAX_COPY_WORDS: usize = 24;

/// Rejected copies kept. A link of packets, which waits for one before it goes on, has one at most.
const MAX_COPIES: usize = 16;

/// The rejected copy of a packet or set, kept until a better one shows which bits were wrong.
#[derive(Clone, Debug)]
struct Rejected {
    number: u64,
    len: usize,
    words: [u32; MAX_COPY_WORDS],
}

/// Watches the lanes that one end receives on (paper, section 7.7: the LCB counts the number of
/// retries on a per-lane basis; above a threshold the noisy lane is decommissioned).
///
/// The CRC says that a packet is wrong, not where. The place shows when the good copy
/// arrives: the lanes on whose bits the copies differ are charged with one retry each. Two rejected
/// copies that differ tell as much.
#[derive(Debug)]
pub struct LaneWatch {
    active: u8,
    /// Those that the session began with.
    first: u8,
    /// What the peer was told before the session began: bit n for the lanes n.
    told: u8,
    /// A frame on these lanes was accepted: from now on only this end takes one away.
    settled: bool,
    /// 0: never.
    threshold: u32,
    retries: [u32; LANES],
    lost: [u8; LANES],
    /// Lanes that were wrong in the pattern last looked at.
    wrong: u8,
    /// The oldest first.
    rejected: Vec<Rejected>,
    /// Lanes were charged, or may have been lost, since the flag was last cleared.
    pub charged: bool,
}

impl LaneWatch {
    pub fn new(active: u8, threshold: u32) -> Self {
        Self {
            active,
            first: active,
            told: 0,
            settled: false,
            threshold,
            retries: [0; LANES],
            lost: [0; LANES],
            wrong: 0,
            rejected: Vec::new(),
            charged: false,
        }
    }

    /// Notes that these lanes were charged with so many retries.
    pub fn note(&mut self, lanes: u8, retries: u32, counters: &mut LinkCounters) {
        self.charged |= lanes != 0;
        for lane in 0..LANES {
            counters.lane_retries[lane] += u64::from(lanes >> lane & 1) * u64::from(retries);
        }
    }

    /// While the session was agreed on, the peer was told these lanes, one bit each.
    pub fn told(&mut self, told: u8) {
        self.told = told;
    }

    /// The lanes received on, by the sender's numbers.
    #[inline]
    pub fn active(&self) -> u8 {
        self.active
    }

    /// Whether a rejected copy waits for a better one.
    #[inline]
    pub fn waits(&self) -> bool {
        !self.rejected.is_empty()
    }

    /// A packet or set failed its CRC; `words` are its bits as they travel, 24 at a time. Returns
    /// the lanes charged.
    pub fn rejected(&mut self, number: u64, words: impl Iterator<Item = u32> + Clone) -> u8 {
        let charged = self.accepted(number, words.clone());
        let mut copy = Rejected {
            number,
            len: 0,
            words: [0; MAX_COPY_WORDS],
        };
        for (kept, word) in copy.words.iter_mut().zip(words) {
            *kept = word;
            copy.len += 1;
        }
        if self.rejected.len() == MAX_COPIES {
            self.rejected.remove(0);
        }
        self.rejected.push(copy);
        charged
    }

    /// A packet or set passed its CRC. Returns the lanes charged.
    pub fn accepted(&mut self, number: u64, words: impl Iterator<Item = u32>) -> u8 {
        let Some(index) = self.rejected.iter().position(|copy| copy.number == number) else {
            return 0;
        };
        let copy = self.rejected.remove(index);
        let pairs = copy.words[..copy.len].iter().zip(words);
        let wrong = pairs.fold(0, |wrong, (bad, good)| wrong | (bad ^ good));
        self.charge(wrong)
    }

    /// Charges one retry to each lane that carries one of the bits of `wrong`.
    fn charge(&mut self, wrong: u32) -> u8 {
        let mut charged = 0;
        for lane in 0..LANES as u8 {
            if wrong & bits_of_lane(self.active, lane) != 0 {
                self.retries[usize::from(lane)] += 1;
                charged |= 1 << lane;
            }
        }
        charged
    }

    /// A training pattern came through `cable`: its errors tell of lanes too noisy for packets,
    /// which are charged with the `frames` that could not be read since the last one. Returns the
    /// lanes charged.
    pub fn inspect(&mut self, pattern: &TrainingPattern, cable: &Permutation, frames: u32) -> u8 {
        let mut charged = 0;
        let found = read_lanes(pattern);
        for (physical, lane) in cable.order().into_iter().enumerate() {
            let index = usize::from(lane);
            if self.active & (1 << lane) == 0 {
                continue;
            }
            let flip = if cable.invert()[physical] {
                u32::MAX
            } else {
                0
            };
            let mask = bits_of_lane(ALL_LANES, 0);
            let wrong = pattern
                .iter()
                .zip(&PATTERN)
                .any(|(got, sent)| (((got ^ flip) >> physical) ^ (sent >> lane)) & mask != 0);
            if wrong {
                self.retries[index] = self.retries[index].saturating_add(frames);
                charged |= 1 << lane;
            }
            self.lost[index] = if found[physical].is_some() {
                0
            } else {
                self.lost[index].saturating_add(1)
            };
        }
        self.wrong = charged;
        charged
    }

    /// Nothing at all can be read any longer: a lane that the pattern shows to be noisy is as good
    /// as over the threshold, whatever that is. False when there is none, or lanes are never given
    /// up.
    pub fn condemn(&mut self) -> bool {
        let noisy = self.wrong & self.active;
        if self.threshold == 0 || noisy == 0 {
            return false;
        }
        for lane in (0..LANES).filter(|lane| noisy & (1 << lane) != 0) {
            self.retries[lane] = self.retries[lane].max(self.threshold.saturating_add(1));
        }
        true
    }

    /// Whether a frame on `lanes` may be the peer's. Which lanes go is the receiver's decision
    /// alone, so a frame on others was sent before the peer heard of it, or never by the peer. Only
    /// at the beginning of a session may the ends differ: on what this end told before it lost
    /// sight of the peer once more, and on nothing else.
    #[inline]
    pub fn may_come_on(&self, lanes: u8) -> bool {
        // The peer leaves lanes, one after another told: what is left may be less than any set that
        // was told.
        let is_left = |told: &u8| self.told & 1 << told != 0 && told & self.active == lanes;
        lanes == self.active
            || !self.settled && lanes != 0 && (1..=ALL_LANES).any(|told| is_left(&told))
    }

    /// Whether a frame on `lanes`, which may not come on them now, may be one that the peer of this
    /// session sent before a lane was given up, and that was late.
    pub fn may_be_old(&self, lanes: u8) -> bool {
        lanes & !self.first == 0 && lanes & self.active == self.active
    }

    /// A frame on `lanes` was accepted.
    #[inline]
    pub fn settle(&mut self, lanes: u8) {
        self.settled = true;
        if lanes != self.active {
            self.active = lanes;
            self.rejected.clear();
        }
    }

    /// Gives up the worst of the lanes above the threshold, if any; returns it.
    pub fn decommission(&mut self) -> Option<u8> {
        let beyond = |lane: &u8| {
            let index = usize::from(*lane);
            let too_noisy = self.threshold != 0 && self.retries[index] > self.threshold;
            self.active & (1 << lane) != 0 && (too_noisy || self.lost[index] >= LOST_AFTER)
        };
        let worst = (0..LANES as u8).filter(beyond).max_by_key(|lane| {
            (
                self.lost[usize::from(*lane)],
                self.retries[usize::from(*lane)],
            )
        })?;
        self.active &= !(1 << worst);
        self.rejected.clear();
        Some(worst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire_framing::carrier::lanes::swizzle;

    fn packet() -> impl Iterator<Item = u32> + Clone {
        (0..6).map(|i| i * 0x1111)
    }

    fn damaged(bit: u32) -> impl Iterator<Item = u32> + Clone {
        packet()
            .enumerate()
            .map(move |(i, word)| word ^ u32::from(i == 3) << bit)
    }

    #[test]
    fn good_copy_shows_the_lane_of_the_bad_one() {
        let mut lanes = LaneWatch::new(7, 2);
        for bit in [1, 4, 7] {
            assert_eq!(lanes.rejected(9, damaged(bit)), 0);
            assert_eq!(
                lanes.accepted(9, packet()),
                0b010,
                "bits 1, 4, 7 are lane 1's of three"
            );
        }
        assert_eq!(lanes.decommission(), Some(1));
        assert_eq!(lanes.active(), 0b101);
        assert_eq!(lanes.decommission(), None);
        lanes.rejected(9, damaged(1));
        assert_eq!(
            lanes.accepted(9, packet()),
            0b100,
            "bit 1 of two lanes is the second's"
        );
    }

    #[test]
    fn copies_of_different_packets_are_not_compared() {
        let mut lanes = LaneWatch::new(7, 1);
        for _ in 0..3 {
            lanes.rejected(9, damaged(0));
            assert_eq!(lanes.accepted(10, packet()), 0);
        }
        assert_eq!(lanes.decommission(), None);
    }

    #[test]
    fn two_bad_copies_tell_too() {
        let mut lanes = LaneWatch::new(7, 100);
        lanes.rejected(9, damaged(0));
        assert_eq!(lanes.rejected(9, damaged(2)), 0b101);
    }

    #[test]
    fn pattern_without_a_lane_gives_it_up_behind_any_cable() {
        let cable = Permutation::new([2, 0, 1], [false, true, false]).unwrap();
        let mut lanes = LaneWatch::new(7, 1_000);
        let whole = PATTERN.map(|wire| swizzle(wire, 7, &cable));
        for _ in 0..10 {
            assert_eq!(lanes.inspect(&whole, &cable, 1), 0);
        }
        assert_eq!(lanes.decommission(), None);
        // The sender's lane 0 falls silent.
        let cut = PATTERN.map(|wire| swizzle(wire & !bits_of_lane(7, 0), 7, &cable));
        for _ in 0..LOST_AFTER {
            assert_eq!(lanes.decommission(), None);
            assert_eq!(lanes.inspect(&cut, &cable, 1), 0b001);
        }
        assert_eq!(lanes.decommission(), Some(0));
        // A lane out of use is not looked at, however often the pattern comes.
        for _ in 0..1_000 {
            assert_eq!(lanes.inspect(&cut, &cable, 1), 0);
        }
        assert_eq!(lanes.decommission(), None);
    }

    #[test]
    fn fewer_lanes_are_believed_until_a_frame_was_accepted_and_others_are_not() {
        let mut lanes = LaneWatch::new(0b110, 0);
        assert!(!lanes.may_come_on(0b111) && !lanes.may_come_on(0b001));
        assert!(!lanes.may_come_on(0b100), "nobody told the peer");
        lanes.told(1 << 0b110 | 1 << 0b100);
        assert!(lanes.may_come_on(0b110) && lanes.may_come_on(0b100));
        lanes.settle(0b100);
        assert_eq!(lanes.active(), 0b100);
        // The peer was told one after another, and is left with what is in both.
        let mut lanes = LaneWatch::new(0b101, 0);
        lanes.told(1 << 0b011 | 1 << 0b101);
        assert!(lanes.may_come_on(0b001) && !lanes.may_come_on(0b100));
        assert!(!lanes.may_come_on(0) && !lanes.may_come_on(0b011));
        let mut lanes = LaneWatch::new(0b111, 0);
        lanes.settle(0b111);
        assert!(!lanes.may_come_on(0b011) && lanes.may_come_on(0b111));
    }

    #[test]
    fn threshold_zero_is_never() {
        let mut lanes = LaneWatch::new(7, 0);
        for _ in 0..100 {
            lanes.rejected(9, damaged(1));
            assert_eq!(lanes.accepted(9, packet()), 0b010);
        }
        assert_eq!(lanes.decommission(), None);
    }
}
