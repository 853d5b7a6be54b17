//! Whole networks in virtual time: every message arrives once and in order, whatever the links do.
//!
//! Each file covers one kind of fault. All randomness comes from the seeds named in the tests.

mod encoded;
mod fairness;
mod faults;
mod golden;
mod harness;
mod memory;
mod netem;
mod outage;
mod parts;
mod plain;
mod rate;
mod shapes;
mod soak;
