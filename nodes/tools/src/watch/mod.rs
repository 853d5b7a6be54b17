//! How a running lab stands, for those who look at it: one sampler for all of them.
//!
//! A [`Sampler`] keeps a control connection to every process of a lab and asks all of them at once;
//! what it brings is a [`Sample`], plain data that can be written as JSON. [`events`] says what has
//! happened between two samples, [`Rates`] how much. Whoever shows this to people knows no machine:
//! the names of counters are the machine's own.

mod events;
mod rates;
mod sample;
mod sampler;

#[cfg(test)]
pub(crate) mod tests;

pub use events::{Chronicle, EventKind, LabEvent, events};
pub use rates::{DirectionRates, LinkRates, NodeRates, Rates};
pub use sample::{NodeSample, Sample};
pub use sampler::Sampler;
