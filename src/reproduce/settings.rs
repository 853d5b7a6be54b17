//! Tables by name, and what a run of one is told.

use core::fmt;
use core::ops::Range;

use super::table::Table;

/// Permutations that are averaged over unless somebody says otherwise.
pub const PERMUTATIONS: u64 = 10_000;

/// A table that can be reproduced.
#[derive(Debug)]
pub struct Reproduction {
    /// The name by which it is asked for: the machine's and the table's.
    pub name: &'static str,
    /// What it shows, in one line.
    pub help: &'static str,
    /// Makes the table, or says why that is impossible.
    pub run: fn(&Settings<'_>) -> Result<Table, String>,
}

/// Some trials of many, by their numbers. Who runs them counts them together.
pub type Part<'p> = &'p (dyn Fn(Range<u64>) + Sync);

/// What a run is told.
#[derive(Clone, Copy)]
pub struct Settings<'s> {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Random permutations per size, in tables that average over some.
    pub permutations: u64,
    /// Has the given number of trials run, once each, divided into parts at will: on threads, which this crate
    /// has not, or one part after the other.
    pub divided: &'s dyn Fn(u64, Part<'_>),
}

impl Settings<'_> {
    /// The settings of the paper with this seed; all trials in one part.
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
