//! The records of a router that watches a flow.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use super::passage::{Candidate, Choice, Departure, Passage, Step};
use super::{Flow, Watched};
use crate::time::Time;

/// Maximum number of passages kept, and of packets followed at once.
const MOST_PASSAGES: usize = 4096;
const MOST_OPEN: usize = 512;
/// Maximum number of arrival times kept per queue.
const MOST_ARRIVALS: usize = 512;

/// A queue or buffer where packets wait, by the machine's number. Packets leave it in order of
/// arrival.
pub type QueueId = u32;

/// A stage of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    pub name: &'static str,
    /// Cycles that a header takes through it without contention.
    pub cycles: u64,
}

/// A packet to follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// The queue or buffer where it waits.
    pub queue_id: QueueId,
    /// Header fields that stay the same inside the router.
    pub key: u64,
    /// See [`Passage::identity`].
    pub identity: Option<u64>,
    pub response: bool,
    /// Length of the packet in phits or flits.
    pub units: Option<u8>,
    /// The port and virtual channel by which it arrived.
    pub from: (u8, u8),
    /// When its header arrived.
    pub arrived_ps: Option<u64>,
}

/// A packet being followed.
#[derive(Clone, Debug)]
struct Open {
    queue_id: QueueId,
    key: u64,
    passage: Passage,
}

/// A cycle clock: start of its first cycle and cycle time, in picoseconds.
type CycleClock = (u64, u64);

/// A watch of a flow, with its records.
#[derive(Clone, Debug)]
pub struct Watch {
    flow: Flow,
    until: Time,
    clock: Option<CycleClock>,
    now_ps: u64,
    arrivals: BTreeMap<u32, VecDeque<(u64, u32)>>,
    open: VecDeque<Open>,
    done: VecDeque<Passage>,
    /// Number of passages at the end of `done`, from the first whose link owes an acknowledgement.
    unsettled: usize,
    dropped: u64,
    /// Whether the first passages are kept instead of the last.
    keeps_first: bool,
    /// Identity of the packets to keep; `None`: all.
    wanted: Option<u64>,
}

impl Watch {
    /// Watches a flow until `until`. With `clock` (start of the first cycle, and cycle time), times
    /// are those of cycles; otherwise they are driver time.
    pub fn new(flow: Flow, now: Time, until: Time, clock: Option<(u64, u64)>) -> Self {
        Self {
            flow,
            until,
            clock,
            now_ps: now.as_ps(),
            arrivals: BTreeMap::new(),
            open: VecDeque::new(),
            done: VecDeque::new(),
            unsettled: 0,
            dropped: 0,
            keeps_first: false,
            wanted: None,
        }
    }

    /// Watches a flow without end, and keeps the first passages instead of the last.
    pub(crate) fn first_of(flow: Flow, clock: (u64, u64)) -> Self {
        Self {
            keeps_first: true,
            ..Self::new(flow, Time::ZERO, Time::NEVER, Some(clock))
        }
    }

    /// From now on keeps only packets with `identity` or without one, and drops other records.
    pub(crate) fn want(&mut self, identity: u64) {
        self.wanted = Some(identity);
        let is_wanted = |passage: &Passage| passage.identity.is_none_or(|of| of == identity);
        self.done.retain(is_wanted);
        self.open.retain(|open| is_wanted(&open.passage));
        self.unsettled = self.done.len();
    }

    #[inline]
    pub fn flow(&self) -> Flow {
        self.flow
    }

    /// Sets the time; returns false when the watch is over.
    #[inline]
    pub(crate) fn see(&mut self, now: Time) -> bool {
        self.now_ps = now.as_ps();
        now < self.until
    }

    /// Time of `cycle`; without a cycle clock, the current time.
    #[inline]
    pub fn at(&self, cycle: u64) -> u64 {
        match self.clock {
            Some((start, cycle_ps)) => start + cycle * cycle_ps,
            None => self.now_ps,
        }
    }

    fn least(&self, stage: Stage) -> u64 {
        self.clock.map_or(0, |(_, ps)| ps * stage.cycles)
    }

    /// Records that phits or flits entered a queue in `cycle`.
    pub fn arrived(&mut self, queue: u32, cycle: u64, units: u32) {
        let at = self.at(cycle);
        let arrivals = self.arrivals.entry(queue).or_default();
        match arrivals.back_mut() {
            Some((last, many)) if *last == at => *many = many.saturating_add(units),
            _ => {
                if arrivals.len() == MOST_ARRIVALS {
                    arrivals.pop_front();
                }
                arrivals.push_back((at, units));
            }
        }
    }

    /// When the front of a queue arrived, given that the queue holds `held` of the phits or flits
    /// that arrived by `cycle`; `None` if it arrived before the watch began.
    pub fn front_arrived(&self, queue: u32, held: u32, cycle: u64) -> Option<u64> {
        let by = self.at(cycle);
        let mut left = held;
        let arrivals = self.arrivals.get(&queue)?.iter().rev();
        for &(at, units) in arrivals.filter(|(at, _)| *at <= by) {
            if units >= left {
                return Some(at);
            }
            left -= units;
        }
        None
    }

    /// The first packet at `queue_id` with `key`.
    fn find(&mut self, queue_id: QueueId, key: u64) -> Option<usize> {
        let of = |open: &Open| open.queue_id == queue_id && open.key == key;
        self.open.iter().position(of)
    }

    /// Whether a packet at `queue_id` with `key` is already followed.
    pub fn follows(&mut self, queue_id: QueueId, key: u64) -> bool {
        self.find(queue_id, key).is_some()
    }

