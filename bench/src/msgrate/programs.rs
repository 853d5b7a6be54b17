//! Measurements by programs at the doors of NICs, one at each, which send instead of the NICs
//! (`--client`), for `phitwire-msgrate` and `phitwire-bench`.
//!
//! All programs run in this thread, which therefore can access all their memories. Each message has
//! its own slot at its target, one per source and outstanding message. When the message has ended,
//! the slot is compared byte for byte before it is reused.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use phitwire::nic::{Destinations, RunPhase};
use phitwire_client::door::hello::Operations;
use phitwire_client::door::{AtomicOp, Completion, Local, Remote, Status};
use phitwire_client::{Error, Nic};
use phitwire_nodes::run_dir::LabDir;

use super::claim::claim;
use super::door_error::DoorError;
use super::lab::Lab;
use super::message::{Latencies, fill, stride};
use super::options::PairOp;
use super::outcome::{Ends, LatencyUs, RateResult, Unanswered, unknown};
use super::plan::Plan;
use super::processes::{Fates, Processes};
use super::program::{PATIENCE, Program, Slot, attach};
use super::receiver::{MOST_RECEIVES, Receiver};
use super::run::{Clock, RunError, RunProgress};
use super::work::Work;

/// Largest window: the number of commands that fit into a program's ring.
const MOST_WINDOW: u32 = 1024;
/// Maximum size of a program's registered memory in bytes, which every machine allows.
pub(super) const MOST_DATA: u64 = 256 << 20;
/// Interval of progress lines, and the longest sleep.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Number of idle rounds before the thread sleeps.
const IDLE_ROUNDS: u32 = 50;

struct Run<'a> {
    plan: &'a Plan,
    op: PairOp,
    /// The receives of the last program, which is the only target of sends.
    receiver: Option<Receiver>,
    programs: Vec<Program>,
    by_processor: HashMap<u16, usize>,
    sources: usize,
    size: u64,
    result: RateResult,
    latencies: Latencies,
    next_number: u64,
    last_end: Instant,
    last_acknowledged: Instant,
    refusal: Option<Status>,
    /// Number of timed-out messages to each program.
    timed_out: Vec<u64>,
    data: Vec<u8>,
    found: Vec<u8>,
}

/// Measures messages of `size` bytes between programs according to `plan`; see
/// [`measure`](super::measure).
///
/// # Errors
/// See [`DoorError`] and [`RunError`]. Faults of messages are part of the outcome, not errors; so
/// is a NIC that dies during the run.
pub fn measure_programs(
    plan: &Plan,
    size: u32,
    lab: &mut dyn Lab,
    clock: &dyn Clock,
    mut watch: impl FnMut(RunProgress),
) -> Result<RateResult, RunError> {
    let names = plan.participants().map(|nic| nic.name.as_str());
    claim(&plan.lab, names, lab, clock)?;
    let mut run = Run::new(plan, size)?;
    let mut processes = Processes::new(&plan.everybody, lab);
    run.drive(clock, &mut watch, || processes.watch(clock.now(), lab))?;
    let (work, fates) = processes.end(lab);
    Ok(run.outcome(work, fates)?)
}

/// Like [`measure_programs`], but does not claim the NICs, so other programs may use them too.
///
/// # Errors
/// See [`measure_programs`]. The death of a NIC is also an error.
pub fn measure_shared(plan: &Plan, size: u32, clock: &dyn Clock) -> Result<RateResult, RunError> {
    let mut run = Run::new(plan, size)?;
    run.drive(clock, &mut |_| {}, || {})?;
    let outcome = run.outcome(Work::default(), Fates::default())?;
    match outcome.restarted.first().cloned() {
        Some(node) => Err(DoorError::Nic {
            node,
            error: Error::Gone,
        }
        .into()),
        None => Ok(outcome),
    }
}

