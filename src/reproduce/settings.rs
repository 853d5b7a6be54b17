//! Named tables, and the settings of a run.

use core::fmt;
use core::ops::Range;

use super::table::Table;

/// Default number of permutations to average over.
pub const PERMUTATIONS: u64 = 10_000;

/// A table that can be reproduced.
#[derive(Debug)]
pub struct Reproduction {
    /// Name of the table in commands: the machine's name and the table's.
    pub name: &'static str,
    /// Content of the table, in one line.
    pub help: &'static str,
    /// Computes the table, or returns the reason why it cannot.
    pub run: fn(&Settings<'_>) -> Result<Table, String>,
}

/// Runs a range of trials, by number; the implementation combines the counts.
pub type Part<'p> = &'p (dyn Fn(Range<u64>) + Sync);

#[derive(Clone, Copy)]
pub struct Settings<'s> {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Random permutations per size, in tables that average over them.
    pub permutations: u64,
    /// Runs the given number of trials, once each. The caller may divide them into any parts, for
    /// threads or one after the other, since this crate has no threads.
    pub divided: &'s dyn Fn(u64, Part<'_>),
}

impl Settings<'_> {
    /// The settings of the papers with this seed; all trials run in one part.
    pub fn of_the_paper(seed: u64) -> Self {
        Self {
            seed,
            permutations: PERMUTATIONS,
            divided: &|trials, part| part(0..trials),
        }
    }
}

impl fmt::Debug for Settings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("seed", &self.seed)
            .field("permutations", &self.permutations)
            .finish_non_exhaustive()
    }
}
