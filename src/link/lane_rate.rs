//! How fast a lane is.

use core::fmt;

use crate::time::Duration;

/// Signalling rate of one lane before the line code. Which rates there are is a machine's to say,
/// in its [`LinkStandard`](super::LinkStandard).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaneRate {
    code: u8,
    bits_per_second: u64,
}

impl LaneRate {
    /// The rate, in bits per second, that `code` stands for in training frames.
    ///
    /// # Panics
    /// If nothing would ever be sent.
    pub const fn new(code: u8, bits_per_second: u64) -> Self {
        assert!(bits_per_second > 0, "a lane carries something");
        Self {
            code,
            bits_per_second,
        }
    }

    /// The one of `rates` that a code of training frames stands for.
    pub fn from_code(rates: &[Self], code: u8) -> Option<Self> {
        rates.iter().copied().find(|rate| rate.code == code)
    }

    /// Bits per second of one lane.
    pub const fn bits_per_second(self) -> u64 {
        self.bits_per_second
    }

    /// The code that stands for this rate in training frames.
    pub const fn code(self) -> u8 {
        self.code
    }

    /// Time that `bits` bits take on `lanes` lanes, to the nearest picosecond.
    ///
    /// # Panics
    /// If `lanes` is zero: nothing travels on no lane.
    pub const fn time_of(self, bits: u64, lanes: u32) -> Duration {
        assert!(lanes > 0, "a phit needs a lane");
        let rate = self.bits_per_second * lanes as u64;
        Duration::from_ps((bits * 1_000_000_000_000 + rate / 2) / rate)
    }
}

/// As the machines name their rates: `G6_25` is 6.25 Gb/s.
impl fmt::Debug for LaneRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gbps = self.bits_per_second as f64 / 1e9;
        f.write_str(&format!("G{gbps:?}").replace('.', "_"))
    }
}