/// The powers of two up to `largest` that `plan`'s operation supports at its first source.
///
/// # Errors
/// See [`DoorError`].
pub fn sizes_between_programs(plan: &Plan, largest: u32) -> Result<Vec<u32>, DoorError> {
    let Some(first) = plan.sources.first() else {
        return Ok(Vec::new());
    };
    let nic = attach(&LabDir::new(&plan.lab)?, &first.name, stride(1))?;
    let (op, has) = (plan.program_op(), nic.operations());
    check_operation(op, has)?;
    let smallest = match op {
        PairOp::Amo => return Ok(vec![8]),
        // The source may be able to read only words.
        PairOp::Get if has.blocks => 4,
        PairOp::Get => 8,
        PairOp::Put | PairOp::Send => 1,
    };
    let largest = match has.blocks {
        true => largest,
        false => largest.min(nic.longest_put() as u32),
    };
    let powers = std::iter::successors(Some(smallest), |size| Some(size * 2));
    Ok(powers.take_while(|&size| size <= largest).collect())
}

fn check_operation(op: PairOp, has: Operations) -> Result<(), DoorError> {
    match op {
        PairOp::Amo if !has.atomics => Err(DoorError::Operation(op.name())),
        PairOp::Send if !has.messages => Err(DoorError::Operation(op.name())),
        _ => Ok(()),
    }
}

impl<'a> Run<'a> {
    fn new(plan: &'a Plan, size: u32) -> Result<Self, RunError> {
        let op = plan.program_op();
        let most = match op {
            PairOp::Send => MOST_RECEIVES,
            _ => MOST_WINDOW,
        };
        if plan.window > most {
            return Err(DoorError::Window(most).into());
        }
        if op == PairOp::Amo && size != 8 {
            return Err(DoorError::AmoSize(size).into());
        }
        let sources = plan.sources.len();
        let per_source = u64::from(plan.window) * stride(size.into());
        // Reserve one more, for the results of gets and the sources of blocks.
        let data_bytes = per_source * (sources as u64 + 1);
        if data_bytes > MOST_DATA {
            return Err(DoorError::Memory(data_bytes, sources).into());
        }
        let now = Instant::now();
        let mut run = Self {
            plan,
            op,
            receiver: None,
            programs: Vec::new(),
            by_processor: HashMap::new(),
            sources,
            size: size.into(),
            result: RateResult::default(),
            latencies: Latencies::default(),
            next_number: 1,
            last_end: now,
            last_acknowledged: now,
            refusal: None,
            timed_out: Vec::new(),
            data: vec![0; size as usize],
            found: vec![0; size as usize],
        };
        run.attach(data_bytes)?;
        let is_silent = |program: &Program| program.destinations.iter().all(|d| d.all().is_empty());
        if run.programs.iter().all(is_silent) {
            return Err(RunError::NothingSent(plan.pattern.clone()));
        }
        let all = run.programs.len();
        run.timed_out = vec![0; all];
        for program in &mut run.programs {
            program.held = vec![0; all];
            program.register(per_source * sources as u64)?;
        }
        if let (PairOp::Send, Some(target)) = (op, run.programs.last_mut()) {
            run.receiver = Some(Receiver::new(target, plan.window, size)?);
        }
        Ok(run)
    }

    /// Attaches all programs. Sources come first, so that their index is also the index of their
    /// slots at every target.
    fn attach(&mut self, data_bytes: u64) -> Result<(), DoorError> {
        let (plan, lab) = (self.plan, LabDir::new(&self.plan.lab)?);
        for nic in plan.sources.iter().chain(&plan.targets) {
            let is_source = self.programs.len() < self.sources;
            let destinations = match is_source {
                true => Some(Destinations::new(&plan.spec, nic.processor)?),
                false => None,
            };
            let window = if is_source { plan.window as usize } else { 0 };
            let door = attach(&lab, &nic.name, data_bytes)?;
            self.check_abilities(&door)?;
            self.by_processor.insert(nic.processor, self.programs.len());
            let program = Program::new(&nic.name, door, destinations, window);
            self.programs.push(program);
        }
        Ok(())
    }

    /// Checks that a program's NIC supports the messages.
    fn check_abilities(&self, nic: &Nic) -> Result<(), DoorError> {
        let (has, longest) = (nic.operations(), nic.longest_put());
        check_operation(self.op, has)?;
        match has.blocks || self.size <= longest as u64 {
            true => Ok(()),
            false => Err(DoorError::Size(self.size as u32, longest)),
        }
    }

