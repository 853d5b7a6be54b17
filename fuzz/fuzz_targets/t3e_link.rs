//! Operations on two T3E link ends: packets pushed and taken, frames delivered, lost, doubled,
//! corrupted, forged bursts, hostile bytes, timers and commands.
//!
//!     cargo +nightly fuzz run t3e_link
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/t3e_link/operations.rs"]
mod operations;

fuzz_target!(|bytes: &[u8]| {
    operations::run(bytes);
});
