//! The targets of block transfers, and how much each may have of what all of them share.
//!
//! What a transfer has outstanding to a target that has died stays so until it times out. So a
//! target has at most a [`SILENT_PARTS`]th of what is left while it does not answer, and one that
//! answers may have all, but others that do have some packets beyond the window. Transfers under
//! way are as few: see [`SLOT_PARTS`]. (Thresholds of that kind share the buffers of switches:
//! Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches".)

use std::collections::BTreeMap;

use phitwire_framing::aries::flit::NodeId;

use super::bte::{CHANNELS, MAX_QUEUED_TRANSFERS};
use super::transfer_slots::MAX_UNDER_WAY;
use phitwire::time::{Duration, Time};

/// For each part of one that does not answer, or has not answered yet, so many are left.
const SILENT_PARTS: u32 = 2;
/// Of the places for transfers under way, a target that answers may have so many for each that is
/// left.
const SLOT_PARTS: u32 = 3;
/// Places and packets beyond the window that only targets that answer may take, however many others
/// there are: an eighth of the places, half of those packets.
const PLACES_KEPT: u32 = MAX_UNDER_WAY as u32 / 8;
/// A target whose last answer is older is not known to answer. Far longer than any round trip, and
/// what is wrongly taken for silent loses nothing but one.
const RECENT: Duration = Duration::from_ms(100);
/// Targets that are remembered. More than there can be transfers.
const MOST_TARGETS: usize = 2048;
const _: () = assert!(MOST_TARGETS > CHANNELS * MAX_QUEUED_TRANSFERS + MAX_UNDER_WAY);

/// A target, by its place among those that are remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TargetIndex(u16);

#[derive(Clone, Copy, Debug)]
struct Target {
    node: NodeId,
    /// Transfers to it that are queued or under way.
    open: u32,
    /// Of these, those under way.
    under_way: u32,
    /// Their packets that are not answered.
    in_flight: u32,
    /// When it answered last, if no request has timed out since.
    heard: Option<Time>,
    /// Time of its last answer.
    answered: Option<Time>,
}

/// Which targets have answered nothing for a whole time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// The target of the packet that timed out.
    Target,
    /// All targets: the NIC hears nothing.
    All,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Targets {
    all: Vec<Target>,
    places: BTreeMap<u32, TargetIndex>,
    /// Targets with transfers that are queued or under way.
    in_use: usize,
    /// Time of the last answer of any target.
    answered: Option<Time>,
    under_way: u32,
    in_flight: u32,
    /// Packets that all transfers may have outstanding.
    window: u32,
    /// Packets beyond it, for targets that answer and have no more than that, and for one to each.
    spare: u32,
}

/// Whether a target that does not answer and `has` so much may have more while so much is `left`.
#[inline]
const fn may_have(has: u32, left: u32) -> bool {
    has == 0 && left > 0 || has * SILENT_PARTS < left
}

impl Target {
    #[inline]
    fn answers(&self, now: Time) -> bool {
        self.heard.is_some_and(|heard| now < heard + RECENT)
    }
}

impl Targets {
    /// None yet; all of them share `window` packets, and those that answer and have few `spare` ones.
    pub(super) fn new(window: u32, spare: u32) -> Self {
        Self {
            all: Vec::new(),
            places: BTreeMap::new(),
            in_use: 0,
            answered: None,
            under_way: 0,
            in_flight: 0,
            window,
            spare,
        }
    }

    /// A transfer to `node` is queued.
    pub(super) fn enter(&mut self, node: NodeId) -> TargetIndex {
        let index = match self.places.get(&node.bits()) {
            Some(&index) => index,
            None => self.remember(node),
        };
        let target = self.at(index);
        target.open += 1;
        self.in_use += usize::from(target.open == 1);
        index
    }

