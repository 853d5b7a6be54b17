//! Signalling rates of lanes.

use core::fmt;

use crate::time::Duration;

/// Signalling rate of one lane, before the line code. A machine lists its rates in its
/// [`LinkStandard`](super::LinkStandard).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaneRate {
    code: u8,
    bits_per_second: u64,
}

impl LaneRate {
    /// The rate of `bits_per_second`, with its `code` in training frames.
    ///
    /// # Panics
    /// If `bits_per_second` is zero.
    pub const fn new(code: u8, bits_per_second: u64) -> Self {
        assert!(bits_per_second > 0, "the rate of a lane must not be zero");
        Self {
            code,
            bits_per_second,
        }
    }

    /// Returns the rate in `rates` that has this code in training frames.
    pub fn from_code(rates: &[Self], code: u8) -> Option<Self> {
        rates.iter().copied().find(|rate| rate.code == code)
    }

    pub const fn bits_per_second(self) -> u64 {
        self.bits_per_second
    }

    /// The code of this rate in training frames.
    pub const fn code(self) -> u8 {
        self.code
    }

    /// Time that `bits` bits take on `lanes` lanes, to the nearest picosecond.
    ///
    /// # Panics
    /// If `lanes` is zero.
    pub const fn time_of(self, bits: u64, lanes: u32) -> Duration {
        assert!(lanes > 0, "at least one lane is needed");
        let rate = self.bits_per_second * lanes as u64;
        Duration::from_ps((bits * 1_000_000_000_000 + rate / 2) / rate)
    }
}

/// Prints the name that machines use for the rate: `G6_25` is 6.25 Gb/s.
impl fmt::Debug for LaneRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gbps = self.bits_per_second as f64 / 1e9;
        f.write_str(&format!("G{gbps:?}").replace('.', "_"))
    }
}
