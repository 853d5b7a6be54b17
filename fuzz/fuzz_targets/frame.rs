//! Decodes bytes from a wire with every BlackWidow decoder: frame, training, sideband, packets.
//!
//!     cargo +nightly fuzz run frame
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../framing/tests/yarc/decode.rs"]
mod decode;

fuzz_target!(|bytes: &[u8]| {
    decode::decode(bytes);
    decode::decode_with_checks_made_right(bytes);
});
