//! Counts of each batch of a measurement.

use super::super::model::CycleModel;
use super::super::steady::Series;
use super::super::tally::Tally;
use super::{Mark, Simulation};

/// Births and departures in a measurement.
pub(super) struct Account {
    pub(super) series: Series,
    /// Totals at the end of the last batch: messages born, and messages that left the system.
    counted: (u64, u64),
}

impl Account {
    /// The account of a measurement that begins at `mark`.
    pub(super) fn new<M: CycleModel>(run: &Simulation<M>, mark: &Mark) -> Self {
        let gone = gone(run, &mark.tally);
        let inside = (mark.tally.requests_sent + mark.loads.waiting).saturating_sub(gone);
        Self {
            series: Series::new(inside),
            counted: (0, gone),
        }
    }

    /// Ends a batch `cycles` cycles after the start of the measurement.
    pub(super) fn add<M: CycleModel>(&mut self, run: &mut Simulation<M>, cycles: u64) {
        let born: u64 = run.births().iter().sum();
        let gone = gone(run, &run.tally());
        let (born_before, gone_before) = self.counted;
        self.series
            .add(cycles, born - born_before, gone.saturating_sub(gone_before));
        self.counted = (born, gone);
    }
}

/// Messages that arrived or were destroyed by a fault.
fn gone<M: CycleModel>(run: &Simulation<M>, tally: &Tally) -> u64 {
    tally.latency_packets + run.discarded()[0]
}
