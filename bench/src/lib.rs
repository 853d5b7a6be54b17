//! Measurements of phitwire networks.
//!
//! [`msgrate`] measures message rate and latency of a running lab, with every message verified; it
//! is the library of the `phitwire-msgrate` command, as [`suite`] is that of `phitwire-bench`:
//! latency, bandwidth, random updates and collective operations; [`plot`] draws what both find. The microbenchmarks are under
//! `benches/`.
//!
//! `docs/guide/src/results.md` in the guide has what they measured.

pub mod commands;
pub mod msgrate;
pub mod plot;
pub mod suite;
