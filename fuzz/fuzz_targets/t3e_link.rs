//! Runs operations on two T3E link ends: packets pushed and taken, timers, commands, hostile bytes
//! and forged bursts; frames are delivered, lost, duplicated and corrupted.
//!
//!     cargo +nightly fuzz run t3e_link
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/t3e_link/operations.rs"]
mod operations;

fuzz_target!(|bytes: &[u8]| {
    operations::run(bytes);
});
