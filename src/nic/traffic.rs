//! The traffic driver: issues the messages of one run and accounts for their answers.

use std::collections::VecDeque;

use phitwire_framing::memory24::Request;

use super::checker::{ANNOUNCE_ADDRESS, Announcement, STRIDE};
use super::counters::NicCounters;
use super::latency::LatencyRecorder;
use super::outstanding::Asker;
use super::port::Port;
use super::requester::{Answer, Outcome, Requester, slice_of};
use super::stamp::Stamp;
use super::traffic_report::{Phase, TrafficReport};
use super::traffic_spec::{Choice, Operation, SpecError, TrafficSpec};
use crate::rng::Rng;
use crate::time::{Duration, Time};

/// Times that a run is announced to a target that does not answer.
const ATTEMPTS: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unknown { attempts: u8 },
    Open,
    Unreachable,
}

/// One target of the run.
#[derive(Clone, Debug)]
struct Target {
    processor: u16,
    stamp: Stamp,
    state: State,
    /// The address to use next, as an index.
    turn: u16,
    /// The number of the next message, per address.
    sequences: Box<[u32]>,
}

/// A run at its source.
#[derive(Debug)]
pub(crate) struct Driver {
    spec: TrafficSpec,
    announcement: Announcement,
    targets: Vec<Target>,
    choice: Choice,
    rng: Rng,
    /// Index of the target to use next, where they are used in turn.
    turn: usize,
    to_announce: VecDeque<u32>,
    phase: Phase,
    started: Time,
    ends: Option<Time>,
    last_answer: Time,
    outstanding: u32,
    sent: u64,
    counts: TrafficReport,
    latency: LatencyRecorder,
}

impl Driver {
    /// Prepares `spec` at the processor `own`, whose memory (and that of its targets) has
    /// `memory_bytes`. `nonce` differs from every other incarnation's.
    pub(crate) fn new(
        spec: TrafficSpec,
        own: u16,
        memory_bytes: u64,
        nonce: u32,
        now: Time,
    ) -> Result<Self, SpecError> {
        spec.validate()?;
        let (destinations, choice) = spec.destinations(own)?;
        let base = base_of(&spec, own, memory_bytes)?;
        let announcement = Announcement {
            run: spec.run,
            nonce,
            op: spec.op,
            size: spec.size,
            addresses: spec.addresses,
            base,
        };
        let target = |processor| Target {
            processor,
            stamp: Stamp::of_run(spec.run, nonce, own, processor),
            state: State::Unknown { attempts: 0 },
            turn: 0,
            sequences: vec![0; usize::from(spec.addresses)].into_boxed_slice(),
        };
        let targets: Vec<Target> = destinations.into_iter().map(target).collect();
        Ok(Self {
            announcement,
            to_announce: (0..targets.len() as u32).collect(),
            targets,
            choice,
            rng: Rng::new(spec.seed, u64::from(own)),
            turn: 0,
            phase: Phase::Opening,
            started: now,
            ends: None,
            last_answer: now,
            outstanding: 0,
            sent: 0,
            counts: TrafficReport::default(),
            latency: LatencyRecorder::new(),
            spec,
        })
    }

    pub(crate) fn run(&self) -> u32 {
        self.spec.run
    }

    pub(crate) fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// When the run stops issuing by itself.
    pub(crate) fn deadline(&self) -> Option<Time> {
        if self.phase == Phase::Running {
            self.ends
        } else {
            None
        }
    }

    /// Issues nothing more; what is outstanding is waited for.
    pub(crate) fn stop(&mut self) {
        if self.phase > Phase::Draining {
            self.phase = Phase::Draining;
        }
    }

    /// Counts of the source.
    pub(crate) fn report(&self) -> TrafficReport {
        TrafficReport {
            run: self.spec.run,
            phase: self.phase,
            gets: self.spec.op == Operation::Get,
            size: self.spec.size,
            elapsed_ns: self.last_answer.since(self.started).as_ns(),
            sent: self.sent,
            outstanding: u64::from(self.outstanding),
            latency: self.latency.counts(),
            ..self.counts.clone()
        }
    }

    /// Issues what the phase, the window and the links allow. True when the run is done now.
    pub(crate) fn issue(
        &mut self,
        now: Time,
        requester: &mut Requester,
        ports: &mut [Port],
        counters: &mut NicCounters,
    ) -> bool {
        if self.phase == Phase::Opening {
            self.announce(now, requester, ports, counters);
        }
        if self.phase == Phase::Running {
            self.send(now, requester, ports, counters);
        }
        if self.phase == Phase::Draining && self.outstanding == 0 {
            self.phase = Phase::Done;
            return true;
        }
        false
    }

    fn announce(
        &mut self,
        now: Time,
        requester: &mut Requester,
        ports: &mut [Port],
        counters: &mut NicCounters,
    ) {
        let data = self.announcement.emit();
        let request = Request::Write {
            address: ANNOUNCE_ADDRESS,
            data,
            len: 32,
        };
        while self.outstanding < self.spec.window {
            let Some(&index) = self.to_announce.front() else {
                break;
            };
            let dest = self.targets[index as usize].processor;
            let asker = Asker::Announcement(index);
            if requester
                .issue(now, dest, &request, asker, ports, counters)
                .is_err()
            {
                break;
            }
            self.to_announce.pop_front();
            self.outstanding += 1;
        }
        if self.outstanding == 0 && self.to_announce.is_empty() {
            self.open(now);
        }
    }

