//! Flits of six bytes as Aries packets, with and without length and check made right.
//!
//!     cargo +nightly fuzz run packet48
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../framing/tests/common/decode48.rs"]
#[allow(dead_code)]
mod decode48;

fuzz_target!(|bytes: &[u8]| {
    decode48::decode_as_packet(bytes);
});
