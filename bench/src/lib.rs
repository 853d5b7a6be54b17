//! Measurements of phitwire networks.
//!
//! [`msgrate`] measures message rate and latency of a running lab, with every message verified; it
//! is the library of the `phitwire-msgrate` command. The microbenchmarks are under `benches/`.

pub mod msgrate;
