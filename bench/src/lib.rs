//! Measurements of phitwire networks.
//!
//! [`msgrate`] measures message rate and latency of a running lab, and verifies every message; it
//! is the library of the `phitwire-msgrate` command. [`suite`] is the library of `phitwire-bench`:
//! latency, bandwidth, random updates and collective operations. [`plot`] draws the results of
//! both. The microbenchmarks are under `benches/`.
//!
//! `docs/guide/src/results.md` in the guide has the results.

pub mod commands;
pub mod msgrate;
pub mod plot;
pub mod suite;