    #[cold]
    fn remember(&mut self, node: NodeId) -> TargetIndex {
        let target = Target {
            node,
            open: 0,
            under_way: 0,
            in_flight: 0,
            heard: None,
            answered: None,
        };
        let mut place = self.all.len();
        if place < MOST_TARGETS {
            self.all.push(target);
        } else {
            let idle = self.all.iter().position(|target| target.open == 0);
            place = idle.expect("there are more places than transfers");
            self.places.remove(&self.all[place].node.bits());
            self.all[place] = target;
        }
        let index = TargetIndex(place as u16);
        self.places.insert(node.bits(), index);
        index
    }

    /// A transfer has ended, or is not queued any more.
    pub(super) fn leave(&mut self, index: TargetIndex) {
        let target = self.at(index);
        target.open -= 1;
        self.in_use -= usize::from(target.open == 0);
    }

    fn at(&mut self, index: TargetIndex) -> &mut Target {
        &mut self.all[usize::from(index.0)]
    }

    /// Whether there are transfers to more than one.
    #[inline]
    pub(super) fn are_several(&self) -> bool {
        self.in_use > 1
    }

    /// Whether nobody may send anything.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.in_flight >= self.window + self.spare
    }

    /// Whether a packet may go to a target.
    #[inline]
    pub(super) fn has_room(&self, now: Time, index: TargetIndex) -> bool {
        let target = &self.all[usize::from(index.0)];
        let left = self.window.saturating_sub(self.in_flight);
        match target.answers(now) {
            true => left > 0 || target.in_flight < self.spare && !self.is_full(),
            false => may_have(target.in_flight, left) || target.in_flight == 0 && !self.is_full(),
        }
    }

    /// Whether a transfer to a target may begin.
    pub(super) fn may_begin(&self, now: Time, index: TargetIndex) -> bool {
        let target = &self.all[usize::from(index.0)];
        let left = MAX_UNDER_WAY as u32 - self.under_way;
        let has_place = match target.answers(now) {
            true => target.under_way < SLOT_PARTS * left,
            // Many that are dead may have a packet each. What has begun must be able to go on, so that
            // the bound is here, and not in `has_room`.
            false => {
                may_have(target.under_way, left)
                    && left > PLACES_KEPT
                    && self.in_flight < self.window + self.spare / 2
            }
        };
        has_place && self.has_room(now, index)
    }

    /// A transfer to it is under way.
    pub(super) fn begun(&mut self, index: TargetIndex) {
        self.under_way += 1;
        self.at(index).under_way += 1;
    }

    /// It is not any more.
    pub(super) fn ended(&mut self, index: TargetIndex) {
        self.under_way -= 1;
        self.at(index).under_way -= 1;
    }

    /// A packet to it is outstanding.
    #[inline]
    pub(super) fn sent(&mut self, index: TargetIndex) {
        self.in_flight += 1;
        self.at(index).in_flight += 1;
    }

    /// Records that a packet posted at `posted` was answered or timed out. After a time-out,
    /// returns what has been silent since `posted`, if anything.
    #[inline]
    pub(super) fn answered(
        &mut self,
        now: Time,
        index: TargetIndex,
        posted: Time,
        timed_out: bool,
    ) -> Option<Silence> {
        self.in_flight -= 1;
        let any = self.answered;
        let target = self.at(index);
        target.in_flight -= 1;
        if !timed_out {
            (target.heard, target.answered) = (Some(now), Some(now));
            self.answered = Some(now);
            return None;
        }
        target.heard = None;
        let is_silent = |answered: Option<Time>| answered.is_none_or(|at| at <= posted);
        match (is_silent(any), is_silent(target.answered)) {
            (true, _) => Some(Silence::All),
            (false, true) => Some(Silence::Target),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends to a target as much as it may have, and answers how much that is.
    fn fill(targets: &mut Targets, now: Time, index: TargetIndex) -> u32 {
        let mut count = 0;
        while targets.has_room(now, index) {
            targets.sent(index);
            count += 1;
        }
        count
    }

    #[test]
    fn many_dead_targets_leave_places_and_packets_to_one_that_answers() {
        let now = Time::ZERO + Duration::from_ms(1_000);
        let mut targets = Targets::new(896, 64);
        let all: Vec<_> = (0..200)
            .map(|node| targets.enter(NodeId::from_bits(node)))
            .collect();
        let (living, dead) = (all[0], &all[1..]);
        targets.sent(living);
        targets.answered(now, living, now, false);
        let begin = |targets: &mut Targets, index| {
            let may = targets.may_begin(now, index);
            if may {
                targets.begun(index);
                targets.sent(index);
            }
            may
        };
        let begun = dead.iter().filter(|&&one| begin(&mut targets, one)).count();
        assert_eq!(begun, 112, "seven eighths of the places");
        for _ in 0..12 {
            assert!(begin(&mut targets, living));
        }
        // The window is full of what went to one that has died since.
        let mut targets = Targets::new(896, 64);
        let all: Vec<_> = (0..200)
            .map(|node| targets.enter(NodeId::from_bits(node)))
            .collect();
        let (living, died, dead) = (all[0], all[1], &all[2..]);
        for index in [living, died] {
            targets.sent(index);
            targets.answered(now, index, now, false);
        }
        assert_eq!(fill(&mut targets, now, died), 896);
        let begun = dead.iter().filter(|&&one| begin(&mut targets, one)).count();
        assert_eq!(begun, 32, "half of what is beyond the window");
        assert_eq!(fill(&mut targets, now, living), 32);
    }

    #[test]
    fn who_answers_has_most_and_whoever_is_silent_leaves_most() {
        let now = Time::ZERO + Duration::from_ms(1_000);
        let mut targets = Targets::new(896, 64);
        let mut next = 0;
        let mut enter = |targets: &mut Targets, answers: bool| {
            next += 1;
            let index = targets.enter(NodeId::from_bits(next));
            if answers {
                targets.sent(index);
                targets.answered(now, index, now, false);
            }
            index
        };
        let living = enter(&mut targets, true);
        let dead = enter(&mut targets, false);
        assert_eq!(fill(&mut targets, now, dead), 299, "a third");
        assert_eq!(fill(&mut targets, now, living), 597, "all of the rest");
        // It is silent from now on: others have some all the same.
        for expected in [64, 0] {
            let other = enter(&mut targets, true);
            assert_eq!(fill(&mut targets, now, other), expected);
        }
        let last = enter(&mut targets, false);
        assert_eq!(fill(&mut targets, now, last), 0, "all is gone");
        // What times out is there again, and whoever it was for has little of it.
        for _ in 0..597 {
            targets.answered(now, living, now, true);
        }
        assert_eq!(fill(&mut targets, now, living), 178);
        assert_eq!(fill(&mut targets, now + RECENT, last), 119);
        assert!(!targets.is_full());
    }

    #[test]
    fn silence_is_noticed_and_forgiven() {
        let now = Time::ZERO + Duration::from_ms(1_000);
        let mut targets = Targets::new(90, 0);
        let index = targets.enter(NodeId::from_bits(7));
        targets.sent(index);
        targets.answered(now, index, now, false);
        let later = now + RECENT;
        assert_eq!(fill(&mut targets, later, index), 30);
        targets.answered(later, index, later, false);
        assert_eq!(fill(&mut targets, later, index), 61);
        // A window of one serves everybody in turn.
        let mut least = Targets::new(1, 0);
        let both = [1, 2].map(|node| least.enter(NodeId::from_bits(node)));
        for index in both {
            assert_eq!(fill(&mut least, now, index), 1);
            assert!(least.is_full());
            least.answered(now, index, now, true);
        }
    }

    #[test]
    fn more_targets_than_are_remembered() {
        let mut targets = Targets::new(8, 0);
        let first = targets.enter(NodeId::from_bits(1 << 17));
        for node in 0..3 * MOST_TARGETS as u32 {
            let index = targets.enter(NodeId::from_bits(node));
            assert_ne!(index, first, "it is in use");
            assert!(targets.are_several());
            targets.begun(index);
            targets.ended(index);
            targets.leave(index);
        }
        assert!(!targets.are_several());
        assert_eq!((targets.all.len(), targets.places.len()), (2048, 2048));
    }
}