    /// Offset of a source's message at its target. The source number [`Run::sources`] stands for a
    /// program's own buffers.
    fn at(&self, source: usize, slot: usize) -> u64 {
        (source as u64 * u64::from(self.plan.window) + slot as u64) * stride(self.size)
    }

    /// Sends messages and handles their completions until all have ended.
    fn drive(
        &mut self,
        clock: &dyn Clock,
        watch: &mut impl FnMut(RunProgress),
        mut look: impl FnMut(),
    ) -> Result<(), RunError> {
        let begin = Instant::now();
        let (mut over_since, mut looked, mut idle) = (None, begin, 0);
        (self.last_end, self.last_acknowledged) = (begin, begin);
        loop {
            let mut any = false;
            for source in 0..self.sources {
                any |= self.take_ends(source)?;
                if over_since.is_none() {
                    any |= self.fill_window(source)?;
                }
                self.programs[source].nic.flush();
            }
            any |= self.receive(Receiver::take)?;
            let now = Instant::now();
            let is_done = self.programs[..self.sources]
                .iter()
                .all(|p| self.has_offered(p));
            let is_late = self.plan.duration().is_some_and(|d| now >= begin + d);
            if over_since.is_none() && (is_done || is_late || clock.stops() > 0) {
                over_since = Some(now);
            }
            let phase = over_since.map_or(RunPhase::Running, |_| RunPhase::Draining);
            let under_way: usize = self.programs.iter().map(|p| p.under_way).sum();
            if over_since.is_some() && under_way == 0 {
                break;
            }
            if clock.stops() > 1 {
                return Err(RunError::Interrupted);
            }
            let stuck_since = over_since.map_or(self.last_end, |over| over.max(self.last_end));
            if under_way > 0 && now >= stuck_since + PATIENCE {
                self.give_up();
                break;
            }
            if now >= looked + LOOK_EVERY {
                looked = now;
                look();
                watch(RunProgress {
                    elapsed: now - begin,
                    sent: self.result.sent,
                    acknowledged: self.result.acknowledged,
                    phase,
                    outstanding: under_way as u64,
                    waiting: self.waiting(),
                });
            }
            idle = if any { 0 } else { idle + 1 };
            if idle > 0 {
                self.rest(idle);
            }
        }
        let over = over_since.unwrap_or(begin);
        let last = over.max(self.last_acknowledged);
        self.result.seconds = (last - begin).as_secs_f64();
        self.result.drain_seconds = over.elapsed().as_secs_f64();
        self.receive(Receiver::end)
    }

    /// Calls `act` with the receiver, its program, the number of the next message and the result,
    /// if there is a receiver.
    fn receive<R: Default>(
        &mut self,
        act: impl FnOnce(&mut Receiver, &mut Program, u64, &mut RateResult) -> Result<R, DoorError>,
    ) -> Result<R, RunError> {
        match (&mut self.receiver, self.programs.last_mut()) {
            (Some(receiver), Some(to)) => {
                Ok(act(receiver, to, self.next_number, &mut self.result)?)
            }
            _ => Ok(R::default()),
        }
    }

    /// Programs with messages in flight.
    fn waiting(&self) -> Vec<String> {
        let waiting = self.programs.iter().filter(|p| p.under_way > 0);
        waiting.map(|p| p.node.clone()).collect()
    }

    /// Whether a source has sent all its messages, or can send no more.
    fn has_offered(&self, program: &Program) -> bool {
        let count = self.plan.spec.count;
        let is_silent = program
            .destinations
            .as_ref()
            .is_none_or(|d| d.all().is_empty());
        let has_none_left = program.under_way == 0 && self.is_stuck(program);
        program.is_gone || is_silent || has_none_left || (count > 0 && program.sent >= count)
    }

    /// Whether a source can send only to targets that have not responded to earlier messages.
    fn is_stuck(&self, program: &Program) -> bool {
        let Some(destinations) = &program.destinations else {
            return true;
        };
        let mut all = destinations.all().iter();
        all.all(|to| match self.by_processor.get(to) {
            Some(&to) => !program.may_send(to),
            None => true,
        })
    }

