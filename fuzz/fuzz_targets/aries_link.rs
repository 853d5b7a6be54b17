//! Runs operations on two Aries link ends: pushes, timers, commands, hostile bytes and forged
//! frames; frames are delivered, lost, duplicated and corrupted.
//!
//!     cargo +nightly fuzz run aries_link
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/aries_link/operations.rs"]
mod operations;

fuzz_target!(|bytes: &[u8]| {
    operations::run(bytes);
});
