//! Flits of six bytes as Aries packets, with and without length and check made right.
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
