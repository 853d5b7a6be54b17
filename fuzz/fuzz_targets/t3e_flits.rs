//! Decodes bytes of bursts with every T3E decoder: flits, headers, packets, barrier messages,
//! buffers.
//!
//!     cargo +nightly fuzz run t3e_flits
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/t3e_link/decode.rs"]
mod decode;

fuzz_target!(|bytes: &[u8]| {
    decode::decode(bytes);
    decode::decode_with_checks_made_right(bytes);
});