    fn fill_window(&mut self, source: usize) -> Result<bool, DoorError> {
        let mut any = false;
        while !self.has_offered(&self.programs[source]) {
            let program = &mut self.programs[source];
            let Some(&slot) = program.free.last() else {
                break;
            };
            let Some(to) = program.next_target(&self.by_processor) else {
                break;
            };
            if !self.begin(source, slot, to)? {
                break;
            }
            self.programs[source].free.pop();
            any = true;
        }
        Ok(any)
    }

    /// Sends a message. Returns false if its command does not fit into the ring.
    fn begin(&mut self, source: usize, slot: usize, to: usize) -> Result<bool, DoorError> {
        let (there, own) = (self.at(source, slot), self.at(self.sources, slot));
        let number = self.next_number;
        fill(number, &mut self.data);
        let (bytes, name) = (self.size, slot as u64);
        let part = Local { offset: own, bytes };
        let target = &self.programs[to];
        let remote = Remote {
            processor: target.nic.processor(),
            handle: target.handle,
            offset: there,
        };
        let nic = &self.programs[source].nic;
        let is_short = bytes <= nic.longest_put() as u64;
        match self.op {
            PairOp::Put if is_short => {}
            PairOp::Put | PairOp::Send => nic.write(own, &self.data)?,
            // Write the data to get, or to add to, before the request.
            PairOp::Get | PairOp::Amo => target.nic.write(there, &self.data)?,
        }
        let member = target.nic.member();
        let is_in_words = bytes.is_multiple_of(4) || !nic.operations().blocks;
        let program = &mut self.programs[source];
        let nic = &mut program.nic;
        let asked = match self.op {
            PairOp::Put if is_short => nic.put(name, remote, &self.data, false),
            PairOp::Put => nic.block_put(name, remote, part, None),
            PairOp::Get if is_short && is_in_words => nic.get(name, remote, part),
            PairOp::Get => nic.block_get(name, remote, part),
            PairOp::Amo => nic.atomic(name, remote, AtomicOp::Add, [1, 0], true),
            PairOp::Send => nic.send(name, remote.processor, member, part),
        };
        match asked {
            Ok(()) => {}
            Err(Error::Full) => return Ok(false),
            Err(error) => return Err(program.failed(error)),
        }
        program.slots[slot] = Slot {
            began: Instant::now(),
            number,
            to,
        };
        program.under_way += 1;
        program.held[to] += 1;
        program.sent += 1;
        self.result.sent += 1;
        self.next_number += 1;
        Ok(true)
    }

    /// Handles the completions of a source. Returns whether there were any.
    fn take_ends(&mut self, source: usize) -> Result<bool, DoorError> {
        let mut any = false;
        while !self.programs[source].is_gone {
            match self.programs[source].nic.poll() {
                Ok(None) => break,
                Ok(Some(Completion::End {
                    name, status, word, ..
                })) => self.ended(source, name as usize, status, word)?,
                Ok(Some(_)) => {}
                Err(Error::Gone) => self.note_gone(source),
                Err(error) => return Err(self.programs[source].failed(error)),
            }
            any = true;
        }
        if any {
            self.last_end = Instant::now();
        }
        Ok(any)
    }

    /// Handles the end of a source's NIC: the fate of its messages in flight is unknown.
    fn note_gone(&mut self, source: usize) {
        let program = &mut self.programs[source];
        program.is_gone = true;
        self.result.lost += std::mem::take(&mut program.under_way) as u64;
        self.result.restarted.push(program.node.clone());
    }

    fn give_up(&mut self) {
        for program in &mut self.programs {
            if program.under_way > 0 {
                self.result.lost += std::mem::take(&mut program.under_way) as u64;
                self.result.unfinished.push(program.node.clone());
            }
        }
    }

