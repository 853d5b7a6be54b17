//! Retries per lane, and the decision to give a lane up.

use phitwire_framing::carrier::lanes::{Lanes, MAX_LANES, Permutation};
use phitwire_framing::carrier::training::TrainingPattern;

use super::counters::LinkCounters;

/// Number of consecutive training frames without a recognisable pattern on a lane after which it
/// counts as lost.
const LOST_AFTER: u8 = 4;

/// Number of words kept of a rejected copy. Of a longer unit, such as another machine's packet, the
/// beginning suffices to compare lanes.
pub const MAX_COPY_WORDS: usize = 24;

/// Rejected copies kept. A packet link waits for the missing packet, so it has at most one.
const MAX_COPIES: usize = 16;

/// A rejected copy of a packet or set, kept until another copy shows which bits were wrong.
#[derive(Clone, Debug)]
struct Rejected {
    number: u64,
    len: usize,
    words: [u32; MAX_COPY_WORDS],
}

/// Watches an end's receive lanes. The LCB counts retries per lane and decommissions a noisy lane
/// above a threshold (BlackWidow sec. 7.7).
///
/// The CRC says that a packet is wrong, not where. The next copy shows where: each lane on whose
/// bits the copies differ is charged one retry. A second rejected copy is as informative as a good
/// one.
#[derive(Debug)]
pub struct LaneWatch {
    lanes: Lanes,
    active: u8,
    /// Active lanes at the start of the session.
    first: u8,
    /// Lane sets announced to the peer before the session began: bit n for set n.
    announced: u16,
    /// A frame on these lanes was accepted: from now on only this end removes lanes.
    settled: bool,
    /// Retries above which a lane is given up; 0: never.
    threshold: u32,
    retries: [u32; MAX_LANES],
    lost: [u8; MAX_LANES],
    /// Lanes with errors in the last pattern inspected.
    wrong: u8,
    /// Rejected copies, oldest first.
    rejected: Vec<Rejected>,
    /// Whether lanes were charged, or may have been lost, since the flag was last cleared.
    pub(crate) charged: bool,
}

impl LaneWatch {
    pub fn new(lanes: Lanes, active: u8, threshold: u32) -> Self {
        assert!(
            active & !lanes.all() == 0,
            "the mask has only lanes of the link"
        );
        Self {
            lanes,
            active,
            first: active,
            announced: 0,
            settled: false,
            threshold,
            retries: [0; MAX_LANES],
            lost: [0; MAX_LANES],
            wrong: 0,
            rejected: Vec::new(),
            charged: false,
        }
    }

    /// Records that each of `lanes` was charged with `retries`.
    pub fn note(&mut self, lanes: u8, retries: u32, counters: &mut LinkCounters) {
        debug_assert!(
            lanes & !self.first == 0,
            "only lanes of this session are charged"
        );
        self.charged |= lanes != 0;
        for lane in 0..self.lanes.count() {
            counters.lane_retries[lane] += u64::from(lanes >> lane & 1) * u64::from(retries);
        }
    }

    /// Sets the lane sets announced to the peer during the handshake, one bit per set.
    pub fn set_announced(&mut self, announced: u16) {
        self.announced = announced;
    }

    /// Receive lanes, by the sender's numbers.
    #[inline]
    pub(crate) fn active(&self) -> u8 {
        self.active
    }

    /// Whether a rejected copy waits for another.
    #[inline]
    pub fn waits(&self) -> bool {
        !self.rejected.is_empty()
    }

