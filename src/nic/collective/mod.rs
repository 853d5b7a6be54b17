//! Collective operations: what a run of them is, what its operations do with words, and what came
//! of it. How network interfaces carry them out is each machine's own.

mod operation;
#[cfg(test)]
mod operation_tests;
mod report;
mod spec;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use operation::{Collective, Number, Operand, Reduce, UnknownCollective};
pub use report::CollectiveReport;
pub use spec::{CollectiveSpec, CollectiveSpecError, DEFAULT_PATIENCE, ENGINES, MAX_BRANCHING};
