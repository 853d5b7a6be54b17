//! The traffic driver: issues the messages of one run and accounts for the responses.

use std::collections::{BTreeSet, VecDeque};

use self::announce::{ATTEMPTS, QUICK, QUICK_LEAST, QUICK_PART, REPEATS};
use super::checker::{Announcement, MOST_ADDITIONS, Purpose};
use super::latency::LatencyRecorder;
use super::sequence_tracker::SequenceArrival;
use super::stamp::{Found, Stamp};
use super::traffic_issuer::{Answered, Issuer, Message, RunRequest};
use super::traffic_layout::Layout;
use super::traffic_pace::Pace;
use super::traffic_pattern::Choice;
use super::traffic_report::{RunPhase, TrafficReport};
use super::traffic_spec::{Abilities, MAX_SIZE, Operation, SpecError, TrafficSpec};
use super::traffic_target::{State, Target, sendable};
use crate::rng::Rng;
use crate::time::{Duration, Time};

#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The source's number in the specification of the run.
    pub processor: u16,
    /// Size of the memories of the source and of its targets.
    pub memory_bytes: u64,
    /// Differs between incarnations.
    pub nonce: u32,
    pub abilities: Abilities,
    /// Time after which the source gives up a request.
    pub timeout: Duration,
}

#[derive(Debug)]
pub(crate) struct Driver {
    spec: TrafficSpec,
    layout: Layout,
    /// Blocks: number of addresses at all targets that still accept blocks.
    usable: usize,
    announcement: Announcement,
    targets: Vec<Target>,
    choice: Choice,
    rng: Rng,
    /// Index of the next target, if targets take turns.
    turn: usize,
    /// The due times of messages, in a run with a rate that has begun.
    pace: Option<Pace>,
    own: u16,
    /// Targets to announce the run to.
    to_announce: VecDeque<u32>,
    /// Targets whose announcement must be repeated now.
    to_repeat: VecDeque<u32>,
    /// Future repetitions of announcements: time and target.
    repeats: BTreeSet<(Time, u32)>,
    /// Initial interval of the quick repetitions, and the interval of all others.
    intervals: [Duration; 2],
    /// Longest time for a response to an announcement so far.
    slowest_answer: Option<Duration>,
    /// Targets to ask whether they still know the run.
    to_ask: VecDeque<u32>,
    /// Distinguishes the runs of this NIC.
    serial: u32,
    phase: RunPhase,
    started: Time,
    ends: Option<Time>,
    last_offer: Time,
    ended: Option<Time>,
    last_acknowledgement: Time,
    last_answer: Time,
    outstanding: u32,
    sent: u64,
    counts: TrafficReport,
    latency: LatencyRecorder,
}

impl Driver {
    /// Prepares `spec` at `source`. `identity` maps a processor to its number at the checker.
    ///
    /// # Errors
    /// See [`SpecError`].
    pub(crate) fn new(
        spec: TrafficSpec,
        source: Source,
        identity: impl Fn(u16) -> Option<u32>,
        now: Time,
    ) -> Result<Self, SpecError> {
        spec.validate(source.abilities)?;
        let own = source.processor;
        let (destinations, choice) = spec.destinations(own)?;
        let layout = Layout::new(&spec, own, destinations.len(), source.memory_bytes)?;
        let announcement = Announcement {
            run: spec.run,
            nonce: source.nonce,
            op: spec.op,
            ordered: source.abilities.ways.is_empty() || spec.ways().keeps_order(),
            size: spec.size,
            addresses: layout.addresses,
            base: layout.base,
        };
        let identity = |processor| identity(processor).ok_or(SpecError::Processor(processor));
        let itself = identity(own)?;
        let addresses = usize::from(layout.addresses);
        let only = |condition| if condition { addresses } else { 0 };
        let remembered = (only(spec.op == Operation::Amo), only(spec.is_block()));
        let target = |processor| {
            let stamp = Stamp::of_run(spec.run, source.nonce, itself, identity(processor)?);
            Ok(Target::new(
                (processor, stamp),
                ATTEMPTS + QUICK,
                addresses,
                remembered,
            ))
        };
        let targets: Vec<Target> = destinations
            .into_iter()
            .map(target)
            .collect::<Result<_, _>>()?;
        let part = |parts| Duration::from_ns(source.timeout.as_ns() / parts);
        let intervals = [part(QUICK_PART).max(QUICK_LEAST), part(u64::from(ATTEMPTS))];
        Ok(Self {
            usable: 0,
            layout,
            announcement,
            to_announce: (0..targets.len() as u32).collect(),
            to_repeat: VecDeque::new(),
            repeats: BTreeSet::new(),
            intervals,
            slowest_answer: None,
            to_ask: VecDeque::new(),
            serial: 0,
            targets,
            choice,
            rng: Rng::new(spec.seed, u64::from(own)),
            turn: 0,
            pace: None,
            own,
            phase: RunPhase::Opening,
            started: now,
            ends: None,
            last_offer: now,
            ended: None,
            last_acknowledgement: now,
            last_answer: now,
            outstanding: 0,
            sent: 0,
            counts: TrafficReport::default(),
            latency: LatencyRecorder::new(),
            spec,
        })
    }

