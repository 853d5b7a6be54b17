//! Sources and sinks of a part, for any kind of links.

use super::model::{CycleModel, Terminal as _};
use super::part::Command;
use super::shared::Shared;
use super::source::{HELD_BACK, NEVER, Source};
use super::summary::{
    Census, Loads, Records, Results, Section, Summary, TerminalName, TerminalSums,
};

/// Maximum number of waiting packets counted per source.
const MOST_WAITING: u64 = 1 << 20;

/// The terminals of a part, with the state that they share.
#[derive(Debug)]
pub struct Endpoints<M: CycleModel> {
    pub terminals: Vec<M::Terminal>,
    pub shared: Shared<M>,
    /// Copies of the sources as they were when the measurement began, advanced to the last count,
    /// and the births counted.
    ahead: Vec<(Source, u64)>,
}

impl<M: CycleModel> Endpoints<M> {
    pub(super) fn new(terminals: Vec<M::Terminal>, shared: Shared<M>) -> Self {
        Self {
            terminals,
            shared,
            ahead: Vec::new(),
        }
    }

    /// Carries out the terminals' share of a command, at the start of cycle `now`.
    pub(super) fn command(&mut self, command: &Command, now: u64) {
        match command {
            Command::Begin(cycle) => {
                for terminal in &mut self.terminals {
                    terminal.common_mut().source.reschedule(HELD_BACK, *cycle);
                }
            }
            Command::Measure(cycles) => {
                self.shared.begin_measurement(cycles.clone());
                let sources = self.terminals.iter().map(|t| t.common().source.clone());
                self.ahead = sources.map(|source| (source, 0)).collect();
                // Do not count requests waiting at the start: they were born earlier.
                self.count_births(now);
                self.ahead.iter_mut().for_each(|(_, births)| *births = 0);
            }
            Command::CountBirths => self.count_births(now),
            Command::Trace(message_trace) => {
                self.shared.message_trace = Some(Box::new(message_trace.clone()))
            }
            Command::Stop => {
                for terminal in &mut self.terminals {
                    terminal.common_mut().source.stop();
                }
            }
            Command::EndTrace | Command::SetLink { .. } | Command::Tap(_) => {}
        }
    }

    fn count_births(&mut self, now: u64) {
        let (births, destinations) = (&self.shared.births, &self.shared.destinations);
        for (terminal, (source, count)) in self.terminals.iter().zip(&mut self.ahead) {
            let number = terminal.common().number;
            while source.head().birth < now {
                source.take(number, births, destinations);
                *count += 1;
            }
        }
    }

    /// The terminals' share of a section, at the start of cycle `now`.
    pub(super) fn summary(&self, section: Section, now: u64) -> Summary {
        let mut summary = Summary::default();
        match section {
            Section::Census => summary.census = self.census(),
            Section::Tally => summary.tally = self.shared.tally,
            Section::Terminals => summary.terminals = self.sums(),
            Section::Loads => summary.loads = self.loads(now),
            Section::Births => {
                summary.births = self.ahead.iter().map(|&(_, births)| births).collect();
            }
            Section::Results => summary.results = self.results(),
            Section::Records => {
                let message_trace = self.shared.message_trace.as_deref().cloned();
                summary.records = Records {
                    terminals: message_trace.into_iter().collect(),
                    routers: Vec::new(),
                };
            }
            Section::Chips | Section::Ends | Section::Snapshot => {}
        }
        summary
    }

    fn census(&self) -> Census {
        let terminals = self.terminals.iter().map(|terminal| {
            let common = terminal.common();
            TerminalName {
                number: common.number,
                silent: self.shared.destinations.is_silent(common.number),
                sends: common.source.head().birth != NEVER,
            }
        });
        Census {
            chips: Vec::new(),
            terminals: terminals.collect(),
            message_phits: self.shared.births.phits(),
        }
    }

    fn sums(&self) -> TerminalSums {
        let end = self.shared.measured.end;
        let mut sums = TerminalSums::default();
        for terminal in &self.terminals {
            sums.behind += u64::from(terminal.common().source.head().birth < end);
            sums.busy += u64::from(!terminal.is_at_rest());
            sums.reserved += terminal.reserved();
        }
        sums
    }

    fn loads(&self, now: u64) -> Loads {
        let (births, destinations) = (&self.shared.births, &self.shared.destinations);
        let mut loads = Loads::default();
        for terminal in &self.terminals {
            let common = terminal.common();
            let source = &common.source;
            let (most, number) = (MOST_WAITING, common.number);
            loads.waiting += source.waiting_before(now, most, number, births, destinations);
            loads.terminals.push(common.sent_phits);
        }
        loads
    }

    fn results(&self) -> Results {
        let commons = self.terminals.iter().map(|terminal| terminal.common());
        Results {
            latencies: self.shared.latencies.totals(),
            arrived_latencies: self.shared.arrived_latencies.totals(),
            traces: commons.map(|t| (t.number, t.trace.value())).collect(),
            ..Results::default()
        }
    }
}
