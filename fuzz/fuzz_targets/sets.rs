//! Decodes bytes from a wire with every Aries decoder: frame of sets, sets, packets.
//!
//!     cargo +nightly fuzz run sets
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../framing/tests/aries/decode.rs"]
#[allow(dead_code)]
mod decode;

fuzz_target!(|bytes: &[u8]| {
    decode::decode(bytes);
    decode::decode_with_checks_made_right(bytes);
});