    /// Begins to follow a packet.
    pub fn open(&mut self, opening: Opening) {
        if self.open.len() == MOST_OPEN {
            self.open.pop_front();
            self.dropped += 1;
        }
        self.open.push_back(Open {
            queue_id: opening.queue_id,
            key: opening.key,
            passage: Passage {
                identity: opening.identity,
                response: opening.response,
                units: opening.units,
                port: opening.from.0,
                vc: opening.from.1,
                arrived_ps: opening.arrived_ps,
                ..Passage::default()
            },
        });
    }

    /// Sets the identity of a followed packet, which the router learns after the header.
    pub fn identify(&mut self, queue_id: QueueId, key: u64, identity: u64) {
        if let Some(index) = self.find(queue_id, key) {
            self.open[index].passage.identity.get_or_insert(identity);
        }
    }

    /// Records a decision about the packet. It replaces the last one with the same kind of
    /// candidates.
    pub fn decided(&mut self, queue_id: QueueId, key: u64, choice: Choice) {
        let Some(index) = self.find(queue_id, key) else {
            return;
        };
        let choices = &mut self.open[index].passage.choices;
        match choices.last_mut() {
            Some(last) if last.among == choice.among => {
                // Do not count the last decision if it had no winner yet.
                let times = last.times + u32::from(last.winner != u8::MAX);
                *last = Choice { times, ..choice };
            }
            _ => choices.push(Choice { times: 1, ..choice }),
        }
    }

    /// Records that the packet left `stage` in `cycle` and now waits at `to`.
    pub fn step(&mut self, (queue_id, to): (QueueId, QueueId), key: u64, stage: Stage, cycle: u64) {
        let (left_ps, least_ps) = (self.at(cycle), self.least(stage));
        let Some(index) = self.find(queue_id, key) else {
            return;
        };
        // Move the packet to the back: it was the last to arrive there.
        let Some(mut open) = self.open.remove(index) else {
            return;
        };
        open.queue_id = to;
        open.passage.steps.push(Step {
            stage: Cow::Borrowed(stage.name),
            left_ps,
            least_ps,
        });
        self.open.push_back(open);
    }

    /// Records that the packet left its last `stage`, and the router, in `cycle` by this port and
    /// channel.
    pub fn left(&mut self, queue_id: QueueId, key: u64, stage: Stage, cycle: u64, by: (u8, u8)) {
        self.step((queue_id, queue_id), key, stage, cycle);
        // `step` moved the packet to the back.
        let is_it = |open: &&Open| open.queue_id == queue_id && open.key == key;
        if self.open.back().filter(is_it).is_none() {
            return;
        }
        if let Some(Open { mut passage, .. }) = self.open.pop_back() {
            passage.departure = Some(Departure {
                port: by.0,
                vc: by.1,
                resent_before: None,
                resent: None,
                acknowledged: false,
                link_ended: false,
            });
            self.close(passage);
        }
    }

    pub fn discarded(&mut self, queue_id: QueueId, key: u64, why: &'static str) {
        if let Some(index) = self.find(queue_id, key)
            && let Some(Open { mut passage, .. }) = self.open.remove(index)
        {
            passage.discarded = Some(Cow::Borrowed(why));
            self.close(passage);
        }
    }

    fn close(&mut self, passage: Passage) {
        let identity = passage.identity;
        if self
            .wanted
            .is_some_and(|wanted| identity.is_some_and(|of| of != wanted))
        {
            return;
        }
        if self.done.len() == MOST_PASSAGES {
            self.dropped += 1;
            if self.keeps_first {
                return;
            }
            self.done.pop_front();
        }
        self.done.push_back(passage);
        self.unsettled = (self.unsettled + 1).min(self.done.len());
    }

    /// Whether packets have left by links that must still be checked.
    #[inline]
    pub(crate) fn is_unsettled(&self) -> bool {
        self.unsettled > 0
    }

    /// Checks the links by which packets left. `link` returns the resends of a port so far, and
    /// whether everything it sent is acknowledged; `None` if it is down.
    pub(crate) fn settle(&mut self, link: impl Fn(u8) -> Option<(u64, bool)>) {
        let first = self.done.len() - self.unsettled;
        let mut oldest = None;
        for (index, passage) in self.done.iter_mut().enumerate().skip(first) {
            let Some(departure) = &mut passage.departure else {
                continue;
            };
            if departure.acknowledged || departure.link_ended {
                continue;
            }
            let Some((resent, is_quiet)) = link(departure.port) else {
                // The link's next session starts with nothing unacknowledged, so this packet was
                // not carried over.
                departure.link_ended = true;
                continue;
            };
            let before = *departure.resent_before.get_or_insert(resent);
            departure.resent = Some(resent.saturating_sub(before));
            departure.acknowledged = is_quiet;
            if !is_quiet {
                oldest.get_or_insert(index);
            }
        }
        self.unsettled = oldest.map_or(0, |index| self.done.len() - index);
    }

    /// The records of packets with `identity` or without one, or of all.
    pub(crate) fn report(&self, identity: Option<u64>) -> Watched {
        let open = self.open.iter().map(|open| &open.passage);
        let passages = self.done.iter().chain(open).filter(|passage| {
            identity.is_none() || passage.identity.is_none() || passage.identity == identity
        });
        Watched {
            armed: true,
            passages: passages.cloned().collect(),
            dropped: self.dropped,
        }
    }
}

impl Candidate {
    /// A candidate without load and cost.
    pub fn new(number: u8, kind: &'static str) -> Self {
        Self {
            number,
            kind: Cow::Borrowed(kind),
            load: None,
            cost: None,
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
