//! The state of a running lab: one sampler for all viewers.
//!
//! A [`Sampler`] keeps a control connection to every process of a lab and polls all of them at
//! once. The result is a [`Sample`], plain data that can be written as JSON. [`events`] finds
//! events between two samples, [`Rates`] the rates of counters. Viewers know no machine: counter
//! names are the machine's own.

mod events;
mod rates;
mod sample;
mod sampler;

#[cfg(test)]
pub(crate) mod tests;

pub use events::{EventDetector, EventKind, LabEvent, events};
pub use rates::{DirectionRates, LinkRates, NodeRates, Rates};
pub use sample::{NodeSample, Sample};
pub use sampler::Sampler;
