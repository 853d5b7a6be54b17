//! Operations on two Aries link ends: pushes, frames delivered, lost, doubled and corrupted,
//! hostile bytes, forged frames, timers and commands.
//!
//!     cargo +nightly fuzz run aries_link
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/aries_link/operations.rs"]
mod operations;

fuzz_target!(|bytes: &[u8]| {
    operations::run(bytes);
});
