//! The phases of a run: warm up, measure, drain, empty.

mod account;
mod accounts;
mod faults;
mod measure;

use core::marker::PhantomData;
use std::collections::{BTreeMap, VecDeque};

use super::check::Violation;
use super::config::{Config, ConfigError, Warmup};
use super::encoded::all_up;
use super::executor::Executor;
use super::fault::Switch;
use super::mail::MailError;
use super::message_trace::{Found, MessageTrace};
use super::model::{ChipView, CycleModel, DirectModel, Partitioned, PortUse};
use super::part::{Command, LocalPart};
use super::parts::{Assembly, InMemory, Parts};
use super::report::{Report, State, Unsettled};
use super::steady::BATCHES;
use super::summary::{Census, EndName, Loads, Section};
use super::tally::Tally;
use super::watch::{Watch, Watcher, end_name};
use crate::link::impair::Netem;
use crate::net::End;
use crate::sim::tap::Tap;
use crate::time::Duration;
use account::Account;

/// Cycles between two checks on the progress of a phase.
const BATCH_CYCLES: u64 = 1_000;
/// The warm-up compares intervals of at least this many packets, or of [`MAX_INTERVAL_CYCLES`].
const INTERVAL_PACKETS: u64 = 2_000;
const MAX_INTERVAL_CYCLES: u64 = 10_000;
/// Largest relative change of mean latency and of accepted load that counts as none (BookSim:
/// 0.05).
const SAME: f64 = 0.03;
/// Consecutive intervals that must agree (BookSim's number).
const SAME_INTERVALS: u32 = 3;
/// Virtual time in which encoded links must come up.
const BRING_UP: Duration = Duration::from_ms(1_000);
/// Cycles that packets may still take over encoded links after the sources have stopped: retry
/// timeouts far exceed the time to cross the network.
const ENCODED_REST_CYCLES: u64 = 800_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimPhase {
    /// Traffic without measurement.
    Warmup,
    /// Packets born now are measured.
    Measure,
    /// Traffic continues until all measured packets have arrived.
    Drain,
    /// No packets are born; those in flight must arrive.
    Empty,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimProgress {
    pub phase: SimPhase,
    /// Cycles of this phase that have run.
    pub cycles: u64,
    /// Maximum number of cycles of the phase.
    pub limit: u64,
}

/// A network with its traffic: the phases of a run, and their results. It observes its parts only
/// through their [summaries](super::summary::Summary), and controls them only by [`Command`]s.
pub struct Simulation<M: CycleModel> {
    config: Config,
    parts: Box<dyn Parts>,
    census: Census,
    kinds: Vec<Option<PortUse>>,
    /// Terminals with something to send.
    senders: u64,
    /// Cycles between two mail exchanges.
    stride: u64,
    /// Latency of the longest link in cycles.
    longest: u64,
    /// Cycles per phit on the slowest link.
    slowest: u64,
    /// Whether links are encoded.
    encoded: bool,
    pub cycle: u64,
    /// Cycle at which the current phase began.
    began: u64,
    /// Pending link faults and repairs, earliest first.
    switches: VecDeque<Switch>,
    /// Names of the ends of the links to switch.
    names: BTreeMap<End, EndName>,
    /// Number of faults that currently break each link.
    broken: BTreeMap<u32, u32>,
    /// Whether a fault is planned or has happened.
    has_faults: bool,
    watch: Option<Watch>,
    /// The flow traced from the measurement on.
    message_trace: Option<MessageTrace>,
    model: PhantomData<fn() -> M>,
}

/// Reports the progress of a phase from its start. `limit` is a whole number of windows.
fn progress_of(
    progress: &mut impl FnMut(SimProgress),
    phase: SimPhase,
    limit: u64,
) -> impl FnMut(u64) {
    let mut report_progress = move |cycles| {
        progress(SimProgress {
            phase,
            cycles,
            limit,
        });
    };
    report_progress(0);
    report_progress
}

/// Sums of the stages' state, sampled during the measurement.
#[derive(Clone, Copy, Debug, Default)]
struct StageSamples {
    samples: u64,
    phits: [u64; 3],
}

impl StageSamples {
    fn add(&mut self, chips: &ChipView) {
        self.samples += 1;
        for (sum, phits) in self.phits.iter_mut().zip(chips.phits_by_stage) {
            *sum += phits;
        }
    }
}

/// Values compared between the start and the end of the measurement.
struct Mark {
    tally: Tally,
    chips: ChipView,
    loads: Loads,
}

impl Mark {
    /// Messages born but not sent, replies included.
    fn backlog(&self) -> u64 {
        self.loads.waiting + self.tally.replies_made - self.tally.replies_sent
    }
}

impl<M: CycleModel> Simulation<M> {
    /// The network of `topology` with the traffic of `config`, cut into `partitions` parts;
    /// their number does not change the result.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn new(
        topology: &M::Topology,
        config: &Config,
        options: &M::Options,
        partitions: usize,
    ) -> Result<Self, ConfigError> {
        Self::assembled(topology, config, options, partitions, &InMemory)
    }

    /// Like [`new`](Self::new), with parts placed by `assembly`.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn assembled(
        topology: &M::Topology,
        config: &Config,
        options: &M::Options,
        partitions: usize,
        assembly: &impl Assembly,
    ) -> Result<Self, ConfigError> {
        let network = M::Direct::build(topology, config, options, partitions)?;
        let mut simulation = Self::of(network, config, false, assembly);
        simulation.plan_faults(topology)?;
        simulation.plan_trace(topology)?;
        Ok(simulation)
    }

    /// Like [`new`](Self::new), with encoded links, whose frames are impaired by `netem`. Brings
    /// all links up before the sources start.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn with_encoded_links(
        topology: &M::Topology,
        config: &Config,
        options: &M::Options,
        netem: Option<Netem>,
        partitions: usize,
        executor: &mut dyn Executor,
    ) -> Result<Self, ConfigError> {
        let how = (netem, partitions);
        Self::assembled_encoded(topology, config, options, how, &InMemory, executor)
    }

    /// Like [`with_encoded_links`](Self::with_encoded_links), with parts placed by `assembly`.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn assembled_encoded(
        topology: &M::Topology,
        config: &Config,
        options: &M::Options,
        (netem, partitions): (Option<Netem>, usize),
        assembly: &impl Assembly,
        executor: &mut dyn Executor,
    ) -> Result<Self, ConfigError> {
        if config.traced.is_some() {
            return Err(ConfigError::TracedEncoded);
        }
        let network = M::build_encoded(topology, config, options, netem, partitions)?;
        let mut simulation = Self::of(network, config, true, assembly);
        let limit = BRING_UP.as_ps() / M::CYCLE.as_ps();
        let up = simulation.phase(executor, limit, BATCH_CYCLES, |run, _| {
            all_up(&mut run.ends().encoded)
        })?;
        if !up {
            return Err(ConfigError::LinksDown);
        }
        simulation.parts.command(&Command::Begin(simulation.cycle));
        simulation.plan_faults(topology)?;
        Ok(simulation)
    }

    fn of<P: LocalPart>(
        network: Partitioned<P>,
        config: &Config,
        encoded: bool,
        assembly: &impl Assembly,
    ) -> Self {
        let parts = assembly.assemble(network.parts);
        let census = parts.summary(Section::Census).census;
        Self {
            config: config.clone(),
            parts,
            senders: census.terminals.iter().filter(|t| t.sends).count() as u64,
            census,
            kinds: network.kinds,
            stride: network.stride.into(),
            longest: network.longest.into(),
            slowest: network.slowest.into(),
            encoded,
            cycle: 0,
            began: 0,
            switches: VecDeque::new(),
            names: BTreeMap::new(),
            broken: BTreeMap::new(),
            has_faults: false,
            watch: None,
            message_trace: None,
            model: PhantomData,
        }
    }

    /// Passes the network's state to `watcher` every `every` cycles from now on.
    pub(crate) fn watch(&mut self, topology: &M::Topology, every: u64, watcher: Watcher) {
        self.watch = Some(Watch::new::<M>(topology, every, watcher));
    }

    /// Passes every frame that a link end sends from now on to `tap`. Direct links send no frames.
    /// With one part, frames arrive in time order.
    pub(crate) fn set_tap(&mut self, tap: &Tap) {
        self.parts.command(&Command::Tap(Tap::clone(tap)));
    }

    /// Prepares the configured trace.
    fn plan_trace(&mut self, topology: &M::Topology) -> Result<(), ConfigError> {
        let Some(traced) = self.config.traced else {
            return Ok(());
        };
        let terminals = |nic| -> Vec<u64> {
            let ports = 0..M::PORTS.min(64) as u8;
            let numbers = ports.filter_map(|port| M::terminal(topology, nic, port));
            let mut numbers: Vec<u64> = numbers.collect();
            numbers.dedup();
            numbers
        };
        let ends = (terminals(traced.from), terminals(traced.to));
        let message_trace = MessageTrace::new(&traced, ends);
        if message_trace.from.is_empty() || message_trace.to.is_empty() {
            return Err(ConfigError::NothingToTrace);
        }
        self.message_trace = Some(message_trace);
        Ok(())
    }

    /// The results of the trace; empty before the run.
    pub fn found(&mut self) -> Found {
        self.parts.command(&Command::EndTrace);
        let records = self.parts.summary(Section::Records).records;
        let mut found = Found::default();
        for (chip, passages, dropped) in records.routers {
            found.add_router(chip, passages, dropped);
        }
        for message_trace in &records.terminals {
            found.add_messages(message_trace);
        }
        for message_trace in &records.terminals {
            found.add_arrivals(message_trace);
        }
        found
    }

    /// Runs `windows` windows without threads.
    #[cfg(any(test, feature = "testing"))]
    pub fn run_windows(&mut self, windows: u64) {
        let ran = self.parts.run(&mut super::executor::Serial, windows);
        ran.expect("mail in memory is not damaged");
        self.cycle += windows * self.stride;
    }

    /// Runs all phases and returns the report. Reports progress to `progress` throughout.
    pub fn run(
        &mut self,
        executor: &mut dyn Executor,
        mut progress: impl FnMut(SimProgress),
    ) -> Report {
        match self.run_phases(executor, &mut progress) {
            Ok(report) => report,
            // Without the mail the results of the parts would be wrong.
            Err(error) => Report {
                seed: self.config.seed,
                cycles: self.cycle,
                state: State::Unsettled(Unsettled::Aborted),
                violations: vec![Violation::Mail(error)],
                ..Report::default()
            },
        }
    }

    fn run_phases(
        &mut self,
        executor: &mut dyn Executor,
        progress: &mut impl FnMut(SimProgress),
    ) -> Result<Report, MailError> {
        let converged = self.warm_up(executor, progress)?;
        let mut cycles = self.config.measure_cycles;
        let mut report = self.measure(executor, cycles, progress)?;
        let most = self.config.most_measure_cycles;
        while report.state.needs_longer() && cycles.saturating_mul(2) <= most {
            cycles *= 2;
            report = self.measure(executor, cycles, progress)?;
        }
        report.converged = converged;
        if !report.saturated && !self.drain(executor, progress)? {
            report.saturated = true;
            report.state = State::Saturated;
        }
        self.empty(executor, progress, &mut report.violations)?;
        self.finish(&mut report);
        Ok(report)
    }

    /// Measures for the next `cycles` cycles.
    fn measure(
        &mut self,
        executor: &mut dyn Executor,
        cycles: u64,
        progress: &mut impl FnMut(SimProgress),
    ) -> Result<Report, MailError> {
        let warmup_cycles = self.cycle;
        let measured = warmup_cycles..warmup_cycles + self.rounded(cycles);
        self.parts.command(&Command::Measure(measured));
        if let Some(message_trace) = &mut self.message_trace {
            message_trace.since = warmup_cycles;
            self.parts.command(&Command::Trace(message_trace.clone()));
        }
        let before = self.mark();
        let mut samples = StageSamples::default();
        let mut account = Account::new(self, &before);
        let limit = self.rounded(cycles);
        let batch = self.rounded(limit.div_ceil(BATCHES));
        let mut report_progress = progress_of(progress, SimPhase::Measure, limit);
        self.phase(executor, limit, batch.min(BATCH_CYCLES), |run, cycles| {
            report_progress(cycles);
            samples.add(&run.chips());
            if cycles - account.series.cycles() >= batch {
                account.add(run, cycles);
            }
            false
        })?;
        let births = self.births();
        let after = self.mark();
        let mut report = self.measured((&before, &after), samples, &account);
        report.fairness.least = self.least_served(&before, &after, &births);
        report.warmup_cycles = warmup_cycles;
        Ok(report)
    }

    /// Rounds up to whole windows.
    fn rounded(&self, cycles: u64) -> u64 {
        let window = self.stride;
        let most = u64::MAX / window * window;
        cycles.checked_next_multiple_of(window).unwrap_or(most)
    }

    /// Runs up to `limit` cycles in batches until `look` returns true. Returns whether it did.
    fn phase(
        &mut self,
        executor: &mut dyn Executor,
        limit: u64,
        batch: u64,
        mut look: impl FnMut(&mut Self, u64) -> bool,
    ) -> Result<bool, MailError> {
        let window = self.stride;
        let limit = self.rounded(limit);
        self.began = self.cycle;
        while self.cycle - self.began < limit {
            let left = limit - (self.cycle - self.began);
            let quiet = self.break_links();
            let quiet = self.rounded(quiet);
            let windows = left.min(self.rounded(batch)).min(quiet) / window;
            self.run_watched(executor, windows)?;
            if look(self, self.cycle - self.began) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs `windows` windows, calling the watcher when it is due.
    fn run_watched(&mut self, executor: &mut dyn Executor, windows: u64) -> Result<(), MailError> {
        let mut left = windows;
        while left > 0 {
            let due = self.watch.as_ref().map(|watch| watch.due_in(self.cycle));
            let due = due.map_or(left, |due| due.div_ceil(self.stride).max(1));
            let windows = left.min(due);
            self.parts.run(executor, windows)?;
            self.cycle += windows * self.stride;
            left -= windows;
            if let Some(watch) = &mut self.watch
                && watch.due_in(self.cycle) == 0
            {
                let broken = |link| self.broken.get(&link).is_some_and(|&times| times > 0);
                let snapshot = self.parts.summary(Section::Snapshot).snapshot;
                watch.pass_snapshot(self.cycle, snapshot, broken);
            }
        }
        Ok(())
    }

    /// Returns whether latency and accepted load have settled; true for a fixed number of cycles.
    fn warm_up(
        &mut self,
        executor: &mut dyn Executor,
        progress: &mut impl FnMut(SimProgress),
    ) -> Result<bool, MailError> {
        let (limit, fixed) = match self.config.warmup {
            Warmup::Cycles(cycles) => (cycles, true),
            Warmup::Converge { limit } => (limit, false),
        };
        let mut last = (Tally::default(), 0);
        let mut means: Option<(f64, f64)> = None;
        let mut same = 0;
        let mut report_progress = progress_of(progress, SimPhase::Warmup, self.rounded(limit));
        let settled = self.phase(executor, limit, BATCH_CYCLES, |run, cycles| {
            report_progress(cycles);
            let tally = run.tally();
            let interval = tally.since(&last.0);
            let length = cycles - last.1;
            if fixed || interval.latency_packets < INTERVAL_PACKETS && length < MAX_INTERVAL_CYCLES
            {
                return false;
            }
            last = (tally, cycles);
            let latency = interval.latency_cycles as f64 / interval.latency_packets.max(1) as f64;
            let accepted = interval.arrived_phits as f64 / length as f64;
            let close = |a: f64, b: f64| (a - b).abs() <= SAME * a.max(b);
            let is_same = means.is_some_and(|(l, a)| close(l, latency) && close(a, accepted));
            // Do not count an interval in which nothing arrived as settled.
            let is_same = is_same && interval.latency_packets > 0;
            same = if is_same { same + 1 } else { 0 };
            means = Some((latency, accepted));
            same >= SAME_INTERVALS
        })?;
        Ok(settled || fixed)
    }

    /// Returns whether all measured packets arrived in time.
    fn drain(
        &mut self,
        executor: &mut dyn Executor,
        progress: &mut impl FnMut(SimProgress),
    ) -> Result<bool, MailError> {
        let limit = self.config.drain_cycles;
        let mut report_progress = progress_of(progress, SimPhase::Drain, self.rounded(limit));
        if self.is_drained() {
            return Ok(true);
        }
        self.phase(executor, limit, BATCH_CYCLES, |run, cycles| {
            report_progress(cycles);
            run.is_drained()
        })
    }

    fn is_drained(&self) -> bool {
        let tally = self.tally();
        // Do not wait for packets that a fault destroyed.
        tally.measured_sent <= tally.measured_arrived + self.discarded()[0]
            && self.terminals().behind == 0
    }

    /// Stops the sources and waits until the network is empty. However packets block each other, a
    /// phit leaves every cycle or within a few round trips. If links are long and credits few, each
    /// phit may take that long, so the network counts as starved only if none leaves for that long.
    fn empty(
        &mut self,
        executor: &mut dyn Executor,
        progress: &mut impl FnMut(SimProgress),
        violations: &mut Vec<Violation>,
    ) -> Result<(), MailError> {
        self.parts.command(&Command::Stop);
        let tally = self.tally();
        let inside = tally.sent_phits - tally.arrived_phits + self.terminals().reserved;
        let replies = 2 * (tally.replies_made - tally.replies_sent) * self.census.message_phits;
        let link = self.longest;
        let mut patience = 100 * (link + 30) + 1_000;
        if self.encoded {
            patience += ENCODED_REST_CYCLES;
        }
        let mut limit = self.slowest * (2 * inside + replies) + patience;
        let empty = |run: &Self| {
            let tally = run.tally();
            tally.sent_phits == tally.arrived_phits + run.discarded()[1]
                && run.terminals().busy == 0
        };
        let mut done = empty(self);
        let mut left = None;
        while !done && left != Some(self.tally().arrived_phits) {
            left = Some(self.tally().arrived_phits);
            let mut report_progress = progress_of(progress, SimPhase::Empty, self.rounded(limit));
            done = self.phase(executor, limit, BATCH_CYCLES, |run, cycles| {
                report_progress(cycles);
                empty(run)
            })?;
            limit = patience;
        }
        if !done {
            let tally = self.tally();
            violations.push(Violation::Starved {
                phits: tally.sent_phits.wrapping_sub(tally.arrived_phits),
                cycles: self.cycle - self.began,
            });
        }
        // Credits of the last phits are still in flight; over encoded links, so are
        // acknowledgements.
        let rest = if self.encoded {
            ENCODED_REST_CYCLES
        } else {
            4 * link
        };
        self.phase(executor, rest, BATCH_CYCLES, |run, _| {
            run.encoded && run.link_violations().is_empty()
        })?;
        self.check_now(violations);
        self.check_packets(violations);
        Ok(())
    }
}

#[cfg(any(test, feature = "testing"))]
impl<M: CycleModel> Simulation<M> {
    /// The parts of a network with direct links.
    ///
    /// # Panics
    /// If links are encoded.
    pub fn direct_parts(&self) -> &[super::DirectPart<M>] {
        let parts: &dyn core::any::Any = &*self.parts;
        let parts: Option<&super::parts::Local<super::DirectPart<M>>> = parts.downcast_ref();
        &parts.expect("a network with direct links").0
    }

    /// See [`direct_parts`](Self::direct_parts).
    ///
    /// # Panics
    /// If links are encoded.
    pub fn direct_parts_mut(&mut self) -> &mut [super::DirectPart<M>] {
        let parts: &mut dyn core::any::Any = &mut *self.parts;
        let parts: Option<&mut super::parts::Local<super::DirectPart<M>>> = parts.downcast_mut();
        &mut parts.expect("a network with direct links").0
    }
}
