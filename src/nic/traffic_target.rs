//! A target of a traffic run, as seen by the source.

use super::checker::Announcement;
use super::sequence_tracker::SequenceTracker;
use super::stamp::Stamp;
use super::traffic_issuer::{Block, Issuer};
use super::traffic_layout::Layout;
use super::traffic_spec::{Operation, TrafficSpec};
use crate::time::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Announcements are in flight or pending; `damaged` of them have arrived damaged.
    Unknown {
        damaged: u8,
    },
    Open,
    Refused,
    Unreachable,
}

#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) processor: u16,
    pub(crate) stamp: Stamp,
    pub(crate) state: State,
    /// Number of announcements still allowed.
    pub(crate) repeats: u8,
    /// When the run was last announced to the target.
    pub(crate) announced: Time,
    pub(crate) turn: u16,
    pub(crate) sequences: Box<[u32]>,
    /// Additions: the values fetched, by address.
    pub(crate) fetched: SequenceTracker,
    /// Blocks: addresses with a block in flight, or one that may never complete: see
    /// [`TrafficSpec::follows_unknown`].
    pub(crate) busy: Box<[bool]>,
    /// Number of busy addresses that get no more blocks.
    pub(crate) given_up: usize,
    /// Responses with zeros whose cause is unknown so far.
    pub(crate) blank: u64,
    /// Number of damaged questions about those zeros.
    pub(crate) damaged_questions: u8,
}

impl Target {
    /// Creates a target to which nothing has been announced. At most `announced` announcements are
    /// sent. `fetched` and `busy` are the numbers of addresses tracked for additions and for
    /// blocks.
    pub(crate) fn new(
        (processor, stamp): (u16, Stamp),
        announced: u8,
        addresses: usize,
        (fetched, busy): (usize, usize),
    ) -> Self {
        assert!(announced > 0, "a target is announced to at least once");
        Self {
            processor,
            stamp,
            state: State::Unknown { damaged: 0 },
            repeats: announced - 1,
            announced: Time::ZERO,
            turn: 0,
            sequences: vec![0; addresses].into_boxed_slice(),
            fetched: SequenceTracker::new(fetched),
            busy: vec![false; busy].into_boxed_slice(),
            given_up: 0,
            blank: 0,
            damaged_questions: 0,
        }
    }

    /// Whether the target accepts more messages, now or later.
    #[inline]
    pub(crate) fn is_usable(&self) -> bool {
        self.busy.is_empty() || self.given_up < self.busy.len()
    }
}

impl Layout {
    /// The next block to address number `turn` of `target`, which has index `index`.
    pub(crate) fn block(
        &self,
        index: usize,
        turn: u16,
        target: &Target,
        spec: &TrafficSpec,
    ) -> Block {
        debug_assert!(turn < self.addresses, "the run has no address {turn}");
        let slot = index as u64 * u64::from(self.addresses) + u64::from(turn);
        Block {
            is_get: spec.op == Operation::Get,
            address: self.base + u64::from(turn) * self.stride,
            index: turn.into(),
            local: self.local + slot * self.stride,
            len: spec.size,
            stamp: target.stamp,
            sequence: target.sequences[usize::from(turn)],
        }
    }
}

/// The next address of the target whose slice accepts a request, starting at its turn, so that a
/// slow or dead slice does not delay the others.
#[inline]
pub(crate) fn sendable(
    target: &Target,
    announcement: &Announcement,
    layout: &Layout,
    nic: &impl Issuer,
) -> Option<u16> {
    debug_assert!(
        target.turn < announcement.addresses,
        "the next turn is an address of the run"
    );
    let is_free = |turn: u16| target.busy.get(usize::from(turn)) != Some(&true);
    let can_go =
        |turn: u16| is_free(turn) && nic.can_go(layout.base + u64::from(turn) * layout.stride);
    if can_go(target.turn) {
        return Some(target.turn);
    }
    if target.busy.is_empty() && !nic.has_alternative_paths() {
        return None;
    }
    let all = announcement.addresses;
    (1..all)
        .map(|n| (target.turn + n) % all)
        .find(|&turn| can_go(turn))
}
