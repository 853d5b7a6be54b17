//! The targets of block transfers, and their limits on shared packets and slots.
//!
//! Packets to a dead target stay outstanding until they time out. So a target that does not respond
//! gets at most a [`SILENT_PARTS`]th of the free packets. A target that responds may use all of
//! them, but other responding targets still get some packets beyond the window. Slots for open
//! transfers are limited in the same way: see [`SLOT_PARTS`]. (Thresholds of this kind are used for
//! the buffers of switches: Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory
//! Packet Switches".)

use std::collections::BTreeMap;

use phitwire_framing::aries::flit::NodeId;

use super::bte::{CHANNELS, MAX_QUEUED_TRANSFERS};
use super::transfer_slots::MAX_UNDER_WAY;
use phitwire::time::{Duration, Time};

/// A target that has not responded lately may hold 1/SILENT_PARTS of the free packets or slots.
const SILENT_PARTS: u32 = 2;
/// Slots of open transfers that a responding target may hold, in multiples of the free slots.
const SLOT_PARTS: u32 = 3;
/// Slots, and packets beyond the window, that are reserved for responding targets, however many
/// others there are: an eighth of the slots, half of those packets.
const RESERVED_SLOTS: u32 = MAX_UNDER_WAY as u32 / 8;
/// A target whose last response is older than this counts as silent. This is far above any round
/// trip; a target that wrongly counts as silent only gets a smaller share.
const RECENT: Duration = Duration::from_ms(100);
/// Maximum number of targets remembered, more than the possible number of transfers.
const MOST_TARGETS: usize = 2048;
const _: () = assert!(MOST_TARGETS > CHANNELS * MAX_QUEUED_TRANSFERS + MAX_UNDER_WAY);

/// Index of a target in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TargetIndex(u16);

#[derive(Clone, Copy, Debug)]
struct Target {
    node: NodeId,
    open: u32,
    /// Open transfers to the target.
    under_way: u32,
    /// Packets to the target that await their responses.
    in_flight: u32,
    /// Time of the target's last response, unless a request has timed out since.
    heard: Option<Time>,
    answered: Option<Time>,
}

/// The targets that did not respond for a whole timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// The target of the packet that timed out.
    Target,
    /// All targets: the NIC receives nothing.
    All,
}

#[derive(Debug)]
pub(super) struct Targets {
    all: Vec<Target>,
    indices: BTreeMap<u32, TargetIndex>,
    in_use: usize,
    /// Time of the last response from any target.
    answered: Option<Time>,
    under_way: u32,
    in_flight: u32,
    /// Maximum number of outstanding packets of all transfers together.
    window: u32,
    /// Packets beyond `window`, for responding targets that hold fewer, and one for each target.
    spare: u32,
}

/// Whether a silent target that holds `has` may take another while `left` are free.
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
    /// Creates an empty table. All targets share `window` packets; responding ones with few packets
    /// share `spare` more.
    pub(super) fn new(window: u32, spare: u32) -> Self {
        Self {
            all: Vec::new(),
            indices: BTreeMap::new(),
            in_use: 0,
            answered: None,
            under_way: 0,
            in_flight: 0,
            window,
            spare,
        }
    }

    /// Records that a transfer to `node` was queued.
    pub(super) fn enter(&mut self, node: NodeId) -> TargetIndex {
        let index = match self.indices.get(&node.bits()) {
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
        let mut index = self.all.len();
        if index < MOST_TARGETS {
            self.all.push(target);
        } else {
            let idle = self.all.iter().position(|target| target.open == 0);
            index = idle.expect("there are more targets than transfers");
            self.indices.remove(&self.all[index].node.bits());
            self.all[index] = target;
        }
        let index = TargetIndex(index as u16);
        self.indices.insert(node.bits(), index);
        index
    }

    /// Records that a transfer has ended or was dequeued.
    pub(super) fn leave(&mut self, index: TargetIndex) {
        let target = self.at(index);
        target.open -= 1;
        self.in_use -= usize::from(target.open == 0);
    }

    fn at(&mut self, index: TargetIndex) -> &mut Target {
        &mut self.all[usize::from(index.0)]
    }

    #[inline]
    pub(super) fn are_several(&self) -> bool {
        self.in_use > 1
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.in_flight >= self.window + self.spare
    }

    #[inline]
    pub(super) fn has_room(&self, now: Time, index: TargetIndex) -> bool {
        let target = &self.all[usize::from(index.0)];
        let left = self.window.saturating_sub(self.in_flight);
        match target.answers(now) {
            true => left > 0 || target.in_flight < self.spare && !self.is_full(),
            false => may_have(target.in_flight, left) || target.in_flight == 0 && !self.is_full(),
        }
    }

    pub(super) fn may_begin(&self, now: Time, index: TargetIndex) -> bool {
        let target = &self.all[usize::from(index.0)];
        let left = MAX_UNDER_WAY as u32 - self.under_way;
        let has_place = match target.answers(now) {
            true => target.under_way < SLOT_PARTS * left,
            // Many dead targets may hold one packet each. The limit is here and not in `has_room`,
            // because transfers that have begun must be able to continue.
            false => {
                may_have(target.under_way, left)
                    && left > RESERVED_SLOTS
                    && self.in_flight < self.window + self.spare / 2
            }
        };
        has_place && self.has_room(now, index)
    }

    /// Records that a transfer to the target has begun.
    pub(super) fn begun(&mut self, index: TargetIndex) {
        self.under_way += 1;
        self.at(index).under_way += 1;
    }

    /// Records that an open transfer to the target has ended.
    pub(super) fn ended(&mut self, index: TargetIndex) {
        self.under_way -= 1;
        self.at(index).under_way -= 1;
    }

    /// Records that a packet was sent to the target.
    #[inline]
    pub(super) fn sent(&mut self, index: TargetIndex) {
        self.in_flight += 1;
        self.at(index).in_flight += 1;
    }

    /// Records that a packet posted at `posted` was answered or timed out. After a timeout, returns
    /// which targets have been silent since `posted`.
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

    /// Sends a target as many packets as it may have, and returns their number.
    fn fill(targets: &mut Targets, now: Time, index: TargetIndex) -> u32 {
        let mut count = 0;
        while targets.has_room(now, index) {
            targets.sent(index);
            count += 1;
        }
        count
    }

    #[test]
    fn many_dead_targets_leave_slots_and_packets_to_one_that_answers() {
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
        assert_eq!(begun, 112, "seven eighths of the slots");
        for _ in 0..12 {
            assert!(begin(&mut targets, living));
        }
        // The window is full of packets to a target that has died since.
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
        assert_eq!(begun, 32, "half of the slots beyond the window");
        assert_eq!(fill(&mut targets, now, living), 32);
    }

    #[test]
    fn responding_targets_get_more_packets_than_silent_ones() {
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
        assert_eq!(fill(&mut targets, now, living), 597, "all remaining slots");
        // From now on this target is silent; others still get packets.
        for expected in [64, 0] {
            let other = enter(&mut targets, true);
            assert_eq!(fill(&mut targets, now, other), expected);
        }
        let last = enter(&mut targets, false);
        assert_eq!(fill(&mut targets, now, last), 0, "no slot is left");
        // The packets that timed out are free again, but their target gets only a few.
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
        // A window of one packet serves all targets in turn.
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
            assert_ne!(index, first, "the slot is in use");
            assert!(targets.are_several());
            targets.begun(index);
            targets.ended(index);
            targets.leave(index);
        }
        assert!(!targets.are_several());
        assert_eq!((targets.all.len(), targets.indices.len()), (2048, 2048));
    }
}
