//! Bytes from a wire through every Aries decoder: frame of sets, sets, packets.
//!
//!     cargo +nightly fuzz run sets
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../framing/tests/common/decode48.rs"]
#[allow(dead_code)]
mod decode48;

fuzz_target!(|bytes: &[u8]| {
    decode48::decode(bytes);
    decode48::decode_with_checks_made_right(bytes);
});