    /// Sets the number that distinguishes this run from other runs of its NIC.
    pub(crate) fn with_serial(self, serial: u32) -> Self {
        Self { serial, ..self }
    }

    pub(crate) fn spec(&self) -> &TrafficSpec {
        &self.spec
    }

    pub(crate) fn run(&self) -> u64 {
        self.spec.run
    }

    pub(crate) fn is_done(&self) -> bool {
        self.phase == RunPhase::Done
    }

    /// When the run next repeats an announcement, issues a message or stops issuing.
    pub(crate) fn deadline(&self) -> Option<Time> {
        match self.phase {
            RunPhase::Opening => self.repeats.first().map(|&(at, _)| at),
            RunPhase::Running => {
                let next = self.pace.as_ref().and_then(Pace::next_issue);
                [self.ends, next].into_iter().flatten().min()
            }
            RunPhase::Draining | RunPhase::Done => None,
        }
    }

    pub(crate) fn handle_suspension(&mut self, now: Time, span: Duration) {
        self.latency.handle_suspension(now, span);
        self.pace
            .iter_mut()
            .for_each(|pace| pace.handle_suspension(span));
        let earlier = |end: Time| Time::from_ps(end.as_ps().saturating_sub(span.as_ps())).max(now);
        self.ends = self.ends.map(earlier);
    }

    /// Stops issuing, but still waits for outstanding messages.
    pub(crate) fn stop(&mut self) {
        if self.phase > RunPhase::Draining {
            self.phase = RunPhase::Draining;
        }
    }

    pub(crate) fn report(&self) -> TrafficReport {
        // Include the time in which nothing was issued only because responses were missing.
        let offered = self.ended.unwrap_or(self.last_offer);
        let active = offered.max(self.last_acknowledgement);
        let after = |ended: Time| self.latency.span(ended, self.last_answer.max(ended));
        let drained = self.ended.map_or(Duration::ZERO, after);
        TrafficReport {
            run: self.spec.run,
            phase: self.phase,
            gets: self.spec.op == Operation::Get,
            size: self.spec.size,
            elapsed_ns: self.latency.span(self.started, active).as_ns(),
            drain_ns: drained.as_ns(),
            sent: self.sent,
            outstanding: u64::from(self.outstanding),
            not_offered: self.pace.as_ref().map_or(0, Pace::dropped),
            latency: self.latency.counts(),
            // Count zeros as unwritten memory until the targets have been asked.
            unwritten: self.counts.unwritten + self.targets.iter().map(|t| t.blank).sum::<u64>(),
            ..self.counts.clone()
        }
    }

    /// Issues as many messages as phase, window and links allow. Returns true if the run is now
    /// done.
    pub(crate) fn issue(&mut self, now: Time, nic: &mut impl Issuer) -> bool {
        if self.phase == RunPhase::Opening {
            self.announce(now, nic);
        }
        if self.phase == RunPhase::Running {
            self.send(now, nic);
        }
        debug_assert!(
            self.outstanding <= self.spec.window,
            "the window bounds the outstanding messages"
        );
        if self.phase == RunPhase::Draining {
            self.end_offer(now);
            self.ask(nic);
            if self.outstanding == 0 && self.to_ask.is_empty() {
                self.phase = RunPhase::Done;
                return true;
            }
        }
        false
    }

    /// Records the end of issuing: the planned time, even if this node was suspended until later.
    fn end_offer(&mut self, now: Time) {
        if self.ended.is_none() {
            let planned = self.ends.map_or(now, |end| end.min(now));
            self.ended = Some(planned.max(self.last_offer));
            // A source that has sent its full count owes no messages, so none can be dropped.
            let is_short = self.spec.count == 0 || self.sent < self.spec.count;
            if let Some(pace) = self.pace.as_mut().filter(|_| is_short) {
                pace.end(planned);
            }
        }
    }