    fn ended(
        &mut self,
        from: usize,
        slot: usize,
        status: Status,
        word: u64,
    ) -> Result<(), DoorError> {
        let program = &mut self.programs[from];
        let Slot { began, number, to } = program.slots[slot];
        program.under_way -= 1;
        // Do not reuse a slot that a late message may still write.
        if !status.is_unknown() {
            program.free.push(slot);
            program.held[to] -= 1;
        }
        if status == Status::Done {
            self.latencies.add(began.elapsed());
            self.last_acknowledged = Instant::now();
            self.result.acknowledged += 1;
            self.result.corrupted +=
                u64::from(!self.is_right(from, slot, to, number, Some(word))?);
        } else if status.is_unknown() {
            self.result.timed_out += 1;
            self.timed_out[to] += 1;
            self.result.lost += u64::from(!self.is_right(from, slot, to, number, None)?);
        } else {
            self.result.refused += 1;
            self.refusal = Some(status);
        }
        Ok(())
    }

    /// Whether a message had its effect; `word` is the response of an addition, if any.
    fn is_right(
        &mut self,
        from: usize,
        slot: usize,
        to: usize,
        number: u64,
        word: Option<u64>,
    ) -> Result<bool, DoorError> {
        let (there, own) = (self.at(from, slot), self.at(self.sources, slot));
        fill(number, &mut self.data);
        match self.op {
            PairOp::Put => self.programs[to].nic.read(there, &mut self.found)?,
            PairOp::Get => self.programs[from].nic.read(own, &mut self.found)?,
            PairOp::Amo => {
                self.programs[to].nic.read(there, &mut self.found)?;
                let [before, after] = [&self.data, &self.found].map(|bytes| word_of(bytes));
                let is_answered = word.is_none_or(|word| word == before);
                return Ok(is_answered && after == before.wrapping_add(1));
            }
            // The receiver compares messages, and counts acknowledged ones that did not arrive.
            PairOp::Send => return Ok(word.is_some()),
        }
        Ok(self.data == self.found)
    }

    /// Yields the core. After [`IDLE_ROUNDS`] idle rounds, sleeps until a completion arrives.
    fn rest(&mut self, idle: u32) {
        if idle < IDLE_ROUNDS {
            return std::thread::yield_now();
        }
        // A target of sends waits for messages, too.
        let waiting = match self.receiver {
            Some(_) => self.programs.len(),
            None => self.sources,
        };
        let waiting = &mut self.programs[..waiting];
        let mut may_sleep = true;
        for program in waiting.iter_mut().filter(|p| !p.is_gone) {
            may_sleep &= program.nic.arm();
        }
        if may_sleep {
            let here = waiting.iter().filter(|p| !p.is_gone);
            let fds = here.flat_map(|p| [p.nic.fd(), p.nic.socket()]);
            let mut fds: Vec<_> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
            let limit = PollTimeout::try_from(LOOK_EVERY).unwrap_or(PollTimeout::ZERO);
            // Ignore the result: a signal also ends the sleep, and the caller checks for signals.
            let _ = poll(&mut fds, limit);
        }
        for program in waiting.iter_mut().filter(|p| !p.is_gone) {
            program.nic.disarm();
        }
    }

    fn outcome(self, work: Work, fates: Fates) -> Result<RateResult, DoorError> {
        let mut result = self.result;
        if let (0, Some(status)) = (result.acknowledged, self.refusal) {
            return Err(DoorError::Refused(status));
        }
        let rate = match result.seconds > 0.0 {
            true => result.acknowledged as f64 / result.seconds,
            false => 0.0,
        };
        result.size = self.size as u32;
        let RateResult {
            sent,
            acknowledged,
            timed_out,
            refused,
            ..
        } = result;
        result.unknown = unknown(sent, [acknowledged, timed_out, refused]);
        let at = self.programs.iter().zip(&self.timed_out);
        let unanswered = at.filter(|(_, messages)| **messages > 0);
        result.unanswered = unanswered
            .map(|(program, &messages)| Unanswered {
                node: program.node.clone(),
                messages,
            })
            .collect();
        result.messages_per_second = rate;
        result.payload_bytes_per_second = rate * self.size as f64;
        result.latency = self.latencies.counts();
        result.latency_us = LatencyUs::of(&result.latency);
        Ok(result.with_ends(Ends {
            work,
            fates,
            ..Ends::default()
        }))
    }
}

/// The operand of an addition.
fn word_of(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |word| u64::from_le_bytes(*word))
}
