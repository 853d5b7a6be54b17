//! Digests that are the same in every process, based on FNV-1a.

use core::fmt;

/// A digest of a sequence of numbers, shown in hexadecimal.
#[derive(Clone, Copy, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl Digest {
    pub const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a `u64` in one step, where FNV-1a adds a byte.
    pub const fn add(&mut self, number: u64) {
        self.0 = (self.0 ^ number)
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(29);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

pub fn digest_of_name(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}
