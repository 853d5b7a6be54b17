//! Counts of each batch of a measurement.

use super::super::model::{CycleModel, Terminal as _};
use super::super::source::Source;
use super::super::steady::Series;
use super::super::tally::Tally;
use super::{Mark, Simulation};

/// Births and departures in a measurement. Births are a random sequence that nothing influences, so
/// copies of the sources count them even if the sources themselves fall behind.
pub(super) struct Account {
    sources: Vec<Vec<Source>>,
    /// Requests born in the measurement, by terminal.
    pub(super) births: Vec<Vec<u64>>,
    pub(super) series: Series,
    /// Totals at the end of the last batch: messages born, and messages that left the system.
    counted: (u64, u64),
}

impl Account {
    /// For a measurement that begins at `mark`.
    pub(super) fn new<M: CycleModel>(run: &Simulation<M>, mark: &Mark) -> Self {
        let partitions = run.partitions.iter();
        let sources = partitions.map(|partition| {
            let terminals = partition.terminals.iter();
            terminals.map(|t| t.common().source.clone()).collect()
        });
        let sources: Vec<Vec<Source>> = sources.collect();
        let births = sources.iter().map(|some| vec![0; some.len()]).collect();
        let inside =
            (mark.tally.requests_sent + mark.waiting).saturating_sub(gone(run, &mark.tally));
        let mut account = Self {
            sources,
            births,
            series: Series::new(inside),
            counted: (0, gone(run, &mark.tally)),
        };
        // Do not count requests waiting at the start: they were born earlier.
        account.advance(run);
        for births in account.births.iter_mut().flatten() {
            *births = 0;
        }
        account
    }

    /// Counts births up to the current cycle.
    fn advance<M: CycleModel>(&mut self, run: &Simulation<M>) {
        let parts = run.partitions.iter().zip(&mut self.sources);
        for ((partition, sources), births) in parts.zip(&mut self.births) {
            let shared = &partition.shared;
            let terminals = partition.terminals.iter().zip(sources);
            for ((terminal, source), births) in terminals.zip(births) {
                let number = terminal.common().number;
                while source.head().birth < run.cycle {
                    source.take(number, &shared.births, &shared.destinations);
                    *births += 1;
                }
            }
        }
    }

    /// Ends a batch `cycles` cycles after the start of the measurement.
    pub(super) fn add<M: CycleModel>(&mut self, run: &Simulation<M>, cycles: u64) {
        self.advance(run);
        let born: u64 = self.births.iter().flatten().sum();
        let gone = gone(run, &run.tally());
        let (born_before, gone_before) = self.counted;
        self.series
            .add(cycles, born - born_before, gone.saturating_sub(gone_before));
        self.counted = (born, gone);
    }

    /// Counts births after the last whole batch.
    pub(super) fn end<M: CycleModel>(&mut self, run: &Simulation<M>) {
        self.advance(run);
    }
}

/// Messages that arrived or were destroyed by a fault.
fn gone<M: CycleModel>(run: &Simulation<M>, tally: &Tally) -> u64 {
    tally.latency_packets + run.discarded()[0]
}
