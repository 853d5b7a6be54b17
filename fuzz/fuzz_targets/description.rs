//! Reads arbitrary bytes as a description, with all machines.
//!
//!     cargo +nightly fuzz run description
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/descriptions/answer.rs"]
mod answer;

fuzz_target!(|bytes: &[u8]| {
    answer::answer(bytes);
});