    /// Every target has answered or been given up: begins the messages.
    fn open(&mut self, now: Time) {
        if let Choice::Hot { hot, .. } = &mut self.choice {
            *hot = self.targets[..*hot]
                .iter()
                .filter(|t| t.state == State::Open)
                .count();
        }
        let all = self.targets.len();
        self.targets.retain(|target| target.state == State::Open);
        self.counts.unreachable = (all - self.targets.len()) as u64;
        self.started = now;
        self.last_answer = now;
        if self.spec.duration_ns != 0 {
            self.ends = Some(now + Duration::from_ns(self.spec.duration_ns));
        }
        self.phase = if self.targets.is_empty() {
            Phase::Draining
        } else {
            Phase::Running
        };
    }

    fn send(
        &mut self,
        now: Time,
        requester: &mut Requester,
        ports: &mut [Port],
        counters: &mut NicCounters,
    ) {
        if self.ends.is_some_and(|end| now >= end) {
            self.phase = Phase::Draining;
            return;
        }
        while self.outstanding < self.spec.window {
            let index = self.choose();
            let target = &mut self.targets[index];
            let Some(turn) = sendable(target, &self.announcement, ports) else {
                break;
            };
            let address = self.announcement.base + u64::from(turn) * STRIDE;
            let (sequence, len) = (target.sequences[usize::from(turn)], self.spec.size);
            let request = match self.spec.op {
                Operation::Put => {
                    let mut data = [0; 32];
                    target
                        .stamp
                        .fill(address, sequence, &mut data, usize::from(len));
                    Request::Write { address, data, len }
                }
                Operation::Get => Request::Read { address, len },
            };
            let asker = Asker::Message(index as u32);
            let dest = target.processor;
            if requester
                .issue(now, dest, &request, asker, ports, counters)
                .is_err()
            {
                break;
            }
            target.sequences[usize::from(turn)] = sequence.wrapping_add(1);
            target.turn = if turn + 1 == self.spec.addresses {
                0
            } else {
                turn + 1
            };
            self.turn = index + 1;
            self.outstanding += 1;
            self.sent += 1;
            if self.sent == self.spec.count {
                self.phase = Phase::Draining;
                break;
            }
        }
    }

    /// The index of the next target.
    #[inline]
    fn choose(&mut self) -> usize {
        let all = self.targets.len();
        match self.choice {
            Choice::InTurn => {
                if self.turn >= all {
                    self.turn = 0;
                }
                self.turn
            }
            Choice::Uniform => self.rng.below(all as u64) as usize,
            Choice::Hot { hot, percent } => {
                let wants_hot = self.rng.chance(u64::from(percent), 100);
                let (from, to) = match (wants_hot, hot) {
                    (_, 0) => (0, all),
                    (true, _) => (0, hot),
                    (false, _) if hot == all => (0, all),
                    (false, _) => (hot, all),
                };
                from + self.rng.below((to - from) as u64) as usize
            }
        }
    }

    /// Accounts for the answer to a message.
    #[inline]
    pub(crate) fn message_answered(&mut self, now: Time, answer: &Answer) {
        self.outstanding -= 1;
        self.last_answer = now;
        match answer.outcome {
            Outcome::TimedOut => self.counts.timed_out += 1,
            Outcome::Refused { .. } => self.counts.refused += 1,
            Outcome::Written => {
                self.counts.acknowledged += 1;
                self.latency
                    .record(now.since(answer.pending.posted).as_ns());
            }
            Outcome::Read { data, len } => {
                self.counts.acknowledged += 1;
                self.latency
                    .record(now.since(answer.pending.posted).as_ns());
                let mut expected = [0; 32];
                Stamp::of_memory().fill(answer.pending.address, 0, &mut expected, 32);
                let len = usize::from(len);
                self.counts.corrupted += u64::from(data[..len] != expected[..len]);
            }
        }
    }

    /// Accounts for the answer to the announcement to target `index`.
    pub(crate) fn announcement_answered(&mut self, index: u32, outcome: Outcome) {
        self.outstanding -= 1;
        let target = &mut self.targets[index as usize];
        target.state = match (outcome, target.state) {
            (Outcome::Written, _) => State::Open,
            (Outcome::TimedOut, State::Unknown { attempts }) if attempts + 1 < ATTEMPTS => {
                self.to_announce.push_back(index);
                State::Unknown {
                    attempts: attempts + 1,
                }
            }
            _ => State::Unreachable,
        };
    }
}

/// Where `own`'s addresses begin in its targets' memories: puts use the lower half, gets the upper.
///
/// Where there are more sources than room, regions of different sources overlap. The checker keeps
/// sources apart, and gets only read what is the same for all.
fn base_of(spec: &TrafficSpec, own: u16, memory_bytes: u64) -> Result<u64, SpecError> {
    let half = memory_bytes / 2 / STRIDE * STRIDE;
    let region = u64::from(spec.addresses) * STRIDE;
    let regions = half / region;
    if regions == 0 {
        return Err(SpecError::Memory(memory_bytes));
    }
    let within = u64::from(own) % regions * region;
    Ok(match spec.op {
        Operation::Put => within,
        Operation::Get => half + within,
    })
}

/// The target's next address, from its turn on, whose slice can take a request: a slow or dead slice
/// does not hold up the others.
#[inline]
fn sendable(target: &Target, announcement: &Announcement, ports: &[Port]) -> Option<u16> {
    let can_go = |turn: u16| {
        let address = announcement.base + u64::from(turn) * STRIDE;
        ports[slice_of(address, ports.len())].request_can_go()
    };
    if can_go(target.turn) {
        return Some(target.turn);
    }
    if ports.len() == 1 || !ports.iter().any(Port::request_can_go) {
        return None;
    }
    let all = announcement.addresses;
    (1..all)
        .map(|n| (target.turn + n) % all)
        .find(|&turn| can_go(turn))
}
