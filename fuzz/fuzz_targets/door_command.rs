//! Decodes entries of the rings that programs and NICs share, and their handshake messages.
//!
//!     cargo +nightly fuzz run door_command
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../framing/tests/door/decode.rs"]
#[allow(dead_code)]
mod decode;

fuzz_target!(|bytes: &[u8]| {
    decode::decode(bytes);
});