    /// Starts sending messages, once every target has responded or been given up.
    fn open(&mut self, now: Time) {
        debug_assert!(self.phase == RunPhase::Opening, "a run begins once");
        if let Choice::Hot { hot, .. } = &mut self.choice {
            *hot = self.targets[..*hot]
                .iter()
                .filter(|t| t.state == State::Open)
                .count();
        }
        self.to_announce.clear();
        self.to_repeat.clear();
        self.repeats.clear();
        for target in &self.targets {
            match target.state {
                State::Open => {}
                State::Refused => self.counts.refused_by(target.processor),
                State::Unknown { .. } | State::Unreachable => {
                    self.counts.not_reached(target.processor);
                }
            }
        }
        self.targets.retain(|target| target.state == State::Open);
        self.usable = self.targets.iter().map(|target| target.busy.len()).sum();
        self.started = now;
        self.last_offer = now;
        self.last_acknowledgement = now;
        self.last_answer = now;
        if self.spec.rate != 0 {
            let seed = (self.spec.seed, self.own);
            let rate = (self.spec.rate, self.spec.gaps);
            self.pace = Some(Pace::new(rate, self.spec.window, seed, now));
        }
        if self.spec.duration_ns != 0 {
            self.ends = Some(now + Duration::from_ns(self.spec.duration_ns));
        }
        self.phase = if self.targets.is_empty() {
            RunPhase::Draining
        } else {
            RunPhase::Running
        };
    }

    fn send(&mut self, now: Time, nic: &mut impl Issuer) {
        if self.ends.is_some_and(|end| now >= end) {
            self.phase = RunPhase::Draining;
            return;
        }
        let mut buffer = [0; MAX_SIZE as usize];
        let sent_before = self.sent;
        let due = match &mut self.pace {
            Some(pace) => pace.owed(now).saturating_add(sent_before),
            None => u64::MAX,
        };
        while self.outstanding < self.spec.window && self.sent < due {
            let Some((index, turn)) = self.next(nic) else {
                break;
            };
            let target = &mut self.targets[index];
            let address = self.announcement.base + u64::from(turn) * self.layout.stride;
            let (sequence, len) = (target.sequences[usize::from(turn)], self.spec.size);
            let message = match self.spec.op {
                _ if self.spec.is_block() => {
                    Message::Block(self.layout.block(index, turn, target, &self.spec))
                }
                Operation::Put => {
                    let (stamp, len) = (target.stamp, len as usize);
                    stamp.fill(address, sequence, &mut buffer, len);
                    let data = &buffer[..len];
                    Message::Put { address, data }
                }
                Operation::Get => Message::Get {
                    address,
                    len: len as u8,
                },
                Operation::Amo => Message::Add { address },
            };
            if !nic.issue(
                target.processor,
                RunRequest::Message(index as u32),
                &message,
            ) {
                break;
            }
            target.sequences[usize::from(turn)] = sequence.wrapping_add(1);
            if let Some(busy) = target.busy.get_mut(usize::from(turn)) {
                *busy = true;
            }
            target.turn = if turn + 1 == self.layout.addresses {
                0
            } else {
                turn + 1
            };
            self.turn = index + 1;
            self.outstanding += 1;
            self.sent += 1;
            self.last_offer = now;
            debug_assert!(
                self.spec.count == 0 || self.sent <= self.spec.count,
                "no more messages than ordered"
            );
            if self.sent == self.spec.count {
                self.phase = RunPhase::Draining;
                break;
            }
        }
        if let Some(pace) = &mut self.pace {
            pace.issued(self.sent - sent_before);
        }
    }

    /// The index of the next target that can be sent to now, and one of its addresses.
    #[inline]
    fn next(&mut self, nic: &impl Issuer) -> Option<(usize, u16)> {
        let index = self.choose();
        if self.spec.op == Operation::Amo {
            self.targets[index].turn = self.rng.below(self.layout.addresses.into()) as u16;
        }
        let turn = sendable(&self.targets[index], &self.announcement, &self.layout, nic)?;
        Some((index, turn))
    }

    /// The index of the next target that still accepts messages.
    #[inline]
    fn choose(&mut self) -> usize {
        let all = self.targets.len();
        debug_assert!(all > 0, "a run without targets drains at once");
        let index = self.choice.draw(all, &mut self.turn, &mut self.rng);
        if self.targets[index].is_usable() {
            return index;
        }
        // Give the target's share to others: no later event would make it usable again.
        let others = (1..all).map(|n| (index + n) % all);
        let mut usable = others.filter(|&other| self.targets[other].is_usable());
        usable.next().unwrap_or(index)
    }

