//! Decodes flits of six bytes as Aries packets, with and without corrected length and check.
//!
//!     cargo +nightly fuzz run packet48
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../framing/tests/aries/decode.rs"]
#[allow(dead_code)]
mod decode;

fuzz_target!(|bytes: &[u8]| {
    decode::decode_as_packet(bytes);
});
