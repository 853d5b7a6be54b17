//! Networks in virtual time: the core crate's simulator with threads, a clock and files.
//!
//! [`Threads`] runs the partitions of a network in parallel. [`measure`] runs one load or several
//! and adds figures of the host (wall time, memory). [`output`], [`json`], [`sweep`] and [`plot`]
//! write the results.

pub mod json;
mod measure;
pub(crate) mod messages;
pub mod output;
pub mod plot;
mod record;
pub(crate) mod sweep;
mod threads;

pub(crate) use measure::Measured;
pub use measure::measure;
pub(crate) use record::Record;
pub use threads::Threads;