    /// Accounts for the response to a message to target `index` that was posted at `posted`.
    #[inline]
    pub(crate) fn message_answered(
        &mut self,
        now: Time,
        posted: Time,
        (index, address): (u32, u64),
        answered: Answered<'_>,
    ) {
        debug_assert!(self.outstanding > 0, "each message is answered once");
        self.outstanding -= 1;
        self.last_answer = now;
        self.release(index, address, &answered);
        match answered {
            Answered::Unknown | Answered::Unsent => {
                self.counts.timed_out += 1;
                return;
            }
            Answered::Damaged => unreachable!("only announcements can be damaged"),
            Answered::Refused => {
                self.counts.refused += 1;
                return;
            }
            Answered::Written => {}
            Answered::Read(data) => self.found(index, Found::of(address, data)),
            Answered::ReadBlock(found) => self.found(index, found),
            Answered::Added(found) => self.fetched(index, address, found),
        }
        self.counts.acknowledged += 1;
        self.last_acknowledgement = now;
        self.latency.record_span(posted, now);
    }

    /// Makes an address available for the next block. If the last block may still be in flight, no
    /// other follows unless it can safely be overwritten.
    fn release(&mut self, index: u32, address: u64, answered: &Answered<'_>) {
        if !self.spec.is_block() {
            return;
        }
        let is_over = !matches!(answered, Answered::Unknown | Answered::Refused);
        let slot = ((address - self.announcement.base) / self.layout.stride) as usize;
        let target = &mut self.targets[index as usize];
        debug_assert!(target.busy[slot], "a block to this address is in flight");
        if !is_over && !self.spec.follows_unknown() {
            debug_assert!(self.usable > 0, "an address is given up once");
            self.usable -= 1;
            target.given_up += 1;
            if self.usable == 0 {
                self.stop();
            }
            return;
        }
        target.busy[slot] = false;
    }

    /// Accounts for the result of a get.
    #[inline]
    fn found(&mut self, index: u32, found: Found) {
        match found {
            Found::Whole => {}
            Found::Blank => self.targets[index as usize].blank += 1,
            Found::Wrong => self.counts.corrupted += 1,
        }
    }

    /// Accounts for the value that an addition fetched. Each value of the word must be fetched
    /// once.
    fn fetched(&mut self, index: u32, address: u64, found: u64) {
        let target = &mut self.targets[index as usize];
        let slot = (address - self.announcement.base) / self.layout.stride;
        let first = target.stamp.first_count(address);
        let issued = target.sequences[slot as usize];
        // Compare as serial numbers, modulo 2^32: the count of issued additions may wrap.
        let is_possible = |count: u64| {
            let left = issued.wrapping_sub(count as u32).wrapping_sub(1);
            count <= MOST_ADDITIONS && left < 1 << 31
        };
        let count = found.wrapping_sub(first);
        if is_possible(count) {
            let turn = target.fetched.take(slot, count as u32);
            self.counts.duplicated += u64::from(turn == SequenceArrival::Again);
        } else if is_possible(found) {
            // The word was counted up from zero, not from its start value: unwritten memory.
            target.blank += 1;
        } else {
            self.counts.corrupted += 1;
        }
    }

    /// When everything else is done, asks the targets whose responses were zeros whether they still
    /// know the run.
    fn ask(&mut self, nic: &mut impl Issuer) {
        if self.outstanding == 0 && self.to_ask.is_empty() {
            let targets = (0..).zip(&self.targets);
            let blank = targets.filter(|(_, target)| target.blank > 0);
            self.to_ask.extend(blank.map(|(index, _)| index));
        }
        let data = self.announcement.emit(Purpose::Ask);
        while self.outstanding < self.spec.window
            && let Some(&index) = self.to_ask.front()
        {
            let processor = self.targets[index as usize].processor;
            let request = RunRequest::Question(index);
            if !nic.issue(processor, request, &Message::Announce(&data)) {
                break;
            }
            self.to_ask.pop_front();
            self.outstanding += 1;
        }
    }

    /// Accounts for the answer of target `index`, whose earlier responses were zeros. A target that
    /// still knows the run has kept its memory, so the zeros are wrong. A target that no longer
    /// knows the run was restarted; one that does not respond is not blamed.
    pub(crate) fn question_answered(&mut self, index: u32, answered: Answered<'_>) {
        debug_assert!(self.outstanding > 0, "each question is answered once");
        self.outstanding -= 1;
        let target = &mut self.targets[index as usize];
        if matches!(answered, Answered::Damaged) && target.damaged_questions < REPEATS {
            target.damaged_questions += 1;
            self.to_ask.push_back(index);
            return;
        }
        let blank = core::mem::take(&mut target.blank);
        match answered {
            Answered::Written => self.counts.corrupted += blank,
            _ => self.counts.unwritten += blank,
        }
    }
}

#[path = "traffic_announce.rs"]
mod announce;
#[cfg(test)]
#[path = "traffic_driver_tests.rs"]
mod tests;
