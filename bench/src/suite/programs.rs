//! Latency and bandwidth between two programs at the doors of two NICs.
//!
//! Both programs run in this process, which therefore can access both memories. When a message has
//! ended, it is compared byte for byte before its slot is reused.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use phitwire_client::door::{Access, AtomicOp, Completion, Local, Remote, Status};
use phitwire_client::{AttachError, Error, Nic, Options, OutOfRange};
use phitwire_nodes::run_dir::{LabDir, RunDirError};
use phitwire_nodes::stop::Stop;
use thiserror::Error;

use super::Ending;
use super::options::{Benchmark, PairOp, PairOptions};
use super::point::PointRow;
use crate::msgrate::message::{Latencies, fill, stride};
use crate::msgrate::{LatencyUs, RateResult};

/// Largest default size in bytes.
const LARGEST: u32 = 64 << 10;
/// Largest window, since a program posts no more receives.
const MOST_WINDOW: u32 = 256;
/// Time after which a message counts as lost for good.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time without news after which a program sleeps, even if the other may respond soon.
const SHORT: Duration = Duration::from_micros(100);
/// Number of messages of a size between two reads of the clock.
const LOOK_EVERY: u64 = 16;

/// Why nothing was measured, or the measurement was cut short.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// The lab has no such door.
    #[error(transparent)]
    Dir(#[from] RunDirError),
    /// A program could not attach.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// An operation of a NIC failed.
    #[error(transparent)]
    Nic(#[from] Error),
    /// An address out of range.
    #[error(transparent)]
    Outside(#[from] OutOfRange),
    #[error("--op {0}: the NICs of this machine have no such operation for programs")]
    Operation(&'static str),
    #[error("--size {0}: programs can move 1 to {1} bytes through the NICs of this machine")]
    Size(u32, u32),
    #[error("cannot register the target's memory: {0}")]
    Register(Status),
    #[error("a message did not complete within {} s", PATIENCE.as_secs())]
    NeverEnded,
    #[error("--window: programs can have at most {MOST_WINDOW} outstanding messages")]
    Window,
}

/// A slot for messages.
#[derive(Clone, Copy, Debug)]
struct Place {
    began: Instant,
    /// The number of the slot's message.
    number: u64,
    is_under_way: bool,
}

/// Two programs and their measurement.
pub struct ProgramSuite {
    benchmark: &'static str,
    op: PairOp,
    sizes: Vec<u32>,
    window: u32,
    seconds: f64,
    source: Nic,
    target: Nic,
    who: String,
}

struct Run<'a> {
    suite: &'a mut ProgramSuite,
    size: u64,
    handle: u16,
    places: Vec<Place>,
    /// For additions, the value of each word.
    added: Vec<u64>,
    next_number: u64,
    /// First number that may not have arrived; all earlier messages have.
    oldest: u64,
    latency: Latencies,
    result: RateResult,
    data: Vec<u8>,
    found: Vec<u8>,
}

impl ProgramSuite {
    pub fn new(
        benchmark: &Benchmark,
        options: &PairOptions,
        [from, to]: [String; 2],
    ) -> Result<Self, ProgramError> {
        let lab = LabDir::new(&options.common.lab)?;
        let usual = match benchmark {
            Benchmark::Latency(_) => 1,
            _ => 64,
        };
        let window = options.window.unwrap_or(usual);
        if window > MOST_WINDOW {
            return Err(ProgramError::Window);
        }
        let mut sizes = match (options.op, options.size.is_empty()) {
            (PairOp::Amo, _) => vec![8],
            (_, false) => options.size.clone(),
            (PairOp::Get, true) => powers(4),
            (_, true) => powers(1),
        };
        let largest = sizes.iter().copied().max().unwrap_or(1);
        let data_bytes = u64::from(window) * stride(largest.into());
        let job = u64::from(std::process::id()) << 32 | 0x6265_6e63;
        let attach = |node: &str| -> Result<Nic, ProgramError> {
            let door: PathBuf = lab.door(node)?;
            let member = None;
            let options = Options {
                job,
                member,
                data_bytes,
            };
            Ok(Nic::attach(&door, &options)?)
        };
        let source = attach(&from)?;
        let (has, longest) = (source.operations(), source.longest_put() as u32);
        if match options.op {
            PairOp::Amo => !has.atomics,
            PairOp::Send => !has.messages,
            PairOp::Put | PairOp::Get => false,
        } {
            return Err(ProgramError::Operation(options.op.name()));
        }
        if !has.blocks {
            if options.size.is_empty() {
                // Start with words if the source cannot read less.
                let least = if options.op == PairOp::Get { 8 } else { 1 };
                sizes.retain(|size| (least..=longest).contains(size));
            }
            if let Some(&size) = sizes.iter().find(|&&size| size > longest) {
                return Err(ProgramError::Size(size, longest));
            }
        }
        Ok(Self {
            benchmark: benchmark.name(),
            op: options.op,
            sizes,
            window,
            seconds: options.common.seconds,
            source,
            target: attach(&to)?,
            who: format!("programs at {from} and {to}, --op {}", options.op.name()),
        })
    }

    /// The programs and the window, for the head of the table.
    pub fn describe(&self) -> String {
        format!("{}, window {}", self.who, self.window)
    }

    /// Measures all sizes and passes each row to `show`, until a stop is requested.
    ///
    /// # Errors
    /// See [`ProgramError`].
    pub fn run(
        &mut self,
        stop: &Stop,
        mut show: impl FnMut(&PointRow),
    ) -> Result<Ending, ProgramError> {
        let mut ending = Ending::Clean;
        let handle = self.register()?;
        for size in self.sizes.clone() {
            let outcome = Run::new(self, size, handle)?.measure(stop)?;
            if !outcome.is_clean() {
                ending = Ending::Damaged;
            }
            let rate = outcome.messages_per_second;
            show(&PointRow {
                benchmark: self.benchmark,
                sources: 1,
                window: self.window,
                mean_us: if rate > 0.0 { 1e6 / rate } else { 0.0 },
                gups: None,
                outcome,
            });
            if stop.requests() > 0 {
                return Ok(match ending {
                    Ending::Damaged => ending,
                    _ => Ending::Interrupted,
                });
            }
        }
        Ok(ending)
    }

    fn register(&mut self) -> Result<u16, ProgramError> {
        let part = Local {
            offset: 0,
            bytes: self.target.data_bytes(),
        };
        self.target.register(0, part, Access::ALL)?;
        loop {
            match self.target.wait(Some(PATIENCE))? {
                Some(Completion::End {
                    status: Status::Done,
                    word,
                    ..
                }) => return Ok(word as u16),
                Some(Completion::End { status, .. }) => return Err(ProgramError::Register(status)),
                Some(_) => {}
                None => return Err(ProgramError::NeverEnded),
            }
        }
    }
}

fn powers(smallest: u32) -> Vec<u32> {
    let powers = std::iter::successors(Some(smallest), |size| Some(size * 2));
    powers.take_while(|&size| size <= LARGEST).collect()
}

impl<'a> Run<'a> {
    fn new(suite: &'a mut ProgramSuite, size: u32, handle: u16) -> Result<Self, ProgramError> {
        let window = suite.window as usize;
        let place = Place {
            began: Instant::now(),
            number: 0,
            is_under_way: false,
        };
        let mut run = Self {
            suite,
            size: size.into(),
            handle,
            places: vec![place; window],
            added: vec![0; window],
            next_number: 1,
            oldest: 1,
            latency: Latencies::default(),
            result: RateResult {
                size,
                ..RateResult::default()
            },
            data: vec![0; size as usize],
            found: vec![0; size as usize],
        };
        for slot in 0..window {
            match run.suite.op {
                PairOp::Send => run.receive(slot)?,
                PairOp::Amo => run.suite.target.write(run.at(slot), &[0; 8])?,
                PairOp::Put | PairOp::Get => {}
            }
        }
        run.suite.target.flush();
        Ok(run)
    }

    /// Offset of a slot, the same in both memories.
    const fn at(&self, slot: usize) -> u64 {
        slot as u64 * stride(self.size)
    }

    const fn part(&self, slot: usize) -> Local {
        Local {
            offset: self.at(slot),
            bytes: self.size,
        }
    }

    fn receive(&mut self, slot: usize) -> Result<(), ProgramError> {
        let part = self.part(slot);
        Ok(self.suite.target.receive(slot as u64, part)?)
    }

    fn begin(&mut self, slot: usize) -> Result<(), ProgramError> {
        let (at, part, name) = (self.at(slot), self.part(slot), slot as u64);
        let number = self.next_number;
        self.next_number += 1;
        fill(number, &mut self.data);
        let ProgramSuite {
            source, target, op, ..
        } = &mut *self.suite;
        let to = Remote {
            processor: target.processor(),
            handle: self.handle,
            offset: at,
        };
        let is_short = self.size <= source.longest_put() as u64;
        self.places[slot] = Place {
            began: Instant::now(),
            number,
            is_under_way: true,
        };
        match op {
            PairOp::Put if is_short => source.put(name, to, &self.data, false)?,
            PairOp::Put => {
                source.write(at, &self.data)?;
                source.block_put(name, to, part, None)?;
            }
            PairOp::Get => {
                target.write(at, &self.data)?;
                match is_short && self.size.is_multiple_of(4) {
                    true => source.get(name, to, part)?,
                    false => source.block_get(name, to, part)?,
                }
            }
            PairOp::Amo => source.atomic(name, to, AtomicOp::Add, [1, 0], true)?,
            PairOp::Send => {
                source.write(at, &self.data)?;
                source.send(name, to.processor, target.member(), part)?;
            }
        }
        self.result.sent += 1;
        Ok(())
    }

    /// Handles the completion of a command of the source.
    fn ended(&mut self, slot: usize, status: Status, word: u64) -> Result<(), ProgramError> {
        let place = &mut self.places[slot];
        place.is_under_way = false;
        let (began, number) = (place.began, place.number);
        match status {
            Status::Done => self.result.acknowledged += 1,
            status if status.is_unknown() => {
                self.result.timed_out += 1;
                self.result.lost += 1;
                return Ok(());
            }
            _ => {
                self.result.refused += 1;
                return Ok(());
            }
        }
        self.latency.add(began.elapsed());
        let at = self.at(slot);
        match self.suite.op {
            PairOp::Put => {
                fill(number, &mut self.data);
                self.suite.target.read(at, &mut self.found)?;
            }
            PairOp::Get => {
                fill(number, &mut self.data);
                self.suite.source.read(at, &mut self.found)?;
            }
            PairOp::Amo => {
                self.result.corrupted += u64::from(word != self.added[slot]);
                self.added[slot] += 1;
                return Ok(());
            }
            // Nothing to compare here: the target compares sent messages.
            PairOp::Send => return Ok(()),
        }
        self.result.corrupted += u64::from(self.data != self.found);
        Ok(())
    }

    /// Accepts arrived messages. Each must have been sent, and must not have arrived before.
    fn take_messages(&mut self, arrived: &mut BTreeSet<u64>) -> Result<bool, ProgramError> {
        let mut any = false;
        while let Some(completion) = self.suite.target.poll()? {
            let Completion::Received {
                name,
                status,
                bytes,
                ..
            } = completion
            else {
                continue;
            };
            any = true;
            let slot = name as usize;
            let at = self.at(slot);
            self.suite.target.read(at, &mut self.found)?;
            let is_whole = status == Status::Done && bytes == self.size;
            match self.number_of_found().filter(|_| is_whole) {
                Some(number) if !arrived.insert(number) => self.result.duplicated += 1,
                Some(_) => {
                    while arrived.contains(&self.oldest) {
                        self.oldest += 1;
                    }
                }
                None => self.result.corrupted += 1,
            }
            self.receive(slot)?;
        }
        Ok(any)
    }

    /// Number of the message that was just found. If several short messages are equal, takes the
    /// oldest that has not arrived.
    fn number_of_found(&mut self) -> Option<u64> {
        let from = self
            .next_number
            .saturating_sub(4 * u64::from(MOST_WINDOW))
            .max(1);
        let first = self.found.len().min(8);
        let mut word = [0; 8];
        let oldest = self.oldest.max(from);
        // Messages arrive nearly in order, so try the numbers after the last arrival first.
        for number in (oldest..self.next_number).chain(from..oldest) {
            fill(number, &mut word[..first]);
            if word[..first] == self.found[..first] {
                fill(number, &mut self.data);
                if self.data == self.found {
                    return Some(number);
                }
            }
        }
        None
    }

    fn measure(mut self, stop: &Stop) -> Result<RateResult, ProgramError> {
        let (begin, span) = (Instant::now(), Duration::from_secs_f64(self.suite.seconds));
        let (mut arrived, mut ended) = (BTreeSet::new(), 0_u64);
        for slot in 0..self.places.len() {
            self.begin(slot)?;
        }
        let (mut is_over, mut under_way, mut last) = (false, self.places.len(), Instant::now());
        while under_way > 0 {
            if self.suite.op == PairOp::Send && self.take_messages(&mut arrived)? {
                last = Instant::now();
            }
            let Some(Completion::End {
                name, status, word, ..
            }) = self.next_completion(last)?
            else {
                continue;
            };
            last = Instant::now();
            self.ended(name as usize, status, word)?;
            ended += 1;
            if ended.is_multiple_of(LOOK_EVERY) || self.places.len() < LOOK_EVERY as usize {
                is_over |= last.duration_since(begin) >= span || stop.requests() > 0;
            }
            match is_over {
                true => under_way -= 1,
                false => self.begin(name as usize)?,
            }
        }
        let seconds = begin.elapsed().as_secs_f64();
        if self.suite.op == PairOp::Send {
            self.take_back(&mut arrived)?;
        }
        Ok(self.outcome(seconds))
    }

    /// The next completion of the source; `last` is the time of the previous one.
    fn next_completion(&mut self, last: Instant) -> Result<Option<Completion>, ProgramError> {
        if let Some(completion) = self.suite.source.poll()? {
            return Ok(Some(completion));
        }
        let idle = last.elapsed();
        if idle >= PATIENCE {
            return Err(ProgramError::NeverEnded);
        }
        // A message may arrive before its source gets the completion.
        Ok(match self.suite.op {
            PairOp::Send if idle < SHORT => {
                std::thread::yield_now();
                None
            }
            PairOp::Send => self.suite.source.wait(Some(SHORT))?,
            _ => self.suite.source.wait(Some(PATIENCE))?,
        })
    }

    /// Accepts messages in flight, then takes back the receives.
    fn take_back(&mut self, arrived: &mut BTreeSet<u64>) -> Result<(), ProgramError> {
        let begin = Instant::now();
        while (arrived.len() as u64) < self.result.acknowledged && begin.elapsed() < PATIENCE {
            self.take_messages(arrived)?;
        }
        self.result.lost += self
            .result
            .acknowledged
            .saturating_sub(arrived.len() as u64);
        for slot in 0..self.places.len() {
            self.suite.target.take_back(slot as u64)?;
        }
        let mut left = self.places.len();
        while left > 0 {
            match self.suite.target.wait(Some(PATIENCE))? {
                Some(Completion::End { .. }) => left -= 1,
                Some(_) => {}
                None => return Err(ProgramError::NeverEnded),
            }
        }
        Ok(())
    }

    fn outcome(mut self, seconds: f64) -> RateResult {
        self.result.seconds = seconds;
        self.result.messages_per_second = self.result.acknowledged as f64 / seconds;
        self.result.payload_bytes_per_second =
            self.result.messages_per_second * f64::from(self.result.size);
        self.result.latency = self.latency.counts();
        self.result.latency_us = LatencyUs::of(&self.result.latency);
        self.result
    }
}
