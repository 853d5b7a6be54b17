//! Collective operations: specification of a run, its operations on words, and its report. How NICs
//! carry them out depends on the machine.

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
