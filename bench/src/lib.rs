//! Benchmarks of phitwire.