    /// A packet or set failed its CRC; `words` are its wire words. Returns the lanes charged.
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
        debug_assert!(
            self.rejected.iter().all(|kept| kept.number != number),
            "the earlier copy was compared and dropped"
        );
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
        debug_assert!(self.rejected.len() < MAX_COPIES);
        let pairs = copy.words[..copy.len].iter().zip(words);
        let wrong = pairs.fold(0, |wrong, (bad, good)| wrong | (bad ^ good));
        self.charge(wrong)
    }

    /// Charges one retry to each lane that carries a bit of `wrong`.
    fn charge(&mut self, wrong: u32) -> u8 {
        let mut charged = 0;
        for lane in 0..self.lanes.count() as u8 {
            if wrong & self.lanes.bits_of(self.active, lane) != 0 {
                self.retries[usize::from(lane)] += 1;
                charged |= 1 << lane;
            }
        }
        charged
    }

    /// Inspects a training pattern that came through `cable`. Lanes with errors are too noisy for
    /// packets and are charged with the `frames` unreadable since the last pattern. Returns the
    /// lanes charged.
    pub(crate) fn inspect(
        &mut self,
        pattern: &TrainingPattern,
        cable: &Permutation,
        frames: u32,
    ) -> u8 {
        let mut charged = 0;
        let (lanes, sent) = (self.lanes, self.lanes.pattern());
        let found = lanes.read_pattern(pattern);
        let order = cable.order();
        for (physical, lane) in order.into_iter().enumerate().take(lanes.count()) {
            let index = usize::from(lane);
            if self.active & (1 << lane) == 0 {
                continue;
            }
            let flip = if cable.invert()[physical] {
                u32::MAX
            } else {
                0
            };
            let mask = lanes.bits_of(lanes.all(), 0);
            let wrong = lanes
                .words(pattern)
                .zip(lanes.words(&sent))
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
        debug_assert!(
            charged & !self.active == 0,
            "only active lanes are inspected"
        );
        self.wrong = charged;
        charged
    }

    /// Called when nothing can be read: raises the retries of every lane with errors in the last
    /// pattern above the threshold. Returns false if no lane had errors, or if lanes are never
    /// given up.
    pub(crate) fn condemn(&mut self) -> bool {
        let noisy = self.wrong & self.active;
        if self.threshold == 0 || noisy == 0 {
            return false;
        }
        for lane in (0..self.lanes.count()).filter(|lane| noisy & (1 << lane) != 0) {
            self.retries[lane] = self.retries[lane].max(self.threshold.saturating_add(1));
        }
        true
    }

    /// Whether a frame on `lanes` may be the peer's. The receiver alone decides which lanes to
    /// drop, so a frame on other lanes predates that decision or is forged. Only at the start of a
    /// session may the ends differ, and only by what this end announced before it lost the peer
    /// again.
    #[inline]
    pub(crate) fn may_come_on(&self, lanes: u8) -> bool {
        // The peer applies our announcements one after another: fewer lanes may be left than in any
        // set announced.
        let is_left = |announced: &u8| {
            self.announced & 1 << announced != 0 && announced & self.active == lanes
        };
        let all = self.lanes.all();
        lanes == self.active
            || !self.settled && lanes != 0 && (1..=all).any(|announced| is_left(&announced))
    }

    /// Whether a frame on `lanes`, which [`Self::may_come_on`] excludes now, may be a late one that
    /// this session's peer sent before a lane was given up.
    pub(crate) fn may_be_old(&self, lanes: u8) -> bool {
        lanes & !self.first == 0 && lanes & self.active == self.active
    }

    /// A frame on `lanes` was accepted.
    #[inline]
    pub fn settle(&mut self, lanes: u8) {
        debug_assert!(
            lanes != 0 && lanes & !self.active == 0,
            "no lane rejoins the session"
        );
        self.settled = true;
        if lanes != self.active {
            self.active = lanes;
            self.rejected.clear();
        }
    }

    /// Gives up the worst lane that is lost or above the threshold, if any; returns it.
    pub(crate) fn decommission(&mut self) -> Option<u8> {
        let beyond = |lane: &u8| {
            let index = usize::from(*lane);
            let too_noisy = self.threshold != 0 && self.retries[index] > self.threshold;
            self.active & (1 << lane) != 0 && (too_noisy || self.lost[index] >= LOST_AFTER)
        };
        let worst = (0..self.lanes.count() as u8)
            .filter(beyond)
            .max_by_key(|lane| {
                (
                    self.lost[usize::from(*lane)],
                    self.retries[usize::from(*lane)],
                )
            })?;
        self.active &= !(1 << worst);
        debug_assert!(self.active & !self.first == 0, "lanes only leave a session");
        self.rejected.clear();
        Some(worst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANES: Lanes = Lanes::new(3, 24);

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
        let mut lanes = LaneWatch::new(LANES, 7, 2);
        for bit in [1, 4, 7] {
            assert_eq!(lanes.rejected(9, damaged(bit)), 0);
            assert_eq!(
                lanes.accepted(9, packet()),
                0b010,
                "of three lanes, lane 1 carries bits 1, 4, 7"
            );
        }
        assert_eq!(lanes.decommission(), Some(1));
        assert_eq!(lanes.active(), 0b101);
        assert_eq!(lanes.decommission(), None);
        lanes.rejected(9, damaged(1));
        assert_eq!(
            lanes.accepted(9, packet()),
            0b100,
            "of two lanes, the second carries bit 1"
        );
    }

    #[test]
    fn copies_of_different_packets_are_not_compared() {
        let mut lanes = LaneWatch::new(LANES, 7, 1);
        for _ in 0..3 {
            lanes.rejected(9, damaged(0));
            assert_eq!(lanes.accepted(10, packet()), 0);
        }
        assert_eq!(lanes.decommission(), None);
    }

    #[test]
    fn two_bad_copies_identify_both_lanes() {
        let mut lanes = LaneWatch::new(LANES, 7, 100);
        lanes.rejected(9, damaged(0));
        assert_eq!(lanes.rejected(9, damaged(2)), 0b101);
    }

    #[test]
    fn pattern_without_a_lane_gives_it_up_behind_any_cable() {
        let cable = Permutation::new([2, 0, 1], [false, true, false]).unwrap();
        let mut lanes = LaneWatch::new(LANES, 7, 1_000);
        let mut whole = LANES.pattern();
        LANES.swizzle_area(&mut whole, 7, &cable);
        for _ in 0..10 {
            assert_eq!(lanes.inspect(&whole, &cable, 1), 0);
        }
        assert_eq!(lanes.decommission(), None);
        // The sender's lane 0 falls silent.
        let mut cut = LANES.pattern();
        LANES.map_area(&mut cut, |wire| wire & !LANES.bits_of(7, 0));
        LANES.swizzle_area(&mut cut, 7, &cable);
        for _ in 0..LOST_AFTER {
            assert_eq!(lanes.decommission(), None);
            assert_eq!(lanes.inspect(&cut, &cable, 1), 0b001);
        }
        assert_eq!(lanes.decommission(), Some(0));
        // A decommissioned lane is not inspected, however many patterns arrive.
        for _ in 0..1_000 {
            assert_eq!(lanes.inspect(&cut, &cable, 1), 0);
        }
        assert_eq!(lanes.decommission(), None);
    }

    #[test]
    fn fewer_lanes_are_believed_until_a_frame_was_accepted_and_others_are_not() {
        let mut lanes = LaneWatch::new(LANES, 0b110, 0);
        assert!(!lanes.may_come_on(0b111) && !lanes.may_come_on(0b001));
        assert!(
            !lanes.may_come_on(0b100),
            "the peer does not know of the lane"
        );
        lanes.set_announced(1 << 0b110 | 1 << 0b100);
        assert!(lanes.may_come_on(0b110) && lanes.may_come_on(0b100));
        lanes.settle(0b100);
        assert_eq!(lanes.active(), 0b100);
        // The peer received both announcements and is left with their intersection.
        let mut lanes = LaneWatch::new(LANES, 0b101, 0);
        lanes.set_announced(1 << 0b011 | 1 << 0b101);
        assert!(lanes.may_come_on(0b001) && !lanes.may_come_on(0b100));
        assert!(!lanes.may_come_on(0) && !lanes.may_come_on(0b011));
        let mut lanes = LaneWatch::new(LANES, 0b111, 0);
        lanes.settle(0b111);
        assert!(!lanes.may_come_on(0b011) && lanes.may_come_on(0b111));
    }

    #[test]
    fn threshold_zero_is_never() {
        let mut lanes = LaneWatch::new(LANES, 7, 0);
        for _ in 0..100 {
            lanes.rejected(9, damaged(1));
            assert_eq!(lanes.accepted(9, packet()), 0b010);
        }
        assert_eq!(lanes.decommission(), None);
    }
}
